//! Frames, written and read one by one.

use std::path::Path;

use http2::frame::{
    END_HEADERS, END_STREAM, FrameHeader, HEADER_BYTES, write_frame_header, write_settings,
};
use http2::hpack::{BlockReader, Decoder};
use http2::{ErrorCode, FrameKind, PREFACE, StreamId};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use crate::client::Reply;
use crate::wait::{PAUSE, TIMEOUT};

/// A frame that the server sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: FrameKind,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, FrameKind::Data | FrameKind::Headers) && self.flags & END_STREAM != 0
    }

    /// The error code of RST_STREAM and GOAWAY.
    pub fn code(&self) -> Option<ErrorCode> {
        let at = match self.kind {
            FrameKind::ResetStream => 0,
            FrameKind::GoAway => 4,
            _ => return None,
        };
        let bytes = self.payload.get(at..at + 4)?.try_into().ok()?;
        Some(ErrorCode(u32::from_be_bytes(bytes)))
    }
}

/// A client whose windows are as large as can be.
pub struct FrameClient {
    stream: UnixStream,
    buffer: Vec<u8>,
    decoder: Decoder,
}

/// The result of a stream.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// `None` if there was no head.
    pub reply: Option<Reply>,
    /// The error with which the server reset it, or ended the connection.
    pub error: Option<ErrorCode>,
}

impl FrameClient {
    /// Begins a connection.
    ///
    /// # Panics
    /// When nothing listens there.
    pub async fn connect(socket: &Path) -> FrameClient {
        let window = 0x7fff_ffff;
        let mut client = FrameClient::with_window(socket, window).await;
        client.send(window_update(0, window - 65_535)).await;
        client
    }

    /// Begins a connection with a window for each stream, and the usual one for the
    /// connection.
    ///
    /// # Panics
    /// When nothing listens there.
    pub async fn with_window(socket: &Path, bytes: u32) -> FrameClient {
        let stream = UnixStream::connect(socket)
            .await
            .expect("the server listens");
        let mut client = FrameClient {
            stream,
            buffer: Vec::new(),
            decoder: Decoder::default(),
        };
        let mut opening = PREFACE.to_vec();
        write_settings(&mut opening, &[(4, bytes)]);
        client.send(opening).await;
        client
    }

    /// Sends bytes as they are. Bytes that the server does not take any more are lost.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.try_send(bytes).await;
    }

    /// Like [`Self::send`], and reports a failure.
    ///
    /// # Errors
    /// The server takes no more.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await
    }

    /// Resolves when the server takes nothing more.
    ///
    /// # Panics
    /// When the socket cannot be watched.
    pub async fn shut(&self) {
        let is_shut = async || {
            let ready = self.stream.ready(Interest::WRITABLE).await;
            ready.expect("a socket").is_write_closed()
        };
        while !is_shut().await {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The next frame; `None` when the server has closed.
    ///
    /// # Panics
    /// When nothing comes.
    pub async fn receive(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            let read = self.stream.read_buf(&mut self.buffer);
            let read = tokio::time::timeout(TIMEOUT, read).await;
            // A reset is as good as an end here.
            if !matches!(read.expect("a frame in time"), Ok(read) if read > 0) {
                return None;
            }
        }
    }

    fn take(&mut self) -> Option<Frame> {
        let header = FrameHeader::read(&self.buffer)?;
        let end = HEADER_BYTES + header.length as usize;
        let payload = self.buffer.get(HEADER_BYTES..end)?.to_vec();
        self.buffer.drain(..end);
        Some(Frame {
            kind: header.kind,
            flags: header.flags,
            stream: header.stream.number(),
            payload,
        })
    }

    /// Waits for a frame of this kind; gives it.
    ///
    /// # Panics
    /// When the connection ends first.
    pub async fn receive_kind(&mut self, kind: FrameKind) -> Frame {
        loop {
            let frame = self.receive().await;
            let frame = frame.unwrap_or_else(|| panic!("no {kind} before the end"));
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Reads until a stream is over. Frames of others are lost, but for their part in the
    /// compression.
    pub async fn outcome(&mut self, stream: u32) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some(frame) = self.receive().await {
            let fields = match frame.kind {
                FrameKind::Headers => self.decode(&frame.payload),
                _ => Vec::new(),
            };
            if frame.kind == FrameKind::GoAway && frame.code() != Some(ErrorCode::NO_ERROR) {
                outcome.error = frame.code();
                return outcome;
            }
            if frame.stream != stream {
                continue;
            }
            match frame.kind {
                FrameKind::Headers => put_fields(&mut outcome, fields),
                FrameKind::Data => {
                    let reply = outcome.reply.get_or_insert_default();
                    reply.body.extend_from_slice(&frame.payload);
                }
                FrameKind::ResetStream => {
                    outcome.error = frame.code();
                    return outcome;
                }
                _ => {}
            }
            if frame.ends_stream() {
                outcome.reply.get_or_insert_default().is_complete = true;
                return outcome;
            }
        }
        outcome
    }

    /// # Panics
    /// When it is no field block.
    fn decode(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let (mut reader, mut out, mut fields) = (BlockReader::new(block), Vec::new(), Vec::new());
        while let Some(field) = self
            .decoder
            .next_field(&mut reader, &mut out)
            .expect("a field block")
        {
            let (name, value) = out.split_at(field.name_len);
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            fields.push((text(name), text(value)));
            out.clear();
        }
        fields
    }
}

/// A head, or trailers behind the fields of one.
fn put_fields(outcome: &mut Outcome, fields: Vec<(String, String)>) {
    let status = fields.iter().find(|(name, _)| name == ":status");
    let status = status.and_then(|(_, status)| status.parse().ok());
    let reply = outcome.reply.get_or_insert_default();
    reply.status = status.unwrap_or(reply.status);
    let is_field = |(name, _): &(String, String)| name != ":status";
    reply.fields.extend(fields.into_iter().filter(is_field));
}

fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame_header(&mut out, payload.len(), kind, flags, StreamId::new(stream));
    out.extend_from_slice(payload);
    out
}

/// A field block, each field a literal that is not indexed, whatever is in it.
///
/// # Panics
/// When a text is longer than a small one.
pub fn raw_block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "one byte for the length");
            out.extend(u8::try_from(text.len()));
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// HEADERS with a whole block.
pub fn headers(stream: u32, fields: &[(&str, &str)], end_stream: bool) -> Vec<u8> {
    let end = if end_stream { END_STREAM } else { 0 };
    let flags = END_HEADERS | end;
    frame(FrameKind::Headers, flags, stream, &raw_block(fields))
}

/// DATA.
pub fn data(stream: u32, bytes: &[u8], end_stream: bool) -> Vec<u8> {
    let flags = if end_stream { END_STREAM } else { 0 };
    frame(FrameKind::Data, flags, stream, bytes)
}

/// WINDOW_UPDATE.
pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(FrameKind::WindowUpdate, 0, stream, &increment.to_be_bytes())
}

/// RST_STREAM with CANCEL.
pub fn reset(stream: u32) -> Vec<u8> {
    let code = ErrorCode::CANCEL.0;
    frame(FrameKind::ResetStream, 0, stream, &code.to_be_bytes())
}
