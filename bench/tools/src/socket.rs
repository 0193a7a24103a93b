//! Loopback sockets and epoll, as both programs use them.
//!
//! Only loopback addresses are ever bound or connected to.

use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Connections that wait for `accept`: as many as the largest scenario opens at once.
const BACKLOG: i32 = 4096;

/// Local addresses that the client's connections are spread over: each has its own 28,000 ports,
/// so that connections which just ended do not use them up.
const SOURCE_ADDRESSES: usize = 16;

/// A new epoll instance.
pub fn poll() -> io::Result<OwnedFd> {
    epoll::create(epoll::CreateFlags::CLOEXEC)
}

/// Listens on a port of 127.0.0.1; `accept` on it does not block.
pub fn listener(port: u16) -> io::Result<OwnedFd> {
    let socket = stream_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Opens a connection to a port of 127.0.0.1. It blocks until it is made non-blocking.
///
/// `number` spreads connections over the source addresses.
pub fn connection(port: u16, number: usize) -> io::Result<OwnedFd> {
    let socket = stream_socket(SocketFlags::CLOEXEC)?;
    let last = 2 + u8::try_from(number % SOURCE_ADDRESSES).unwrap_or_default();
    bind(
        &socket,
        &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), 0),
    )?;
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

fn stream_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
}

/// Watches a socket under a number.
pub fn watch(
    poll: &OwnedFd,
    socket: impl AsFd,
    number: usize,
    flags: epoll::EventFlags,
) -> io::Result<()> {
    epoll::add(
        poll,
        socket,
        epoll::EventData::new_u64(number as u64),
        flags,
    )
}
