//! The sending side of a request's stream, and whether the client still wants it.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use quinn::{SendStream, VarInt, WriteError};
use tokio::sync::Semaphore;

use super::fields;
use crate::client::{Client, InformationalFuture};
use crate::outbound::SendError;

/// Frames are handed to quinn in at most this many pieces: the head and a body of some pages.
const PENDING_PIECES: usize = 16;

/// The sending side of a stream.
pub struct Outgoing {
    stream: SendStream,
    /// Bytes given and not yet taken by quinn, in order.
    pending: Vec<Bytes>,
    /// How long the client may take nothing.
    timeout: Duration,
    /// Bytes that quinn has taken.
    sent: u64,
}

impl Outgoing {
    pub fn new(stream: SendStream, timeout: Duration) -> Outgoing {
        Outgoing {
            stream,
            pending: Vec::new(),
            timeout,
            sent: 0,
        }
    }

    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Notes the bytes that are sent next.
    pub fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.pending.push(bytes);
        }
    }

    /// Was everything handed to quinn?
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Bytes that quinn has not taken.
    pub fn pending_bytes(&self) -> usize {
        self.pending.iter().map(Bytes::len).sum()
    }

    /// Hands everything to quinn, as fast as the client takes it. A caller that gives up waiting
    /// has lost nothing.
    ///
    /// # Errors
    /// The client has gone, or has taken nothing for too long.
    pub async fn flush(&mut self) -> Result<(), SendError> {
        while !self.is_flushed() {
            let flushed = tokio::time::timeout(self.timeout, self.flush_some()).await;
            flushed.map_err(|_| SendError::TimedOut)??;
        }
        Ok(())
    }

    /// Hands as much to quinn as it takes, which is something if there is something: how many bytes.
    ///
    /// # Errors
    /// The client has gone.
    pub async fn flush_some(&mut self) -> Result<usize, SendError> {
        if self.is_flushed() {
            return Ok(0);
        }
        let most = self.pending.len().min(PENDING_PIECES);
        let pieces = &mut self.pending[..most];
        let written = self.stream.write_chunks(pieces).await;
        let written = written.map_err(|error| gone_for(&error))?;
        self.sent += written.bytes as u64;
        self.pending.drain(..written.chunks);
        Ok(written.bytes)
    }

    /// Nothing follows.
    pub fn finish(&mut self) {
        // An error means that the client does not want it any more.
        let _ = self.stream.finish();
    }

    /// Resets the stream: nothing follows, and the response is not complete.
    pub fn reset(&mut self, code: http3::Code) {
        let _ = self.stream.reset(varint(code));
    }
}

pub fn varint(code: http3::Code) -> VarInt {
    VarInt::from_u64(code.0).unwrap_or(VarInt::MAX)
}

/// Returns the error for a client that wants nothing more of a stream.
pub fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

fn gone_for(error: &WriteError) -> io::Error {
    match error {
        WriteError::ConnectionLost(quinn::ConnectionError::TimedOut) => {
            io::ErrorKind::TimedOut.into()
        }
        _ => gone(),
    }
}

/// A stream: the client as the stages know it that answer its request.
pub struct StreamClient {
    pub outgoing: Arc<tokio::sync::Mutex<Outgoing>>,
    /// Permits for all streams of the connection to hold a long piece of a body.
    pub long_pieces: Arc<Semaphore>,
    presence: Mutex<Presence>,
}

#[derive(Default)]
struct Presence {
    has_gone: bool,
    /// Tasks that want to know when that happens.
    watchers: Vec<Waker>,
}

impl StreamClient {
    pub fn new(outgoing: Outgoing, long_pieces: Arc<Semaphore>) -> StreamClient {
        StreamClient {
            outgoing: Arc::new(tokio::sync::Mutex::new(outgoing)),
            long_pieces,
            presence: Mutex::new(Presence::default()),
        }
    }

    /// The client has closed the stream.
    pub fn note_gone(&self) {
        let mut presence = self.presence.lock();
        presence.has_gone = true;
        let watchers = std::mem::take(&mut presence.watchers);
        drop(presence);
        for watcher in watchers {
            watcher.wake();
        }
    }

    /// Resolves when the client has closed the stream.
    pub async fn gone(&self) {
        poll_fn(|cx| self.poll_gone(cx).map(|_| ())).await;
    }
}

impl Client for StreamClient {
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut presence = self.presence.lock();
        if presence.has_gone {
            return Poll::Ready(true);
        }
        let mut watchers = presence.watchers.iter();
        if !watchers.any(|known| known.will_wake(cx.waker())) {
            presence.watchers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn inform<'a>(&'a self, status: u16, fields: &'a [(Bytes, Bytes)]) -> InformationalFuture<'a> {
        let frame = fields::informational(status, fields);
        let length = frame.len() as u64;
        Box::pin(async move {
            let mut outgoing = self.outgoing.lock().await;
            outgoing.push(frame);
            match outgoing.flush().await {
                Ok(()) => Ok(length),
                Err(SendError::Client(error)) => Err(error),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        })
    }
}
