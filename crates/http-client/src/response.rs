//! Bytes into the events of a response, without I/O.
//!
//! Here the body is counted. The promise: an [`Event::End`] means that the
//! response is complete. A body shorter than its `Content-Length`, or a
//! chunked one without its last chunk, ends in an error, never in `End`. Data
//! beyond the end is dropped and reported ([`ExcessData`]), as nginx does.
//!
//! ```text
//! Head ─(1xx)─ Head ─ Body ─ Ended
//!        101, asked for └─ Upgraded
//! ```

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use http_semantics::{Version, has_member};
use http1::chunked::{ChunkedDecoder, DecodedChunk};
use http1::{ResponseFraming, response_framing, take_response};
use upstream_exchange::{
    DecodeResponse, Event, ExcessData, MIN_READ_BYTES, READ_BUFFER_BYTES, ResponseHead, StreamError,
};

use crate::error::Error;
use crate::spare;

/// The largest read buffer, used if that much is known to come: each read and each
/// buffer has its price.
const MAX_READ_BYTES: usize = 64 * 1024;

/// Interim responses before the final one: two or three are usual (100, 103),
/// so this is ample, and an upstream cannot keep us busy with them.
pub const MAX_INTERIM_RESPONSES: u32 = 32;

/// The length of `HTTP/1.`, by which a status line is recognized.
const STATUS_LINE_START_BYTES: usize = 7;

/// The request's properties that decide how its response is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedResponse {
    pub(crate) head_limit_bytes: usize,
    pub(crate) head_request: bool,
    pub(crate) allow_upgrade: bool,
    /// The request allows that the connection is used again.
    pub(crate) keep_alive: bool,
    /// The stream was silent: it is not looked at again before the request is sent.
    pub(crate) known_silent: bool,
}

/// Bytes in, events out.
#[derive(Debug)]
pub struct ResponseReader {
    expected: ExpectedResponse,
    is_request_sent: bool,
    buffer: BytesMut,
    stage: Stage,
    /// The response's version and `Connection` allow another request.
    keep_alive: bool,
    body_bytes: u64,
    /// Whether the `End` event declared the connection reusable.
    is_reusable: bool,
}

#[derive(Debug)]
enum Stage {
    Head {
        /// How much of the buffer was looked at for the end of a line.
        searched: usize,
        interim: u32,
    },
    /// No body follows.
    Empty,
    Length {
        left: u64,
    },
    Chunked(ChunkedDecoder),
    UntilClose,
    Upgraded,
    Ended,
}

impl ResponseReader {
    pub(crate) fn new(expected: ExpectedResponse, buffer: BytesMut) -> ResponseReader {
        ResponseReader {
            expected,
            is_request_sent: true,
            buffer,
            stage: Stage::Head {
                searched: 0,
                interim: 0,
            },
            keep_alive: false,
            body_bytes: 0,
            is_reusable: false,
        }
    }

    fn is_upgraded(&self) -> bool {
        matches!(self.stage, Stage::Upgraded)
    }

    /// Returns the bytes of a body of known length that are not in the buffer yet.
    fn bytes_left(&self) -> Option<u64> {
        match &self.stage {
            Stage::Length { left } => Some(left.saturating_sub(self.buffer.len() as u64)),
            _ => None,
        }
    }

    /// The error for a body that stops here.
    fn truncated(&self, source: Option<io::Error>) -> Error {
        let expected_bytes = match &self.stage {
            Stage::Length { left } => Some(self.body_bytes.saturating_add(*left)),
            _ => None,
        };
        Error::Truncated {
            received_bytes: self.body_bytes,
            expected_bytes,
            source,
        }
    }

    /// Parses a head once a line has ended, not with each byte that dribbles
    /// in; `at_once` whatever has come. Loops over swallowed heads.
    fn next_head(&mut self, at_once: bool) -> Result<Option<Event>, Error> {
        while let Stage::Head { searched, interim } = &mut self.stage {
            let news = self.buffer.get(*searched..).unwrap_or_default();
            let limit_bytes = self.expected.head_limit_bytes;
            let worth_parsing = at_once
                || *searched < STATUS_LINE_START_BYTES
                || self.buffer.len() >= limit_bytes
                || memchr::memchr(b'\n', news).is_some();
            *searched = self.buffer.len();
            if !worth_parsing || self.buffer.is_empty() {
                return Ok(None);
            }
            let Some(head) = take_response(&mut self.buffer, limit_bytes)? else {
                return match self.buffer.len() >= limit_bytes {
                    true => Err(Error::HeadTooLarge { limit_bytes }),
                    false => Ok(None),
                };
            };
            *searched = 0;
            if matches!(head.status, 100 | 102..=199) {
                *interim += 1;
                if *interim > MAX_INTERIM_RESPONSES {
                    return Err(Error::TooManyInterimResponses);
                }
                // 100 allows us to send the body, which we do anyway.
                if head.status == 100 {
                    continue;
                }
                let length = declared_length(&head);
                return Ok(Some(Event::Interim(finish_head(head, length, false))));
            }
            return self.final_head(head).map(Some);
        }
        Ok(None)
    }

    fn final_head(&mut self, head: http1::ResponseHead) -> Result<Event, Error> {
        let method: &[u8] = match self.expected.head_request {
            true => b"HEAD",
            false => b"GET",
        };
        let is_upgrade = head.status == 101;
        if is_upgrade && !(self.expected.allow_upgrade && self.is_request_sent) {
            return Err(Error::UnaskedUpgrade);
        }
        self.stage = match response_framing(&head, method)? {
            _ if is_upgrade => Stage::Upgraded,
            ResponseFraming::None => Stage::Empty,
            ResponseFraming::Length(left) => Stage::Length { left },
            ResponseFraming::Chunked => Stage::Chunked(ChunkedDecoder::keeping_trailers()),
            ResponseFraming::UntilClose => Stage::UntilClose,
        };
        self.keep_alive = !is_upgrade && keeps_alive(&head);
        let length = match self.stage {
            Stage::Length { left } => Some(left),
            _ => declared_length(&head),
        };
        Ok(Event::Head(finish_head(head, length, is_upgrade)))
    }

    fn next_chunk(&mut self) -> Result<Option<Event>, Error> {
        let Stage::Chunked(decoder) = &mut self.stage else {
            return Ok(None);
        };
        if decoder.is_done() {
            return Ok(Some(self.end(ExcessData::AfterLastChunk)));
        }
        let decoded = decoder.decode(&self.buffer);
        match decoded {
            Ok(DecodedChunk::Data { data, .. }) => {
                self.buffer.advance(data.start);
                let data = take(&mut self.buffer, data.len());
                Ok(self.data(data))
            }
            Ok(DecodedChunk::NeedMore) => {
                self.buffer.clear();
                Ok(None)
            }
            Ok(DecodedChunk::Done { consumed }) => {
                self.buffer.advance(consumed);
                if decoder.trailers().is_empty() {
                    return Ok(Some(self.end(ExcessData::AfterLastChunk)));
                }
                let trailers = decoder.trailers().as_slice().to_vec();
                Ok(Some(Event::Trailers(trailers)))
            }
            Err(fault) => Err(Error::InvalidChunk {
                fault,
                received_bytes: self.body_bytes,
            }),
        }
    }

    fn data(&mut self, data: Bytes) -> Option<Event> {
        self.body_bytes += data.len() as u64;
        (!data.is_empty()).then_some(Event::Data(data))
    }

    fn end(&mut self, kind: ExcessData) -> Event {
        self.stage = Stage::Ended;
        let excess_data = (!self.buffer.is_empty()).then_some(kind);
        // Unsent bytes of this request would be taken for the next one.
        self.is_reusable = self.keep_alive
            && self.expected.keep_alive
            && self.is_request_sent
            && excess_data.is_none();
        Event::End {
            app_status: None,
            reusable: self.is_reusable,
            excess_data,
        }
    }
}

impl DecodeResponse for ResponseReader {
    type Event = Event;
    type Error = Error;

    fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    fn make_room(&mut self) {
        if self.buffer.capacity() - self.buffer.len() >= MIN_READ_BYTES {
            return;
        }
        let wanted = match self.bytes_left() {
            // One more, so that the last read is seen to be a short one.
            Some(left) if left < spare::MIN_BYTES as u64 => left as usize + 1,
            Some(_) => MAX_READ_BYTES,
            None => READ_BUFFER_BYTES.saturating_sub(self.buffer.len()),
        };
        if wanted >= spare::MIN_BYTES
            && self.buffer.is_empty()
            && let Some(spare) = spare::take()
        {
            self.buffer = spare;
        }
        // Reuses the allocation where no slice of it is held.
        self.buffer.reserve(wanted.max(MIN_READ_BYTES));
    }

    /// Before the whole request is out, no 101 may come.
    fn set_request_sent(&mut self, is_sent: bool) {
        self.is_request_sent = is_sent;
    }

    fn next_event(&mut self) -> Result<Option<Event>, Error> {
        match &mut self.stage {
            Stage::Head { .. } => self.next_head(false),
            Stage::Empty => Ok(Some(self.end(ExcessData::AfterHead))),
            Stage::Length { left: 0 } => Ok(Some(self.end(ExcessData::AfterLength))),
            Stage::Length { left } => {
                let room = usize::try_from(*left).unwrap_or(usize::MAX);
                let data = take(&mut self.buffer, room);
                *left -= data.len() as u64;
                Ok(self.data(data))
            }
            Stage::UntilClose => {
                let data = take(&mut self.buffer, usize::MAX);
                Ok(self.data(data))
            }
            Stage::Chunked(_) => self.next_chunk(),
            Stage::Upgraded | Stage::Ended => Ok(None),
        }
    }

    /// A failure never ends a body, not even one without a length.
    fn end_of_input(&mut self, failure: &mut Option<io::Error>) -> Result<Option<Event>, Error> {
        match &self.stage {
            Stage::Head { .. } => {
                // A line that nothing ends may still be at fault.
                self.next_head(true)?;
                Ok(None)
            }
            Stage::UntilClose if failure.is_none() => {
                self.stage = Stage::Ended;
                Ok(Some(Event::End {
                    app_status: None,
                    reusable: false,
                    excess_data: None,
                }))
            }
            _ => Err(self.truncated(failure.take())),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Ended | Stage::Upgraded)
    }

    fn is_reusable(&self) -> bool {
        self.is_reusable
    }

    fn is_whole_body_here(&self) -> bool {
        match &self.stage {
            Stage::Length { left } => self.buffer.len() as u64 >= *left,
            Stage::Empty => true,
            _ => false,
        }
    }

    fn unsolicited(&self) -> Option<Error> {
        (!self.expected.known_silent).then_some(Error::Unsolicited)
    }

    fn into_tunnel(self) -> Option<Bytes> {
        self.is_upgraded().then(|| self.buffer.freeze())
    }
}

/// Takes up to `most` bytes from the front of `buffer`, without copying.
fn take(buffer: &mut BytesMut, most: usize) -> Bytes {
    buffer.split_to(buffer.len().min(most)).freeze()
}

/// Returns the length that `Content-Length` declares, whether or not a body follows.
fn declared_length(head: &http1::ResponseHead) -> Option<u64> {
    let value = head.fields.get("content-length")?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn finish_head(
    head: http1::ResponseHead,
    content_length: Option<u64>,
    is_upgrade: bool,
) -> ResponseHead {
    ResponseHead {
        status: head.status,
        reason: head.reason.unwrap_or_default(),
        content_length,
        is_upgrade,
        fields: head.fields.into_iter().collect(),
    }
}

/// RFC 9112 §9.3; and after a coding in HTTP/1.0 the framing is in doubt
/// (§6.1).
fn keeps_alive(head: &http1::ResponseHead) -> bool {
    let says = |option: &[u8]| has_member(head.fields.get_all(b"connection"), option);
    match head.version {
        Version::Http11 => !says(b"close"),
        _ => says(b"keep-alive") && !says(b"close") && !head.fields.contains("transfer-encoding"),
    }
}

/// Reads `data` in pieces and whole; its first byte selects the properties of the
/// request.
pub(crate) fn fuzz(data: &[u8]) {
    let Some((&how, wire)) = data.split_first() else {
        return;
    };
    let expected = ExpectedResponse {
        // Small, so that the fuzzer meets the limit.
        head_limit_bytes: 256,
        head_request: how & 1 == 1,
        allow_upgrade: how & 2 == 2,
        keep_alive: true,
        known_silent: true,
    };
    let whole = read(wire, expected, wire.len().max(1));
    for piece_bytes in [1, usize::from(how / 4).max(2)] {
        let pieces = read(wire, expected, piece_bytes);
        assert_eq!(whole, pieces, "in pieces of {piece_bytes}");
    }
}

/// All that came of a response, however it was cut.
#[derive(Debug, Default, PartialEq)]
struct SeenResponse {
    heads: Vec<ResponseHead>,
    body: Vec<u8>,
    trailers: Vec<(Bytes, Bytes)>,
    is_complete: bool,
    fault: Option<String>,
}

fn read(wire: &[u8], expected: ExpectedResponse, piece_bytes: usize) -> SeenResponse {
    let mut reader = ResponseReader::new(expected, BytesMut::new());
    let mut seen = SeenResponse::default();
    let mut pieces = wire.chunks(piece_bytes);
    loop {
        let event = match reader.next_event() {
            Ok(None) if reader.is_upgraded() => return seen,
            Ok(None) => match pieces.next() {
                Some(piece) => {
                    reader.buffer().extend_from_slice(piece);
                    continue;
                }
                None => reader.end_of_input(&mut None).and_then(|event| {
                    let before_first_byte = false;
                    event.ok_or(StreamError::Closed { before_first_byte }.into())
                }),
            },
            Ok(Some(event)) => Ok(event),
            Err(error) => Err(error),
        };
        match event {
            Ok(Event::Interim(head)) => {
                assert!(matches!(head.status, 102..=199), "{head:?}");
                seen.heads.push(head);
            }
            Ok(Event::Head(head)) => {
                assert!(matches!(head.status, 101 | 200..=999), "{head:?}");
                seen.heads.push(head);
            }
            Ok(Event::Data(data)) => {
                assert!(!data.is_empty());
                seen.body.extend_from_slice(&data);
            }
            Ok(Event::Trailers(trailers)) => {
                assert!(!trailers.is_empty());
                seen.trailers = trailers;
            }
            Ok(Event::Stderr(text)) => panic!("{text:?}"),
            Ok(Event::End {
                reusable,
                excess_data,
                ..
            }) => {
                assert!(!(reusable && excess_data.is_some()));
                check_end(&seen, expected);
                seen.is_complete = true;
                return seen;
            }
            Err(error) => {
                // The message quotes the received bytes of a faulty line.
                let text = error.to_string();
                seen.fault = text.split(": \"").next().map(str::to_owned);
                return seen;
            }
        }
    }
}

/// An `End` comes after a final head and as much body as that promised.
fn check_end(seen: &SeenResponse, expected: ExpectedResponse) {
    let head = seen.heads.last().expect("a head before the end");
    let has_body = !expected.head_request && !matches!(head.status, 101 | 204 | 304);
    match head.content_length {
        Some(length) if has_body => assert_eq!(seen.body.len() as u64, length),
        _ => assert!(has_body || seen.body.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            how in any::<u8>(),
            parts in proptest::collection::vec(
                prop_oneof![
                    Just(&b"HTTP/1.1 200 OK\r\n"[..]),
                    Just(&b"HTTP/1.0 103 \n"[..]),
                    Just(&b"HTTP/1.1 101 x\r\n"[..]),
                    Just(&b"Content-Length: 5\r\n"[..]),
                    Just(&b"Transfer-Encoding: chunked\r\n"[..]),
                    Just(&b"A: b\n"[..]),
                    Just(&b"\r\n"[..]),
                    Just(&b"5\r\nabcde\r\n"[..]),
                    Just(&b"0\r\n"[..]),
                    Just(&b"abcde"[..]),
                    Just(&b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[..]),
                ],
                0..12,
            ),
        ) {
            fuzz(&[&[how], &parts.concat()[..]].concat());
        }
    }
}
