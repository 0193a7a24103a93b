//! One request and its response over a connected stream.
//!
//! [`Exchange::next`] drives both directions at once: whenever it waits for
//! the response it also sends what is left of the request, so the upstream may
//! answer before it has read the body. It waits in one task, keeps all state in
//! the `Exchange` and may therefore be dropped and called again (cancel-safe);
//! nothing moves between calls, so the caller's pace is the upstream's pace.
//! One read buffer and one part of the body are all that is held.
//!
//! ```text
//! start ─ next ─ next ─ ... ─ End ─ into_stream
//!                  └─ Head of an upgrade ─ into_tunnel
//! ```
//!
//! To abort, drop the exchange: the connection closes.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use request_body::{BodySource, NoBody};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::error::{Error, Side};
use crate::response::{Event, Expected, ResponseReader};
use crate::sender::{BodyFraming, Sender};
use crate::spare;

/// The read buffer: a usual page in one or two reads.
pub const READ_BUFFER_BYTES: usize = 32 * 1024;
/// What a read buffer is at most where it is known that so much will come: each read
/// and each buffer has its price.
const MOST_READ_BYTES: usize = 64 * 1024;
/// The first read: a head and a small page.
const FIRST_READ_BYTES: usize = 4 * 1024;
/// With less room than this, a new buffer is better than a short read.
const LEAST_READ_BYTES: usize = 1024;

thread_local! {
    /// Where the first bytes of a response arrive. So nobody who waits for one holds
    /// a buffer, and these bytes are in the processor's cache.
    static FIRST_BYTES: RefCell<Box<[u8]>> = RefCell::new(vec![0; FIRST_READ_BYTES].into());
}

/// What is asked, and how much of an answer is taken.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    /// Request line, fields and empty line, ready to be sent. They must agree
    /// with the other members; nothing here is derived from them.
    pub head: Bytes,
    /// How the body is framed.
    pub body: BodyFraming,
    /// The method is HEAD, so the answer has no body.
    pub head_request: bool,
    /// The connection may be used again if the upstream agrees: the head does
    /// not say `Connection: close` (or says `keep-alive` in HTTP/1.0).
    pub keep_alive: bool,
    /// The head asks for an upgrade, so a 101 makes a tunnel. Otherwise it is an error.
    pub allow_upgrade: bool,
    /// Bound of each response head (`proxy_buffer_size`).
    pub head_limit_bytes: usize,
    /// The caller's word that the stream was silent when it was taken: nobody
    /// looks before the first byte is sent.
    pub known_silent: bool,
}

/// One request under way. See the head of this file.
#[derive(Debug)]
pub struct Exchange<S, B = NoBody> {
    stream: S,
    sender: Sender<B>,
    reader: ResponseReader,
    keep_alive: bool,
    received_bytes: u64,
    /// The first byte may be sent: the stream was silent before it.
    begun: bool,
    /// The last event or an error was delivered.
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
        let expected = Expected {
            head_limit_bytes: spec.head_limit_bytes,
            head_request: spec.head_request,
            allow_upgrade: spec.allow_upgrade,
        };
        Exchange {
            stream,
            sender: Sender::new(spec.head, spec.body, body),
            reader: ResponseReader::new(expected, BytesMut::new()),
            keep_alive: spec.keep_alive,
            received_bytes: 0,
            begun: spec.known_silent,
            over: false,
            reusable: false,
        }
    }

    /// The next event of the response; `None` after [`Event::End`], after the
    /// head of an upgrade, or after an error. Only `End` says that the response
    /// is complete. Cancel-safe.
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
        self.over = matches!(event, Err(_) | Ok(Event::End { .. })) || self.reader.is_upgraded();
        Poll::Ready(event.map(Some))
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        if !std::mem::replace(&mut self.begun, true) {
            self.check_silence(cx)?;
        }
        // Each turn reads at least one byte, or returns.
        loop {
            self.sender
                .poll_send(cx, &mut self.stream)
                .map_err(Error::RequestBody)?;
            self.reader.set_request_sent(self.sender.is_sent());
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

    /// What an upstream says before it is asked answers somebody else. This
    /// sees it only if it is there already; an idle connection was looked at
    /// when it was taken.
    fn check_silence(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        match self.poll_read(cx) {
            Poll::Ready(Ok(1..)) => Err(Error::Unsolicited),
            // An end or a failure shows again, with its side and reason.
            Poll::Ready(Ok(0) | Err(_)) | Poll::Pending => Ok(()),
        }
    }

    /// Whether all of the request has been written, or given up because the
    /// upstream no longer reads. Until then `next` may be waiting for the
    /// upstream to read or for the body to arrive, afterwards only for the
    /// response.
    pub fn is_request_sent(&self) -> bool {
        !self.sender.is_under_way()
    }

    /// Whether the body is known to be complete, though `End` was not taken
    /// yet.
    pub fn has_whole_length(&self) -> bool {
        self.reader.has_whole_length()
    }

    /// Whether the head was delivered and a body of known length follows that was
    /// read together with it, or none.
    pub fn is_whole_body_here(&self) -> bool {
        self.reader.is_whole_body_here()
    }

    /// Bytes read from the upstream, heads and all.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Bytes written to the upstream, head and all.
    pub fn sent_bytes(&self) -> u64 {
        self.sender.sent_bytes
    }

    /// The connection for the next request, if the exchange ended and left it
    /// clean: what [`Event::End`] called reusable.
    pub fn into_stream(self) -> Option<S> {
        self.reusable.then_some(self.stream)
    }

    /// The connection and what was read beyond the head, once
    /// [`crate::ResponseHead::is_upgrade`] was seen.
    pub fn into_tunnel(self) -> Option<(S, Bytes)> {
        self.reader
            .is_upgraded()
            .then(|| (self.stream, self.reader.into_buffer()))
    }

    fn poll_first_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        FIRST_BYTES.with_borrow_mut(|bytes| {
            let mut bytes = ReadBuf::new(bytes);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut bytes))?;
            self.reader.buffer().extend_from_slice(bytes.filled());
            Poll::Ready(Ok(bytes.filled().len()))
        })
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.received_bytes == 0 {
            return self.poll_first_read(cx);
        }
        let buffer = self.reader.buffer();
        if buffer.capacity() - buffer.len() < LEAST_READ_BYTES {
            // Reuses the allocation when nobody holds slices of it.
            let wanted = match self.reader.bytes_left() {
                // One more, so that the last read is seen to be a short one.
                Some(left) if left < spare::LEAST_BYTES as u64 => left as usize + 1,
                Some(_) => MOST_READ_BYTES,
                None => READ_BUFFER_BYTES.saturating_sub(self.reader.buffer().len()),
            };
            let buffer = self.reader.buffer();
            if wanted >= spare::LEAST_BYTES
                && buffer.is_empty()
                && let Some(spare) = spare::take()
            {
                *buffer = spare;
            }
            buffer.reserve(wanted.max(LEAST_READ_BYTES));
        }
        let buffer = self.reader.buffer();
        // The future of `read_buf` keeps nothing between polls.
        pin!(self.stream.read_buf(buffer)).poll(cx)
    }

    fn settle(&mut self, event: Event) -> Event {
        match event {
            Event::End { reusable, surplus } => {
                // What is left of a request would be taken for the next one.
                self.reusable = reusable && self.keep_alive && self.sender.is_sent();
                Event::End {
                    reusable: self.reusable,
                    surplus,
                }
            }
            other => other,
        }
    }

    /// The upstream closed, or the stream failed. Within the head the cause is
    /// told; if writing failed before, that is the older and better one. A
    /// failure never ends a body, not even one without a length.
    fn at_end_of_stream(&mut self, failure: Option<io::Error>) -> Result<Event, Error> {
        let before_first_byte = self.received_bytes == 0;
        let io_error = |side, source| Error::Io {
            side,
            before_first_byte,
            source,
        };
        let ended = self.reader.end_of_input();
        match (ended, failure) {
            (Err(Error::Closed { .. }), failure) => {
                Err(match (self.sender.take_failure(), failure) {
                    (Some(source), _) => io_error(Side::Write, source),
                    (None, Some(source)) => io_error(Side::Read, source),
                    (None, None) => Error::Closed { before_first_byte },
                })
            }
            (Ok(_) | Err(Error::Truncated { .. }), Some(source)) => {
                Err(self.reader.truncated(Some(source)))
            }
            (Ok(event), None) => Ok(self.settle(event)),
            (Err(error), _) => Err(error),
        }
    }
}
