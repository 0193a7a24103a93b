//! The servers that learn pages, found by the sockets of their pools among all that are listened on. A socket counts if its
//! folder can be changed by root and this account alone.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use learn_record::{Acknowledgement, Doubt, DoubtReason, Hello, MAX_SERVERS, Message, VERSION};
use php_pool::{LEARNING_SOCKET_NAME, pid_of_folder};
use preload::Changer;
use rustix::process::geteuid;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::commands::unix_sockets::{self, ListeningSocket, SocketKind};

/// How long a server has to answer: as long as the library waits for it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// It closes a connection where it does not understand, or hears many already.
const REFUSES: &str = "is another version of Mayfly, or hears too many processes";

/// One socket of each server. It reaches all pools of the account, and for root all pools.
pub struct NotifiedServers(Vec<NotifiedServer>);

struct NotifiedServer {
    path: PathBuf,
    /// Open until this process ends: a server that loses a process which is alive counts nothing as known.
    connection: Socket,
}

#[derive(Debug, PartialEq, Eq)]
pub struct PoolSocket {
    /// The process of its server.
    server: u32,
    path: PathBuf,
}

impl NotifiedServers {
    /// # Errors
    /// The reason why there is none, for people.
    pub fn find() -> Result<Vec<PoolSocket>, String> {
        let all = unix_sockets::all().map_err(|error| format!("/proc/net/unix: {error}"))?;
        let own = geteuid();
        let made_at = |path: &Path| {
            let facts = std::fs::symlink_metadata(path).ok()?;
            let may_connect = facts.file_type().is_socket()
                && (own.is_root() || facts.uid() == own.as_raw())
                && path.parent().is_some_and(is_own);
            may_connect.then(|| facts.modified().ok())?
        };
        let found = of_pools(all).into_iter();
        let found = found.filter_map(|socket| Some((made_at(&socket.path)?, socket)));
        let mut found: Vec<_> = found.collect();
        // The last one that was made: after a reload, the pool of an earlier one may be about to end.
        found.sort_by_key(|(made_at, socket)| (socket.server, Reverse(*made_at)));
        found.dedup_by_key(|(_, socket)| socket.server);
        if found.is_empty() {
            return Err(format!(
                "no running server learns pages of a pool of {} (cache_learn)",
                match own.is_root() {
                    true => "its own, started by root",
                    false => "this account",
                }
            ));
        }
        bounded(found.into_iter().map(|(_, socket)| socket).collect())
    }

    /// Greets each of them. A server that does not listen to this program is left out, and the reason is printed.
    pub fn greet(
        found: Vec<PoolSocket>,
        mut complain: impl FnMut(String),
    ) -> Option<NotifiedServers> {
        let greeted =
            found
                .into_iter()
                .filter_map(|PoolSocket { server, path }| match greet(&path) {
                    Ok(connection) => Some(NotifiedServer { path, connection }),
                    Err(error) => {
                        complain(format!("the server with process {server} {error}"));
                        None
                    }
                });
        let servers: Vec<_> = greeted.collect();
        (!servers.is_empty()).then_some(NotifiedServers(servers))
    }

    /// Between colons.
    pub fn list(&self) -> OsString {
        let paths = self.0.iter().map(|server| server.path.as_os_str());
        paths.collect::<Vec<_>>().join(":".as_ref())
    }

    /// Whether one of them is gone.
    pub fn has_gone(&self) -> bool {
        self.0.iter().any(|server| !server.path.exists())
    }

    /// A process of the command is not heard: nothing counts as known until this process has ended.
    pub fn tell_doubt(&mut self) {
        for server in &mut self.0 {
            let notified = doubt(&server.connection);
            // Another process may serve now; one that does not listen any more shows no page by its old knowledge.
            if notified.is_err()
                && let Ok(connection) = greet(&server.path)
                && doubt(&connection).is_ok()
            {
                server.connection = connection;
            }
        }
    }
}

fn greet(path: &Path) -> Result<Socket, String> {
    let greeted = connect(path).and_then(|socket| {
        let hello = Message::Hello(Hello {
            version: VERSION,
            pid: std::process::id(),
            is_again: false,
            is_command: true,
            wants_acknowledgement: true,
            unseen_extensions: Vec::new(),
        });
        send(&socket, &hello)?;
        let mut answer = [0; Acknowledgement::BYTES];
        let read = (&socket).read(&mut answer)?;
        Ok((socket, read))
    });
    match greeted {
        Ok((socket, 1..)) => Ok(socket),
        Ok(_) => Err(REFUSES.to_owned()),
        Err(error) => Err(match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => REFUSES.to_owned(),
            ErrorKind::WouldBlock => "does not answer".to_owned(),
            _ => format!("cannot be told: {error}"),
        }),
    }
}

/// Connecting waits for a place in the server's queue, as sending does.
fn connect(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    socket.set_write_timeout(Some(ANSWERS_WITHIN))?;
    socket.set_read_timeout(Some(ANSWERS_WITHIN))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(socket)
}

fn doubt(socket: &Socket) -> io::Result<()> {
    let reason = DoubtReason::Missed;
    let detail = b"";
    send(socket, &Message::Doubt(Doubt { reason, detail }))
}

fn send(socket: &Socket, message: &Message<'_>) -> io::Result<()> {
    let mut packet = Vec::new();
    message.encode(&mut packet);
    socket.send(&packet).map(drop)
}

/// Returns the sockets, or an error if they are too many: a process reports to [`MAX_SERVERS`] at most. A part of them
/// would show pages that the others do not.
fn bounded(found: Vec<PoolSocket>) -> Result<Vec<PoolSocket>, String> {
    let count = found.len();
    if count <= MAX_SERVERS {
        return Ok(found);
    }
    Err(format!(
        "{count} servers learn pages here, and a command tells {MAX_SERVERS} at most: none is told. Run it as the account of \
         the site's PHP (sudo -u ACCOUNT mayfly run -- ...), which tells only those servers whose pools have this account"
    ))
}

/// Whether only this account and root can replace the file at `path`.
pub fn is_own(path: &Path) -> bool {
    let own = Changer::Account(geteuid().as_raw());
    let is_itself = path.canonicalize().is_ok_and(|resolved| resolved == path);
    is_itself && preload::changers(path).is_ok_and(|all| all.iter().all(|it| *it == own))
}

/// The sockets of pools, with the process of their server.
fn of_pools(all: Vec<ListeningSocket>) -> Vec<PoolSocket> {
    let of_pool = |ListeningSocket { kind, path, .. }| {
        let server = pid_of_folder(path.parent()?.file_name()?.to_str()?)?;
        let is_it = kind == SocketKind::Packets
            && path.file_name()? == LEARNING_SOCKET_NAME
            && !path.to_str()?.contains(':');
        is_it.then_some(PoolSocket { server, path })
    };
    all.into_iter().filter_map(of_pool).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn more_servers_than_a_command_tells_are_refused_with_what_to_do() {
        let sockets = |count: u32| {
            let path = PathBuf::new;
            (0..count)
                .map(|server| PoolSocket {
                    server,
                    path: path(),
                })
                .collect()
        };
        assert_eq!(bounded(sockets(8)).unwrap().len(), 8);
        let why = bounded(sockets(9)).unwrap_err();
        assert!(
            why.starts_with("9 servers") && why.contains("sudo -u ACCOUNT mayfly run"),
            "{why}"
        );
    }

    #[test]
    fn sockets_of_pools_are_found_among_all_others() {
        let socket = |kind, path: &str| ListeningSocket::of(kind, path);
        let found = of_pools(vec![
            socket(
                SocketKind::Packets,
                "/run/mayfly/mayfly-php-site-12-0/learn.sock",
            ),
            socket(SocketKind::Packets, "/run/mayfly-php-a-b-13-1/learn.sock"),
            socket(SocketKind::Stream, "/run/mayfly-php-site-14-0/learn.sock"),
            socket(SocketKind::Packets, "/run/mayfly-php-site-16-0/php.sock"),
            socket(SocketKind::Packets, "/tmp/mayfly-php-:-17-0/learn.sock"),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.server, it.path.to_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                (12, "/run/mayfly/mayfly-php-site-12-0/learn.sock"),
                (13, "/run/mayfly-php-a-b-13-1/learn.sock"),
            ]
        );
    }

    #[test]
    fn a_server_is_told_only_if_it_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learn.sock");
        let listener = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(1).unwrap();
        let found = || {
            vec![PoolSocket {
                server: 7,
                path: path.clone(),
            }]
        };
        let mut said = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(listener.accept().unwrap()));
            let notified = NotifiedServers::greet(found(), |why| said.push(why));
            assert!(notified.is_none());
        });
        assert_eq!(said, [format!("the server with process 7 {REFUSES}")]);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (connection, _) = listener.accept().unwrap();
                let mut packet = [0; 256];
                let mut hear = || {
                    let read = (&connection).read(&mut packet).unwrap();
                    matches!(Message::decode(&packet[..read]), Ok(Message::Doubt(_)))
                };
                let is_doubt = hear();
                let answer = Acknowledgement {
                    number: 0,
                    hold_milliseconds: 0,
                };
                (&connection).write_all(&answer.encode()).unwrap();
                (is_doubt, hear())
            });
            let mut notified = NotifiedServers::greet(found(), |why| panic!("{why}")).unwrap();
            assert_eq!(notified.list(), path);
            notified.tell_doubt();
            assert_eq!(server.join().unwrap(), (false, true));
            std::fs::remove_file(&path).unwrap();
            assert!(notified.has_gone());
        });
    }

    #[test]
    fn a_folder_that_others_may_change_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        assert!(is_own(&path));
        std::os::unix::fs::symlink(&path, path.join("link")).unwrap();
        assert!(!is_own(&path.join("link")), "it may lead elsewhere");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(!is_own(&path));
    }
}
