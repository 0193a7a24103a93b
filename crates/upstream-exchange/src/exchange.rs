//! Drives both directions of an exchange at once: whenever it waits for the response it also sends
//! the rest of the request, so that the upstream may answer before it has read the body.
//!
//! It waits in one task, keeps all state in the [`Exchange`] and may therefore be dropped and called
//! again (cancel-safe). Nothing moves between calls, so the caller's pace is the upstream's pace. One
//! read buffer and one part of the body are all that is held.
//!
//! ```text
//! start ─ next ─ next ─ ... ─ last event ─ into_stream
//!                  └─ head of an upgrade ─ into_tunnel
//! ```
//!
//! To abort, drop the exchange: the connection closes.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::body::{BodySource, NoBody};
use crate::protocol::{DecodeResponse, EncodeRequest, Protocol, Side, StreamError};
use crate::segments::Segments;

/// The read buffer: a usual page in one or two reads.
pub const READ_BUFFER_BYTES: usize = 32 * 1024;
/// The first read: a head and a small page. Memory of this size is at hand in the
/// allocator's thread cache, the large buffer is not.
pub const FIRST_READ_BYTES: usize = 4 * 1024;
/// With less room than this, a new buffer is better than a short read.
pub const MIN_READ_BYTES: usize = 1024;

thread_local! {
    /// The buffer for the first bytes of a response, before it has a buffer of its own. So waiting
    /// exchanges hold no memory, and these bytes are in the processor's cache.
    static FIRST_BYTES: RefCell<Box<[u8]>> = RefCell::new(vec![0; FIRST_READ_BYTES].into());
}

/// The result of [`Exchange::next`].
type NextEvent<P> = Result<
    Option<<<P as Protocol>::Response as DecodeResponse>::Event>,
    <<P as Protocol>::Response as DecodeResponse>::Error,
>;

/// One request under way. See the head of this file.
pub struct Exchange<S, P: Protocol, B = NoBody> {
    stream: S,
    body: B,
    request: P::Request,
    response: P::Response,
    sending: SendState,
    sent_bytes: u64,
    received_bytes: u64,
    /// The first byte may be sent: the stream was silent before it.
    has_begun: bool,
    /// The last event or an error was delivered.
    is_over: bool,
}

#[derive(Debug, Default)]
enum SendState {
    UnderWay,
    #[default]
    Done,
    /// The upstream does not read any more. It may have answered all the same, so this becomes an
    /// error only if no complete response arrives.
    Failed(io::Error),
}

impl<S, P, B> Exchange<S, P, B>
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: Protocol,
    B: BodySource,
{
    /// Prepares the request; the first call of [`Exchange::next`] sends it.
    pub fn start(stream: S, spec: P, body: B) -> Exchange<S, P, B> {
        let (request, response) = spec.start();
        Exchange {
            stream,
            body,
            request,
            response,
            sending: SendState::UnderWay,
            sent_bytes: 0,
            received_bytes: 0,
            has_begun: false,
            is_over: false,
        }
    }

    /// The next event of the response; `None` after the last one or an error. A response is complete
    /// only when the last event has come. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The protocol's, see there.
    pub async fn next(&mut self) -> NextEvent<P> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`Exchange::next`] for callers that poll.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<NextEvent<P>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        let event = ready!(self.poll_event(cx));
        self.is_over = event.is_err() || self.response.is_over();
        Poll::Ready(event)
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<NextEvent<P>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.check_silence(cx)?;
        }
        // Each turn reads at least one byte, or returns.
        loop {
            self.poll_send(cx).map_err(StreamError::RequestBody)?;
            self.response.set_request_sent(self.is_sent());
            if let Some(event) = self.response.next_event()? {
                return Poll::Ready(Ok(Some(event)));
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => return Poll::Ready(self.at_end_of_stream(None)),
                Ok(read) => self.received_bytes += read as u64,
                Err(error) => return Poll::Ready(self.at_end_of_stream(Some(error))),
            }
        }
    }

    /// Bytes that an upstream sends before it is asked belong to another request. This sees them
    /// only if they are there already; an idle connection was looked at when it was taken.
    fn check_silence(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Result<(), <P::Response as DecodeResponse>::Error> {
        let Some(error) = self.response.unsolicited() else {
            return Ok(());
        };
        match self.poll_read(cx) {
            Poll::Ready(Ok(1..)) => Err(error),
            // An end or a failure shows again, with its side and reason.
            Poll::Ready(Ok(0) | Err(_)) | Poll::Pending => Ok(()),
        }
    }

    /// Writes as much as body and stream permit now. Wakes the task when there may be more to do.
    ///
    /// # Errors
    ///
    /// The body's. The stream's are kept.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        // Each turn writes at least one byte, or is the last.
        while self.is_under_way() {
            self.fill(cx)?;
            let mut segments = Segments::new();
            self.request.put_segments(&mut segments);
            let stream = Pin::new(&mut self.stream);
            let written = match segments.as_slices() {
                // A stream with a buffer of its own (TLS) may hold bytes back.
                [] => stream.poll_flush(cx).map_ok(|()| None),
                [only] => stream.poll_write(cx, only).map_ok(Some),
                slices => stream.poll_write_vectored(cx, slices).map_ok(Some),
            };
            match written {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(None)) => {
                    if self.request.is_complete() {
                        self.sending = SendState::Done;
                    }
                    return Ok(());
                }
                Poll::Ready(Ok(Some(0))) => {
                    self.sending = SendState::Failed(io::ErrorKind::WriteZero.into());
                }
                Poll::Ready(Ok(Some(written))) => {
                    self.sent_bytes += written as u64;
                    self.request.advance(written);
                }
                Poll::Ready(Err(error)) => self.sending = SendState::Failed(error),
            }
        }
        Ok(())
    }

    /// Hands the request the wanted parts of its body, as far as they are there.
    fn fill(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.request.wants_body() {
            match self.body.poll_data(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(part)) => {
                    let part = part?;
                    if !part.is_empty() {
                        self.request.add_body(part, self.body.is_at_end())?;
                    }
                }
                Poll::Ready(None) => self.request.end_body()?,
            }
        }
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.received_bytes == 0 && self.response.buffer().capacity() == 0 {
            return self.poll_first_read(cx);
        }
        self.response.make_room();
        // The future of `read_buf` keeps nothing between polls.
        pin!(self.stream.read_buf(self.response.buffer())).poll(cx)
    }

    fn poll_first_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        FIRST_BYTES.with_borrow_mut(|bytes| {
            let mut bytes = ReadBuf::new(bytes);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut bytes))?;
            self.response.buffer().extend_from_slice(bytes.filled());
            Poll::Ready(Ok(bytes.filled().len()))
        })
    }

    /// Handles the end of the stream, because the upstream closed it or it failed. Within the head
    /// the error has the cause; if writing failed before, that is the older and better cause.
    fn at_end_of_stream(&mut self, mut failure: Option<io::Error>) -> NextEvent<P> {
        if let Some(event) = self.response.end_of_input(&mut failure)? {
            return Ok(Some(event));
        }
        let before_first_byte = self.received_bytes == 0;
        let io_error = |side, source| StreamError::Io {
            side,
            before_first_byte,
            source,
        };
        let error = match (self.take_write_failure(), failure) {
            (Some(source), _) => io_error(Side::Write, source),
            (None, Some(source)) => io_error(Side::Read, source),
            (None, None) => StreamError::Closed { before_first_byte },
        };
        Err(error.into())
    }

    /// Takes the reason why the upstream could not be written to, if so.
    fn take_write_failure(&mut self) -> Option<io::Error> {
        match std::mem::take(&mut self.sending) {
            SendState::Failed(error) => Some(error),
            sending => {
                self.sending = sending;
                None
            }
        }
    }

    /// Whether all of the request has been written, or given up because the upstream no longer
    /// reads. Until then `next` may be waiting for the upstream to read or for the body to arrive,
    /// afterwards only for the response.
    pub fn is_request_sent(&self) -> bool {
        !self.is_under_way()
    }

    fn is_under_way(&self) -> bool {
        matches!(self.sending, SendState::UnderWay)
    }

    fn is_sent(&self) -> bool {
        matches!(self.sending, SendState::Done)
    }

    /// Whether the head was delivered and a body of known length follows that was read together
    /// with it, or none.
    pub fn is_whole_body_here(&self) -> bool {
        self.response.is_whole_body_here()
    }

    /// Bytes read from the upstream, framing and all.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Bytes written to the upstream, framing and all.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// The connection for the next request, if the exchange ended and left it clean.
    pub fn into_stream(self) -> Option<S> {
        self.response.is_reusable().then_some(self.stream)
    }

    /// The connection and the bytes read beyond the head, once the head of an upgrade was seen.
    pub fn into_tunnel(self) -> Option<(S, Bytes)> {
        let ahead = self.response.into_tunnel()?;
        Some((self.stream, ahead))
    }
}

/// Makes room for `wanted` bytes where there is little; reuses the allocation when no slice of it
/// is held.
pub fn make_room(buffer: &mut BytesMut, wanted: usize) {
    if buffer.capacity() - buffer.len() < MIN_READ_BYTES {
        let more = wanted.saturating_sub(buffer.len());
        buffer.reserve(more.max(MIN_READ_BYTES));
    }
}

impl<S, P: Protocol, B> fmt::Debug for Exchange<S, P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("sending", &self.sending)
            .field("sent_bytes", &self.sent_bytes)
            .field("received_bytes", &self.received_bytes)
            .finish_non_exhaustive()
    }
}
