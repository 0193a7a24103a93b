//! Bytes both ways between a client and an upstream that has switched protocols
//! (101, RFC 9110 §7.8): WebSocket and the like. Neither side is read faster than
//! the other takes it. It ends when a side does, when nothing moved for
//! `*_read_timeout`, or some time after a reload (`worker_shutdown_timeout`).

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::stream::ClientStream;

/// Held for each direction at most.
const BUFFER_BYTES: usize = 16 * 1024;

/// The bytes moved in each direction.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct MovedBytes {
    pub to_client: u64,
    pub to_upstream: u64,
}

/// A stream of bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// The upstream that has agreed to switch protocols. Dropped unopened, it is given up.
pub trait UpgradedConnection: Send + Sync {
    /// The connection as it is behind the 101; `None` if it has broken meanwhile.
    fn open(self: Box<Self>) -> Option<FarSide>;
}

/// The side of a tunnel that is not the client.
pub struct FarSide {
    pub stream: Box<dyn Duplex>,
    /// Bytes received behind the 101.
    pub received: Bytes,
    /// The tunnel ends when nothing has moved for this time.
    pub idle: Duration,
    /// Called when the tunnel has ended.
    pub end: Box<dyn FnOnce(MovedBytes) + Send>,
}

/// Runs the tunnel to its end. `ahead`: bytes that the client sent before it knew.
/// `until` resolves when the tunnel has to end in any case.
pub async fn run(
    client: &ClientStream,
    ahead: BytesMut,
    upgraded: Box<dyn UpgradedConnection>,
    until: impl Future<Output = ()>,
) -> MovedBytes {
    let Some(far) = upgraded.open() else {
        return MovedBytes::default();
    };
    let mut tunnel = Tunnel {
        client,
        upstream: far.stream,
        upward: Way::with(ahead),
        downward: Way::with(BytesMut::from(&far.received[..])),
    };
    tokio::select! {
        () = tunnel.pump(far.idle) => {}
        () = until => {}
    }
    let moved = MovedBytes {
        to_client: tunnel.downward.moved,
        to_upstream: tunnel.upward.moved,
    };
    (far.end)(moved);
    moved
}

struct Tunnel<'a> {
    client: &'a ClientStream,
    upstream: Box<dyn Duplex>,
    upward: Way,
    downward: Way,
}

/// One direction.
struct Way {
    buffer: BytesMut,
    /// The side that is read has ended.
    ended: bool,
    moved: u64,
}

impl Way {
    fn with(buffer: BytesMut) -> Way {
        Way {
            buffer,
            ended: false,
            moved: 0,
        }
    }

    fn has_room(&self) -> bool {
        !self.ended && self.buffer.len() < BUFFER_BYTES
    }

    fn is_over(&self) -> bool {
        self.ended && self.buffer.is_empty()
    }
}

impl Tunnel<'_> {
    /// Moves bytes until a side has ended and the other has received its bytes, or
    /// nothing moved for `idle`.
    async fn pump(&mut self, idle: Duration) {
        let sleep = tokio::time::sleep(idle);
        tokio::pin!(sleep);
        poll_fn(|cx| {
            loop {
                match self.step(cx) {
                    Poll::Ready(Ok(())) if self.upward.is_over() || self.downward.is_over() => {
                        return Poll::Ready(());
                    }
                    Poll::Ready(Ok(())) => sleep.as_mut().reset(Instant::now() + idle),
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => break,
                }
            }
            sleep.as_mut().poll(cx)
        })
        .await;
    }

    /// Moves the bytes that can be moved now; pending if there are none.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut moved = false;
        for part in [
            Self::read_client,
            Self::write_upstream,
            Self::read_upstream,
            Self::write_client,
        ] {
            if let Poll::Ready(done) = part(self, cx) {
                done?;
                moved = true;
            }
        }
        if moved {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn read_client(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.upward.has_room() {
            return Poll::Pending;
        }
        self.upward.buffer.reserve(BUFFER_BYTES);
        let read = ready!(self.client.poll_read(cx, &mut self.upward.buffer))?;
        self.upward.ended = read == 0;
        Poll::Ready(Ok(()))
    }

    fn read_upstream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.downward.has_room() {
            return Poll::Pending;
        }
        let mut space = [0; BUFFER_BYTES];
        let mut space = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.upstream).poll_read(cx, &mut space))?;
        self.downward.ended = space.filled().is_empty();
        self.downward.buffer.extend_from_slice(space.filled());
        Poll::Ready(Ok(()))
    }

    fn write_upstream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.upward.buffer.is_empty() {
            return Poll::Pending;
        }
        let written = ready!(Pin::new(&mut self.upstream).poll_write(cx, &self.upward.buffer))?;
        self.upward.advance(written)
    }

    fn write_client(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.downward.buffer.is_empty() {
            return Poll::Pending;
        }
        loop {
            ready!(self.client.poll_write_ready(cx))?;
            let slices = [IoSlice::new(&self.downward.buffer)];
            match self.client.try_write_vectored(&slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return self.downward.advance(written?),
            }
        }
    }
}

impl Way {
    fn advance(&mut self, written: usize) -> Poll<io::Result<()>> {
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.buffer.advance(written);
        self.moved += written as u64;
        Poll::Ready(Ok(()))
    }
}
