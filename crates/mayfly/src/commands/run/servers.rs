//! The servers that learn pages, found by the sockets of their pools: `/proc/net/unix` lists the paths of all sockets that
//! are listened on, for every account. A socket counts if its folder can be changed by root and this account alone.

use std::ffi::OsString;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use learn_record::{Doubt, DoubtReason, Hello, MOST_SERVERS, Message, VERSION};
use php_pool::{LEARNING_SOCKET_NAME, pid_of_folder};
use preload::Changer;
use rustix::process::geteuid;
use socket2::{Domain, SockAddr, Socket, Type};

/// In `/proc/net/unix`: it is listened on, and has packets.
const LISTENS: &str = "00010000";
const PACKETS: &str = "0005";

/// One socket of each server. It reaches all pools of the account, and for root all pools.
pub struct ToldServers(Vec<PathBuf>);

impl ToldServers {
    /// # Errors
    /// Why there is none, for people.
    pub fn find() -> Result<ToldServers, String> {
        // Each account can give a socket any bytes as its path.
        let list = std::fs::read("/proc/net/unix");
        let list = list.map_err(|error| format!("/proc/net/unix: {error}"))?;
        let own = geteuid();
        let may_connect = |path: &Path| {
            let facts = std::fs::symlink_metadata(path);
            let may = facts.is_ok_and(|facts| {
                facts.file_type().is_socket() && (own.is_root() || facts.uid() == own.as_raw())
            });
            may && path.parent().is_some_and(is_own)
        };
        let mut paths: Vec<(u32, PathBuf)> = listed(&String::from_utf8_lossy(&list));
        paths.retain(|(_, path)| may_connect(path));
        paths.sort();
        paths.dedup_by_key(|(server, _)| *server);
        if paths.is_empty() {
            return Err(format!(
                "no running server learns pages of a pool of {} (cache_learn)",
                match own.is_root() {
                    true => "its own, started by root",
                    false => "this account",
                }
            ));
        }
        if paths.len() > MOST_SERVERS {
            return Err(format!("more than {MOST_SERVERS} servers learn pages"));
        }
        Ok(ToldServers(
            paths.into_iter().map(|(_, path)| path).collect(),
        ))
    }

    /// Between colons.
    pub fn list(&self) -> OsString {
        let paths: Vec<&std::ffi::OsStr> = self.0.iter().map(|path| path.as_os_str()).collect();
        paths.join(":".as_ref())
    }

    /// Is one of them gone?
    pub fn has_gone(&self) -> bool {
        self.0.iter().any(|path| !path.exists())
    }

    /// A process of the command is not heard: nothing counts as known until this process has ended.
    pub fn tell_doubt(&self) {
        for path in &self.0 {
            // One that does not listen any more shows no page by what it knew.
            let _ = doubt(path);
        }
    }
}

fn doubt(path: &Path) -> std::io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    socket.connect(&SockAddr::unix(path)?)?;
    let hello = Message::Hello(Hello {
        version: VERSION,
        pid: std::process::id(),
        is_again: false,
        is_command: true,
        unseen_extensions: Vec::new(),
    });
    let doubt = Message::Doubt(Doubt {
        reason: DoubtReason::Missed,
        detail: b"",
    });
    for message in [hello, doubt] {
        let mut packet = Vec::new();
        message.encode(&mut packet);
        socket.send(&packet)?;
    }
    Ok(())
}

/// Can nobody but this account and root put something else there?
pub fn is_own(path: &Path) -> bool {
    let own = Changer::Account(geteuid().as_raw());
    let is_itself = path.canonicalize().is_ok_and(|resolved| resolved == path);
    is_itself && preload::changers(path).is_ok_and(|all| all.iter().all(|it| *it == own))
}

/// The sockets of pools, with the process of their server.
fn listed(list: &str) -> Vec<(u32, PathBuf)> {
    let paths = list.lines().filter_map(|line| {
        // Number, references, protocol, flags, type, state, inode, path.
        let mut words = line.splitn(8, ' ').filter(|word| !word.is_empty());
        let (flags, kind) = (words.nth(3)?, words.next()?);
        let path = line.get(line.find('/')?..)?;
        let is_it = flags == LISTENS && kind == PACKETS && !path.contains(':');
        let path = Path::new(path);
        let folder = path.parent()?.file_name()?.to_str()?;
        let server = pid_of_folder(folder)?;
        let is_it = is_it && path.file_name()? == LEARNING_SOCKET_NAME;
        is_it.then(|| (server, path.to_owned()))
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_pools_are_found_among_all_others() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 41 /run/mayfly/mayfly-php-site-12-0/learn.sock\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 42 /run/mayfly-php-a-b-13-1/learn.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 43 /run/mayfly-php-site-14-0/learn.sock\n\
            0000000000000000: 00000002 00000000 00000000 0005 01 44 /run/mayfly-php-site-15-0/learn.sock\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 45 /run/mayfly-php-site-16-0/php.sock\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 46 /tmp/mayfly-php-:-17-0/learn.sock\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 47 @mayfly\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 48\n";
        let found = listed(list);
        let found: Vec<_> = found
            .iter()
            .map(|(server, path)| (*server, path.to_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                (12, "/run/mayfly/mayfly-php-site-12-0/learn.sock"),
                (13, "/run/mayfly-php-a-b-13-1/learn.sock"),
            ]
        );
        assert!(listed("").is_empty() && listed("/").is_empty());
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
