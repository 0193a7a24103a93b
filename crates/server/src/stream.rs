//! The client's end of a connection: TCP or unix socket, read and written
//! through a shared reference, so that a body can still be arriving while the
//! response is leaving.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connected client.
#[derive(Debug)]
pub struct ClientStream {
    socket: Socket,
    /// Waiting for a request: a graceful stop may close it.
    idle: AtomicBool,
}

impl From<TcpStream> for ClientStream {
    fn from(stream: TcpStream) -> Self {
        ClientStream {
            socket: Socket::Tcp(stream),
            idle: AtomicBool::new(false),
        }
    }
}

impl From<UnixStream> for ClientStream {
    fn from(stream: UnixStream) -> Self {
        ClientStream {
            socket: Socket::Unix(stream),
            idle: AtomicBool::new(false),
        }
    }
}

impl ClientStream {
    /// Reads into `buffer`'s spare room.
    pub fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        loop {
            let ready = match &self.socket {
                Socket::Tcp(stream) => stream.poll_read_ready(cx),
                Socket::Unix(stream) => stream.poll_read_ready(cx),
            };
            ready!(ready)?;
            let room = buffer.capacity() - buffer.len();
            let read = match &self.socket {
                Socket::Tcp(stream) => stream.try_read_buf(buffer),
                Socket::Unix(stream) => stream.try_read_buf(buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(read) if read > 0 && read < room => {
                    // A short read took all there was. Saying so here spares the
                    // system call that would only find that out; what arrives from
                    // now on makes a new event.
                    self.forget_readable();
                    return Poll::Ready(Ok(read));
                }
                done => return Poll::Ready(done),
            }
        }
    }

    fn forget_readable(&self) {
        let nothing = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
        let _ = match &self.socket {
            Socket::Tcp(stream) => stream.try_io(Interest::READABLE, nothing),
            Socket::Unix(stream) => stream.try_io(Interest::READABLE, nothing),
        };
    }

    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.socket {
            Socket::Tcp(stream) => stream.poll_write_ready(cx),
            Socket::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    /// As [`ClientStream::try_write_vectored`] with one piece, which the kernel
    /// takes with less ado.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.socket {
            Socket::Tcp(stream) => stream.try_write(bytes),
            Socket::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Writes what the socket takes now; `WouldBlock` when it takes nothing.
    pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.socket {
            Socket::Tcp(stream) => stream.try_write_vectored(slices),
            Socket::Unix(stream) => stream.try_write_vectored(slices),
        }
    }

    /// Sends up to `length` bytes of `file` from `offset` without copying them
    /// through this process; `WouldBlock` when the socket takes nothing.
    pub fn try_sendfile(
        &self,
        file: &std::fs::File,
        offset: u64,
        length: usize,
    ) -> io::Result<usize> {
        let send = |socket: std::os::fd::BorrowedFd<'_>| {
            let mut offset = offset;
            rustix::fs::sendfile(socket, file, Some(&mut offset), length).map_err(io::Error::from)
        };
        match &self.socket {
            Socket::Tcp(stream) => stream.try_io(Interest::WRITABLE, || send(stream.as_fd())),
            Socket::Unix(stream) => stream.try_io(Interest::WRITABLE, || send(stream.as_fd())),
        }
    }

    pub async fn writable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_write_ready(cx)).await
    }

    /// Resolves when the client has gone. Bytes of a next request do not count
    /// as gone; after them nothing more is noticed until they are read.
    pub async fn closed(&self) {
        loop {
            let ready = match &self.socket {
                Socket::Tcp(stream) => stream.ready(Interest::READABLE).await,
                Socket::Unix(stream) => stream.ready(Interest::READABLE).await,
            };
            let Ok(ready) = ready else { return };
            if ready.is_read_closed() {
                return;
            }
            match self.peek() {
                Ok(true) => return,
                Ok(false) => std::future::pending::<()>().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Looks at the next byte: `true` at the end of the stream.
    fn peek(&self) -> io::Result<bool> {
        use rustix::net::{RecvFlags, recv};
        let look = |socket: std::os::fd::BorrowedFd<'_>| {
            let mut byte = [0u8; 1];
            recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)
                .map(|(read, _)| read == 0)
                .map_err(io::Error::from)
        };
        match &self.socket {
            Socket::Tcp(stream) => stream.try_io(Interest::READABLE, || look(stream.as_fd())),
            Socket::Unix(stream) => stream.try_io(Interest::READABLE, || look(stream.as_fd())),
        }
    }

    /// Tells the client that nothing more will come.
    pub fn shutdown_write(&self) {
        let _ = match &self.socket {
            Socket::Tcp(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Write),
            Socket::Unix(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Write),
        };
    }

    /// Makes closing send a reset: `reset_timedout_connection`, status 444 after a timeout.
    pub fn reset_on_close(&self) {
        if let Socket::Tcp(stream) = &self.socket {
            let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
        }
    }

    pub fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// Ends a wait for the next request: the reader sees the end of the stream.
    pub fn close_if_idle(&self) {
        if self.idle.load(Ordering::Relaxed) {
            self.close_reading();
        }
    }

    pub fn close_reading(&self) {
        let _ = match &self.socket {
            Socket::Tcp(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Read),
            Socket::Unix(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Read),
        };
    }
}
