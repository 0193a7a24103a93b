//! The receiving half of a connection that speaks HTTP/1: bytes read ahead, and the body of
//! the request under way, read from them following its framing (RFC 9112 §6).

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http1::Framing;
use http1::chunked::{ChunkedDecoder, ChunkedError, DecodedChunk};

use crate::body::IncomingBody;
use crate::request_body::BodyError;
use crate::stream::ClientStream;

/// How much is read from a client at once.
const READ_BYTES: usize = 16 * 1024;

/// The rest of the current request's body on the connection.
enum Rest {
    Done,
    Length(u64),
    Chunked(ChunkedDecoder),
}

/// Bytes read ahead, and the body that they begin with.
pub struct Input {
    stream: Arc<ClientStream>,
    pub buffer: BytesMut,
    rest: Rest,
    /// Bytes taken off the wire for this body.
    wire_bytes: u64,
}

impl Input {
    /// `buffer` was read already.
    pub fn new(stream: Arc<ClientStream>, buffer: BytesMut) -> Input {
        Input {
            stream,
            buffer,
            rest: Rest::Done,
            wire_bytes: 0,
        }
    }

    /// Begins the body of the next request; false if the request has no body.
    #[inline]
    pub fn begin(&mut self, framing: Framing) -> bool {
        self.wire_bytes = 0;
        self.rest = match framing {
            Framing::None | Framing::Length(0) => Rest::Done,
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(ChunkedDecoder::new()),
        };
        !self.is_done()
    }

    /// Has the body been read to its end?
    #[inline]
    pub fn is_done(&self) -> bool {
        matches!(self.rest, Rest::Done)
    }

    /// Do the bytes behind the head make no beginning of a chunked body?
    pub fn begins_with_broken_chunks(&self) -> bool {
        ends_within(ChunkedDecoder::new(), &self.buffer).is_err()
    }

    /// Decodes the bytes buffered already; `None` when more must be read.
    fn take_buffered(&mut self) -> Result<Option<Bytes>, BodyError> {
        match &mut self.rest {
            Rest::Done => Ok(None),
            _ if self.buffer.is_empty() => Ok(None),
            Rest::Length(length) => {
                let take = usize::try_from(*length)
                    .unwrap_or(usize::MAX)
                    .min(self.buffer.len());
                *length -= take as u64;
                self.wire_bytes += take as u64;
                if *length == 0 {
                    self.rest = Rest::Done;
                }
                Ok(Some(self.buffer.split_to(take).freeze()))
            }
            Rest::Chunked(_) => self.take_chunks(),
        }
    }

    /// Takes the content of the chunks that are here already, as one piece: they are handed
    /// on together, and the end with them if it came along.
    fn take_chunks(&mut self) -> Result<Option<Bytes>, BodyError> {
        let mut whole = BytesMut::new();
        while let Rest::Chunked(decoder) = &mut self.rest {
            let decoded = decoder.decode(&self.buffer);
            match decoded.map_err(|_| BodyError::Malformed)? {
                DecodedChunk::Data { consumed, data } => {
                    self.wire_bytes += consumed as u64;
                    let mut piece = self.buffer.split_to(consumed);
                    let _ = piece.split_to(data.start);
                    piece.truncate(data.len());
                    match whole.is_empty() {
                        true => whole = piece,
                        false => whole.extend_from_slice(&piece),
                    }
                }
                DecodedChunk::Done { consumed } => {
                    let _ = self.buffer.split_to(consumed);
                    self.wire_bytes += consumed as u64;
                    self.rest = Rest::Done;
                }
                DecodedChunk::NeedMore => {
                    self.wire_bytes += self.buffer.len() as u64;
                    self.buffer.clear();
                    break;
                }
            }
        }
        Ok((!whole.is_empty()).then(|| whole.freeze()))
    }
}

impl IncomingBody for Input {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            if let Some(bytes) = self.take_buffered()? {
                return Poll::Ready(Ok(Some(bytes)));
            }
            if self.is_done() {
                return Poll::Ready(Ok(None));
            }
            self.buffer.reserve(READ_BYTES);
            match ready!(self.stream.poll_read(cx, &mut self.buffer)) {
                Ok(0) => {
                    let error = io::ErrorKind::UnexpectedEof.into();
                    return Poll::Ready(Err(BodyError::Gone(error)));
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(BodyError::Gone(error))),
            }
        }
    }

    fn is_done(&self) -> bool {
        Input::is_done(self)
    }

    fn has_arrived(&self) -> bool {
        !self.buffer.is_empty()
    }

    fn is_at_hand(&self, most: u64) -> bool {
        let is_small = self.buffer.len() as u64 <= most;
        is_small
            && match &self.rest {
                Rest::Done => true,
                Rest::Length(length) => *length <= self.buffer.len() as u64,
                Rest::Chunked(decoder) => ends_within(decoder.clone(), &self.buffer) == Ok(true),
            }
    }

    fn remaining(&self) -> Option<u64> {
        match &self.rest {
            Rest::Done => Some(0),
            Rest::Length(length) => Some(*length),
            Rest::Chunked(_) => None,
        }
    }

    fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Does a chunked body end within `bytes`? An error where they are no chunks.
fn ends_within(mut decoder: ChunkedDecoder, mut bytes: &[u8]) -> Result<bool, ChunkedError> {
    loop {
        match decoder.decode(bytes)? {
            DecodedChunk::Data { consumed, .. } => {
                bytes = bytes.get(consumed..).unwrap_or_default()
            }
            DecodedChunk::Done { .. } => return Ok(true),
            DecodedChunk::NeedMore => return Ok(false),
        }
    }
}
