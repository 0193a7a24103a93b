//! Messages between the privileged parent and the worker process, over a pair of connected
//! sockets that keep message boundaries. Open sockets and log files travel as descriptors
//! (`SCM_RIGHTS`); a configuration, which may be megabytes, as the descriptor of a file in
//! memory.
//!
//! ```text
//! parent -> worker   Serve(configuration + descriptors), Pool, Reopen, Answers, Outcome, Stop
//! worker -> parent   Ready, Refused(why), Released(serial), Order(reload, reopen, quit or stop)
//! ```
//!
//! The end of the channel is a message too: the process that reads it ends.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, MemfdFlags, Mode};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Descriptors in one packet: the kernel takes 253.
const FDS_PER_PACKET: usize = 200;
/// A message's own bytes; a longer message travels as a file.
const PACKET_BYTES: usize = 4096;

/// The bounds of one message.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    fds: usize,
    body_bytes: u64,
}

/// From the parent: a configuration with all its texts (twice the readable size), and far more
/// sockets and logs than a process may have open by default.
pub const FROM_PARENT: Limits = Limits {
    fds: 100_000,
    body_bytes: 64 << 20,
};

/// From the worker: a reason why something was refused, and no descriptors.
pub const FROM_WORKER: Limits = Limits {
    fds: 0,
    body_bytes: 1 << 20,
};

#[derive(Debug)]
pub struct Message {
    pub body: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

/// The two ends.
///
/// # Errors
/// The error of the system.
pub fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// Sends one message; blocks while the other side does not read.
///
/// # Errors
/// The error of the system; the other side may be gone.
pub fn send(channel: BorrowedFd<'_>, body: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let file = rustix::fs::memfd_create("mayfly", MemfdFlags::CLOEXEC)?;
    // Keys of certificates may be in it.
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(file);
    file.write_all(body)?;
    file.rewind()?;
    let head = u32::try_from(fds.len()).unwrap_or(u32::MAX).to_le_bytes();
    packet(channel, &head, &[file.as_fd()])?;
    for some in fds.chunks(FDS_PER_PACKET) {
        packet(channel, b"+", some)?;
    }
    Ok(())
}

fn packet(channel: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_PACKET))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    loop {
        match rustix::net::sendmsg(
            channel,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Err(rustix::io::Errno::INTR) => continue,
            result => return result.map(drop).map_err(io::Error::from),
        }
    }
}

/// Waits for a message; `None` when the other side is gone.
///
/// # Errors
/// The error of the system, or a message that makes no sense.
pub fn receive(channel: BorrowedFd<'_>, limits: Limits) -> io::Result<Option<Message>> {
    let (head, mut first) = receive_packet(channel)?;
    if head.is_empty() {
        return Ok(None);
    }
    let count = <[u8; 4]>::try_from(head.as_slice()).map_err(|_| nonsense())?;
    let count = u32::from_le_bytes(count) as usize;
    let file = first.pop().ok_or_else(nonsense)?;
    // From anything else, like a pipe, one could be made to wait.
    let file_kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if file_kind != FileType::RegularFile || count > limits.fds {
        return Err(nonsense());
    }
    let mut body = Vec::new();
    File::from(file)
        .take(limits.body_bytes)
        .read_to_end(&mut body)?;
    let mut fds = Vec::new();
    while fds.len() < count {
        let (bytes, more) = receive_packet(channel)?;
        if bytes != b"+" || more.is_empty() {
            return Err(nonsense());
        }
        fds.extend(more);
    }
    Ok(Some(Message { body, fds }))
}

fn receive_packet(channel: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_PACKET))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(channel, &mut buffers, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            // The error after the death of a killed peer.
            Err(rustix::io::Errno::CONNRESET) => return Ok((Vec::new(), Vec::new())),
            result => break result?,
        }
    };
    bytes.truncate(received.bytes);
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok((bytes, fds))
}

fn nonsense() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a message between processes makes no sense",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn large_bodies_and_many_descriptors_arrive_in_order() {
        let (one, other) = channel().unwrap();
        let files: Vec<File> = (0..450).map(|_| tempfile::tempfile().unwrap()).collect();
        let inodes: Vec<u64> = files
            .iter()
            .map(|file| file.metadata().unwrap().ino())
            .collect();
        let body = vec![7; 3 << 20];
        let sent = body.clone();
        let sender = std::thread::spawn(move || {
            let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
            send(one.as_fd(), &sent, &fds).unwrap();
            send(one.as_fd(), b"", &[]).unwrap();
        });
        let message = receive(other.as_fd(), FROM_PARENT).unwrap().unwrap();
        assert!(message.body == body);
        let received: Vec<u64> = message
            .fds
            .into_iter()
            .map(|fd| File::from(fd).metadata().unwrap().ino())
            .collect();
        assert_eq!(received, inodes);
        let message = receive(other.as_fd(), FROM_PARENT).unwrap().unwrap();
        assert_eq!((message.body.len(), message.fds.len()), (0, 0));
        sender.join().unwrap();
        assert!(
            receive(other.as_fd(), FROM_PARENT).unwrap().is_none(),
            "the end of the channel"
        );
    }

    #[test]
    fn what_would_make_the_reader_wait_or_hoard_is_refused() {
        let (one, other) = channel().unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        packet(one.as_fd(), &[0, 0, 0, 0], &[reader.as_fd()]).unwrap();
        assert!(receive(other.as_fd(), FROM_WORKER).is_err());
        let file = tempfile::tempfile().unwrap();
        send(one.as_fd(), b"", &[file.as_fd()]).unwrap();
        assert!(receive(other.as_fd(), FROM_WORKER).is_err());
    }
}
