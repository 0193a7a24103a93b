//! The writing half: the request's head, then its body as it comes.
//!
//! One part of the body is held at a time, between the head of its chunk and
//! what ends that; head and first part leave in one write. The body is counted:
//! what would not be the length that the head promises is not sent, since the
//! upstream would take the rest for another request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http1::chunked::{CHUNK_END, ChunkHead, LAST_CHUNK};
use request_body::BodySource;
use tokio::io::AsyncWrite;

/// How the request's body is framed, as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body; the source is not asked.
    None,
    /// `Content-Length`: exactly as many bytes come from the source.
    Length(u64),
    /// `Transfer-Encoding: chunked`; the sender writes the chunks.
    Chunked,
}

/// Behind a chunk that nothing follows.
const CHUNK_END_AND_LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Head, chunk head, data, chunk end.
const MAX_SEGMENTS: usize = 4;

#[derive(Debug)]
pub(crate) struct Sender<B> {
    body: B,
    framing: BodyFraming,
    /// What is left of each, to be written in this order.
    head: Bytes,
    chunk_head: Option<ChunkHead>,
    chunk_head_sent: usize,
    data: Bytes,
    tail: &'static [u8],
    state: State,
    pub(crate) sent_bytes: u64,
}

#[derive(Debug, Default)]
enum State {
    /// More of the body may come.
    Streaming,
    /// All there is to send is at hand.
    Draining,
    #[default]
    Sent,
    /// The upstream does not read any more. It may have answered all the same,
    /// so this becomes an error only if no complete response arrives.
    Failed(io::Error),
}

impl<B: BodySource> Sender<B> {
    pub(crate) fn new(head: Bytes, framing: BodyFraming, body: B) -> Sender<B> {
        let state = match framing {
            BodyFraming::None | BodyFraming::Length(0) => State::Draining,
            BodyFraming::Length(_) | BodyFraming::Chunked => State::Streaming,
        };
        Sender {
            body,
            framing,
            head,
            chunk_head: None,
            chunk_head_sent: 0,
            data: Bytes::new(),
            tail: b"",
            state,
            sent_bytes: 0,
        }
    }

    /// Writes as much as body and stream permit now. Wakes the task when there
    /// may be more to do.
    ///
    /// # Errors
    ///
    /// The body source's. The stream's are kept for [`Sender::take_failure`].
    pub(crate) fn poll_send<S>(&mut self, cx: &mut Context<'_>, stream: &mut S) -> io::Result<()>
    where
        S: AsyncWrite + Unpin,
    {
        // Each turn writes at least one byte, or returns, or is the last.
        while self.is_under_way() {
            self.fill(cx)?;
            let is_empty = self.is_empty();
            // A stream with a buffer of its own (TLS) may hold bytes back.
            let done = match is_empty {
                true => Pin::new(&mut *stream).poll_flush(cx).map_ok(|()| None),
                false => self.poll_write(cx, stream).map_ok(Some),
            };
            match done {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(None)) => {
                    if matches!(self.state, State::Draining) {
                        self.state = State::Sent;
                    }
                    return Ok(());
                }
                Poll::Ready(Ok(Some(0))) => {
                    self.state = State::Failed(io::ErrorKind::WriteZero.into());
                }
                Poll::Ready(Ok(Some(written))) => self.advance(written),
                Poll::Ready(Err(error)) => self.state = State::Failed(error),
            }
        }
        Ok(())
    }

    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.state, State::Streaming | State::Draining)
    }

    /// Whether the whole request reached the stream.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.state, State::Sent)
    }

    /// Why the upstream could not be written to, if so.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        match std::mem::take(&mut self.state) {
            State::Failed(error) => Some(error),
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Takes the next part of the body when the one before is written.
    fn fill(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        // Each turn but the last takes an empty part.
        while matches!(self.state, State::Streaming) && self.is_body_part_written() {
            match self.body.poll_data(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(part)) => self.take_part(part?)?,
                Poll::Ready(None) => self.end_of_body()?,
            }
        }
        Ok(())
    }

    fn take_part(&mut self, part: Bytes) -> io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let length = part.len() as u64;
        match &mut self.framing {
            BodyFraming::None => return Err(unexpected("more than its length")),
            BodyFraming::Length(left) => {
                *left = left
                    .checked_sub(length)
                    .ok_or_else(|| unexpected("more than its length"))?;
                // The source need not be asked for the end it must be at.
                if *left == 0 {
                    self.state = State::Draining;
                }
            }
            BodyFraming::Chunked => {
                self.chunk_head = Some(ChunkHead::new(length));
                self.chunk_head_sent = 0;
                self.tail = CHUNK_END;
                if self.body.is_at_end() {
                    self.tail = CHUNK_END_AND_LAST_CHUNK;
                    self.state = State::Draining;
                }
            }
        }
        self.data = part;
        Ok(())
    }

    fn end_of_body(&mut self) -> io::Result<()> {
        match self.framing {
            BodyFraming::None | BodyFraming::Length(0) => {}
            BodyFraming::Length(_) => return Err(unexpected("less than its length")),
            BodyFraming::Chunked => self.tail = LAST_CHUNK,
        }
        self.state = State::Draining;
        Ok(())
    }

    fn is_body_part_written(&self) -> bool {
        self.data.is_empty() && self.tail.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.is_body_part_written()
    }

    fn chunk_head(&self) -> &[u8] {
        match &self.chunk_head {
            Some(head) => head.as_ref().get(self.chunk_head_sent..).unwrap_or(b""),
            None => b"",
        }
    }

    fn poll_write<S>(&self, cx: &mut Context<'_>, stream: &mut S) -> Poll<io::Result<usize>>
    where
        S: AsyncWrite + Unpin,
    {
        let mut slices = [IoSlice::new(&[]); MAX_SEGMENTS];
        let mut used = 0;
        let segments = [&self.head[..], self.chunk_head(), &self.data, self.tail];
        let filled = segments.iter().filter(|segment| !segment.is_empty());
        for (slice, segment) in slices.iter_mut().zip(filled) {
            *slice = IoSlice::new(segment);
            used += 1;
        }
        let slices = slices.get(..used).unwrap_or(&[]);
        match slices {
            [only] => Pin::new(stream).poll_write(cx, only),
            _ => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn advance(&mut self, mut written: usize) {
        self.sent_bytes += written as u64;
        let mut left_of = |length: usize| {
            let part = length.min(written);
            written -= part;
            part
        };
        let part = left_of(self.head.len());
        self.head.advance(part);
        let part = left_of(self.chunk_head().len());
        self.chunk_head_sent += part;
        let part = left_of(self.data.len());
        self.data.advance(part);
        let part = left_of(self.tail.len());
        self.tail = self.tail.get(part..).unwrap_or(b"");
    }
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the request body has {what}"),
    )
}
