//! One request and its response over a connected stream.
//!
//! [`Exchange::next`] drives both directions at once: whenever it waits for
//! the response it also sends what is left of the request, so PHP may answer
//! before it has read the body. It waits in one task, keeps all state in the
//! `Exchange` and may therefore be dropped and called again (cancel-safe);
//! nothing moves between calls, so the caller's pace is PHP's pace. One read
//! buffer and one piece of the body are all that is held.
//!
//! ```text
//! start ─ next ─ next ─ ... ─ End ─ into_stream
//! ```
//!
//! To abort, drop the exchange: the connection closes, which PHP-FPM notices
//! when it next writes.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use request_body::{BodySource, NoBody};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::error::{Error, Side};
use crate::params::Params;
use crate::record::{self, RecordHeader, STREAM_CONTENT_BYTES};
use crate::response::{Event, ResponseReader};

/// The read buffer: a usual page in one or two reads.
pub const READ_BUFFER_BYTES: usize = 32 * 1024;
/// The first read: a head and a small page. Memory of this size is at hand in the
/// allocator's thread cache, the large buffer is not.
const FIRST_READ_BYTES: usize = 4 * 1024;
/// With less room than this, a new buffer is better than a short read.
const LEAST_READ_BYTES: usize = 1024;

/// What one write takes: BEGIN_REQUEST, PARAMS, and two STDIN records of a
/// header and content each, or one and the end of STDIN.
const MAX_SEGMENTS: usize = 6;

/// What is asked, and how much of an answer is taken.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    pub params: Params,
    /// Asks PHP to leave the connection open (`fastcgi_keep_conn`).
    pub keep_conn: bool,
    /// The method is HEAD: see [`ResponseReader::new`].
    pub head_request: bool,
    /// Bound of the response head (`fastcgi_buffer_size`).
    pub head_limit_bytes: usize,
}

/// One request under way. See the head of this file.
#[derive(Debug)]
pub struct Exchange<S, B = NoBody> {
    stream: S,
    sender: Sender<B>,
    reader: ResponseReader,
    keep_conn: bool,
    received_bytes: u64,
    /// The `End` event or an error was delivered.
    over: bool,
    /// What the `End` event said.
    reusable: bool,
}

impl<S, B> Exchange<S, B>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: BodySource,
{
    /// Prepares the request; the first call of [`Exchange::next`] sends it.
    pub fn start(stream: S, spec: RequestSpec, body: B) -> Exchange<S, B> {
        Exchange {
            stream,
            sender: Sender::new(spec.keep_conn, spec.params, body),
            reader: ResponseReader::new(
                spec.head_limit_bytes,
                spec.head_request,
                BytesMut::with_capacity(FIRST_READ_BYTES),
            ),
            keep_conn: spec.keep_conn,
            received_bytes: 0,
            over: false,
            reusable: false,
        }
    }

    /// The next event of the response; `None` after [`Event::End`] or an
    /// error. Only `End` says that the response is complete. Cancel-safe.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`Exchange::next`] for callers that poll.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        if self.over {
            return Poll::Ready(Ok(None));
        }
        let event = ready!(self.poll_event(cx));
        self.over = matches!(event, Err(_) | Ok(Event::End { .. }));
        Poll::Ready(event.map(Some))
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        // Each turn reads at least one byte, or returns.
        loop {
            self.sender.poll_send(cx, &mut self.stream)?;
            if let Some(event) = self.reader.next_event()? {
                return Poll::Ready(Ok(self.settle(event)));
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => return Poll::Ready(self.at_end_of_stream(None)),
                Ok(read) => self.received_bytes += read as u64,
                Err(error) => return Poll::Ready(self.at_end_of_stream(Some(error))),
            }
        }
    }

    /// Whether all of the request has been written, or given up because PHP
    /// no longer reads. Until then `next` may be waiting for PHP to read or
    /// for the body to arrive, afterwards only for the response.
    pub fn is_request_sent(&self) -> bool {
        !self.sender.is_under_way()
    }

    /// Whether as much body arrived as `Content-Length` promises: the client
    /// has all it is waiting for, though PHP may still be at work.
    pub fn has_whole_length(&self) -> bool {
        self.reader.has_whole_length()
    }

    /// Bytes read from PHP, records and all.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Bytes written to PHP, records and all.
    pub fn sent_bytes(&self) -> u64 {
        self.sender.sent_bytes
    }

    /// The connection for the next request, if the exchange ended and left
    /// it clean: what [`Event::End`] called reusable.
    pub fn into_stream(self) -> Option<S> {
        self.reusable.then_some(self.stream)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let buffer = self.reader.buffer();
        if buffer.capacity() - buffer.len() < LEAST_READ_BYTES {
            // Reuses the allocation when nobody holds slices of it.
            buffer.reserve(READ_BUFFER_BYTES.saturating_sub(buffer.len()));
        }
        // The future of `read_buf` keeps nothing between polls.
        pin!(self.stream.read_buf(buffer)).poll(cx)
    }

    fn settle(&mut self, event: Event) -> Event {
        match event {
            Event::End {
                app_status,
                reusable,
                surplus,
            } => {
                // What is left of a request would be taken for the next one.
                let sent = matches!(self.sender.state, SendState::Sent);
                self.reusable = reusable && self.keep_conn && sent;
                Event::End {
                    app_status,
                    reusable: self.reusable,
                    surplus,
                }
            }
            other => other,
        }
    }

    /// PHP closed, or the stream failed. Within the body that makes it
    /// truncated, whatever the cause. Within the head the cause is told; if
    /// writing failed before, that is the older and better one.
    fn at_end_of_stream(&mut self, failure: Option<io::Error>) -> Result<Event, Error> {
        let before_first_byte = self.received_bytes == 0;
        let io_error = |side, source| Error::Io {
            side,
            before_first_byte,
            source,
        };
        match self.reader.end_of_input() {
            Ok(event) => Ok(self.settle(event)),
            Err(Error::Closed { .. }) => Err(match (self.sender.take_failure(), failure) {
                (Some(source), _) => io_error(Side::Write, source),
                (None, Some(source)) => io_error(Side::Read, source),
                (None, None) => Error::Closed { before_first_byte },
            }),
            Err(error) => Err(error),
        }
    }
}

/// The writing half: a few segments on their way, then the body.
#[derive(Debug)]
struct Sender<B> {
    segments: VecDeque<Bytes>,
    body: B,
    /// The rest of a part of the body that is longer than a record.
    part: Bytes,
    state: SendState,
    sent_bytes: u64,
}

#[derive(Debug, Default)]
enum SendState {
    /// More of the body may come.
    Streaming,
    /// The end of STDIN is among the segments.
    Draining,
    #[default]
    Sent,
    /// PHP does not read any more. It may have answered all the same, so
    /// this becomes an error only if no complete response arrives.
    Failed(io::Error),
}

impl<B: BodySource> Sender<B> {
    fn new(keep_conn: bool, params: Params, body: B) -> Sender<B> {
        let begin: &'static [u8] = if keep_conn {
            &record::BEGIN_REQUEST_KEEP_CONN
        } else {
            &record::BEGIN_REQUEST
        };
        let mut segments = VecDeque::with_capacity(MAX_SEGMENTS);
        segments.push_back(Bytes::from_static(begin));
        segments.push_back(params.into_records());
        Sender {
            segments,
            body,
            part: Bytes::new(),
            state: SendState::Streaming,
            sent_bytes: 0,
        }
    }

    /// Writes as much as body and stream permit now. Wakes the task when
    /// there may be more to do.
    fn poll_send<S>(&mut self, cx: &mut Context<'_>, stream: &mut S) -> Result<(), Error>
    where
        S: AsyncWrite + Unpin,
    {
        while self.is_under_way() {
            self.fill(cx).map_err(Error::RequestBody)?;
            if self.segments.is_empty() {
                if matches!(self.state, SendState::Draining) {
                    self.state = SendState::Sent;
                }
                return Ok(());
            }
            match self.poll_write(cx, stream) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => {
                    self.state = SendState::Failed(io::ErrorKind::WriteZero.into());
                }
                Poll::Ready(Ok(written)) => self.advance(written),
                Poll::Ready(Err(error)) => self.state = SendState::Failed(error),
            }
        }
        Ok(())
    }

    /// Why PHP could not be written to, if so.
    fn take_failure(&mut self) -> Option<io::Error> {
        match std::mem::take(&mut self.state) {
            SendState::Failed(error) => Some(error),
            state => {
                self.state = state;
                None
            }
        }
    }

    fn is_under_way(&self) -> bool {
        matches!(self.state, SendState::Streaming | SendState::Draining)
    }

    /// Tops the segments up from the body.
    fn fill(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while matches!(self.state, SendState::Streaming) && self.segments.len() + 2 <= MAX_SEGMENTS
        {
            if self.part.is_empty() {
                match self.body.poll_data(cx) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Some(part)) => {
                        self.part = part?;
                        continue;
                    }
                    Poll::Ready(None) => {
                        self.segments
                            .push_back(Bytes::from_static(&record::STDIN_END));
                        self.state = SendState::Draining;
                        return Ok(());
                    }
                }
            }
            let content = self
                .part
                .split_to(self.part.len().min(STREAM_CONTENT_BYTES));
            // Cut to fit just above.
            let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
            let header = RecordHeader::new(record::kind::STDIN, length).encode();
            self.segments.push_back(Bytes::copy_from_slice(&header));
            self.segments.push_back(content);
        }
        Ok(())
    }

    fn poll_write<S>(&self, cx: &mut Context<'_>, stream: &mut S) -> Poll<io::Result<usize>>
    where
        S: AsyncWrite + Unpin,
    {
        let mut slices = [IoSlice::new(&[]); MAX_SEGMENTS];
        for (slice, segment) in slices.iter_mut().zip(&self.segments) {
            *slice = IoSlice::new(segment);
        }
        let used = slices.get(..self.segments.len()).unwrap_or(&slices);
        Pin::new(stream).poll_write_vectored(cx, used)
    }

    fn advance(&mut self, mut written: usize) {
        self.sent_bytes += written as u64;
        while let Some(segment) = self.segments.front_mut() {
            if written < segment.len() {
                segment.advance(written);
                return;
            }
            written -= segment.len();
            self.segments.pop_front();
        }
    }
}
