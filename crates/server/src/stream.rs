//! The client's end of a connection: TCP or unix socket, read and written
//! through a shared reference, so that a body can still be arriving while the
//! response is leaving.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustix::net::{self, RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// What [`ClientStream::poll_receive`] takes at once: any usual head.
pub const RECEIVE_BYTES: usize = 8 * 1024;

thread_local! {
    /// Where bytes arrive before it is known how much memory they need.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; RECEIVE_BYTES].into());
}

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
            ready!(self.poll_read_ready(cx))?;
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

    /// Receives what is there, up to [`RECEIVE_BYTES`], and appends it to
    /// `buffer`, which grows by no more than that: for heads, which are short and
    /// of which most connections have none.
    pub fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_read_ready(cx))?;
            let mut received = None;
            let tried = self.try_io(Interest::READABLE, |socket| {
                SCRATCH.with_borrow_mut(|scratch| {
                    let (_, count) = net::recv(socket, &mut scratch[..], RecvFlags::DONTWAIT)?;
                    buffer.extend_from_slice(scratch.get(..count).unwrap_or_default());
                    received = Some(count);
                    // A short read took all there was. Saying so here spares the
                    // system call that would only find that out; what arrives from
                    // now on makes a new event.
                    match count {
                        1..RECEIVE_BYTES => Err(io::ErrorKind::WouldBlock.into()),
                        _ => Ok(()),
                    }
                })
            });
            match (received, tried) {
                (Some(count), _) => return Poll::Ready(Ok(count)),
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                (None, _) => {}
            }
        }
    }

    /// A system call on the socket, made directly: libc's would first look
    /// whether its thread is being cancelled, which none ever is.
    fn try_io<R>(
        &self,
        interest: Interest,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        match &self.socket {
            Socket::Tcp(stream) => stream.try_io(interest, || call(stream.as_fd())),
            Socket::Unix(stream) => stream.try_io(interest, || call(stream.as_fd())),
        }
    }

    fn forget_readable(&self) {
        let _ = self.try_io(Interest::READABLE, |_| {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }

    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.socket {
            Socket::Tcp(stream) => stream.poll_read_ready(cx),
            Socket::Unix(stream) => stream.poll_read_ready(cx),
        }
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
        self.try_io(Interest::WRITABLE, |socket| {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            Ok(net::send(socket, bytes, flags)?)
        })
    }

    /// Writes what the socket takes now; `WouldBlock` when it takes nothing.
    pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, |socket| {
            Ok(rustix::io::writev(socket, slices)?)
        })
    }

    /// The same for what a file follows at once: the kernel holds back the last
    /// packet until it is full, or the file's bytes are there.
    pub fn try_write_ahead_of_file(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, |socket| {
            let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let mut nothing = net::SendAncillaryBuffer::default();
            Ok(net::sendmsg(socket, slices, &mut nothing, flags)?)
        })
    }

    /// Sends up to `length` bytes of `file` from `offset` without copying them
    /// through this process; `WouldBlock` when the socket takes nothing.
    pub fn try_sendfile(&self, file: impl AsFd, offset: u64, length: usize) -> io::Result<usize> {
        let send = |socket: std::os::fd::BorrowedFd<'_>| {
            let mut offset = offset;
            rustix::fs::sendfile(socket, &file, Some(&mut offset), length).map_err(io::Error::from)
        };
        self.try_io(Interest::WRITABLE, send)
    }

    /// Writes all of `bytes`, waiting for room.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_write_ready(cx)).await
    }

    /// Resolves when the client has gone. Bytes of a next request do not count
    /// as gone; after them nothing more is noticed until they are read.
    pub async fn closed(&self) {
        loop {
            // Most are never told anything, so this wait is the cheap one.
            if poll_fn(|cx| self.poll_read_ready(cx)).await.is_err() {
                return;
            }
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
        let look = |socket: std::os::fd::BorrowedFd<'_>| {
            let mut byte = [0u8; 1];
            net::recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)
                .map(|(read, _)| read == 0)
                .map_err(io::Error::from)
        };
        self.try_io(Interest::READABLE, look)
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
