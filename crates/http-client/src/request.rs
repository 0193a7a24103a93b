//! Writes a request: its head, then its body as it comes.
//!
//! One part of the body is held at a time, between the head of its chunk and the chunk's end;
//! head and first part leave in one write. The body is counted: a part beyond the length that the
//! head promises is not sent, since the upstream would take the rest for another request.

use std::io;

use bytes::{Buf, Bytes};
use http1::chunked::{CHUNK_END, ChunkHead, LAST_CHUNK};
use upstream_exchange::{EncodeRequest, Segments};

/// The framing of the request's body, which its head declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body; the source is not asked.
    None,
    /// `Content-Length`: exactly as many bytes come from the source.
    Length(u64),
    /// `Transfer-Encoding: chunked`; the chunks are made of the source's parts.
    Chunked,
}

/// Behind a chunk that nothing follows.
const CHUNK_END_AND_LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// The parts of a request that are not yet written.
#[derive(Debug)]
pub struct RequestEncoder {
    framing: BodyFraming,
    /// The unwritten bytes of each part, in the order of writing.
    head: Bytes,
    chunk_head: Option<ChunkHead>,
    chunk_head_sent: usize,
    data: Bytes,
    tail: &'static [u8],
    /// All there is to send is at hand.
    is_complete: bool,
}

impl RequestEncoder {
    pub(crate) fn new(head: Bytes, framing: BodyFraming) -> RequestEncoder {
        RequestEncoder {
            framing,
            head,
            chunk_head: None,
            chunk_head_sent: 0,
            data: Bytes::new(),
            tail: b"",
            is_complete: matches!(framing, BodyFraming::None | BodyFraming::Length(0)),
        }
    }

    fn chunk_head(&self) -> &[u8] {
        match &self.chunk_head {
            Some(head) => head.as_ref().get(self.chunk_head_sent..).unwrap_or(b""),
            None => b"",
        }
    }
}

impl EncodeRequest for RequestEncoder {
    fn wants_body(&self) -> bool {
        !self.is_complete && self.data.is_empty() && self.tail.is_empty()
    }

    fn add_body(&mut self, part: Bytes, is_last: bool) -> io::Result<()> {
        let length = part.len() as u64;
        match &mut self.framing {
            BodyFraming::None => return Err(unexpected("more than its length")),
            BodyFraming::Length(left) => {
                *left = left
                    .checked_sub(length)
                    .ok_or_else(|| unexpected("more than its length"))?;
                // The source need not be asked for the end it must be at.
                self.is_complete = *left == 0;
            }
            BodyFraming::Chunked => {
                self.chunk_head = Some(ChunkHead::new(length));
                self.chunk_head_sent = 0;
                self.tail = match is_last {
                    true => CHUNK_END_AND_LAST_CHUNK,
                    false => CHUNK_END,
                };
                self.is_complete = is_last;
            }
        }
        self.data = part;
        Ok(())
    }

    fn end_body(&mut self) -> io::Result<()> {
        match self.framing {
            BodyFraming::None | BodyFraming::Length(0) => {}
            BodyFraming::Length(_) => return Err(unexpected("less than its length")),
            BodyFraming::Chunked => self.tail = LAST_CHUNK,
        }
        self.is_complete = true;
        Ok(())
    }

    fn put_segments<'a>(&'a self, segments: &mut Segments<'a>) {
        for segment in [&self.head[..], self.chunk_head(), &self.data, self.tail] {
            segments.push(segment);
        }
    }

    fn advance(&mut self, mut written: usize) {
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

    fn is_complete(&self) -> bool {
        self.is_complete
    }
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the request body has {what}"),
    )
}
