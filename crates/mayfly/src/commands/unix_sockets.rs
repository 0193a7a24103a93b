//! Unix sockets that processes of this machine listen on, as `/proc/net/unix` lists them for every account, and the
//! control sockets among them: commands find a server by these wherever its configuration has put its files.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// In `/proc/net/unix`: it is listened on.
const LISTENS: &str = "00010000";
/// Control sockets that commands look at; one server has one.
const MAX_CONTROL_SOCKETS: usize = 256;
/// How the name of a control socket ends unless the configuration names another.
const CONTROL: &str = "control";
/// The name of the processes of a server.
const SERVER: &str = "mayfly";

/// The kind of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    Stream,
    Packets,
}

/// A socket with a path that a process listens on.
#[derive(Debug, PartialEq, Eq)]
pub struct ListeningSocket {
    pub kind: SocketKind,
    inode: u64,
    pub path: PathBuf,
}

#[cfg(test)]
impl ListeningSocket {
    pub fn of(kind: SocketKind, path: &str) -> ListeningSocket {
        ListeningSocket {
            kind,
            inode: 0,
            path: path.into(),
        }
    }
}

/// All of them.
///
/// # Errors
/// The list cannot be read.
pub fn all() -> std::io::Result<Vec<ListeningSocket>> {
    // Each account can give a socket any bytes as its path.
    let list = std::fs::read("/proc/net/unix")?;
    Ok(listed(&String::from_utf8_lossy(&list)))
}

/// The control sockets of servers that this account has started. A socket whose name does not show it is known by its
/// mode and by the process that holds it. Another account cannot make a socket that is ours.
pub fn control_sockets() -> Vec<PathBuf> {
    let own = geteuid().as_raw();
    let is_private = |path: &Path| {
        let facts = std::fs::symlink_metadata(path);
        facts.is_ok_and(|it| {
            it.file_type().is_socket() && it.uid() == own && it.mode() & 0o777 == 0o600
        })
    };
    let sockets = all().unwrap_or_default().into_iter();
    let private: Vec<_> = sockets
        .filter(|it| may_be_control(it) && is_private(&it.path))
        .collect();
    let is_named = |it: &ListeningSocket| it.path.extension().is_some_and(|end| end == CONTROL);
    let of_servers = match private.iter().all(is_named) {
        true => BTreeSet::new(),
        false => held_by_servers(),
    };
    let found = private
        .into_iter()
        .filter(|it| is_named(it) || of_servers.contains(&it.inode));
    let mut paths: Vec<PathBuf> = found.map(|it| it.path).collect();
    paths.sort();
    paths.dedup();
    paths.truncate(MAX_CONTROL_SOCKETS);
    paths
}

/// A server holds the sockets of its PHP as well: these take no commands.
fn may_be_control(socket: &ListeningSocket) -> bool {
    let folder = socket.path.parent().and_then(Path::file_name);
    let is_of_php = folder
        .and_then(|name| name.to_str())
        .is_some_and(|name| php_pool::pid_of_folder(name).is_some());
    socket.kind == SocketKind::Stream && !is_of_php
}

/// The numbers of all sockets that processes with the name of a server have open, as far as this account may look.
fn held_by_servers() -> BTreeSet<u64> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_server = |process: &PathBuf| {
        std::fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim_end() == SERVER)
    };
    processes
        .map(|process| process.path())
        .filter(is_server)
        .flat_map(|process| {
            std::fs::read_dir(process.join("fd"))
                .into_iter()
                .flatten()
                .flatten()
        })
        .filter_map(|file| {
            let target = std::fs::read_link(file.path()).ok()?;
            target
                .to_str()?
                .strip_prefix("socket:[")?
                .strip_suffix(']')?
                .parse()
                .ok()
        })
        .collect()
}

fn listed(list: &str) -> Vec<ListeningSocket> {
    let sockets = list.lines().filter_map(|line| {
        // Number, references, protocol, flags, type, state, inode, path.
        let columns = line.get(..line.find('/')?)?;
        let mut words = columns.split_ascii_whitespace();
        let (flags, kind, _state) = (words.nth(3)?, words.next()?, words.next()?);
        let inode = words.next()?.parse().ok()?;
        let path = PathBuf::from(line.get(line.find('/')?..)?);
        let kind = match kind {
            "0001" => SocketKind::Stream,
            "0005" => SocketKind::Packets,
            _ => return None,
        };
        (flags == LISTENS).then_some(ListeningSocket { kind, inode, path })
    });
    sockets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_read_with_spaces_in_their_paths_and_columns() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 41 /run/mayfly/learn.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 42 /run/a b.control\n\
            0000000000000000: 00000002 00000000 00000000 0001 01 43 /run/not-listening\n\
            0000000000000000: 00000002 00000000 00010000 0002 01 44 /run/datagrams\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 45 @mayfly\n\
            0000000000000000: 00000002 00000000 00010000 0001 01    46 /run/wide\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 47\n";
        let found = listed(list);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.kind, it.inode, it.path.to_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                (SocketKind::Packets, 41, "/run/mayfly/learn.sock"),
                (SocketKind::Stream, 42, "/run/a b.control"),
                (SocketKind::Stream, 46, "/run/wide"),
            ]
        );
        assert!(listed("").is_empty() && listed("/").is_empty());
    }

    #[test]
    fn sockets_of_php_are_no_control_sockets() {
        for (path, expected) in [
            ("/run/mayfly/serve-127.0.0.1-8080.control", true),
            ("/run/own", true),
            ("/tmp/mayfly-php-site-1289-0/php.sock", false),
        ] {
            let socket = ListeningSocket::of(SocketKind::Stream, path);
            assert_eq!(may_be_control(&socket), expected, "{path}");
        }
    }

    #[test]
    fn a_control_socket_is_found_by_its_end_and_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            (path, listener)
        };
        let (control, _first) = make("a.control", 0o600);
        let (_open, _second) = make("b.control", 0o666);
        let (_other, _third) = make("other", 0o600);
        let found = control_sockets();
        let found: Vec<_> = found
            .iter()
            .filter(|path| path.starts_with(folder.path()))
            .collect();
        assert_eq!(found, [&control]);
    }
}
