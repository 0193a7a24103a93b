//! Sockets: what is read and written on those that are followed.
//!
//! The pointers and lengths that come in are the caller's promise to libc: a buffer of that length. What
//! is read here of a buffer was filled by the kernel, or is about to be sent by it.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr};

use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::entry::{self, MAX_DESCRIPTOR, enter, is_active, is_followed};
use crate::library::Library;
use crate::next;
use crate::system;

/// Tells the library what came in, unless it stays in the socket.
///
/// # Safety
/// If `received` is positive, `buffer` holds that number of bytes.
unsafe fn note_received(fd: c_int, buffer: *const c_void, received: ssize_t, flags: c_int) {
    if !is_followed(fd) || flags & libc::MSG_PEEK != 0 {
        return;
    }
    if let Ok(count @ 1..) = usize::try_from(received) {
        // SAFETY: the kernel has just written this number of bytes there.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count) };
        enter(|library| library.received(fd, bytes));
    }
}

/// Sends by `real`, and informs the library before and after.
///
/// # Safety
/// `buffer` holds `count` bytes.
unsafe fn tell_sent(
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if !is_followed(fd) || buffer.is_null() || count > isize::MAX.unsigned_abs() {
        return real();
    }
    // SAFETY: the caller wants to send this number of bytes from there.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count) };
    enter(|library| library.will_send(fd, bytes));
    let sent = real();
    enter(|library| library.has_sent(fd, bytes, usize::try_from(sent).unwrap_or(0)));
    sent
}

/// For calls that PHP does not use where something is followed.
fn note_unusual(fd: c_int) {
    if is_followed(fd) {
        enter(|library| library.misses(fd));
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's arguments, and then what the kernel has written.
    unsafe {
        let received = next::read(fd, buffer, count);
        note_received(fd, buffer, received, 0);
        received
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    room: size_t,
) -> ssize_t {
    // SAFETY: as for `read`.
    unsafe {
        let received = next::__read_chk(fd, buffer, count, room);
        note_received(fd, buffer, received, 0);
        received
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as for `read`.
    unsafe {
        let received = next::recv(fd, buffer, count, flags);
        note_received(fd, buffer, received, flags);
        received
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as for `read`.
    unsafe {
        let received = next::__recv_chk(fd, buffer, count, room, flags);
        note_received(fd, buffer, received, flags);
        received
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    flags: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as for `read`.
    unsafe {
        let received = next::recvfrom(fd, buffer, count, flags, from, length);
        note_received(fd, buffer, received, flags);
        received
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    note_unusual(fd);
    // SAFETY: the caller's arguments.
    unsafe { next::readv(fd, parts, count) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    note_unusual(fd);
    // SAFETY: the caller's arguments.
    unsafe { next::recvmsg(fd, message, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's arguments, and the bytes that it wants to send.
    unsafe { tell_sent(fd, buffer, count, || next::write(fd, buffer, count)) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn send(
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as for `write`.
    unsafe { tell_sent(fd, buffer, count, || next::send(fd, buffer, count, flags)) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
    flags: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    if !to.is_null() {
        // SAFETY: the caller's address of that length.
        unsafe { note_address(to, length) };
    }
    // SAFETY: as for `write`.
    unsafe {
        tell_sent(fd, buffer, count, || {
            next::sendto(fd, buffer, count, flags, to, length)
        })
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    note_unusual(fd);
    // SAFETY: the caller's arguments.
    unsafe { next::writev(fd, parts, count) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    note_unusual(fd);
    // SAFETY: the caller's arguments.
    unsafe { next::sendmsg(fd, message, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    // Before: once it is closed, another thread may get the number.
    note_closed(fd, fd);
    // SAFETY: the caller's argument.
    unsafe { next::close(fd) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // With this flag, they are closed when a program is started.
    let is_for_exec = flags.cast_unsigned() & libc::CLOSE_RANGE_CLOEXEC != 0;
    if !is_for_exec {
        note_range_closed(first, last);
    }
    // SAFETY: the caller's arguments.
    unsafe { next::close_range(first, last, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn closefrom(first: c_int) {
    let first = c_uint::try_from(first).unwrap_or(0);
    note_range_closed(first, c_uint::MAX);
    // SAFETY: three numbers; libc's function does the same, by this call of the kernel (5.9).
    unsafe { next::close_range(first, c_uint::MAX, 0) };
}

fn note_range_closed(first: c_uint, last: c_uint) {
    let first = c_int::try_from(first).unwrap_or(c_int::MAX);
    let last = c_int::try_from(last).unwrap_or(c_int::MAX);
    note_closed(first, last);
}

/// The program closes all of these. One that does so blindly closes the library's own as well.
fn note_closed(first: c_int, last: c_int) {
    let followed = (first..=last.min(MAX_DESCRIPTOR - 1)).filter(|fd| is_followed(*fd));
    let is_concerned = || {
        followed.clone().next().is_some()
            || system::channel_within(first, last).is_some()
            || entry::is_opening_within(first, last)
    };
    if !is_concerned() || !entry::is_in_own_process() {
        return;
    }
    if entry::is_opening_within(first, last) {
        enter(Library::settle_opening);
    }
    for fd in followed {
        enter(|library| library.closes(fd));
    }
    while let Some(fd) = system::channel_within(first, last) {
        if enter(|library| library.closes_channel(fd)).is_none()
            || system::channel_within(fd, fd).is_some()
        {
            // The state is not to be had: it will find its end closed.
            return;
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn dup(fd: c_int) -> c_int {
    note_unusual(fd);
    // SAFETY: the caller's argument.
    unsafe { next::dup(fd) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    note_replaced(from, to);
    // SAFETY: the caller's arguments.
    unsafe { next::dup2(from, to) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    note_replaced(from, to);
    // SAFETY: the caller's arguments.
    unsafe { next::dup3(from, to, flags) }
}

fn note_replaced(from: c_int, to: c_int) {
    if from != to {
        note_unusual(from);
        note_closed(to, to);
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's arguments.
    let accepted = unsafe { next::accept(fd, address, length) };
    note_accepted(accepted);
    accepted
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's arguments.
    let accepted = unsafe { next::accept4(fd, address, length, flags) };
    note_accepted(accepted);
    accepted
}

fn note_accepted(fd: c_int) {
    if fd >= 0 {
        enter(|library| library.accepted(fd));
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    if is_active() && !address.is_null() {
        // Before: what answers at once is followed from its first byte. A second call asks how the first
        // one went.
        // SAFETY: the caller's address of that length.
        unsafe {
            with_address(address, length, |library, address| {
                if is_followed(fd) {
                    return;
                }
                library.connected(fd, address);
            });
        }
    }
    // SAFETY: the caller's arguments.
    unsafe { next::connect(fd, address, length) }
}

/// A datagram goes to this address.
///
/// # Safety
/// `address` points to an address of `length` bytes.
unsafe fn note_address(address: *const sockaddr, length: socklen_t) {
    // SAFETY: the caller's promise.
    unsafe {
        with_address(address, length, |library, address| {
            library.add_input(learn_record::InputKind::Connection, address);
        });
    }
}

/// Calls `work` with the address as text. A family that is not known, or a socket of the kernel's own
/// (netlink), is named by its number.
///
/// # Safety
/// `address` points to an address of `length` bytes.
unsafe fn with_address(
    address: *const sockaddr,
    length: socklen_t,
    work: impl FnOnce(&mut Library, &[u8]),
) {
    let Ok(length) = usize::try_from(length) else {
        return;
    };
    // SAFETY: the caller's promise; an address has at most 128 bytes.
    let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length.min(128)) };
    enter(|library| work(library, &address_text(bytes)));
}

fn address_text(bytes: &[u8]) -> Vec<u8> {
    let Some((family, rest)) = bytes.split_first_chunk::<2>() else {
        return b"?".to_vec();
    };
    let family = c_int::from(u16::from_ne_bytes(*family));
    let port = rest
        .first_chunk::<2>()
        .map_or(0, |port| u16::from_be_bytes(*port));
    let four = bytes.get(offset_of!(libc::sockaddr_in, sin_addr)..);
    let sixteen = bytes.get(offset_of!(libc::sockaddr_in6, sin6_addr)..);
    let ip = match family {
        libc::AF_UNIX => {
            let end = rest.iter().skip(1).position(|byte| *byte == 0);
            let path = &rest[..end.map_or(rest.len(), |end| end + 1)];
            return [b"unix:", path].concat();
        }
        libc::AF_INET => four
            .and_then(|it| it.first_chunk::<4>())
            .map(|ip| IpAddr::from(*ip)),
        libc::AF_INET6 => sixteen
            .and_then(|it| it.first_chunk::<16>())
            .map(|ip| IpAddr::from(*ip)),
        _ => None,
    };
    let text = ip.map_or_else(
        || format!("family {family}"),
        |ip| SocketAddr::from((ip, port)).to_string(),
    );
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_people_write_them() {
        let inet = c_int::to_ne_bytes(libc::AF_INET);
        let unix = c_int::to_ne_bytes(libc::AF_UNIX);
        for (bytes, text) in [
            (
                &[&inet[..2], &[0x0c, 0xea, 127, 0, 0, 1], &[0; 8]].concat()[..],
                "127.0.0.1:3306",
            ),
            (
                &[&unix[..2], b"/run/a.sock\0\0\0"].concat(),
                "unix:/run/a.sock",
            ),
            (&[&unix[..2], b"/run/a.sock"].concat(), "unix:/run/a.sock"),
            (&[&unix[..2], b"\0abstract"].concat(), "unix:\0abstract"),
            (&[99, 0], "family 99"),
            (&inet[..2], "family 2"),
            (&[1], "?"),
        ] {
            assert_eq!(String::from_utf8(address_text(bytes)).unwrap(), text);
        }
    }
}
