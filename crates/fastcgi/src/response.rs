//! Pieces of records into the events of a response: head, data, end.
//!
//! Here the body is counted. The promise: an [`Event::End`] means that the
//! response is complete. A body shorter than its `Content-Length`, or one
//! that no END_REQUEST followed, ends in an error, never in `End`. Data
//! beyond `Content-Length` is cut off, as nginx does, and reported ([`ExcessData`]).

use std::io;

use bytes::{Bytes, BytesMut};
use upstream_exchange::{DecodeResponse, Event, ExcessData};

use crate::decoder::{Decoder, Piece};
use crate::error::{Error, HeadFault, RecordFault, Truncation};
use crate::head::HeadParser;

/// The request's properties that decide how its response is read.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedResponse {
    /// Bound of the response head.
    pub head_limit_bytes: usize,
    /// The request's method is HEAD, so that the response has either the body that it promises, or
    /// none.
    pub head_request: bool,
    /// PHP was asked to leave the connection open.
    pub keep_conn: bool,
}

/// Bytes in, events out, without I/O.
#[derive(Debug)]
pub struct ResponseReader {
    decoder: Decoder,
    stage: Stage,
    expected: ExpectedResponse,
    is_request_sent: bool,
    stdout_closed: bool,
    /// Whether the `End` event declared the connection reusable.
    is_reusable: bool,
}

#[derive(Debug)]
enum Stage {
    Head(HeadParser),
    Body(Body),
    Ended,
}

#[derive(Debug)]
struct Body {
    /// The `Content-Length` of the head.
    expected_bytes: Option<u64>,
    /// Also right with no body at all: an answer to HEAD.
    may_be_empty: bool,
    received_bytes: u64,
    /// More came than was promised.
    has_excess_data: bool,
    /// No content belongs to the response: data for it is dropped, and not reported as excess.
    is_bodyless: bool,
    /// Body bytes that came with the end of the head.
    first: Bytes,
}

impl ResponseReader {
    /// For a response to a request that has been sent.
    pub fn new(expected: ExpectedResponse, buffer: BytesMut) -> ResponseReader {
        ResponseReader {
            decoder: Decoder::with_buffer(buffer),
            stage: Stage::Head(HeadParser::new(expected.head_limit_bytes)),
            expected,
            is_request_sent: true,
            stdout_closed: false,
            is_reusable: false,
        }
    }

    fn take_piece(&mut self, piece: Piece) -> Result<Option<Event>, Error> {
        match piece {
            Piece::Stderr(bytes) => Ok(Some(Event::Stderr(bytes))),
            Piece::Stdout(_) if self.stdout_closed => {
                Err(RecordFault::DataAfterStdoutClosed.into())
            }
            Piece::Stdout(bytes) => self.take_stdout(bytes),
            Piece::StdoutClosed => {
                self.stdout_closed = true;
                match &self.stage {
                    Stage::Head(_) => Err(HeadFault::Incomplete.into()),
                    Stage::Body(_) | Stage::Ended => Ok(None),
                }
            }
            Piece::EndRequest { app_status } => {
                let in_body = match &self.stage {
                    Stage::Head(_) => return Err(HeadFault::Incomplete.into()),
                    Stage::Body(body) if !body.is_complete() => {
                        return Err(body.truncated(Truncation::RequestEnded));
                    }
                    Stage::Body(body) => body.excess_data(),
                    Stage::Ended => None,
                };
                self.stage = Stage::Ended;
                let ended_cleanly = self.decoder.ended_cleanly();
                // Unsent bytes of this request would be taken for the next one.
                self.is_reusable = ended_cleanly && self.expected.keep_conn && self.is_request_sent;
                Ok(Some(Event::End {
                    app_status: Some(app_status),
                    reusable: self.is_reusable,
                    excess_data: in_body.or((!ended_cleanly).then_some(ExcessData::AfterEnd)),
                }))
            }
        }
    }

    fn take_stdout(&mut self, bytes: Bytes) -> Result<Option<Event>, Error> {
        match &mut self.stage {
            Stage::Head(parser) => {
                let Some((head, first)) = parser.push(bytes)? else {
                    return Ok(None);
                };
                // A 204 or 304 has no content, whatever it promises (RFC
                // 9110, sections 15.3.5 and 15.4.5).
                let has_no_content = matches!(head.status, 204 | 304);
                let expected_bytes = match has_no_content {
                    true => Some(0),
                    false => head.content_length,
                };
                self.stage = Stage::Body(Body {
                    expected_bytes,
                    may_be_empty: self.expected.head_request,
                    received_bytes: 0,
                    has_excess_data: false,
                    is_bodyless: has_no_content || self.expected.head_request,
                    first,
                });
                Ok(Some(Event::Head(head)))
            }
            Stage::Body(body) => Ok(body.take(bytes).map(Event::Data)),
            Stage::Ended => Ok(None),
        }
    }
}

impl DecodeResponse for ResponseReader {
    type Event = Event;
    type Error = Error;

    fn buffer(&mut self) -> &mut BytesMut {
        self.decoder.buffer()
    }

    fn set_request_sent(&mut self, is_sent: bool) {
        self.is_request_sent = is_sent;
    }

    fn next_event(&mut self) -> Result<Option<Event>, Error> {
        // Every turn consumes a piece.
        loop {
            if let Stage::Body(body) = &mut self.stage {
                let first = std::mem::take(&mut body.first);
                if let Some(data) = body.take(first) {
                    return Ok(Some(Event::Data(data)));
                }
            }
            let Some(piece) = self.decoder.next_piece()? else {
                return Ok(None);
            };
            if let Some(event) = self.take_piece(piece)? {
                return Ok(Some(event));
            }
        }
    }

    /// A failure within the body makes it truncated as an end does.
    fn end_of_input(&mut self, _: &mut Option<io::Error>) -> Result<Option<Event>, Error> {
        if let Some(piece) = self.decoder.end_of_input()
            && let Some(event) = self.take_piece(piece)?
        {
            return Ok(Some(event));
        }
        match &self.stage {
            Stage::Body(body) if body.has_whole_length() => {
                let excess_data = body.excess_data();
                self.stage = Stage::Ended;
                Ok(Some(Event::End {
                    app_status: None,
                    reusable: false,
                    excess_data,
                }))
            }
            Stage::Body(body) => Err(body.truncated(Truncation::ConnectionClosed)),
            Stage::Head(_) | Stage::Ended => Ok(None),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    fn is_reusable(&self) -> bool {
        self.is_reusable
    }
}

impl Body {
    /// Counts `data`, cut to the promised length; `None` when nothing is left.
    fn take(&mut self, mut data: Bytes) -> Option<Bytes> {
        if let Some(expected) = self.expected_bytes {
            let room = expected.saturating_sub(self.received_bytes);
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            self.has_excess_data |= data.len() > room && !self.is_bodyless;
            data.truncate(room);
        }
        self.received_bytes += data.len() as u64;
        (!data.is_empty()).then_some(data)
    }

    fn excess_data(&self) -> Option<ExcessData> {
        self.has_excess_data.then_some(ExcessData::AfterLength)
    }

    fn has_whole_length(&self) -> bool {
        self.expected_bytes == Some(self.received_bytes)
    }

    fn is_complete(&self) -> bool {
        self.expected_bytes.is_none()
            || self.has_whole_length()
            || (self.may_be_empty && self.received_bytes == 0)
    }

    fn truncated(&self, how: Truncation) -> Error {
        Error::Truncated {
            how,
            received_bytes: self.received_bytes,
            expected_bytes: self.expected_bytes,
        }
    }
}

pub(crate) fn fuzz(data: &[u8]) {
    /// Small, so that the fuzzer meets the limit.
    const HEAD_LIMIT_BYTES: usize = 512;

    let Some((&cut, rest)) = data.split_first() else {
        return;
    };
    let expected = ExpectedResponse {
        head_limit_bytes: HEAD_LIMIT_BYTES,
        head_request: cut & 1 == 1,
        keep_conn: true,
    };
    let mut reader = ResponseReader::new(expected, BytesMut::new());
    for part in rest.chunks(usize::from(cut / 2).max(1)) {
        reader.buffer().extend_from_slice(part);
        loop {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let _ = reader.end_of_input(&mut None);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use upstream_exchange::StreamError;

    use super::*;
    use crate::record::{self, kind};

    const HEAD_LIMIT_BYTES: usize = 4096;
    const CLOSED: Error = Error::Stream(StreamError::Closed {
        before_first_byte: false,
    });

    /// A response as a responder would write it.
    fn response(stdout: &[&[u8]], ended: bool) -> BytesMut {
        let mut wire = BytesMut::new();
        for part in stdout {
            record::put_stream(&mut wire, kind::STDOUT, part);
        }
        if ended {
            record::put_end_request(&mut wire, 0, 0);
        }
        wire
    }

    /// The events of a response, gathered as its caller sees them.
    #[derive(Debug, Default, PartialEq)]
    struct SeenResponse {
        status: u16,
        body: Vec<u8>,
        stderr: Vec<u8>,
        end: Option<(Option<u32>, bool)>,
        excess_data: Option<ExcessData>,
    }

    /// Reads `wire` in pieces, then meets the end of the stream.
    fn read(
        wire: &[u8],
        head_request: bool,
        in_pieces_of: usize,
    ) -> Result<SeenResponse, (SeenResponse, Error)> {
        let expected = ExpectedResponse {
            head_limit_bytes: HEAD_LIMIT_BYTES,
            head_request,
            keep_conn: true,
        };
        let mut reader = ResponseReader::new(expected, BytesMut::new());
        let mut seen = SeenResponse::default();
        let mut pieces = wire.chunks(in_pieces_of);
        loop {
            let event = match reader.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => match pieces.next() {
                    Some(piece) => {
                        reader.buffer().extend_from_slice(piece);
                        continue;
                    }
                    None => match reader.end_of_input(&mut None) {
                        Ok(Some(event)) => event,
                        Ok(None) => return Err((seen, CLOSED)),
                        Err(error) => return Err((seen, error)),
                    },
                },
                Err(error) => return Err((seen, error)),
            };
            match event {
                Event::Head(head) => seen.status = head.status,
                Event::Data(data) => {
                    assert!(!data.is_empty());
                    seen.body.extend_from_slice(&data);
                }
                Event::Stderr(text) => seen.stderr.extend_from_slice(&text),
                Event::End {
                    app_status,
                    reusable,
                    excess_data,
                } => {
                    seen.end = Some((app_status, reusable));
                    seen.excess_data = excess_data;
                    return Ok(seen);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn complete_responses_end_whatever_the_cuts() {
        let text: &[u8] = b"Content-Length: 8\n\nSEE-THIS";
        let ended = Some((Some(0), true));
        #[rustfmt::skip]
        let cases = [
            ("exact", response(&[text], true), false, "SEE-THIS", ended),
            ("extra data is cut", response(&[text, b"-BUT-NOT-THIS"], true), false, "SEE-THIS", ended),
            ("zero length with data", response(&[b"Content-Length: 0\n\nNOT-THIS"], true), false, "", ended),
            ("length without END_REQUEST", response(&[text], false), false, "SEE-THIS", Some((None, false))),
            ("no length", response(&[b"A: b\n\n", b"one ", b"two"], true), false, "one two", ended),
            (
                "304 has no body whatever it says", response(&[b"Status: 304\nContent-Length: 8\n\nSEE"], true),
                false, "", ended,
            ),
            ("HEAD without body", response(&[b"Content-Length: 8\n\n"], true), true, "", ended),
            ("HEAD with body", response(&[text], true), true, "SEE-THIS", ended),
        ];
        for (name, wire, head_request, body, end) in cases {
            for in_pieces_of in [1, 2, 3, 7, 8, 9, 1000] {
                let seen = read(&wire, head_request, in_pieces_of)
                    .unwrap_or_else(|(_, error)| panic!("{name} by {in_pieces_of}: {error}"));
                assert_eq!(seen.body, body.as_bytes(), "{name} by {in_pieces_of}");
                assert_eq!(seen.end, end, "{name} by {in_pieces_of}");
                let lies = ["extra data is cut", "zero length with data"].contains(&name);
                let excess_data = lies.then_some(ExcessData::AfterLength);
                assert_eq!(seen.excess_data, excess_data, "{name} by {in_pieces_of}");
            }
        }
    }

    #[test]
    fn what_comes_after_the_end_is_told() {
        let mut wire = response(&[b"A: b\n\nbody"], true);
        record::put_stream(&mut wire, kind::STDOUT, b"more");
        let seen = read(&wire, false, wire.len()).expect("a whole response");
        assert_eq!(seen.body, b"body");
        assert_eq!(seen.end, Some((Some(0), false)));
        assert_eq!(seen.excess_data, Some(ExcessData::AfterEnd));
    }

    #[test]
    fn incomplete_responses_never_end() {
        let short: &[u8] = b"Content-Length: 100\n\nSHORT";
        let mut closed = response(&[b"A: b\n\nbody"], false);
        closed.extend_from_slice(&record::RecordHeader::new(kind::STDOUT, 0).encode());
        let mut reopened = closed.clone();
        record::put_stream(&mut reopened, kind::STDOUT, b"more");
        let mut headless = BytesMut::new();
        record::put_end_request(&mut headless, 0, 0);
        #[rustfmt::skip]
        let cases = [
            (
                "short, ended", response(&[short], true), false,
                "upstream prematurely closed FastCGI request after 5 of 100 bytes of the response body",
            ),
            (
                "short, gone", response(&[short], false), false,
                "upstream prematurely closed connection after 5 of 100 bytes of the response body",
            ),
            (
                "promised, none", response(&[b"Content-Length: 100\n\n"], true), false,
                "upstream prematurely closed FastCGI request after 0 of 100 bytes of the response body",
            ),
            (
                "HEAD, some but not all", response(&[short], true), true,
                "upstream prematurely closed FastCGI request after 5 of 100 bytes of the response body",
            ),
            (
                "no length, gone", response(&[b"A: b\n\nbody"], false), false,
                "upstream prematurely closed connection after 4 bytes of the response body",
            ),
            (
                "stdout closed, then gone", closed, false,
                "upstream prematurely closed connection after 4 bytes of the response body",
            ),
            (
                "data after the end of stdout", reopened, false,
                "upstream sent data after it had closed FastCGI stdout",
            ),
            (
                "no head", headless, false,
                "upstream prematurely closed FastCGI stdout while reading response header",
            ),
            (
                "half a head", response(&[b"BAD"], true), false,
                "upstream prematurely closed FastCGI stdout while reading response header",
            ),
            (
                "half a head, gone", response(&[b"BAD"], false), false,
                "upstream prematurely closed connection while reading response header from upstream",
            ),
        ];
        for (name, wire, head_request, error) in cases {
            for in_pieces_of in [1, 5, 1000] {
                let (_, found) = read(&wire, head_request, in_pieces_of).expect_err(name);
                assert_eq!(found.to_string(), error, "{name} by {in_pieces_of}");
            }
        }
    }

    #[test]
    fn every_proper_prefix_of_a_response_without_length_is_an_error() {
        let wire = response(&[b"Status: 200\n\n", b"body"], true);
        for cut in 0..wire.len() {
            assert!(read(&wire[..cut], false, 1000).is_err(), "cut at {cut}");
        }
        assert!(read(&wire, false, 1000).is_ok());
    }

    #[test]
    fn stderr_before_the_head_and_within_it_is_kept_apart() {
        let mut wire = BytesMut::new();
        let text = "sample stderr text".repeat(512);
        record::put_stream(&mut wire, kind::STDERR, text.as_bytes());
        record::put_stream(&mut wire, kind::STDOUT, b"A: b");
        record::put_stream(&mut wire, kind::STDERR, b" again");
        record::put_stream(&mut wire, kind::STDOUT, b"\n\nSEE-THIS");
        record::put_end_request(&mut wire, 0, 0);
        let seen = read(&wire, false, 100).expect("complete");
        assert_eq!(seen.body, b"SEE-THIS");
        assert_eq!(seen.stderr, (text + " again").as_bytes());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(data: Vec<u8>) {
            fuzz(&data);
        }

        /// Record headers that make sense, with any content: gets deeper
        /// than plain noise.
        #[test]
        fn any_records_read_the_same_whatever_the_cuts(
            records in prop::collection::vec(
                (3_u8..12, prop::collection::vec(prop::sample::select(&b"A:1 \r\n\0"[..]), 0..40), 0_u8..9),
                0..12,
            ),
            in_pieces_of in 1_usize..50,
        ) {
            let mut wire = BytesMut::new();
            for (kind, content, padding_bytes) in &records {
                let header = record::RecordHeader {
                    padding_bytes: *padding_bytes,
                    ..record::RecordHeader::new(*kind, content.len() as u16)
                };
                wire.extend_from_slice(&header.encode());
                wire.extend_from_slice(content);
                wire.extend_from_slice(&[0; 8][..usize::from(*padding_bytes)]);
            }
            let whole = format!("{:?}", read(&wire, false, 1_000_000));
            let cut = format!("{:?}", read(&wire, false, in_pieces_of));
            // Only bytes behind the end are seen or not seen, by chance.
            let without_text = |text: String| {
                text.replace("), true))", "), _))")
                    .replace("), false))", "), _))")
                    .replace("excess_data: Some(AfterEnd)", "excess_data: None")
            };
            prop_assert_eq!(without_text(whole), without_text(cut));
        }
    }
}
