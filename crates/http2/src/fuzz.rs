//! Entries for fuzzing: each takes any bytes and asserts its invariants for them. A failed
//! assertion is the finding; the targets that call these are one line each.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::bounds::CONGESTED_BYTES;
use crate::connection::Connection;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::{Event, Notice};
use crate::field_block::FieldBlock;
use crate::frame::{Frame, FrameHeader, FrameKind, HEADER_BYTES, MAX_FRAME_BYTES, StreamId};
use crate::head::HeadBuffer;
use crate::hpack::{BlockReader, Decoder, FIELD_OVERHEAD_BYTES, TABLE_BYTES};
use crate::output::Output;
use crate::preface::PREFACE;
use crate::settings::Settings;

/// Frames are read or refused, and each part that is read lies within the frame.
#[doc(hidden)]
pub fn fuzz_frames(data: &[u8]) {
    let mut rest = data;
    while let Some(header) = FrameHeader::read(rest) {
        let payload = rest.get(HEADER_BYTES..).unwrap_or_default();
        let Some((payload, after)) = payload.split_at_checked(header.length as usize) else {
            return;
        };
        assert_eq!(FrameKind::from_number(header.kind.number()), header.kind);
        match Frame::parse(header, payload) {
            Ok(Frame::Data { data, padding, .. }) => {
                assert_eq!(data.len() + padding, payload.len());
            }
            Ok(Frame::Headers { fragment, .. }) => assert!(fragment.len() <= payload.len()),
            Ok(Frame::Settings { pairs }) => assert_eq!(pairs.len() * 6, payload.len()),
            Ok(Frame::WindowUpdate { increment }) => assert!(increment < 1 << 31),
            Ok(_) | Err(_) => {}
        }
        rest = after;
    }
}

/// Blocks, each behind two bytes of length, decode within their bounds; and a decoded block
/// is the same when it is encoded by us and decoded again.
#[doc(hidden)]
pub fn fuzz_hpack(data: &[u8]) {
    let mut decoder = Decoder::default();
    let mut rest = data;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (block, after) = after.split_at(length);
        let mut reader = BlockReader::new(block);
        let mut out = Vec::new();
        loop {
            let before = out.len();
            let Ok(field) = decoder.next_field(&mut reader, &mut out) else {
                return;
            };
            let Some(field) = field else { break };
            let field_bytes = field.name_len + field.value_len;
            assert_eq!(out.len() - before, field_bytes);
            assert!(field_bytes <= block.len() * 8 / 5 + TABLE_BYTES - FIELD_OVERHEAD_BYTES + 1);
            let field_text = out.get(before..).expect("in bounds");
            let (name, value) = field_text.split_at(field.name_len);
            check_encoding(name, value);
        }
        rest = after;
    }
}

fn check_encoding(name: &[u8], value: &[u8]) {
    let mut block = FieldBlock::new();
    if block.put(name, value).is_err() {
        return;
    }
    let mut out = Vec::new();
    let mut reader = BlockReader::new(block.as_bytes());
    let field = Decoder::default().next_field(&mut reader, &mut out);
    let field = field.expect("our own block").expect("a field");
    let (got_name, got_value) = out.split_at(field.name_len);
    assert_eq!(got_name, name.to_ascii_lowercase());
    assert_eq!(got_value, value.trim_ascii());
}

/// Feeds a connection with a client's bytes of any kind: events come in an order that makes
/// sense, kept memory is bounded, written bytes are whole frames of open streams, and the
/// verdict is the same however the bytes are cut (the first byte chooses the cut).
#[doc(hidden)]
pub fn fuzz_connection(data: &[u8]) {
    let Some((&piece, data)) = data.split_first() else {
        return;
    };
    let start = Instant::now();
    let whole = Client::new(start).run(data, data.len().max(1));
    let in_pieces = Client::new(start).run(data, usize::from(piece).max(1));
    assert_eq!(whole, in_pieces);
}

struct Client {
    connection: Connection,
    head: HeadBuffer,
    output: Output,
    now: Instant,
    open: BTreeSet<StreamId>,
    ended: BTreeSet<StreamId>,
    events: usize,
    verdict: Option<ConnectionError>,
}

impl Client {
    fn new(now: Instant) -> Self {
        let settings = Settings {
            max_concurrent_streams: 8,
            stream_window_bytes: 1024,
            ..Settings::default()
        };
        let mut client = Client {
            connection: Connection::new(settings, now),
            head: HeadBuffer::new(),
            output: Output::new(),
            now,
            open: BTreeSet::new(),
            ended: BTreeSet::new(),
            events: 0,
            verdict: None,
        };
        client.receive(PREFACE);
        client.receive(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        client
    }

    /// Returns how it ends, and how many events there were.
    fn run(mut self, data: &[u8], piece: usize) -> (Option<ConnectionError>, usize) {
        let (mut from, mut to) = (0, 0);
        while to < data.len() && self.verdict.is_none() {
            to = data.len().min(to.saturating_add(piece));
            from += self.receive(data.get(from..to).expect("in bounds"));
            assert!(to - from <= MAX_FRAME_BYTES + HEADER_BYTES || self.verdict.is_some());
        }
        self.write();
        assert!(self.connection.open_streams() <= 8);
        self.connection.shut_down();
        self.connection.finish_shutdown();
        self.connection.reset_stalled(Duration::ZERO, self.now);
        self.write();
        (self.verdict, self.events)
    }

    /// Serves the events in `input`, and returns how much of it was used up.
    fn receive(&mut self, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let mut head = std::mem::take(&mut self.head);
            let rest = input.get(at..).expect("in bounds");
            match self.connection.receive(rest, &mut head, self.now) {
                Ok(received) => {
                    assert!(received.consumed <= rest.len());
                    at += received.consumed;
                    let Some(event) = received.event else {
                        self.head = head;
                        return at;
                    };
                    self.events += 1;
                    serve(&mut self.connection, &mut self.open, &mut self.ended, event);
                }
                Err(error) => {
                    self.verdict = Some(error);
                    assert_eq!(self.connection.open_streams(), 0);
                    return at;
                }
            }
            self.head = head;
        }
    }

    fn write(&mut self) {
        let result = self.connection.take_output(&mut self.output, self.now);
        self.verdict = self.verdict.or(result.err());
        let bytes = self.output.slices().collect::<Vec<_>>().concat();
        assert_eq!(bytes.len(), self.output.len());
        assert!(bytes.len() < 64 * CONGESTED_BYTES);
        let mut rest = &bytes[..];
        while let Some(header) = FrameHeader::read(rest) {
            assert!(header.length as usize <= MAX_FRAME_BYTES);
            rest = rest
                .get(HEADER_BYTES + header.length as usize..)
                .expect("whole frames");
        }
        assert!(rest.is_empty());
        self.output.advance(bytes.len());
        while let Some(notice) = self.connection.next_notice() {
            let (Notice::Drained(stream) | Notice::Sent(stream, _)) = notice;
            assert!(stream.is_from_client());
        }
    }
}

/// Answers some requests at once, some late, some never, some with an error.
fn serve(
    connection: &mut Connection,
    open: &mut BTreeSet<StreamId>,
    ended: &mut BTreeSet<StreamId>,
    event: Event<'_>,
) {
    let body = Bytes::from_static(&[b'x'; 3000]);
    match event {
        Event::Request {
            stream,
            head,
            end_stream,
            ..
        } => {
            assert!(open.insert(stream), "a stream is opened once");
            assert!(head.field("host").is_some());
            assert!(!head.target().is_empty());
            for (name, value) in head.fields() {
                assert!(!name.is_empty() && !name.iter().any(u8::is_ascii_uppercase));
                assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
            }
            if end_stream {
                ended.insert(stream);
            }
            let mut fields = FieldBlock::new();
            fields
                .put("Content-Type", "text/html")
                .expect("a good field");
            match stream.number() / 2 % 4 {
                0 => {
                    let _ = connection.send_response(stream, 200, &[&fields], false);
                    let _ = connection.send_body(stream, body, true);
                }
                1 => {
                    let _ = connection.send_informational(stream, 103, &[&fields]);
                    let _ = connection.send_response(stream, 404, &[&fields, &fields], true);
                }
                2 => {
                    let _ = connection.send_response(stream, 200, &[], false);
                    let _ = connection.send_body(stream, body, false);
                    let _ = connection.send_trailers(stream, &fields);
                }
                _ => {}
            }
        }
        Event::BadRequest { stream, error } => {
            assert!(!error.to_string().is_empty());
            if stream.number() % 3 == 0 {
                connection.reset(stream, ErrorCode::PROTOCOL_ERROR);
            } else {
                let _ = connection.send_response(stream, error.status(), &[], true);
            }
        }
        Event::Data {
            stream,
            data,
            end_stream,
        } => {
            assert!(open.contains(&stream) && !ended.contains(&stream));
            if end_stream {
                ended.insert(stream);
                let _ = connection.send_response(stream, 200, &[], true);
            }
            connection.release(stream, data.len());
        }
        Event::Trailers { stream, fields } => {
            assert!(open.contains(&stream) && ended.insert(stream));
            assert!(fields.iter().all(|(name, _)| !name.starts_with(b":")));
        }
        Event::Reset { stream, .. } => assert!(stream.is_from_client()),
        Event::GoAway { .. } => {}
    }
}
