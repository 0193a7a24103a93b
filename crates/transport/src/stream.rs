//! The client's end of a connection: TCP or unix socket, read and written
//! through a shared reference, so that a body can still be arriving while the
//! response is leaving.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use rustix::net::{self, RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::connections::TrackedConnection;
use crate::gathered::GatheredResponses;
use crate::tls::{self, Session};

/// The bytes that [`ClientStream::poll_receive`] takes at once: any usual head.
pub const RECEIVE_BYTES: usize = 8 * 1024;
/// How long a client may take to make room for the end of TLS, as in nginx.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// Pieces handed to one write, beside the bytes gathered before it: a head and a page of some
/// hundred kilobytes fit, and the list is small enough to be made for each write.
pub const MAX_SLICES: usize = 16;

thread_local! {
    /// The buffer for bytes that arrive before it is known how much memory they need.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; RECEIVE_BYTES].into());
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A client's socket between two threads: no configuration knows of it.
#[derive(Debug)]
pub enum UnregisteredSocket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl TryFrom<UnregisteredSocket> for ClientStream {
    type Error = io::Error;

    fn try_from(socket: UnregisteredSocket) -> io::Result<ClientStream> {
        Ok(match socket {
            UnregisteredSocket::Tcp(stream) => TcpStream::from_std(stream)?.into(),
            UnregisteredSocket::Unix(stream) => UnixStream::from_std(stream)?.into(),
        })
    }
}

/// The activity of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Waiting for a request: a graceful stop may close it.
    Idle,
    /// Waiting like `Idle`, but a graceful stop leaves it open: the protocol has a way to end
    /// (HTTP/2), or `keepalive_min_timeout` is not over.
    Quiet,
    /// Waiting for the rest of a request's head.
    Reading,
    /// With a request.
    Busy,
}

impl Phase {
    /// The phase of this number.
    pub fn of(number: u8) -> Phase {
        match number {
            phase if phase == Phase::Idle as u8 => Phase::Idle,
            phase if phase == Phase::Quiet as u8 => Phase::Quiet,
            phase if phase == Phase::Reading as u8 => Phase::Reading,
            _ => Phase::Busy,
        }
    }
}

impl TrackedConnection for ClientStream {
    fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Ordering::Relaxed))
    }

    /// The reader sees the end of the stream.
    fn close_if_idle(&self) {
        if self.phase() == Phase::Idle {
            self.close_reading();
        }
    }
}

/// A connected client.
#[derive(Debug)]
pub struct ClientStream {
    socket: Socket,
    phase: AtomicU8,
    /// Goes ahead of the next bytes written.
    gathered: Mutex<GatheredResponses>,
    has_gathered: AtomicBool,
    /// The session of an encrypted connection.
    tls: OnceLock<Mutex<Session>>,
    /// The handshake may not be over.
    is_early: AtomicBool,
}

impl From<TcpStream> for ClientStream {
    fn from(stream: TcpStream) -> Self {
        ClientStream::new(Socket::Tcp(stream))
    }
}

impl From<UnixStream> for ClientStream {
    fn from(stream: UnixStream) -> Self {
        ClientStream::new(Socket::Unix(stream))
    }
}

impl ClientStream {
    fn new(socket: Socket) -> ClientStream {
        ClientStream {
            socket,
            phase: AtomicU8::new(Phase::Busy as u8),
            gathered: Mutex::default(),
            has_gathered: AtomicBool::new(false),
            tls: OnceLock::new(),
            is_early: AtomicBool::new(false),
        }
    }

    /// From now on bytes read are decrypted, and bytes written are encrypted.
    pub fn encrypt(&self, session: Session) {
        let is_early = session.is_handshaking();
        self.is_early.store(is_early, Ordering::Relaxed);
        let _ = self.tls.set(Mutex::new(session));
    }

    /// Were the bytes read sent ahead of the end of the handshake? Then another host may have sent
    /// it once before (RFC 8470 §3).
    #[inline]
    pub fn is_early(&self) -> bool {
        self.is_early.load(Ordering::Relaxed) && self.is_still_early()
    }

    #[cold]
    fn is_still_early(&self) -> bool {
        let session = self.tls.get();
        let is_early = session.is_some_and(|session| session.lock().is_handshaking());
        self.is_early.store(is_early, Ordering::Relaxed);
        is_early
    }

    /// Are bytes encrypted on their way, so that the kernel cannot take them from a file?
    #[inline]
    pub fn is_encrypted(&self) -> bool {
        self.tls.get().is_some()
    }

    /// Takes leave of this thread's tokio runtime.
    pub fn unregister(self) -> io::Result<UnregisteredSocket> {
        Ok(match self.socket {
            Socket::Tcp(stream) => UnregisteredSocket::Tcp(stream.into_std()?),
            Socket::Unix(stream) => UnregisteredSocket::Unix(stream.into_std()?),
        })
    }

    /// This end's address, where it has one.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Tcp(stream) => stream.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    /// Reads into `buffer`'s spare room.
    pub fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        if let Some(session) = self.tls.get() {
            return self.poll_decrypt(cx, session, buffer);
        }
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
                    // A short read took all there was. Saying so here spares the system call that
                    // would only find that out; later bytes make a new event.
                    self.forget_readable();
                    return Poll::Ready(Ok(read));
                }
                done => return Poll::Ready(done),
            }
        }
    }

    /// Receives bytes up to [`RECEIVE_BYTES`], and appends them to `buffer`, which grows by no
    /// more than that: for heads, which are short and of which most connections have none. A
    /// task that was woken (`is_woken`) reads before it registers to wait again.
    pub fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        mut is_woken: bool,
    ) -> Poll<io::Result<usize>> {
        if let Some(session) = self.tls.get() {
            return self.poll_decrypt(cx, session, buffer);
        }
        loop {
            if !std::mem::take(&mut is_woken) {
                ready!(self.poll_read_ready(cx))?;
            }
            let mut received = None;
            let tried = self.try_io(Interest::READABLE, |socket| {
                SCRATCH.with_borrow_mut(|scratch| {
                    let (_, count) = net::recv(socket, &mut scratch[..], RecvFlags::DONTWAIT)?;
                    append(buffer, scratch.get(..count).unwrap_or_default());
                    received = Some(count);
                    // A short read took all there was. Saying so here spares the system call that
                    // would only find that out; later bytes make a new event.
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

    /// Reads and decrypts. Decrypted bytes may be there without the socket being readable.
    fn poll_decrypt(
        &self,
        cx: &mut Context<'_>,
        session: &Mutex<Session>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        loop {
            match session.lock().take_decrypted(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
            ready!(self.poll_read_ready(cx))?;
            let received = self.try_io(Interest::READABLE, |socket| session.lock().receive(socket));
            match received {
                // Like for a short read without TLS.
                Ok(true) => self.forget_readable(),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
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

    /// Writes to the socket itself, below any encryption.
    ///
    /// # Errors
    /// The errors of `call`; `WouldBlock` if the socket takes nothing.
    pub fn write_socket<R>(
        &self,
        call: impl FnOnce(&mut tls::Socket<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        self.try_io(Interest::WRITABLE, |socket| {
            call(&mut tls::Socket::new(socket))
        })
    }

    /// Reads from the socket itself, once there is something to read.
    pub fn poll_socket<R>(
        &self,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&mut tls::Socket<'_>) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            ready!(self.poll_read_ready(cx))?;
            let read = self.try_io(Interest::READABLE, |socket| {
                call(&mut tls::Socket::new(socket))
            });
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Returns the first bytes without taking them: those that have arrived and fit.
    pub async fn peek_first(&self, bytes: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_socket(cx, |socket| socket.peek(bytes))).await
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

    /// Like [`ClientStream::try_write_vectored`] with one piece, which costs the kernel less.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.has_gathered() || self.is_encrypted() {
            true => self.try_write_vectored(&[IoSlice::new(bytes)]),
            false => self.send(bytes, SendFlags::empty()),
        }
    }

    /// Like [`ClientStream::try_write_ahead_of_file`] with one piece.
    pub fn try_write_head_of_file(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.has_gathered() || self.is_encrypted() {
            true => self.try_write_ahead_of_file(&[IoSlice::new(bytes)]),
            false => self.send(bytes, SendFlags::MORE),
        }
    }

    fn send(&self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        let flags = flags | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        self.try_io(Interest::WRITABLE, |socket| {
            Ok(net::send(socket, bytes, flags)?)
        })
    }

    /// Writes as much as the socket takes now; `WouldBlock` when it takes nothing.
    pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_behind(slices, |socket, slices| {
            Ok(rustix::io::writev(socket, slices)?)
        })
    }

    /// Writes bytes that a file follows at once: the kernel holds back the last packet until
    /// it is full, or the file's bytes are there.
    pub fn try_write_ahead_of_file(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_behind(slices, |socket, slices| {
            let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let mut nothing = net::SendAncillaryBuffer::default();
            Ok(net::sendmsg(socket, slices, &mut nothing, flags)?)
        })
    }

    /// Sends up to `length` bytes of `file` from `offset` without copying them
    /// through this process; `WouldBlock` when the socket takes nothing. Not on a connection
    /// that [`ClientStream::is_encrypted`].
    pub fn try_sendfile(&self, file: impl AsFd, offset: u64, length: usize) -> io::Result<usize> {
        self.try_flush()?;
        if self.is_encrypted() {
            // Its bytes would leave as they are.
            return Err(io::ErrorKind::Unsupported.into());
        }
        let send = |socket: std::os::fd::BorrowedFd<'_>| {
            let mut offset = offset;
            rustix::fs::sendfile(socket, &file, Some(&mut offset), length).map_err(io::Error::from)
        };
        self.try_io(Interest::WRITABLE, send)
    }

    /// Leaves a whole response to go ahead of the next write; false if it has
    /// to be written now.
    pub fn gather(&self, head: &[u8], chunks: &[Bytes]) -> bool {
        let taken = self.gathered.lock().take(head, chunks);
        if taken {
            self.has_gathered.store(true, Ordering::Relaxed);
        }
        taken
    }

    /// Is there something that [`ClientStream::gather`] took and that is not written yet?
    pub fn has_gathered(&self) -> bool {
        self.has_gathered.load(Ordering::Relaxed)
    }

    /// Writes the gathered bytes; `WouldBlock` if not all of them could be written.
    pub fn try_flush(&self) -> io::Result<()> {
        if !self.has_gathered() {
            return Ok(());
        }
        self.try_write_vectored(&[]).map(|_| ())
    }

    /// Flushes the gathered bytes, and registers the task if the socket takes nothing.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.try_flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
            ready!(self.poll_write_ready(cx))?;
        }
    }

    /// Writes `slices`, after the bytes gathered before. Returns the number of bytes of `slices`
    /// that were written; `WouldBlock` if there were none.
    fn write_behind(
        &self,
        slices: &[IoSlice<'_>],
        write: impl Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        match self.has_gathered() {
            false => self.try_io(Interest::WRITABLE, |socket| {
                self.write_through(socket, slices, &write)
            }),
            true => self.write_with_gathered(slices, write),
        }
    }

    /// Writes with `write`, through TLS if the stream is encrypted.
    #[inline]
    fn write_through(
        &self,
        socket: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
        write: &impl Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        match self.tls.get() {
            None => write(socket, slices),
            Some(session) => session.lock().write(socket, slices),
        }
    }

    #[cold]
    fn write_with_gathered(
        &self,
        slices: &[IoSlice<'_>],
        write: impl Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut gathered = std::mem::take(&mut *self.gathered.lock());
        let mut all = [IoSlice::new(&[]); MAX_SLICES + 1];
        let left = IoSlice::new(gathered.left());
        let mut used = 0;
        for (place, slice) in all.iter_mut().zip(std::iter::once(&left).chain(slices)) {
            *place = IoSlice::new(slice);
            used += 1;
        }
        let written = self.try_io(Interest::WRITABLE, |socket| {
            self.write_through(socket, &all[..used], &write)
        });
        let beyond = match &written {
            Ok(written) => gathered.advance(*written),
            Err(_) => 0,
        };
        // After an error that lasts, the client will not read it any more.
        let is_kept = match &written {
            Ok(_) => !gathered.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if is_kept {
            *self.gathered.lock() = gathered;
        } else {
            self.has_gathered.store(false, Ordering::Relaxed);
        }
        written?;
        match beyond {
            0 if is_kept || !slices.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            beyond => Ok(beyond),
        }
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

    /// Ready with `true` when the client has gone. Bytes of a next request do not count as
    /// gone; with `false` they are there, and nothing more is noticed until they are read.
    pub fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            // Most tasks never get a notification, so this wait is the cheap one.
            if ready!(self.poll_read_ready(cx)).is_err() {
                return Poll::Ready(true);
            }
            let ready = match &self.socket {
                Socket::Tcp(stream) => pin!(stream.ready(Interest::READABLE)).poll(cx),
                Socket::Unix(stream) => pin!(stream.ready(Interest::READABLE)).poll(cx),
            };
            match ready!(ready) {
                Ok(ready) if !ready.is_read_closed() => {}
                _ => return Poll::Ready(true),
            }
            match self.peek() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(is_end) => return Poll::Ready(is_end),
                Err(_) => return Poll::Ready(true),
            }
        }
    }

    /// Resolves when the client has gone, as [`ClientStream::poll_closed`] sees it.
    pub async fn closed(&self) {
        let has_gone = poll_fn(|cx| self.poll_closed(cx)).await;
        if !has_gone {
            std::future::pending::<()>().await;
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

    /// Shuts the write side down: no more bytes will come.
    pub fn shutdown_write(&self) {
        self.close_tls();
        let _ = match &self.socket {
            Socket::Tcp(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Write),
            Socket::Unix(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Write),
        };
    }

    /// The connection closes: gathered bytes leave, and TLS is ended. `false` if the socket
    /// has no room for that, see [`ClientStream::wait_for_end`].
    pub fn end(&self) -> bool {
        let _ = self.try_flush();
        self.close_tls()
    }

    /// Ends TLS once the client has read enough. Without that it could not tell a response that
    /// ends with the connection from one that was truncated (RFC 8446 §6.1).
    pub async fn wait_for_end(&self) {
        let closed = poll_fn(|cx| {
            while !self.close_tls() {
                if ready!(self.poll_write_ready(cx)).is_err() {
                    break;
                }
            }
            Poll::Ready(())
        });
        let _ = tokio::time::timeout(END_TIMEOUT, closed).await;
    }

    /// `false` if that must be tried again.
    fn close_tls(&self) -> bool {
        let Some(session) = self.tls.get() else {
            return true;
        };
        let closed = self.try_io(Interest::WRITABLE, |socket| session.lock().close(socket));
        !closed.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Makes closing send a reset: `reset_timedout_connection`, status 444 after a timeout.
    pub fn reset_on_close(&self) {
        if let Socket::Tcp(stream) = &self.socket {
            let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub fn close_reading(&self) {
        let _ = match &self.socket {
            Socket::Tcp(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Read),
            Socket::Unix(stream) => rustix::net::shutdown(stream, rustix::net::Shutdown::Read),
        };
    }
}

/// Most heads come whole: the first bytes get as much memory as they need.
fn append(buffer: &mut BytesMut, received: &[u8]) {
    match buffer.capacity() {
        0 => *buffer = BytesMut::from(received),
        _ => buffer.extend_from_slice(received),
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn pair() -> (ClientStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours.into(), theirs)
    }

    /// Reads the bytes that have arrived by now.
    fn arrived(theirs: &UnixStream) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        match rustix::net::recv(theirs, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((read, _)) => bytes[..read].to_vec(),
            Err(_) => Vec::new(),
        }
    }

    #[tokio::test]
    async fn gathered_responses_leave_with_the_next_write_and_ahead_of_it() {
        type Write = fn(&ClientStream) -> io::Result<usize>;
        let writes: [(&str, Write); 3] = [
            ("plain", |stream| stream.try_write(b"three")),
            ("pieces", |stream| {
                stream.try_write_vectored(&[IoSlice::new(b"th"), IoSlice::new(b"ree")])
            }),
            ("ahead of a file", |stream| {
                stream.try_write_ahead_of_file(&[IoSlice::new(b"three")])
            }),
        ];
        for (name, write) in writes {
            let (ours, theirs) = pair();
            ours.writable().await.unwrap();
            assert!(ours.gather(b"one", &[]));
            assert!(ours.gather(b"t", &[Bytes::from_static(b"wo")]));
            assert_eq!(arrived(&theirs), b"", "{name}: nothing has been written");
            assert_eq!(write(&ours).unwrap(), 5, "{name}: of its own");
            assert_eq!(arrived(&theirs), b"onetwothree", "{name}");
            assert!(!ours.has_gathered());
            assert_eq!(write(&ours).unwrap(), 5);
            assert_eq!(arrived(&theirs), b"three", "{name}: and not again");
        }
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_gets_all_in_order_once_it_reads() {
        let (ours, mut theirs) = pair();
        ours.writable().await.unwrap();
        let mut filling = 0;
        while let Ok(written) = ours.try_write(&[b'x'; 4096]) {
            filling += written;
        }
        assert!(ours.gather(b"one", &[]));
        let refused = |result: io::Result<usize>| {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        };
        refused(ours.try_write(b"two"));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(ours.poll_flush(&mut cx).is_pending());
        assert!(ours.has_gathered());
        theirs.read_exact(&mut vec![0; filling]).await.unwrap();
        poll_fn(|cx| ours.poll_flush(cx)).await.unwrap();
        assert_eq!(arrived(&theirs), b"one");
        assert_eq!(ours.try_write(b"two").unwrap(), 3);
        assert_eq!(arrived(&theirs), b"two");
    }

    #[tokio::test]
    async fn a_client_that_has_gone_leaves_nothing_gathered() {
        let (ours, theirs) = pair();
        ours.writable().await.unwrap();
        assert!(ours.gather(b"one", &[]));
        drop(theirs);
        let error = ours.try_flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(!ours.has_gathered());
    }
}
