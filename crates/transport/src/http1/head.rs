//! The head of a response as lines: status, the server's own fields, those of the response.
//!
//! The order of the lines is nginx's. How a head begins most answers of a second have in
//! common ([`HeadBuffer`]), and the fields of a stored response are one block of lines: a hit
//! is put together from pieces.

use std::cell::RefCell;

use http_cache::StoredFields;
use http1::HeadWriter;

use crate::outbound::{DESCRIBE_BODY, FieldSink, Opening, SentHead, ServerField, StoredForm};
use crate::service::Exchange;

/// The `Server` field where it is the same for many requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerLine {
    Version,
    Name,
}

impl ServerLine {
    fn text(self) -> &'static [u8] {
        match self {
            ServerLine::Version => {
                concat!("Server: mayfly/", env!("CARGO_PKG_VERSION"), "\r\n").as_bytes()
            }
            ServerLine::Name => b"Server: mayfly\r\n",
        }
    }
}

/// The thread's buffer for heads, written one after the other. It keeps the lines that the last
/// usual head began with: the next begins with the same, unless it has another status or the
/// second has passed.
#[derive(Default)]
pub struct HeadBuffer {
    bytes: Vec<u8>,
    /// The lines that `bytes` begins with, and their length.
    opening: Option<UsualLines>,
    opening_len: usize,
}

/// All that the usual status line, `Server` and `Date` depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct UsualLines {
    second: u64,
    status: u16,
    server: ServerLine,
}

thread_local! {
    static BUFFER: RefCell<HeadBuffer> = const {
        RefCell::new(HeadBuffer { bytes: Vec::new(), opening: None, opening_len: 0 })
    };
}

/// The size that most heads fit in.
const BUFFER_BYTES: usize = 1024;
/// A buffer that grew beyond this is not kept.
const KEPT_BUFFER_BYTES: usize = 16 * 1024;

impl HeadBuffer {
    /// Lends the thread's buffer to one response.
    pub fn with<R>(write: impl FnOnce(&mut HeadBuffer) -> R) -> R {
        BUFFER.with_borrow_mut(|buffer| {
            let result = write(buffer);
            if buffer.bytes.capacity() > KEPT_BUFFER_BYTES {
                *buffer = HeadBuffer::default();
            }
            result
        })
    }

    /// The head, once it is written.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Takes the head, for a response that has to wait.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }

    /// Brings back the memory that [`HeadBuffer::take`] took.
    pub fn give(bytes: Vec<u8>) {
        HeadBuffer::with(|buffer| {
            if buffer.bytes.capacity() == 0 {
                buffer.bytes = bytes;
                buffer.open_empty();
            }
        });
    }

    /// Begins with the usual lines.
    #[inline]
    fn open(&mut self, now_ms: u64, status: u16, server: ServerLine) -> &mut Vec<u8> {
        let opening = UsualLines {
            second: clock::wall(now_ms) / 1000,
            status,
            server,
        };
        if self.opening != Some(opening) {
            self.put_opening(now_ms, opening);
        }
        self.bytes.truncate(self.opening_len);
        &mut self.bytes
    }

    #[cold]
    fn put_opening(&mut self, now_ms: u64, opening: UsualLines) {
        let out = self.open_empty();
        let _ = HeadWriter::new(out, opening.status);
        out.extend_from_slice(opening.server.text());
        clock::put_date_line(now_ms, out);
        self.opening_len = out.len();
        self.opening = Some(opening);
    }

    /// Begins with nothing.
    fn open_empty(&mut self) -> &mut Vec<u8> {
        self.opening = None;
        self.opening_len = 0;
        self.bytes.clear();
        self.bytes.reserve(BUFFER_BYTES);
        &mut self.bytes
    }
}

/// Writes the head of a response. `sent` holds the facts about the connection.
#[inline]
pub fn write<X: Exchange>(exchange: &X, sent: &SentHead, buffer: &mut HeadBuffer) {
    let opening = exchange.opening();
    let out = match usual_server_line(&opening).zip(opening.date) {
        Some((server, now_ms)) => buffer.open(now_ms, opening.status, server),
        None => open(&opening, buffer),
    };
    let mut lines = Lines(out);
    sent.walk(&mut lines);
    exchange.walk_fields(&mut lines);
    HeadWriter::resume(out).finish();
}

/// The `Server` line, where the head begins as most of its status do.
#[inline]
fn usual_server_line(opening: &Opening<'_>) -> Option<ServerLine> {
    let has_usual_reason = match opening.reason {
        None => true,
        Some(reason) => opening.status == 200 && reason == b"OK",
    };
    match opening.server {
        ServerField::Version if has_usual_reason => Some(ServerLine::Version),
        ServerField::Name if has_usual_reason => Some(ServerLine::Name),
        _ => None,
    }
}

/// Status line, `Server` and `Date` of any other.
fn open<'a>(opening: &Opening<'_>, buffer: &'a mut HeadBuffer) -> &'a mut Vec<u8> {
    let out = buffer.open_empty();
    let mut writer = HeadWriter::with_reason_or_usual(out, opening.status, opening.reason);
    if let ServerField::Text(text) = opening.server {
        let _ = writer.put_field("Server", text);
    }
    let out = writer.into_inner();
    match opening.server {
        ServerField::Version => out.extend_from_slice(ServerLine::Version.text()),
        ServerField::Name => out.extend_from_slice(ServerLine::Name.text()),
        ServerField::Text(_) | ServerField::None => {}
    }
    if let Some(now_ms) = opening.date {
        clock::put_date_line(now_ms, out);
    }
    out
}

/// Appends fields as lines.
///
/// Values with line breaks or NUL are refused by the writer and left out: they can only come
/// from variables, and no response may be split by them.
struct Lines<'a>(&'a mut Vec<u8>);

impl FieldSink for Lines<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let _ = HeadWriter::resume(self.0).put_field(name, value);
    }

    #[inline]
    fn line(&mut self, line: &'static [u8]) {
        self.0.extend_from_slice(line);
    }

    #[inline]
    fn number<const START: usize>(&mut self, start: &'static [u8; START], value: u64) {
        self.0.extend_from_slice(start);
        decimal::put_line_end(value, self.0);
    }

    #[inline]
    fn stored(&mut self, fields: &StoredFields, form: StoredForm) {
        match form {
            StoredForm::AsIs => self.0.extend_from_slice(fields.lines()),
            StoredForm::Recoded => fields.put_recoded(self.0),
            StoredForm::WithoutBody => fields.put_without(&DESCRIBE_BODY, self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(now_ms: u64, status: u16, server: ServerLine) -> String {
        HeadBuffer::with(|buffer| {
            let opening = buffer.open(now_ms, status, server).clone();
            buffer.bytes().extend_from_slice(b"the rest");
            String::from_utf8(opening).unwrap()
        })
    }

    #[test]
    fn a_kept_opening_is_used_for_its_second_status_and_server_line_alone() {
        let version = concat!("/", env!("CARGO_PKG_VERSION"));
        #[rustfmt::skip]
        let cases = [
            (784_111_777_000, 200, ServerLine::Name, "200 OK", "", 37),
            (784_111_777_999, 200, ServerLine::Name, "200 OK", "", 37),
            (784_111_777_999, 304, ServerLine::Name, "304 Not Modified", "", 37),
            (784_111_777_999, 304, ServerLine::Version, "304 Not Modified", version, 37),
            (784_111_778_000, 304, ServerLine::Version, "304 Not Modified", version, 38),
            (784_111_778_000, 200, ServerLine::Name, "200 OK", "", 38),
        ];
        for (now_ms, status, server, line, name, second) in cases {
            let expected = format!(
                "HTTP/1.1 {line}\r\nServer: mayfly{name}\r\n\
                 Date: Sun, 06 Nov 1994 08:49:{second} GMT\r\n"
            );
            assert_eq!(opened(now_ms, status, server), expected);
        }
        HeadBuffer::give(HeadBuffer::with(HeadBuffer::take));
        HeadBuffer::with(|buffer| assert!(buffer.open_empty().is_empty()));
    }
}
