//! One `get` and its answer over a connected stream.
//!
//! [`Exchange::next`] sends what is left of the command and then waits for the
//! answer. It keeps all state in the `Exchange` and may therefore be dropped
//! and called again (cancel-safe); nothing moves between calls, so the
//! caller's pace is memcached's pace. To abort, drop the exchange: the
//! connection closes.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::error::{Error, Side};
use crate::response::{Event, ResponseReader};

/// The read buffer: a usual page in one or two reads.
pub const READ_BUFFER_BYTES: usize = 32 * 1024;
/// The first read: a head and a small page. Memory of this size is at hand in the
/// allocator's thread cache, the large buffer is not.
const FIRST_READ_BYTES: usize = 4 * 1024;
/// With less room than this, a new buffer is better than a short read.
const LEAST_READ_BYTES: usize = 1024;

/// What is asked, and how much of an answer is taken.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    /// The key, escaped by [`crate::escape_key`].
    pub key: Bytes,
    /// Bound of the answer's first line (`memcached_buffer_size`).
    pub head_limit_bytes: usize,
}

/// One request under way. See the head of this file.
#[derive(Debug)]
pub struct Exchange<S> {
    stream: S,
    command: Bytes,
    reader: ResponseReader,
    sent_bytes: u64,
    received_bytes: u64,
    /// The `End` event or an error was delivered.
    over: bool,
    reusable: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Exchange<S> {
    /// Prepares the request; the first call of [`Exchange::next`] sends it.
    pub fn start(stream: S, spec: RequestSpec) -> Exchange<S> {
        let command = [b"get ", &spec.key[..], b"\r\n"].concat();
        Exchange {
            stream,
            command: command.into(),
            reader: ResponseReader::new(
                spec.key,
                spec.head_limit_bytes,
                BytesMut::with_capacity(FIRST_READ_BYTES),
            ),
            sent_bytes: 0,
            received_bytes: 0,
            over: false,
            reusable: false,
        }
    }

    /// The next event of the answer; `None` after [`Event::End`] or an error.
    /// Only `End` says that the answer is complete. Cancel-safe.
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
        if let Ok(Event::End { reusable }) = event {
            self.reusable = reusable;
        }
        Poll::Ready(event.map(Some))
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        while !self.command.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(cx, &self.command);
            match ready!(written) {
                Ok(0) => return Poll::Ready(Err(self.failed(Side::Write, no_more()))),
                Ok(written) => {
                    self.sent_bytes += written as u64;
                    self.command.advance(written);
                }
                Err(error) => return Poll::Ready(Err(self.failed(Side::Write, error))),
            }
        }
        // Each turn reads at least one byte, or returns.
        loop {
            if let Some(event) = self.reader.next_event()? {
                return Poll::Ready(Ok(event));
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => return Poll::Ready(Err(self.closed())),
                Ok(read) => self.received_bytes += read as u64,
                Err(error) => return Poll::Ready(Err(self.failed(Side::Read, error))),
            }
        }
    }

    /// Whether all of the command has been written.
    pub fn is_request_sent(&self) -> bool {
        self.command.is_empty()
    }

    /// Whether the value is known to be complete, though `End` was not taken yet.
    pub fn has_whole_length(&self) -> bool {
        self.reader.has_whole_length()
    }

    /// Bytes read from memcached, heads and all.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Bytes written to memcached.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// The connection for the next request, if the exchange ended and left it
    /// clean: what [`Event::End`] called reusable.
    pub fn into_stream(self) -> Option<S> {
        self.reusable.then_some(self.stream)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let buffer = self.reader.buffer();
        if buffer.capacity() - buffer.len() < LEAST_READ_BYTES {
            // Reuses the allocation when nobody holds slices of it.
            let wanted = READ_BUFFER_BYTES.saturating_sub(buffer.len());
            buffer.reserve(wanted.max(LEAST_READ_BYTES));
        }
        // The future of `read_buf` keeps nothing between polls.
        pin!(self.stream.read_buf(buffer)).poll(cx)
    }

    fn closed(&self) -> Error {
        match self.reader.end_of_input() {
            Error::Closed { .. } => Error::Closed {
                before_first_byte: self.received_bytes == 0,
            },
            error => error,
        }
    }

    fn failed(&self, side: Side, source: io::Error) -> Error {
        match self.closed() {
            Error::Closed { before_first_byte } => Error::Io {
                side,
                before_first_byte,
                source,
            },
            // Within the value that makes it truncated, whatever the cause.
            error => error,
        }
    }
}

fn no_more() -> io::Error {
    io::ErrorKind::WriteZero.into()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;
    use crate::response::ResponseHead;

    fn spec() -> RequestSpec {
        RequestSpec {
            key: Bytes::from_static(b"k"),
            head_limit_bytes: 100,
        }
    }

    /// An exchange with a peer that sends `answer` and closes.
    async fn against(answer: &'static [u8]) -> (Vec<Event>, Result<(), Error>, Vec<u8>) {
        let (near, mut far) = duplex(8);
        let peer = tokio::spawn(async move {
            let mut asked = vec![0; 7];
            far.read_exact(&mut asked).await.expect("a command");
            // Nobody reads on after a mistake.
            let _ = far.write_all(answer).await;
            asked
        });
        let mut exchange = Exchange::start(near, spec());
        let mut events = Vec::new();
        let end = loop {
            match exchange.next().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        drop(exchange);
        (events, end, peer.await.expect("the peer"))
    }

    #[tokio::test]
    async fn a_value_comes_whole_and_the_connection_goes_back() {
        let (near, mut far) = duplex(1024);
        let mut exchange = Exchange::start(near, spec());
        far.write_all(b"VALUE k 1 3\r\nabc\r\nEND\r\n")
            .await
            .expect("room");
        let found = ResponseHead::Found {
            flags: 1,
            length_bytes: 3,
        };
        for wanted in [
            Some(Event::Head(found)),
            Some(Event::Data(Bytes::from_static(b"abc"))),
            Some(Event::End { reusable: true }),
            None,
        ] {
            assert_eq!(exchange.next().await.expect("an event"), wanted);
        }
        assert_eq!((exchange.sent_bytes(), exchange.received_bytes()), (7, 23));
        assert!(exchange.into_stream().is_some());
    }

    #[tokio::test]
    async fn an_exchange_that_did_not_end_gives_no_connection_back() {
        let (near, mut far) = duplex(1024);
        let mut exchange = Exchange::start(near, spec());
        far.write_all(b"VALUE k 1 3\r\nabc").await.expect("room");
        exchange.next().await.expect("a head");
        exchange.next().await.expect("data");
        assert!(exchange.has_whole_length());
        assert!(exchange.into_stream().is_none());
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_never_looks_whole() {
        for (answer, why) in [
            (&b""[..], "prematurely closed"),
            (b"VALUE k 0", "prematurely closed"),
            (b"VALUE k 0 3\r\n", "after 0 of 3 bytes"),
            (b"VALUE k 0 3\r\nab", "after 2 of 3 bytes"),
            (b"VALUE k 0 3\r\nabc", "invalid trailer"),
            (b"VALUE k 0 3\r\nabc\r\nEND\r", "invalid trailer"),
            (b"VALUE k 0 3\r\nabcd\r\nEND\r\n", "invalid trailer"),
        ] {
            let (events, end, asked) = against(answer).await;
            let error = end.expect_err("no end");
            assert!(error.to_string().contains(why), "{answer:?}: {error}");
            assert_eq!(error.before_first_byte(), answer.is_empty());
            assert!(!events.iter().any(|it| matches!(it, Event::End { .. })));
            assert_eq!(asked, b"get k\r\n");
        }
    }
}
