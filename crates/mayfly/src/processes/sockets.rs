//! Listening sockets: bound by the first process, kept over reloads, and
//! closed when no configuration names them any more.
//!
//! Like nginx, we treat a unix socket whose file is in the way as an error, and remove the file at the
//! end. A port that is still taken is tried again for a moment, since the server before us may be
//! about to leave.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use server::worker::{Listening, Sockets};
use site::{ListenAddress, ListenOptions};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::processes::journal::Journal;
use crate::processes::passed_sockets::PassedSocket;
use crate::processes::socket_holder;
use system_error::SystemError;

/// nginx's default on Linux.
const BACKLOG: i32 = 511;
/// Packets of all clients wait here: some hundred kilobytes come in one turn of a worker.
const UDP_BUFFER_BYTES: usize = 2 * 1024 * 1024;
/// How often a taken port is tried ...
const TRIES: u32 = 5;
/// ... with this pause: nginx's 2.5 seconds in all.
const PAUSE: Duration = Duration::from_millis(500);

/// The sockets to listen on.
pub type WantedSockets = Vec<WantedSocket>;
type WantedSocket = (ListenAddress, ListenOptions);

/// The sockets that are open, and how they were asked for.
#[derive(Default)]
pub struct BoundSockets {
    open: HashMap<ListenAddress, (ListenOptions, Vec<Arc<Listening>>)>,
    /// Files of unix sockets that the service manager made and keeps.
    kept_files: HashSet<PathBuf>,
}

/// The sockets of a configuration that is not in force yet: those that stay, and new ones.
/// Dropped, the new ones close and their files are removed.
pub struct NewSockets {
    all: BoundSockets,
    /// The files of the new ones.
    files: Vec<PathBuf>,
}

impl BoundSockets {
    /// Takes the sockets that the service manager has bound.
    pub fn passed(sockets: Vec<PassedSocket>) -> BoundSockets {
        let mut bound = BoundSockets::default();
        for PassedSocket {
            address, socket, ..
        } in sockets
        {
            if let ListenAddress::Unix(path) = &address {
                bound.kept_files.insert(path.clone());
            }
            let (_, group) = bound.open.entry(address).or_default();
            group.push(socket);
        }
        bound
    }

    /// The sockets, as workers want them.
    pub fn sockets(&self) -> Sockets {
        let group = |(address, (_, group)): (&ListenAddress, &(ListenOptions, Vec<_>))| {
            (address.clone(), group.clone())
        };
        self.open.iter().map(group).collect()
    }

    /// Binds the wanted sockets; one that is open already stays as it is.
    ///
    /// # Errors
    /// nginx's messages; newly bound sockets are closed again.
    pub async fn bind(
        &self,
        wanted: &WantedSockets,
        workers: usize,
        journal: &Journal,
    ) -> Result<NewSockets, Vec<String>> {
        let (mut sockets, missing) = self.keep(wanted);
        let mut taken = sockets.bind_all(missing, workers)?;
        if taken.is_empty() {
            return Ok(sockets);
        }
        for (socket, failure) in &taken {
            journal.emerg(failure.message(&socket.0));
        }
        let pause = PAUSE.as_millis();
        journal.notice(format_args!("try again to bind() each {pause}ms"));
        for _ in 1..TRIES {
            tokio::time::sleep(PAUSE).await;
            let missing = taken.into_iter().map(|(socket, _)| socket).collect();
            taken = sockets.bind_all(missing, workers)?;
            if taken.is_empty() {
                return Ok(sockets);
            }
        }
        let addresses: Vec<String> = taken.iter().map(|(it, _)| shown(&it.0)).collect();
        let addresses = addresses.join(", ");
        Err(vec![format!("still could not bind() to {addresses}")])
    }

    /// Returns the wanted sockets that are open already, and the missing ones.
    fn keep<'w>(&self, wanted: &'w WantedSockets) -> (NewSockets, Vec<&'w WantedSocket>) {
        let mut kept = BoundSockets {
            open: HashMap::new(),
            kept_files: self.kept_files.clone(),
        };
        let mut missing = Vec::new();
        for socket in wanted {
            let (address, options) = socket;
            match self.open.get(address) {
                _ if is_covered(address, wanted) => {}
                Some((_, group)) => {
                    let kept_as = (options.clone(), group.clone());
                    kept.open.insert(address.clone(), kept_as);
                }
                None => missing.push(socket),
            }
        }
        let sockets = NewSockets {
            all: kept,
            files: Vec::new(),
        };
        (sockets, missing)
    }

    /// Takes the sockets of another process, which goes on with them for a while.
    pub fn inherited(sockets: Sockets) -> BoundSockets {
        let open = sockets.into_iter().map(|(address, group)| {
            // Their options are those of the other process: a reload cannot change them, and neither
            // can an upgrade.
            (address, (ListenOptions::default(), group))
        });
        BoundSockets {
            open: open.collect(),
            kept_files: HashSet::new(),
        }
    }

    /// Forgets those that are not wanted; their files stay, as another process has them.
    pub fn retain_wanted(&mut self, wanted: &WantedSockets, workers: usize) {
        self.open.retain(|address, _| {
            let is_named = wanted.iter().any(|(it, _)| it == address);
            is_named && !is_covered(address, wanted)
        });
        for (_, group) in self.open.values_mut() {
            // One that no worker accepts from would take connections that are never served.
            group.truncate(workers.max(1));
        }
    }

    /// Removes the files of unix sockets, but those of `held`, which another process goes on with. The
    /// sockets themselves close when their last user lets go.
    pub fn close(&mut self, held: &HashSet<ListenAddress>) {
        let gone = std::mem::take(self);
        gone.remove_files_but(|address| held.contains(address));
    }

    /// Removes the files of unix sockets that are not kept.
    fn remove_files_but(&self, is_kept: impl Fn(&ListenAddress) -> bool) {
        for address in self.open.keys() {
            if let ListenAddress::Unix(path) = address
                && !is_kept(address)
                && !self.kept_files.contains(path)
            {
                // Another process may have been faster.
                let _ = trusted_path::remove(path);
            }
        }
    }
}

impl NewSockets {
    /// The sockets, as workers want them.
    pub fn sockets(&self) -> Sockets {
        self.all.sockets()
    }

    /// Their configuration is in force: they take the place of `former`, of which those that
    /// the configuration has no more are closed.
    pub fn replace(mut self, former: &mut BoundSockets) {
        self.files.clear();
        let gone = std::mem::replace(former, std::mem::take(&mut self.all));
        gone.remove_files_but(|address| former.open.contains_key(address));
    }

    /// Binds each of them; gives those back whose address is taken.
    fn bind_all<'w>(
        &mut self,
        missing: Vec<&'w WantedSocket>,
        workers: usize,
    ) -> Result<Vec<(&'w WantedSocket, Failure)>, Vec<String>> {
        let (mut taken, mut errors) = (Vec::new(), Vec::new());
        for socket in missing {
            let (address, options) = socket;
            match listen_group(address, options, workers) {
                Ok(group) => {
                    if let ListenAddress::Unix(path) = address {
                        self.files.push(path.clone());
                    }
                    let opened = (options.clone(), group);
                    self.all.open.insert(address.clone(), opened);
                }
                Err(failure) if failure.error.kind() == io::ErrorKind::AddrInUse => {
                    taken.push((socket, failure));
                }
                Err(failure) => errors.push(failure.message(address)),
            }
        }
        if errors.is_empty() {
            return Ok(taken);
        }
        let taken = taken.iter();
        errors.extend(taken.map(|(socket, failure)| failure.message(&socket.0)));
        Err(errors)
    }
}

impl Drop for NewSockets {
    fn drop(&mut self) {
        for path in &self.files {
            // Another process may have been faster.
            let _ = trusted_path::remove(path);
        }
    }
}

/// `listen *:80` takes connections to `listen 10.0.0.1:80`: one socket, as in nginx; the server is
/// chosen by the address the connection came to.
fn is_covered(address: &ListenAddress, wanted: &WantedSockets) -> bool {
    wanted.iter().any(|(other, _)| match (address, other) {
        (ListenAddress::Tcp(address), ListenAddress::Tcp(other))
        | (ListenAddress::Udp(address), ListenAddress::Udp(other)) => {
            !address.ip().is_unspecified()
                && other.ip().is_unspecified()
                && other.port() == address.port()
                && other.is_ipv4() == address.is_ipv4()
        }
        _ => false,
    })
}

struct Failure {
    call: &'static str,
    error: io::Error,
}

impl Failure {
    fn of(call: &'static str) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure { call, error }
    }

    fn message(&self, address: &ListenAddress) -> String {
        let message = format!(
            "{} to {} failed ({})",
            self.call,
            shown(address),
            SystemError(&self.error)
        );
        match (self.error.kind(), address) {
            (io::ErrorKind::AddrInUse, _) => match socket_holder::holder(address) {
                Some(holder) => format!("{message}; {holder} listens there"),
                None => message,
            },
            (io::ErrorKind::PermissionDenied, ListenAddress::Tcp(at) | ListenAddress::Udp(at))
                if self.call == "bind()" =>
            {
                format!("{message}; {}", right_to_bind(at.port()))
            }
            _ => message,
        }
    }
}

/// How to listen on a port that is not for everybody.
fn right_to_bind(port: u16) -> String {
    let program = std::env::current_exe();
    let program = program.map_or_else(|_| "mayfly".to_owned(), |it| it.display().to_string());
    format!(
        "port {port} is for root: start as root, or let this program have it by \
         setcap cap_net_bind_service=+ep {program} (in a systemd unit: \
         AmbientCapabilities=CAP_NET_BIND_SERVICE), or listen on a port from 1024 on"
    )
}

/// `127.0.0.1:80`, `unix:/run/x.sock`
pub fn shown(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) | ListenAddress::Udp(address)
            if address.ip().is_unspecified() && address.is_ipv4() =>
        {
            format!("0.0.0.0:{}", address.port())
        }
        ListenAddress::Tcp(address) | ListenAddress::Udp(address) => address.to_string(),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// With `reuseport` each worker has a socket of its own.
fn listen_group(
    address: &ListenAddress,
    options: &ListenOptions,
    workers: usize,
) -> Result<Vec<Arc<Listening>>, Failure> {
    // All packets of QUIC are taken by one worker.
    let has_several = options.reuseport && !options.quic;
    let count = if has_several { workers.max(1) } else { 1 };
    (0..count)
        .map(|_| match address {
            ListenAddress::Tcp(address) => listen_tcp(*address, options),
            ListenAddress::Unix(path) => listen_unix(path, options),
            ListenAddress::Udp(address) => listen_udp(*address, options),
        })
        .map(|socket| socket.map(Arc::new))
        .collect()
}

fn listen_tcp(address: SocketAddr, options: &ListenOptions) -> Result<Listening, Failure> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)
        .map_err(Failure::of("socket()"))?;
    let set = || {
        socket.set_reuse_address(true)?;
        if options.reuseport {
            socket.set_reuse_port(true)?;
        }
        if address.is_ipv6() {
            socket.set_only_v6(options.ipv6only.unwrap_or(true))?;
        }
        if let Some(on) = options.so_keepalive {
            socket.set_keepalive(on)?;
        }
        set_common(&socket, options)
    };
    set().map_err(Failure::of("setsockopt()"))?;
    socket
        .bind(&address.into())
        .map_err(Failure::of("bind()"))?;
    socket
        .listen(backlog(options))
        .map_err(Failure::of("listen()"))?;
    Ok(Listening::Tcp(socket.into()))
}

fn listen_udp(address: SocketAddr, options: &ListenOptions) -> Result<Listening, Failure> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)
        .map_err(Failure::of("socket()"))?;
    let set = || {
        if address.is_ipv6() {
            socket.set_only_v6(options.ipv6only.unwrap_or(true))?;
        }
        // If the kernel allows less, it sets the most that it allows.
        let _ = socket.set_recv_buffer_size(UDP_BUFFER_BYTES);
        let _ = socket.set_send_buffer_size(UDP_BUFFER_BYTES);
        set_common(&socket, options)
    };
    set().map_err(Failure::of("setsockopt()"))?;
    socket
        .bind(&address.into())
        .map_err(Failure::of("bind()"))?;
    Ok(Listening::Udp(socket.into()))
}

fn listen_unix(path: &Path, options: &ListenOptions) -> Result<Listening, Failure> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(Failure::of("socket()"))?;
    set_common(&socket, options).map_err(Failure::of("setsockopt()"))?;
    let address = SockAddr::unix(path).map_err(Failure::of("bind()"))?;
    socket.bind(&address).map_err(Failure::of("bind()"))?;
    // nginx lets everybody connect: the folder decides who may.
    let opened = trusted_path::set_socket_mode(path, 0o666)
        .map_err(Failure::of("chmod()"))
        .and_then(|()| {
            let listens = socket.listen(backlog(options));
            listens.map_err(Failure::of("listen()"))
        });
    if let Err(failure) = opened {
        // The socket is bound, so that its file exists by now.
        let _ = trusted_path::remove(path);
        return Err(failure);
    }
    Ok(Listening::Unix(socket.into()))
}

fn set_common(socket: &Socket, options: &ListenOptions) -> io::Result<()> {
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    if let Some(size) = options.rcvbuf {
        socket.set_recv_buffer_size(bytes(size))?;
    }
    if let Some(size) = options.sndbuf {
        socket.set_send_buffer_size(bytes(size))?;
    }
    socket.set_nonblocking(true)
}

fn backlog(options: &ListenOptions) -> i32 {
    options.backlog.map_or(BACKLOG, |backlog| {
        i32::try_from(backlog).unwrap_or(i32::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> ListenAddress {
        ListenAddress::Tcp(text.parse().unwrap())
    }

    #[test]
    fn a_wildcard_covers_the_addresses_of_its_port_and_family() {
        let cases = [
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("127.0.0.1:81", "0.0.0.0:80", false),
            ("127.0.0.1:80", "[::]:80", false),
            ("[::1]:80", "[::]:80", true),
            ("0.0.0.0:80", "0.0.0.0:80", false),
        ];
        for (address, other, expected) in cases {
            let wanted = vec![
                (tcp(address), ListenOptions::default()),
                (tcp(other), ListenOptions::default()),
            ];
            assert_eq!(
                is_covered(&tcp(address), &wanted),
                expected,
                "{address} and {other}"
            );
        }
    }

    fn unix(path: &Path) -> WantedSockets {
        vec![(
            ListenAddress::Unix(path.to_owned()),
            ListenOptions::default(),
        )]
    }

    async fn bind(open: &BoundSockets, wanted: &WantedSockets) -> Result<NewSockets, Vec<String>> {
        open.bind(wanted, 1, &Journal::default()).await
    }

    #[tokio::test]
    async fn sockets_of_a_configuration_that_is_given_up_are_closed_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let mut open = BoundSockets::default();
        bind(&open, &unix(&old)).await.unwrap().replace(&mut open);
        let both = [unix(&old), unix(&new)].concat();
        let given_up = bind(&open, &both).await.unwrap();
        assert!(old.exists() && new.exists());
        drop(given_up);
        assert!(old.exists() && !new.exists());
        assert!(std::os::unix::net::UnixStream::connect(&old).is_ok());

        bind(&open, &unix(&new)).await.unwrap().replace(&mut open);
        assert!(!old.exists() && new.exists());
        open.close(&HashSet::from([ListenAddress::Unix(new.clone())]));
        assert!(new.exists(), "it is another's");
        std::fs::remove_file(&new).unwrap();
        bind(&open, &unix(&new)).await.unwrap().replace(&mut open);
        open.close(&HashSet::new());
        assert!(!new.exists());
    }

    #[tokio::test]
    async fn one_socket_that_cannot_be_bound_closes_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let (good, bad) = (folder.path().join("good"), folder.path().join("none/bad"));
        let wanted = [unix(&good), unix(&bad)].concat();
        let refused = bind(&BoundSockets::default(), &wanted).await;
        assert!(refused.is_err_and(|errors| errors[0].contains("none/bad")));
        assert!(!good.exists());
    }
}
