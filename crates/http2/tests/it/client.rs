//! A client that writes frames by hand, and a server that only records what happened.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http2::frame::{
    END_HEADERS, END_STREAM, FrameHeader, HEADER_BYTES, write_frame_header, write_settings,
};
use http2::hpack::{BlockReader, Decoder};
use http2::{
    Connection, ConnectionError, ErrorCode, Event, FieldBlock, FrameKind, HeadBuffer, Output,
    PREFACE, ResetCause, Settings, StreamId,
};

/// A frame that the server sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFrame {
    pub kind: FrameKind,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The events that the server saw, as text.
pub type ServerEvents = Vec<String>;

pub struct Client {
    pub connection: Connection,
    pub head: HeadBuffer,
    pub now: Instant,
    /// Decodes what the server encodes.
    decoder: Decoder,
}

pub fn id(number: u32) -> StreamId {
    StreamId::new(number)
}

pub fn fields(list: &[(&str, &str)]) -> FieldBlock {
    let mut block = FieldBlock::new();
    for (name, value) in list {
        block.put(name, value).unwrap();
    }
    block
}

/// The frame, with its header.
pub fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame_header(&mut out, payload.len(), kind, flags, id(stream));
    out.extend_from_slice(payload);
    out
}

/// A field block, each field a literal that is not indexed, without Huffman codes.
pub fn block(list: &[(&str, &str)]) -> Vec<u8> {
    let list = list
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    raw_block(list)
}

pub fn raw_block<'a>(list: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in list {
        out.push(0);
        for text in [name, value] {
            if text.len() < 127 {
                out.push(text.len() as u8);
            } else {
                let rest = text.len() - 127;
                out.extend_from_slice(&[127, rest as u8 | 0x80, (rest >> 7) as u8 | 0x80]);
                out.push((rest >> 14) as u8);
            }
            out.extend_from_slice(text);
        }
    }
    out
}

pub const GET: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "example.org"),
    (":path", "/"),
];

pub fn post(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let mut list = GET.to_vec();
    list[0].1 = "POST";
    list.extend_from_slice(more);
    list
}

pub fn headers(stream: u32, list: &[(&str, &str)], end_stream: bool) -> Vec<u8> {
    let flags = END_HEADERS | if end_stream { END_STREAM } else { 0 };
    frame(FrameKind::Headers, flags, stream, &block(list))
}

pub fn get(stream: u32) -> Vec<u8> {
    headers(stream, GET, true)
}

pub fn data(stream: u32, data: &[u8], end_stream: bool) -> Vec<u8> {
    let flags = if end_stream { END_STREAM } else { 0 };
    frame(FrameKind::Data, flags, stream, data)
}

pub fn reset(stream: u32) -> Vec<u8> {
    frame(FrameKind::ResetStream, 0, stream, &8u32.to_be_bytes())
}

pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(FrameKind::WindowUpdate, 0, stream, &increment.to_be_bytes())
}

pub fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    write_settings(&mut out, list);
    out
}

impl Client {
    /// Behind the exchange of settings.
    pub fn new() -> Self {
        Client::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        let mut client = Client::without_preface(settings);
        let opening = [PREFACE, &frame(FrameKind::Settings, 0, 0, &[])].concat();
        assert_eq!(client.send(&opening), Ok(vec![]));
        let ack = frame(FrameKind::Settings, 1, 0, &[]);
        assert_eq!(client.send(&ack), Ok(vec![]));
        client.sent();
        client
    }

    pub fn without_preface(settings: Settings) -> Self {
        let now = Instant::now();
        Client {
            connection: Connection::new(settings, now),
            head: HeadBuffer::new(),
            now,
            decoder: Decoder::default(),
        }
    }

    /// Sends these bytes, which are whole frames, and returns the server's events.
    pub fn send(&mut self, bytes: &[u8]) -> Result<ServerEvents, ConnectionError> {
        let mut seen = Vec::new();
        let mut at = 0;
        loop {
            let received = self
                .connection
                .receive(&bytes[at..], &mut self.head, self.now)?;
            at += received.consumed;
            match received.event {
                Some(event) => seen.push(describe(event)),
                None => {
                    assert_eq!(at, bytes.len(), "whole frames");
                    return Ok(seen);
                }
            }
        }
    }

    pub fn send_ok(&mut self, bytes: &[u8]) -> ServerEvents {
        self.send(bytes).expect("no error of the connection")
    }

    /// The frames that the server has sent since the last time.
    pub fn sent(&mut self) -> Vec<ServerFrame> {
        let mut output = Output::new();
        let mut bytes = Vec::new();
        loop {
            let _ = self.connection.take_output(&mut output, self.now);
            if output.is_empty() {
                break;
            }
            output
                .slices()
                .for_each(|slice| bytes.extend_from_slice(slice));
            output.advance(output.len());
        }
        let mut rest = &bytes[..];
        let mut frames = Vec::new();
        while let Some(header) = FrameHeader::read(rest) {
            let (payload, after) = rest[HEADER_BYTES..].split_at(header.length as usize);
            frames.push(ServerFrame {
                kind: header.kind,
                flags: header.flags,
                stream: header.stream.number(),
                payload: payload.to_vec(),
            });
            rest = after;
        }
        assert!(rest.is_empty());
        frames
    }

    /// Returns the sent frames as text, one line for each frame.
    pub fn sent_text(&mut self) -> Vec<String> {
        let frames = self.sent();
        frames.iter().map(|frame| self.show(frame)).collect()
    }

    fn show(&mut self, frame: &ServerFrame) -> String {
        let ServerFrame {
            kind,
            flags,
            stream,
            payload,
        } = frame;
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        let end = if flags & END_STREAM != 0 { " end" } else { "" };
        match kind {
            FrameKind::Data if payload.len() > 40 => {
                format!("{stream} DATA {}{end}", payload.len())
            }
            FrameKind::Data => {
                format!("{stream} DATA {:?}{end}", String::from_utf8_lossy(payload))
            }
            FrameKind::Headers if flags & END_HEADERS != 0 => {
                let fields = self.decode(payload);
                format!("{stream} HEADERS {}{end}", fields.join(", "))
            }
            FrameKind::ResetStream => format!("{stream} RST_STREAM {}", ErrorCode(number(0))),
            FrameKind::GoAway => format!("GOAWAY {} {}", number(0), ErrorCode(number(4))),
            FrameKind::WindowUpdate => format!("{stream} WINDOW_UPDATE {}", number(0)),
            FrameKind::Settings if flags & 1 != 0 => "SETTINGS ack".into(),
            FrameKind::Ping => format!("PING {flags}"),
            _ => format!("{stream} {kind} {flags:#x} {}", payload.len()),
        }
    }

    pub fn decode(&mut self, block: &[u8]) -> Vec<String> {
        let (mut reader, mut out, mut list) = (BlockReader::new(block), Vec::new(), Vec::new());
        while let Some(field) = self.decoder.next_field(&mut reader, &mut out).unwrap() {
            let (name, value) = out.split_at(field.name_len);
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            list.push(format!("{}={}", text(name), text(value)));
            out.clear();
        }
        list
    }

    /// Answers with a body of `bytes` bytes.
    pub fn answer(&mut self, stream: u32, bytes: usize) {
        self.connection
            .send_response(id(stream), 200, &[], false)
            .unwrap();
        let body = Bytes::from(vec![b'x'; bytes]);
        self.connection.send_body(id(stream), body, true).unwrap();
    }

    /// Sends the same bytes again and again, changed by `next`, until the connection ends;
    /// how often it did not.
    pub fn flood(
        &mut self,
        most: u32,
        mut next: impl FnMut(u32) -> Vec<u8>,
    ) -> (u32, ConnectionError) {
        for nth in 0..most {
            if let Err(error) = self.send(&next(nth)) {
                return (nth, error);
            }
            self.sent();
        }
        panic!("{most} times were too few");
    }

    pub fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn describe(event: Event<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let end = |end_stream: bool| if end_stream { " end" } else { "" };
    match event {
        Event::Request {
            stream,
            head,
            end_stream,
            ..
        } => {
            let list = head
                .fields()
                .map(|(name, value)| format!(", {}={}", text(name), text(value)));
            let list: String = list.collect();
            let line = text(head.request_line());
            format!("{stream} {line}{list}{}", end(end_stream))
        }
        Event::BadRequest { stream, error } => format!("{stream} {} {error}", error.status()),
        Event::Data {
            stream,
            data,
            end_stream,
        } => format!("{stream} data {}{}", data.len(), end(end_stream)),
        Event::Trailers { stream, fields } => {
            let list = fields
                .iter()
                .map(|(name, value)| format!("{}={}", text(name), text(value)));
            format!("{stream} trailers {}", list.collect::<Vec<_>>().join(", "))
        }
        Event::Reset { stream, cause, .. } => match cause {
            ResetCause::Client(code) => format!("{stream} reset by client: {code}"),
            ResetCause::Error(error) => format!("{stream} reset: {error}"),
        },
        Event::GoAway { code } => format!("goaway {code}"),
    }
}
