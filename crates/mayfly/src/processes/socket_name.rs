//! An address to listen at in a form that goes from process to process, and the socket that goes with it.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use serde::{Deserialize, Serialize};
use server::worker::Listening;
use site::ListenAddress;

/// [`ListenAddress`]
#[derive(Debug, Serialize, Deserialize)]
pub enum SocketName {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    Unix(OsString),
}

impl SocketName {
    pub fn of(address: &ListenAddress) -> SocketName {
        match address {
            ListenAddress::Tcp(address) => SocketName::Tcp(*address),
            ListenAddress::Udp(address) => SocketName::Udp(*address),
            ListenAddress::Unix(path) => SocketName::Unix(path.as_os_str().to_owned()),
        }
    }

    pub fn address(self) -> ListenAddress {
        match self {
            SocketName::Tcp(address) => ListenAddress::Tcp(address),
            SocketName::Udp(address) => ListenAddress::Udp(address),
            SocketName::Unix(path) => ListenAddress::Unix(path.into()),
        }
    }
}

/// A socket of this address.
pub fn listening(address: &ListenAddress, socket: OwnedFd) -> Listening {
    match address {
        ListenAddress::Tcp(_) => Listening::Tcp(TcpListener::from(socket)),
        ListenAddress::Unix(_) => Listening::Unix(UnixListener::from(socket)),
        ListenAddress::Udp(_) => Listening::Udp(UdpSocket::from(socket)),
    }
}
