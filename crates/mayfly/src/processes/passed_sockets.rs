//! Sockets that a service manager has bound and passes at the start (`sd_listen_fds(3)`): a port below
//! 1024 needs no rights here then, and connections wait while the server restarts.
//!
//! A `listen` of the same address takes such a socket instead of binding one. A socket that no `listen`
//! asks for is named in the log, by the name that the manager gave it, and closed.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use inherited_files::InheritedFiles;
use rustix::net::SocketType;
use server::worker::Listening;
use site::ListenAddress;

use crate::processes::journal::Journal;
use crate::processes::sockets;

/// A service has a few; systemd passes no more than its limit of open files.
const MAX_PASSED: usize = 1024;

/// A socket that was passed.
pub struct PassedSocket {
    pub address: ListenAddress,
    pub socket: Arc<Listening>,
    name: String,
}

/// Takes the sockets that the environment declares as passed to this process.
pub fn take(inherited: &mut InheritedFiles, journal: &Journal) -> Vec<PassedSocket> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let is_ours = number("LISTEN_PID") == usize::try_from(std::process::id()).ok();
    let count = number("LISTEN_FDS").unwrap_or(0).min(MAX_PASSED);
    if !is_ours || count == 0 {
        return Vec::new();
    }
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').map(str::to_owned);
    let names = names.chain(std::iter::repeat("unknown".to_owned()));
    let files = inherited.take_first(count).into_iter();
    let passed = files.zip(names).filter_map(|(file, name)| {
        let found = listening(file);
        if found.is_none() {
            journal.warn(format_args!(
                "what the service manager passed as \"{name}\" is no socket to listen on"
            ));
        }
        let (address, socket) = found?;
        Some(PassedSocket {
            address,
            socket: Arc::new(socket),
            name,
        })
    });
    passed.collect()
}

/// Logs the passed sockets that the configuration does not have.
pub fn name_unwanted(
    passed: &[PassedSocket],
    is_wanted: impl Fn(&ListenAddress) -> bool,
    journal: &Journal,
) {
    for socket in passed.iter().filter(|it| !is_wanted(&it.address)) {
        journal.warn(format_args!(
            "the service manager passed \"{}\" on {}, where no \"listen\" is: it is closed",
            socket.name,
            sockets::shown(&socket.address)
        ));
    }
}

/// The address of a socket, and the socket as workers want it; `None` if it does not listen.
fn listening(file: OwnedFd) -> Option<(ListenAddress, Listening)> {
    let kind = rustix::net::sockopt::socket_type(file.as_fd()).ok()?;
    let accepts = rustix::net::sockopt::socket_acceptconn(file.as_fd()).unwrap_or(false);
    let unix_path = |file: &OwnedFd| {
        let address = UnixListener::from(file.try_clone().ok()?)
            .local_addr()
            .ok()?;
        address.as_pathname().map(std::path::Path::to_owned)
    };
    if kind == SocketType::DGRAM {
        let socket = UdpSocket::from(file);
        socket.set_nonblocking(true).ok()?;
        return Some((
            ListenAddress::Udp(socket.local_addr().ok()?),
            Listening::Udp(socket),
        ));
    }
    if kind != SocketType::STREAM || !accepts {
        return None;
    }
    if let Some(path) = unix_path(&file) {
        let listener = UnixListener::from(file);
        listener.set_nonblocking(true).ok()?;
        return Some((ListenAddress::Unix(path), Listening::Unix(listener)));
    }
    let listener = TcpListener::from(file);
    listener.set_nonblocking(true).ok()?;
    Some((
        ListenAddress::Tcp(listener.local_addr().ok()?),
        Listening::Tcp(listener),
    ))
}
