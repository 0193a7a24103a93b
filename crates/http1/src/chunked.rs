//! The chunked coding (RFC 9112 §7.1): a decoder fed with the bytes that arrived, and the
//! framing that an encoder writes around a chunk.
//!
//! The decoder copies nothing: it reports which part of its input is body. Lines end in
//! CR LF only; a bare LF or CR is refused (as nginx does since 1.29.4), because two
//! readers that disagree there see two different requests. Chunk extensions are dropped,
//! trailers are dropped or kept, and both are bounded for the whole body, so that a
//! client cannot send overhead without end.

use std::ops::Range;

use bytes::Bytes;
use http_semantics::Fields;

use crate::field_line::{self, Line};

/// 16 hexadecimal digits express every `u64`; more are padding.
const MAX_SIZE_DIGITS: u8 = 16;
/// Extensions of a whole body. Clients have no use for them; long ones only cost us time.
const MAX_EXTENSION_BYTES: u32 = 16 * 1024;
/// The trailer section, empty line included.
const MAX_TRAILER_BYTES: usize = 8 * 1024;

/// The result of one decoding step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodedChunk {
    /// Body bytes: `input[data]`. Go on with `input[consumed..]`.
    Data {
        /// How much of the input is dealt with (ends where `data` ends).
        consumed: usize,
        /// The part of the input that is body, not empty.
        data: Range<usize>,
    },
    /// The whole input is dealt with and the body is not over.
    NeedMore,
    /// The body is over; the bytes behind `input[..consumed]` are the next message.
    Done {
        /// How much of the input belonged to this body.
        consumed: usize,
    },
}

/// A chunked body that cannot be read in one way only, or overhead above the
/// bounds. The connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkedError {
    /// No size, a bad digit, or a size above `i64::MAX`.
    #[error("invalid chunk size")]
    InvalidSize,
    /// A chunk size line with a bare CR or LF, NUL, or too many extensions.
    #[error("invalid chunk extension")]
    InvalidExtension,
    /// Chunk data not followed by CR LF.
    #[error("chunk data longer than its size")]
    InvalidChunkEnd,
    /// A trailer that is no field line, or too long a trailer section.
    #[error("invalid trailer")]
    InvalidTrailer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// Before or within the digits.
    Size {
        size: u64,
        digits: u8,
    },
    /// After the digits, up to the CR.
    Extension {
        size: u64,
    },
    /// After that CR.
    SizeLf {
        size: u64,
    },
    /// This much of the chunk is to come.
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// After the last chunk.
    Trailers,
    Done,
    /// Refused once, refused for good.
    Failed(ChunkedError),
}

/// Decodes one body.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    state: ChunkState,
    extension_bytes: u32,
    keep_trailers: bool,
    /// The trailer line under way; its capacity is reused from line to line.
    line: Vec<u8>,
    trailer_bytes: usize,
    trailers: Fields,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        ChunkedDecoder::new()
    }
}

impl ChunkedDecoder {
    /// A decoder that checks trailers and drops them.
    pub fn new() -> Self {
        ChunkedDecoder {
            state: ChunkState::Size { size: 0, digits: 0 },
            extension_bytes: 0,
            keep_trailers: false,
            line: Vec::new(),
            trailer_bytes: 0,
            trailers: Fields::new(),
        }
    }

    /// A decoder that keeps trailers for [`ChunkedDecoder::trailers`].
    pub fn keeping_trailers() -> Self {
        ChunkedDecoder {
            keep_trailers: true,
            ..ChunkedDecoder::new()
        }
    }

    /// The trailers, complete after [`DecodedChunk::Done`].
    pub fn trailers(&self) -> &Fields {
        &self.trailers
    }

    /// Whether the body is over.
    pub fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Decodes up to the end of the next piece of data, of the body or of the
    /// input. Call again with the rest after [`DecodedChunk::Data`].
    ///
    /// # Errors
    /// [`ChunkedError`], and the same again from then on.
    pub fn decode(&mut self, input: &[u8]) -> Result<DecodedChunk, ChunkedError> {
        self.advance(input)
            .inspect_err(|&error| self.state = ChunkState::Failed(error))
    }

    fn advance(&mut self, input: &[u8]) -> Result<DecodedChunk, ChunkedError> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            match self.state {
                ChunkState::Done => break,
                ChunkState::Failed(error) => return Err(error),
                ChunkState::Data { left } => {
                    let available = input.len() - at;
                    let len = usize::try_from(left).map_or(available, |left| left.min(available));
                    self.state = match left - len as u64 {
                        0 => ChunkState::DataCr,
                        left => ChunkState::Data { left },
                    };
                    let data = at..at + len;
                    return Ok(DecodedChunk::Data {
                        consumed: data.end,
                        data,
                    });
                }
                ChunkState::Trailers => {
                    at += self.trailer_line(input.get(at..).unwrap_or_default())?;
                }
                _ => {
                    self.state = self.control_byte(byte)?;
                    at += 1;
                }
            }
        }
        match self.state {
            ChunkState::Failed(error) => Err(error),
            ChunkState::Done => Ok(DecodedChunk::Done { consumed: at }),
            _ => Ok(DecodedChunk::NeedMore),
        }
    }

    /// Takes one byte of the framing around the data.
    fn control_byte(&mut self, byte: u8) -> Result<ChunkState, ChunkedError> {
        match (self.state, byte) {
            (ChunkState::Size { size, digits }, _) => self.size_byte(size, digits, byte),
            (ChunkState::Extension { size }, b'\r') => Ok(ChunkState::SizeLf { size }),
            (ChunkState::Extension { .. }, b'\n' | 0) => Err(ChunkedError::InvalidExtension),
            (state @ ChunkState::Extension { .. }, _) => {
                self.extension_bytes += 1;
                if self.extension_bytes > MAX_EXTENSION_BYTES {
                    return Err(ChunkedError::InvalidExtension);
                }
                Ok(state)
            }
            (ChunkState::SizeLf { size: 0 }, b'\n') => Ok(ChunkState::Trailers),
            (ChunkState::SizeLf { size }, b'\n') => Ok(ChunkState::Data { left: size }),
            (ChunkState::SizeLf { .. }, _) => Err(ChunkedError::InvalidExtension),
            (ChunkState::DataCr, b'\r') => Ok(ChunkState::DataLf),
            (ChunkState::DataLf, b'\n') => Ok(ChunkState::Size { size: 0, digits: 0 }),
            _ => Err(ChunkedError::InvalidChunkEnd),
        }
    }

    fn size_byte(&self, size: u64, digits: u8, byte: u8) -> Result<ChunkState, ChunkedError> {
        if let Some(digit) = (byte as char).to_digit(16) {
            let size = (size << 4) | u64::from(digit);
            if digits == MAX_SIZE_DIGITS || size > i64::MAX as u64 {
                return Err(ChunkedError::InvalidSize);
            }
            return Ok(ChunkState::Size {
                size,
                digits: digits + 1,
            });
        }
        match byte {
            _ if digits == 0 => Err(ChunkedError::InvalidSize),
            b'\r' => Ok(ChunkState::SizeLf { size }),
            b';' | b' ' | b'\t' => Ok(ChunkState::Extension { size }),
            _ => Err(ChunkedError::InvalidSize),
        }
    }

    /// Takes input up to the end of a trailer line; answers how much.
    fn trailer_line(&mut self, input: &[u8]) -> Result<usize, ChunkedError> {
        let lf = memchr::memchr(b'\n', input);
        let taken = lf.map_or(input.len(), |lf| lf + 1);
        self.trailer_bytes += taken;
        if self.trailer_bytes > MAX_TRAILER_BYTES {
            return Err(ChunkedError::InvalidTrailer);
        }
        self.line
            .extend_from_slice(input.get(..taken).unwrap_or_default());
        if lf.is_none() {
            return Ok(taken);
        }
        if !self.line.ends_with(b"\r\n") {
            return Err(ChunkedError::InvalidTrailer);
        }
        let line = &self.line;
        let field = match field_line::read(line) {
            Line::Field(field) => field,
            Line::Empty(_) => {
                self.state = ChunkState::Done;
                return Ok(taken);
            }
            Line::Partial | Line::Refused => return Err(ChunkedError::InvalidTrailer),
        };
        if self.keep_trailers {
            let part =
                |range: Range<usize>| Bytes::copy_from_slice(line.get(range).unwrap_or_default());
            self.trailers.append(
                part(0..field.name_end),
                part(field.value_start..field.value_end),
            );
        }
        self.line.clear();
        Ok(taken)
    }
}

/// The end of a body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The size line before a chunk's data, CR LF included, made without allocating. After
/// the data comes [`CHUNK_END`]. An empty chunk would end the body, so callers skip
/// those.
#[derive(Clone, Copy, Debug)]
pub struct ChunkHead {
    bytes: [u8; 18],
    start: usize,
}

/// The line end after a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

impl ChunkHead {
    /// The head of a chunk of `len` bytes.
    pub fn new(len: u64) -> Self {
        let mut head = ChunkHead {
            bytes: *b"0000000000000000\r\n",
            start: 16,
        };
        let mut rest = len;
        while head.start > 0 && (rest > 0 || head.start == 16) {
            head.start -= 1;
            head.bytes[head.start] = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
        }
        head
    }
}

impl AsRef<[u8]> for ChunkHead {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type BodyAndRest = Option<(Vec<u8>, Vec<u8>)>;

    /// Decodes in steps of `step` bytes; returns the body and the rest.
    fn decode(input: &[u8], step: usize) -> Result<BodyAndRest, ChunkedError> {
        let mut decoder = ChunkedDecoder::keeping_trailers();
        let mut body = Vec::new();
        let mut at = 0;
        while at < input.len() {
            let piece = &input[at..input.len().min(at + step)];
            match decoder.decode(piece)? {
                DecodedChunk::Data { consumed, data } => {
                    body.extend_from_slice(&piece[data]);
                    at += consumed;
                }
                DecodedChunk::NeedMore => at += piece.len(),
                DecodedChunk::Done { consumed } => {
                    return Ok(Some((body, input[at + consumed..].to_vec())));
                }
            }
        }
        Ok(None)
    }

    #[test]
    fn a_body_reads_the_same_however_it_arrives() {
        for (name, input, body, rest) in [
            ("empty", "0\r\n\r\n", "", ""),
            ("one", "5\r\nhello\r\n0\r\n\r\n", "hello", ""),
            (
                "two",
                "5\r\nhello\r\nA\r\n, world...\r\n0\r\n\r\nGET",
                "hello, world...",
                "GET",
            ),
            (
                "extension",
                "5;a=\"b\"\r\nhello\r\n0 ; x\r\n\r\n",
                "hello",
                "",
            ),
            ("padding", "0000005\r\nhello\r\n000\r\n\r\n", "hello", ""),
            ("trailers", "1\r\na\r\n0\r\nA: b\r\nC:d\r\n\r\nx", "a", "x"),
            (
                "lines in data",
                "4\r\n\r\n\r\n\r\n0\r\n\r\n",
                "\r\n\r\n",
                "",
            ),
        ] {
            for step in 1..=input.len() {
                let expected = (body.as_bytes().to_vec(), rest.as_bytes().to_vec());
                assert_eq!(
                    decode(input.as_bytes(), step),
                    Ok(Some(expected)),
                    "{name} {step}"
                );
            }
        }
    }

    #[test]
    fn ambiguous_chunks_are_refused() {
        #[rustfmt::skip]
        let cases = [
            "4\r\nSEE-THIS\r\n0\r\n\r\n", "\r\n", "x\r\n", "-1\r\n", "+1\r\n", "0x5\r\n", " 5\r\nhello\r\n",
            "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5;a\nhello\r\n", "5;a\rb\r\nhello\r\n", "5\rhello",
            "5\r\nhello0\r\n\r\n", "10000000000000005\r\n", "8000000000000000\r\n", "ffffffffffffffff\r\n",
            "00000000000000005\r\n", "5_\r\n", "5,5\r\n", "0\r\n\n", "0\r\nA\r\n\r\n", "0\r\nA : b\r\n\r\n",
            "0\r\n A: b\r\n\r\n", "0\r\nA: b\n\r\n", "0\r\nA: b\0\r\n\r\n", "5;\0\r\nhello",
        ];
        for input in cases {
            for step in [1, 2, 3, input.len()] {
                assert!(
                    decode(input.as_bytes(), step).is_err(),
                    "{input:?} by {step}"
                );
            }
        }
    }

    #[test]
    fn what_was_refused_once_stays_refused() {
        let mut decoder = ChunkedDecoder::new();
        assert!(decoder.decode(b"1\r\na").is_ok());
        assert_eq!(decoder.decode(b"X"), Err(ChunkedError::InvalidChunkEnd));
        assert_eq!(
            decoder.decode(b"\r\n1\r\na\r\n"),
            Err(ChunkedError::InvalidChunkEnd)
        );
        assert_eq!(decoder.decode(b""), Err(ChunkedError::InvalidChunkEnd));
    }

    #[test]
    fn overhead_is_bounded_over_the_whole_body() {
        let extension = format!("1;{}\r\na\r\n", "x".repeat(1000));
        assert!(decode(extension.repeat(10).as_bytes(), 4096).is_ok());
        assert_eq!(
            decode(extension.repeat(20).as_bytes(), 4096),
            Err(ChunkedError::InvalidExtension)
        );
        let trailers = format!("0\r\n{}", "A: b\r\n".repeat(2000));
        assert_eq!(
            decode(trailers.as_bytes(), 100),
            Err(ChunkedError::InvalidTrailer)
        );
    }

    #[test]
    fn trailers_are_kept_when_asked_for() {
        let mut decoder = ChunkedDecoder::keeping_trailers();
        decoder.decode(b"0\r\nA: b\r\n\r\n").unwrap();
        assert!(decoder.is_done());
        assert_eq!(decoder.trailers().get("a"), Some(&b"b"[..]));
        let mut decoder = ChunkedDecoder::new();
        decoder.decode(b"0\r\nA: b\r\n\r\n").unwrap();
        assert!(decoder.trailers().is_empty());
    }

    #[test]
    fn chunk_heads_are_hexadecimal() {
        for (len, head) in [
            (0, "0\r\n"),
            (5, "5\r\n"),
            (255, "ff\r\n"),
            (u64::MAX, "ffffffffffffffff\r\n"),
        ] {
            assert_eq!(ChunkHead::new(len).as_ref(), head.as_bytes());
        }
    }
}
