//! Bytes from PHP into pieces of STDOUT, STDERR and END_REQUEST.
//!
//! Without I/O: the caller fills [`Decoder::buffer`] and pulls pieces.
//! Content is handed out as it arrives, as slices of the buffer, so that a
//! record of 64 KB is never gathered; records may be split at any byte.
//! After pulling until `None`, fewer than eight bytes are left in the buffer.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::{Error, RecordFault};
use crate::record::{
    self, BODY_BYTES, HEADER_BYTES, REQUEST_ID, RecordHeader, VERSION, protocol_status,
};

/// A part of the response, in the order of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Stdout(Bytes),
    /// The empty STDOUT record.
    StdoutClosed,
    Stderr(Bytes),
    /// END_REQUEST with FCGI_REQUEST_COMPLETE, its padding read.
    EndRequest {
        app_status: u32,
    },
}

#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    state: DecoderState,
}

/// The part of a record that comes next.
#[derive(Clone, Copy, Debug, Default)]
enum DecoderState {
    #[default]
    Header,
    Content {
        stream: Stream,
        content_bytes: u16,
        padding_bytes: u8,
    },
    EndRequestBody {
        content_bytes: u16,
        padding_bytes: u8,
    },
    /// Bytes to discard: padding, and records that are ignored.
    Skip {
        bytes: u32,
    },
    /// The tail of END_REQUEST.
    SkipThenEnd {
        bytes: u32,
        app_status: u32,
    },
    Ended,
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Stdout,
    Stderr,
}

impl Decoder {
    pub fn with_buffer(buffer: BytesMut) -> Decoder {
        Decoder {
            buffer,
            state: DecoderState::Header,
        }
    }

    /// The buffer to which bytes from PHP are appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Whether END_REQUEST was decoded and nothing came after it.
    pub fn ended_cleanly(&self) -> bool {
        matches!(self.state, DecoderState::Ended) && self.buffer.is_empty()
    }

    /// The next piece, or `None` when more bytes are needed or the request
    /// has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`], and the protocol statuses other than
    /// FCGI_REQUEST_COMPLETE as errors of their own.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        // Every turn consumes bytes or changes the state towards a return.
        loop {
            match self.state {
                DecoderState::Header => {
                    let Some(header) = self.buffer.first_chunk::<HEADER_BYTES>() else {
                        return Ok(None);
                    };
                    let header = RecordHeader::decode(*header);
                    self.buffer.advance(HEADER_BYTES);
                    if let Some(piece) = self.begin_record(header)? {
                        return Ok(Some(piece));
                    }
                }
                DecoderState::Content {
                    stream,
                    content_bytes,
                    padding_bytes,
                } => {
                    if self.buffer.is_empty() {
                        return Ok(None);
                    }
                    return Ok(Some(self.take_content(
                        stream,
                        content_bytes,
                        padding_bytes,
                    )));
                }
                DecoderState::EndRequestBody {
                    content_bytes,
                    padding_bytes,
                } => {
                    let Some(body) = self.buffer.first_chunk::<BODY_BYTES>() else {
                        return Ok(None);
                    };
                    let [a, b, c, d, status, ..] = *body;
                    self.buffer.advance(BODY_BYTES);
                    check_protocol_status(status)?;
                    // The record is longer than the specification allows: the
                    // rest is skipped.
                    let excess = u32::from(content_bytes).saturating_sub(BODY_BYTES as u32);
                    self.state = DecoderState::SkipThenEnd {
                        bytes: excess + u32::from(padding_bytes),
                        app_status: u32::from_be_bytes([a, b, c, d]),
                    };
                }
                DecoderState::Skip { bytes } => match self.skip(bytes) {
                    0 => self.state = DecoderState::Header,
                    bytes => {
                        self.state = DecoderState::Skip { bytes };
                        return Ok(None);
                    }
                },
                DecoderState::SkipThenEnd { bytes, app_status } => match self.skip(bytes) {
                    0 => {
                        self.state = DecoderState::Ended;
                        return Ok(Some(Piece::EndRequest { app_status }));
                    }
                    bytes => {
                        self.state = DecoderState::SkipThenEnd { bytes, app_status };
                        return Ok(None);
                    }
                },
                DecoderState::Ended => return Ok(None),
            }
        }
    }

    /// The stream has ended. An END_REQUEST that lacks nothing but padding
    /// counts.
    pub fn end_of_input(&mut self) -> Option<Piece> {
        match self.state {
            DecoderState::SkipThenEnd { app_status, .. } => {
                self.state = DecoderState::Ended;
                Some(Piece::EndRequest { app_status })
            }
            _ => None,
        }
    }

    fn begin_record(&mut self, header: RecordHeader) -> Result<Option<Piece>, Error> {
        if header.version != VERSION {
            return Err(RecordFault::UnsupportedVersion(header.version).into());
        }
        let stream = match header.kind {
            record::kind::STDOUT => Some(Stream::Stdout),
            record::kind::STDERR => Some(Stream::Stderr),
            record::kind::END_REQUEST => None,
            // Management records and types that a later version may bring
            // are skipped (specification, section 4.2); the rest of the
            // known types is for the other direction.
            kind @ (0 | record::kind::BEGIN_REQUEST..=record::kind::DATA) => {
                return Err(RecordFault::UnexpectedType(kind).into());
            }
            _ => {
                self.state = DecoderState::Skip {
                    bytes: u32::from(header.content_bytes) + u32::from(header.padding_bytes),
                };
                return Ok(None);
            }
        };
        if header.request_id != REQUEST_ID {
            return Err(RecordFault::UnexpectedRequestId(header.request_id).into());
        }
        let RecordHeader {
            content_bytes,
            padding_bytes,
            ..
        } = header;
        match stream {
            None if usize::from(content_bytes) < BODY_BYTES => {
                return Err(RecordFault::ShortEndRequest(content_bytes).into());
            }
            None => {
                self.state = DecoderState::EndRequestBody {
                    content_bytes,
                    padding_bytes,
                };
            }
            Some(stream) if content_bytes == 0 => {
                self.state = DecoderState::Skip {
                    bytes: u32::from(padding_bytes),
                };
                if matches!(stream, Stream::Stdout) {
                    return Ok(Some(Piece::StdoutClosed));
                }
            }
            Some(stream) => {
                self.state = DecoderState::Content {
                    stream,
                    content_bytes,
                    padding_bytes,
                };
            }
        }
        Ok(None)
    }

    fn take_content(&mut self, stream: Stream, content_bytes: u16, padding_bytes: u8) -> Piece {
        let taken = u16::try_from(self.buffer.len())
            .unwrap_or(u16::MAX)
            .min(content_bytes);
        let bytes = self.buffer.split_to(usize::from(taken)).freeze();
        self.state = match content_bytes - taken {
            0 => DecoderState::Skip {
                bytes: u32::from(padding_bytes),
            },
            content_bytes => DecoderState::Content {
                stream,
                content_bytes,
                padding_bytes,
            },
        };
        match stream {
            Stream::Stdout => Piece::Stdout(bytes),
            Stream::Stderr => Piece::Stderr(bytes),
        }
    }

    /// Drops up to `bytes` bytes; how many are still to come.
    fn skip(&mut self, bytes: u32) -> u32 {
        let available = u32::try_from(self.buffer.len()).unwrap_or(u32::MAX);
        let skipped = available.min(bytes);
        self.buffer.advance(skipped as usize);
        bytes - skipped
    }
}

fn check_protocol_status(status: u8) -> Result<(), Error> {
    match status {
        protocol_status::REQUEST_COMPLETE => Ok(()),
        protocol_status::CANT_MPX_CONN => Err(Error::CannotMultiplex),
        protocol_status::OVERLOADED => Err(Error::Overloaded),
        protocol_status::UNKNOWN_ROLE => Err(Error::UnknownRole),
        other => Err(RecordFault::UnknownProtocolStatus(other).into()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;

    use super::*;
    use crate::record::kind;

    fn put_record(out: &mut BytesMut, header: RecordHeader, content: &[u8]) {
        out.put_slice(&header.encode());
        out.put_slice(content);
        out.put_bytes(0xaa, usize::from(header.padding_bytes));
    }

    fn record(kind: u8, content: &[u8], padding_bytes: u8) -> RecordHeader {
        RecordHeader {
            padding_bytes,
            ..RecordHeader::new(kind, content.len() as u16)
        }
    }

    fn decode(bytes: &[u8]) -> Result<Vec<Piece>, Error> {
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(bytes);
        let mut pieces = Vec::new();
        while let Some(piece) = decoder.next_piece()? {
            pieces.push(piece);
        }
        Ok(pieces)
    }

    #[test]
    fn padding_management_records_and_unknown_types_are_skipped() {
        let mut wire = BytesMut::new();
        put_record(&mut wire, record(kind::STDOUT, b"out", 5), b"out");
        let mut values = record(10, b"values", 2);
        values.request_id = 0;
        put_record(&mut wire, values, b"values");
        put_record(
            &mut wire,
            record(200, b"later version", 3),
            b"later version",
        );
        put_record(&mut wire, record(kind::STDERR, b"", 1), b"");
        put_record(&mut wire, record(kind::STDERR, b"err", 255), b"err");
        put_record(&mut wire, record(kind::STDOUT, b"", 7), b"");
        let body = [0, 0, 1, 2, 0, 0, 0, 0, 9, 9];
        put_record(&mut wire, record(kind::END_REQUEST, &body, 4), &body);
        assert_eq!(
            decode(&wire).expect("pieces"),
            [
                Piece::Stdout(Bytes::from_static(b"out")),
                Piece::Stderr(Bytes::from_static(b"err")),
                Piece::StdoutClosed,
                Piece::EndRequest { app_status: 258 },
            ]
        );
    }

    #[test]
    fn end_request_waits_for_its_padding_and_does_without_it_at_the_end() {
        let mut decoder = Decoder::default();
        let body = [0; 8];
        put_record(decoder.buffer(), record(kind::END_REQUEST, &body, 4), &body);
        let whole = decoder.buffer().len();
        decoder.buffer().truncate(whole - 1);
        assert_eq!(decoder.next_piece().expect("no error"), None);
        assert!(!decoder.ended_cleanly());
        assert_eq!(
            decoder.end_of_input(),
            Some(Piece::EndRequest { app_status: 0 })
        );
    }

    #[test]
    fn leftover_after_end_request_is_not_clean() {
        for (leftover, clean) in [(&b""[..], true), (b"x", false)] {
            let mut decoder = Decoder::default();
            record::put_end_request(decoder.buffer(), 0, 0);
            decoder.buffer().extend_from_slice(leftover);
            let piece = decoder.next_piece().expect("no error");
            assert_eq!(piece, Some(Piece::EndRequest { app_status: 0 }));
            assert_eq!(decoder.ended_cleanly(), clean);
        }
    }

    #[test]
    fn broken_records_are_refused_by_name() {
        for (bytes, fault) in [
            (*b"HTTP/1.1", RecordFault::UnsupportedVersion(b'H')),
            ([1, 0, 0, 1, 0, 0, 0, 0], RecordFault::UnexpectedType(0)),
            ([1, 1, 0, 1, 0, 0, 0, 0], RecordFault::UnexpectedType(1)),
            ([1, 5, 0, 1, 0, 0, 0, 0], RecordFault::UnexpectedType(5)),
            ([1, 8, 0, 1, 0, 0, 0, 0], RecordFault::UnexpectedType(8)),
            (
                [1, 6, 0, 2, 0, 0, 0, 0],
                RecordFault::UnexpectedRequestId(2),
            ),
            (
                [1, 3, 0, 0, 0, 8, 0, 0],
                RecordFault::UnexpectedRequestId(0),
            ),
            ([1, 3, 0, 1, 0, 7, 9, 0], RecordFault::ShortEndRequest(7)),
        ] {
            match decode(&bytes) {
                Err(Error::Malformed(found)) => assert_eq!(found, fault),
                other => panic!("{fault:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn protocol_statuses_are_errors_of_their_own() {
        for (status, expected) in [
            (1, "CannotMultiplex"),
            (2, "Overloaded"),
            (3, "UnknownRole"),
            (4, "Malformed(UnknownProtocolStatus(4))"),
        ] {
            let mut wire = BytesMut::new();
            record::put_end_request(&mut wire, 0, status);
            let error = decode(&wire).expect_err(expected);
            assert_eq!(format!("{error:?}"), expected);
        }
    }
}
