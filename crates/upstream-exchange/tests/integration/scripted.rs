//! A stream that follows a script, and counts its calls.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An event that a read or a write meets, in order.
#[derive(Debug)]
pub enum Step {
    /// These bytes arrive, in as many reads as they take.
    Arrives(Bytes),
    /// There are no bytes yet: the task is woken at once to ask again.
    Waits,
    /// The read fails.
    Fails(io::ErrorKind),
}

/// Reads and writes that reached the system, were it a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub reads: usize,
    pub writes: usize,
}

/// The stream. At the end of the script the peer has closed.
#[derive(Debug, Default)]
pub struct ScriptedStream {
    pub script: VecDeque<Step>,
    /// Bytes that one write takes at most; 0: all of it.
    pub write_bytes: usize,
    /// This many writes are taken, and those that follow fail.
    pub broken_after: Option<usize>,
    /// Every other write waits.
    pub waits_in_between: bool,
    pub has_waited: bool,
    pub calls: Calls,
    pub written: Vec<u8>,
}

impl AsyncRead for ScriptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.calls.reads += 1;
        match self.script.front_mut() {
            None => {}
            Some(Step::Arrives(bytes)) => {
                let taken = bytes.len().min(buffer.remaining());
                buffer.put_slice(&bytes[..taken]);
                bytes.advance(taken);
                if bytes.is_empty() {
                    self.script.pop_front();
                }
            }
            Some(Step::Waits) => {
                self.script.pop_front();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Step::Fails(kind)) => return Poll::Ready(Err((*kind).into())),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ScriptedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.calls.writes += 1;
        if self
            .broken_after
            .is_some_and(|taken| self.calls.writes > taken)
        {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.waits_in_between && !std::mem::replace(&mut self.has_waited, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_waited = false;
        let before = self.written.len();
        let room = match self.write_bytes {
            0 => usize::MAX,
            some => some,
        };
        for slice in slices {
            let left = room - (self.written.len() - before);
            let taken = slice.len().min(left);
            self.written.extend_from_slice(&slice[..taken]);
        }
        Poll::Ready(Ok(self.written.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
