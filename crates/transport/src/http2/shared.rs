//! SharedState that the tasks of one connection share: the codec, and the wakers of each stream.

use std::any::Any;
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http2::{ErrorCode, FieldBlock, StreamId};
use parking_lot::{Mutex, MutexGuard};

use crate::body::IncomingBody;
use crate::client::{Client, InformationalFuture};
use crate::outbound::SendError;
use crate::request_body::BodyError;

/// The codec and the streams of a connection. `X` is the exchange of a request.
pub struct SharedCodec<X>(Mutex<SharedState<X>>);

pub struct SharedState<X> {
    pub codec: http2::Connection,
    pub streams: HashMap<StreamId, Stream<X>>,
    /// The waker of the task that writes.
    writer: Option<Waker>,
}

/// A stream whose request is under way.
pub struct Stream<X> {
    incoming: Incoming,
    /// Bytes of the request's body so far.
    received: u64,
    /// The task that waits for the body.
    reader: Option<Waker>,
    /// The task that waits for room for more of the response.
    sender: Option<Waker>,
    /// Tasks that want to know when the client has gone.
    watchers: Vec<Waker>,
    pub end: StreamEnd<X>,
}

/// A request's body, as far as it has come and was not taken.
struct Incoming {
    bytes: BytesMut,
    is_whole: bool,
    /// The length of the rest, if the head declared it.
    remaining: Option<u64>,
    /// The received bytes are not the announced body.
    is_malformed: bool,
}

/// How far the end of a stream is. It is over once both are known: the end of the response
/// on the wire, and the end of the exchange.
pub enum StreamEnd<X> {
    None,
    /// Nothing more can be sent: the bytes of frames that the response had, and whether these
    /// were all of it.
    Closed {
        bytes: u64,
        is_whole: bool,
    },
    /// All of the response was given to the codec.
    Given(FinishingExchange<X>),
}

/// An exchange that waits for its last byte to leave.
pub struct FinishingExchange<X> {
    pub exchange: Box<X>,
    /// Bytes of its body.
    pub body_bytes: u64,
}

impl<X> Stream<X> {
    pub fn new(content_length: Option<u64>, is_whole: bool) -> Stream<X> {
        Stream {
            incoming: Incoming {
                bytes: BytesMut::new(),
                is_whole,
                remaining: match is_whole {
                    true => Some(0),
                    false => content_length,
                },
                is_malformed: false,
            },
            received: 0,
            reader: None,
            sender: None,
            watchers: Vec::new(),
            end: StreamEnd::None,
        }
    }

    /// Takes received bytes of the body.
    pub fn receive(&mut self, data: &[u8], end_stream: bool) {
        let incoming = &mut self.incoming;
        incoming.bytes.extend_from_slice(data);
        self.received += data.len() as u64;
        incoming.is_whole |= end_stream;
        wake(&mut self.reader);
    }

    /// Marks the body as different from its announced length.
    pub fn break_body(&mut self) {
        self.incoming.is_malformed = true;
        wake(&mut self.reader);
    }

    /// Nothing more can be sent. The exchange, where it waited for that.
    pub fn close(&mut self, bytes: u64, is_whole: bool) -> Option<FinishingExchange<X>> {
        let closed = StreamEnd::Closed { bytes, is_whole };
        let end = std::mem::replace(&mut self.end, closed);
        wake(&mut self.reader);
        wake(&mut self.sender);
        for watcher in self.watchers.drain(..) {
            watcher.wake();
        }
        match end {
            StreamEnd::Given(given) => Some(given),
            _ => None,
        }
    }

    fn has_gone(&self) -> bool {
        matches!(self.end, StreamEnd::Closed { .. })
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl<X> SharedState<X> {
    /// Wakes the task that writes the given frames.
    pub fn wake_writer(&mut self) {
        wake(&mut self.writer);
    }

    /// Makes the task polled by `cx` the writer. Returns whether there is something to write
    /// already.
    pub fn set_writer(&mut self, cx: &Context<'_>) -> bool {
        self.writer = Some(cx.waker().clone());
        self.codec.has_output()
    }

    /// Wakes those that wait for room and have it now, the most urgent first.
    pub fn wake_senders(&mut self) {
        if !self.codec.take_room_change() {
            return;
        }
        let waiting = self.streams.iter().filter(|(_, it)| it.sender.is_some());
        let mut waiting: Vec<StreamId> = waiting
            .map(|(id, _)| *id)
            .filter(|id| self.codec.room(*id) > 0)
            .collect();
        waiting.sort_unstable_by_key(|id| (self.codec.urgency(*id), *id));
        for id in waiting {
            if let Some(stream) = self.streams.get_mut(&id) {
                wake(&mut stream.sender);
            }
        }
    }

    /// The writing task is awake.
    pub fn forget_writer(&mut self) {
        self.writer = None;
    }
}

impl<X> SharedCodec<X> {
    pub fn new(codec: http2::Connection) -> SharedCodec<X> {
        SharedCodec(Mutex::new(SharedState {
            codec,
            streams: HashMap::new(),
            writer: None,
        }))
    }

    pub fn lock(&self) -> MutexGuard<'_, SharedState<X>> {
        self.0.lock()
    }

    /// Gives up on a stream.
    pub fn reset(&self, id: StreamId, code: ErrorCode) {
        let mut state = self.lock();
        state.codec.reset(id, code);
        state.wake_writer();
    }

    /// Waits until more of the response may be given: how many bytes.
    ///
    /// # Errors
    /// The client has gone.
    pub async fn room(&self, id: StreamId) -> Result<usize, SendError> {
        poll_fn(|cx| {
            let mut state = self.lock();
            let room = state.codec.room(id);
            let Some(stream) = state.streams.get_mut(&id).filter(|found| !found.has_gone()) else {
                return Poll::Ready(Err(gone().into()));
            };
            if room > 0 {
                return Poll::Ready(Ok(room));
            }
            stream.sender = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Resolves when the client has closed the stream.
    pub async fn gone(&self, id: StreamId) {
        poll_fn(|cx| self.poll_gone(id, cx).map(|_| ())).await;
    }

    fn poll_gone(&self, id: StreamId, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.lock();
        match state.streams.get_mut(&id) {
            Some(stream) if !stream.has_gone() => {
                if !stream
                    .watchers
                    .iter()
                    .any(|known| known.will_wake(cx.waker()))
                {
                    stream.watchers.push(cx.waker().clone());
                }
                Poll::Pending
            }
            _ => Poll::Ready(true),
        }
    }
}

/// Returns the error for a client that has closed its stream.
pub fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// One stream: the client as the stages know it that answer its request.
pub struct StreamHandle<X> {
    pub shared: Arc<SharedCodec<X>>,
    pub id: StreamId,
}

impl<X: Send + 'static> Client for StreamHandle<X> {
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.shared.poll_gone(self.id, cx)
    }

    fn inform<'a>(&'a self, status: u16, fields: &'a [(Bytes, Bytes)]) -> InformationalFuture<'a> {
        let mut block = FieldBlock::new();
        for (name, value) in fields {
            // One that HTTP/2 does not have is left out.
            let _ = block.put(name, value);
        }
        let mut state = self.shared.lock();
        let sent = state.codec.send_informational(self.id, status, &[&block]);
        state.wake_writer();
        let length = block.len() as u64;
        Box::pin(std::future::ready(
            sent.map(|()| length).map_err(io::Error::other),
        ))
    }
}

/// The body of a stream's request.
pub struct StreamBody<X>(pub StreamHandle<X>);

impl<X> StreamBody<X> {
    fn with<R>(&self, default: R, read: impl FnOnce(&Stream<X>) -> R) -> R {
        let StreamBody(handle) = self;
        match handle.shared.lock().streams.get(&handle.id) {
            Some(stream) => read(stream),
            None => default,
        }
    }
}

impl<X: Send + 'static> IncomingBody for StreamBody<X> {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        let StreamBody(handle) = self;
        let mut state = handle.shared.lock();
        let Some(stream) = state.streams.get_mut(&handle.id) else {
            return Poll::Ready(Err(BodyError::Gone(gone())));
        };
        let incoming = &mut stream.incoming;
        if !incoming.bytes.is_empty() {
            // All of it: small frames make no small pieces.
            let bytes = std::mem::take(&mut incoming.bytes).freeze();
            if let Some(remaining) = &mut incoming.remaining {
                *remaining = remaining.saturating_sub(bytes.len() as u64);
            }
            state.codec.release(handle.id, bytes.len());
            state.wake_writer();
            return Poll::Ready(Ok(Some(bytes)));
        }
        if incoming.is_malformed {
            return Poll::Ready(Err(BodyError::Malformed));
        }
        if incoming.is_whole {
            return Poll::Ready(Ok(None));
        }
        if stream.has_gone() {
            return Poll::Ready(Err(BodyError::Gone(gone())));
        }
        stream.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn is_done(&self) -> bool {
        self.with(true, |stream| {
            stream.incoming.is_whole && stream.incoming.bytes.is_empty()
        })
    }

    fn has_arrived(&self) -> bool {
        self.with(false, |stream| !stream.incoming.bytes.is_empty())
    }

    fn is_at_hand(&self, most: u64) -> bool {
        self.with(false, |stream| {
            stream.incoming.is_whole && stream.incoming.bytes.len() as u64 <= most
        })
    }

    fn remaining(&self) -> Option<u64> {
        self.with(Some(0), |stream| match stream.incoming.is_whole {
            true => Some(stream.incoming.bytes.len() as u64),
            false => stream.incoming.remaining,
        })
    }

    fn wire_bytes(&self) -> u64 {
        self.with(0, |stream| stream.received)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
