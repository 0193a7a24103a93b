//! TLS on a client's connection, below the protocol spoken on it: bytes that are read were
//! decrypted, bytes that are written are encrypted first (RFC 8446, by rustls).
//!
//! Bytes count as written once their records are with the kernel: until then they are offered
//! again, and the session remembers how much of it needs no second encryption. Nothing is therefore
//! lost when a connection closes behind its last write, and the time a client may take is measured
//! as without TLS.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;

use bytes::BytesMut;
use rustix::net::{self, RecvFlags, SendFlags};
use rustls::ServerConnection;

use crate::handshake::take_early_data;

/// The most bytes encrypted for one write. It bounds the memory held for a client that does not
/// read.
const WRITE_BYTES: usize = 64 * 1024;

/// The state of TLS on a connection whose handshake is over, or whose client need not wait for
/// that.
#[derive(Debug)]
pub struct Session {
    connection: ServerConnection,
    /// There may be bytes that came ahead of the end of the handshake.
    may_have_early_data: bool,
    /// Bytes that were encrypted and not yet reported as written.
    unreported: usize,
    /// The client closed its side after the last write: it does not read further bytes.
    has_client_left: bool,
}

impl Session {
    pub fn new(mut connection: ServerConnection) -> Session {
        connection.set_buffer_limit(Some(WRITE_BYTES));
        Session {
            may_have_early_data: connection.is_handshaking(),
            connection,
            unreported: 0,
            has_client_left: false,
        }
    }

    /// Is the client's last message of the handshake still to come? Until then, another host may
    /// have sent the same before (RFC 8446 §8).
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Hands on decrypted bytes: how many, none at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes are there, see [`Session::receive`].
    pub fn take_decrypted(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        if self.may_have_early_data {
            self.may_have_early_data = self.connection.is_handshaking();
            let taken = take_early_data(&mut self.connection, buffer);
            if taken > 0 {
                return Ok(taken);
            }
        }
        let mut reader = self.connection.reader();
        let piece = match reader.fill_buf() {
            Ok(piece) => piece,
            // A client that closes without saying so (RFC 8446 §6.1): the reader knows
            // from its own framing whether something is missing.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
            Err(error) => return Err(error),
        };
        let taken = piece.len();
        match buffer.capacity() {
            0 => *buffer = BytesMut::from(piece),
            _ => buffer.extend_from_slice(piece),
        }
        reader.consume(taken);
        Ok(taken)
    }

    /// Takes the bytes from the socket, and decrypts them. Returns whether those were all.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; `InvalidData` if the client broke the protocol.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let mut socket = Socket::new(socket);
        let received = self.connection.read_tls(&mut socket)?;
        self.has_client_left |= received == 0;
        if let Err(error) = self.connection.process_new_packets() {
            // The alert names the reason.
            let _ = self.connection.write_tls(&mut socket);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        // Answers of the protocol itself, such as to a change of keys. Bytes that do not fit leave
        // with the next write.
        if self.connection.wants_write() && self.unreported == 0 {
            let _ = self.flush(socket.fd);
        }
        Ok(received > 0 && socket.was_drained)
    }

    /// Encrypts and writes as much as the socket takes now.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing more: the caller offers the same bytes again.
    pub fn write(&mut self, socket: BorrowedFd<'_>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let offered = slices.iter().map(|slice| slice.len()).sum::<usize>();
        if self.unreported == 0 && offered > 0 {
            self.has_client_left = false;
            self.flush(socket)?;
            self.unreported = self.connection.writer().write_vectored(slices)?;
        }
        self.flush(socket)?;
        let written = self.unreported.min(offered);
        self.unreported -= written;
        Ok(written)
    }

    /// Writes all records there are.
    fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut Socket::new(socket))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Announces the end of data to the client, as far as the socket takes that.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing more, unless the client did not take earlier bytes either:
    /// the caller does not wait for it again. A client that has closed gets no announcement, like
    /// in nginx: its system would answer with a reset.
    pub fn close(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if self.has_client_left {
            return Ok(());
        }
        self.connection.send_close_notify();
        let flushed = self.flush(socket);
        match self.unreported {
            0 => flushed,
            _ => Ok(()),
        }
    }
}

/// The socket as rustls reads and writes it.
pub struct Socket<'a> {
    fd: BorrowedFd<'a>,
    /// The last read took less than it might have: there was no more.
    was_drained: bool,
}

impl<'a> Socket<'a> {
    pub fn new(fd: BorrowedFd<'a>) -> Socket<'a> {
        Socket {
            fd,
            was_drained: false,
        }
    }

    /// Looks at bytes without taking them.
    ///
    /// # Errors
    /// The errors of recv(2).
    pub fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        let (_, read) = net::recv(self.fd, buffer, flags)?;
        Ok(read)
    }
}

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len();
        let (_, read) = net::recv(self.fd, buffer, RecvFlags::DONTWAIT)?;
        self.was_drained = read < most;
        Ok(read)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(net::send(self.fd, bytes, flags)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut nothing = net::SendAncillaryBuffer::default();
        Ok(net::sendmsg(self.fd, slices, &mut nothing, flags)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
