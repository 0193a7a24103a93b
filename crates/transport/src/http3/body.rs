//! The receiving side of a request's stream: its head, then its body.

use std::any::Any;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http2::HeadLimits;
use http3::{Code, MessageReader, Piece};
use quinn::{ReadError, RecvStream, VarInt};

use super::field_tables::FieldTables;
use super::stream::{gone, varint};
use crate::body::IncomingBody;
use crate::request_body::BodyError;
use crate::service::BodyLength;

/// Taken from quinn at once.
const READ_BYTES: usize = 64 * 1024;
/// Read before a stage asks for the body: usual packets have this much of it beside the head.
const AHEAD_BYTES: usize = 16 * 1024;

/// All heads of a connection that are not whole yet have at most these bytes: far more than the
/// requests of a page, and far less than as many heads as there may be streams.
const UNFINISHED_HEADS_BYTES: usize = 1024 * 1024;

/// The part of a head that has come, among those of its connection.
struct CountedHead {
    total: Arc<AtomicUsize>,
    bytes: usize,
}

impl CountedHead {
    /// Notes that `bytes` of it have come. False: it is too much for all heads together.
    fn may_have(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        self.total.fetch_add(more, Ordering::Relaxed) + more <= UNFINISHED_HEADS_BYTES
    }
}

impl Drop for CountedHead {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The verdict on a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyVerdict {
    Open,
    Whole,
    /// The received bytes are not the announced body.
    Malformed,
}

/// The receiving side of a stream.
pub struct Incoming {
    stream: RecvStream,
    tables: Arc<FieldTables>,
    reader: MessageReader,
    limits: HeadLimits,
    /// Read and not yet cut into pieces.
    input: BytesMut,
    /// Bytes of the body not taken yet.
    body: BytesMut,
    /// Trailers that wait for insertions (RFC 9204 §2.1.2).
    trailers: Option<Bytes>,
    /// The bytes of the body still to come, if the head declared them.
    announced: Option<u64>,
    received: u64,
    verdict: BodyVerdict,
    has_ended: bool,
    /// Bytes of all heads of the connection that are not whole yet.
    unfinished_heads: Arc<AtomicUsize>,
}

/// Why there is no head.
pub enum HeadError {
    /// The client has closed the stream or the connection.
    Gone,
    /// The stream ended before its head.
    Incomplete,
    /// Larger than a head may be.
    TooLarge,
    /// The client broke the rules of the connection, which ends.
    Connection(http3::Error),
}

impl Incoming {
    /// `unfinished_heads` counts the bytes of all heads of the connection that are not whole yet.
    pub fn new(
        stream: RecvStream,
        tables: Arc<FieldTables>,
        limits: HeadLimits,
        unfinished_heads: Arc<AtomicUsize>,
    ) -> Incoming {
        Incoming {
            stream,
            tables,
            reader: MessageReader::new(http2::max_block_bytes(&limits)),
            limits,
            trailers: None,
            input: BytesMut::new(),
            body: BytesMut::new(),
            announced: None,
            received: 0,
            verdict: BodyVerdict::Open,
            has_ended: false,
            unfinished_heads,
        }
    }

    /// Bytes of the stream so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The number of the stream, by which the client knows it.
    pub fn stream_number(&self) -> u64 {
        VarInt::from(self.stream.id()).into_inner()
    }

    /// Reads the block of the request's fields, and waits for the insertions that it refers to.
    pub async fn read_head(&mut self) -> Result<Bytes, HeadError> {
        let block = self.read_head_block().await?;
        poll_fn(|cx| self.poll_insertions(cx, &block)).await?;
        Ok(block)
    }

    /// Reads on while the head waits, so that a client that gives up is noticed.
    fn poll_insertions(
        &mut self,
        cx: &mut Context<'_>,
        block: &[u8],
    ) -> Poll<Result<(), HeadError>> {
        let number = self.stream_number();
        if let Poll::Ready(inserted) = self.tables.poll_insertions(cx, number, block) {
            return Poll::Ready(inserted.map_err(HeadError::Connection));
        }
        while !self.has_ended && self.input.len() < AHEAD_BYTES {
            let read = ready!(self.poll_input(cx));
            if read.is_err() {
                return Poll::Ready(Err(HeadError::Gone));
            }
        }
        Poll::Pending
    }

    async fn read_head_block(&mut self) -> Result<Bytes, HeadError> {
        let mut counted = CountedHead {
            total: self.unfinished_heads.clone(),
            bytes: 0,
        };
        loop {
            match self.reader.next(&mut self.input) {
                Ok(Some(Piece::Head(block))) => return Ok(block),
                Ok(Some(_)) => return Err(HeadError::TooLarge),
                Ok(None) if self.has_ended => {
                    return Err(match self.reader.finish(&self.input) {
                        Ok(_) => HeadError::Incomplete,
                        Err(error) => HeadError::Connection(error),
                    });
                }
                Ok(None) => {}
                Err(error) => return Err(HeadError::Connection(error)),
            }
            let read = poll_fn(|cx| self.poll_input(cx)).await;
            read.map_err(|_| HeadError::Gone)?;
            if !counted.may_have(self.input.len()) {
                return Err(HeadError::Connection(http3::Error {
                    code: Code::EXCESSIVE_LOAD,
                    reason: "sent too much of too many requests",
                }));
            }
        }
    }

    /// The head was understood. Takes the received part of the body, and returns the body's
    /// length, as far as it is known now.
    pub fn begin_body(&mut self, content_length: Option<u64>) -> BodyLength {
        self.announced = content_length;
        // The reader of the body is woken for it: here no task waits.
        let mut cx = Context::from_waker(Waker::noop());
        while self.verdict == BodyVerdict::Open && self.body.len() < AHEAD_BYTES {
            if self.take_pieces(&mut cx).is_err() || self.is_whole() || self.trailers.is_some() {
                break;
            }
            if !matches!(self.poll_input(&mut cx), Poll::Ready(Ok(()))) {
                break;
            }
        }
        match (self.is_whole() && self.body.is_empty(), content_length) {
            (true, _) => BodyLength::None,
            (false, Some(length)) => BodyLength::Known(length),
            (false, None) => BodyLength::Unknown,
        }
    }

    /// Is the body known already to differ from its head?
    pub fn is_malformed(&self) -> bool {
        self.verdict == BodyVerdict::Malformed
    }

    fn is_whole(&self) -> bool {
        self.verdict == BodyVerdict::Whole
    }

    /// The client need not send the rest.
    pub fn stop(&mut self, code: Code) {
        let _ = self.stream.stop(varint(code));
    }

    /// Reads the bytes that quinn has.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        let read = ready!(pin!(self.stream.read_chunk(READ_BYTES, true)).poll(cx));
        Poll::Ready(match read {
            Ok(Some(chunk)) => {
                self.received += chunk.bytes.len() as u64;
                self.input.extend_from_slice(&chunk.bytes);
                Ok(())
            }
            Ok(None) => {
                self.has_ended = true;
                Ok(())
            }
            Err(ReadError::ConnectionLost(quinn::ConnectionError::TimedOut)) => {
                Err(io::ErrorKind::TimedOut.into())
            }
            Err(_) => Err(gone()),
        })
    }

    /// Cuts the input into pieces of the body.
    fn take_pieces(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        let taken = self.try_take_pieces(cx);
        if let Err(error) = taken {
            self.verdict = BodyVerdict::Malformed;
            self.tables.close(error);
            return Err(BodyError::Malformed);
        }
        match self.is_malformed() {
            true => Err(BodyError::Malformed),
            false => Ok(()),
        }
    }

    /// Takes bytes of the body, unless they are too many: a reader gets no more than the head
    /// declared.
    fn take_body(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        let left = self
            .announced
            .map(|announced| announced.checked_sub(length));
        match left {
            Some(None) => self.verdict = BodyVerdict::Malformed,
            Some(known) => self.announced = known,
            None => {}
        }
        if !self.is_malformed() {
            self.body.extend_from_slice(bytes);
        }
    }

    fn try_take_pieces(&mut self, cx: &mut Context<'_>) -> Result<(), http3::Error> {
        while let Some(piece) = self.reader.next(&mut self.input)? {
            match piece {
                Piece::Body(bytes) => self.take_body(&bytes),
                Piece::Trailers(block) => self.trailers = Some(block),
                Piece::Head(_) | Piece::TooLarge => {
                    self.verdict = BodyVerdict::Malformed;
                    return Ok(());
                }
            }
        }
        if let Some(block) = &self.trailers {
            let number = self.stream_number();
            let Poll::Ready(inserted) = self.tables.poll_insertions(cx, number, block) else {
                return Ok(());
            };
            inserted?;
            let verdict = self.tables.read_trailers(number, block, &self.limits)?;
            self.trailers = None;
            if verdict.is_err() {
                self.verdict = BodyVerdict::Malformed;
            }
        }
        if self.has_ended {
            self.reader.finish(&self.input)?;
            // RFC 9114 §4.1.2: neither more nor less than the head declared.
            let is_cut = self.announced.is_some_and(|left| left > 0);
            self.verdict = match is_cut || self.is_malformed() {
                true => BodyVerdict::Malformed,
                false => BodyVerdict::Whole,
            };
        }
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.has_ended {
            // The rest has no reader (RFC 9114 §4.1).
            self.stop(Code::NO_ERROR);
        }
        if !self.is_whole() {
            self.tables.cancel(self.stream_number());
        }
    }
}

impl IncomingBody for Incoming {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            if !self.body.is_empty() {
                return Poll::Ready(Ok(Some(self.body.split().freeze())));
            }
            if self.is_malformed() {
                return Poll::Ready(Err(BodyError::Malformed));
            }
            if self.is_whole() {
                return Poll::Ready(Ok(None));
            }
            if let Err(error) = self.take_pieces(cx) {
                return Poll::Ready(Err(error));
            }
            if !self.body.is_empty() || self.is_whole() {
                continue;
            }
            if self.has_ended {
                // Trailers wait for insertions.
                return Poll::Pending;
            }
            ready!(self.poll_input(cx)).map_err(BodyError::Gone)?;
        }
    }

    fn is_done(&self) -> bool {
        self.is_whole() && self.body.is_empty()
    }

    fn has_arrived(&self) -> bool {
        !self.body.is_empty()
    }

    fn is_at_hand(&self, most: u64) -> bool {
        self.is_whole() && self.body.len() as u64 <= most
    }

    fn remaining(&self) -> Option<u64> {
        let here = self.body.len() as u64;
        match (self.is_whole(), self.announced) {
            (true, _) => Some(here),
            (false, Some(left)) => Some(here + left),
            (false, None) => None,
        }
    }

    fn wire_bytes(&self) -> u64 {
        self.received
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
