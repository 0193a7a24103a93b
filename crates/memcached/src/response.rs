//! The answer to `get KEY`, decoded from whatever pieces it comes in.
//!
//! ```text
//! VALUE key flags length\r\n  <length bytes>  \r\nEND\r\n     found
//! END\r\n                                                     not found
//! ```
//!
//! Bytes behind the end belong to no request of ours: the connection is not
//! used again then.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use upstream_exchange::DecodeResponse;

use crate::error::Error;

const TRAILER: &[u8] = b"\r\nEND\r\n";
/// How much of a bad line is shown in logs.
const SHOWN_BYTES: usize = 80;

/// The first line of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseHead {
    Found {
        /// The flags that the application stored with the value.
        flags: u32,
        length_bytes: u64,
    },
    /// There is no value under this key.
    NotFound,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Head(ResponseHead),
    /// The next bytes of the value.
    Data(Bytes),
    /// The answer is complete.
    End {
        /// The connection is clean for the next request.
        reusable: bool,
    },
}

#[derive(Debug)]
enum ResponseState {
    Head,
    Body,
    /// The number of bytes of [`TRAILER`] that have been seen.
    Trailer(usize),
    /// There is no value: only the `End` event is left.
    NotFound,
    Over,
}

/// Decodes one answer.
#[derive(Debug)]
pub struct ResponseReader {
    buffer: BytesMut,
    key: Bytes,
    head_limit_bytes: usize,
    state: ResponseState,
    length_bytes: u64,
    received_bytes: u64,
    is_request_sent: bool,
    /// Whether the `End` event declared the connection reusable.
    is_reusable: bool,
}

impl ResponseReader {
    /// For the answer about `key` as it was sent.
    pub fn new(key: Bytes, head_limit_bytes: usize, buffer: BytesMut) -> ResponseReader {
        ResponseReader {
            buffer,
            key,
            head_limit_bytes,
            state: ResponseState::Head,
            length_bytes: 0,
            received_bytes: 0,
            is_request_sent: true,
            is_reusable: false,
        }
    }

    fn head(&mut self) -> Result<Option<Event>, Error> {
        let Some(end) = memchr::memchr(b'\n', &self.buffer) else {
            if self.buffer.len() > self.head_limit_bytes {
                return Err(Error::HeadTooLarge {
                    limit_bytes: self.head_limit_bytes,
                });
            }
            return Ok(None);
        };
        if end > self.head_limit_bytes {
            return Err(Error::HeadTooLarge {
                limit_bytes: self.head_limit_bytes,
            });
        }
        let line = self.buffer.split_to(end + 1).freeze();
        let line = line.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let head = parse_line(line, &self.key)?;
        self.state = match head {
            ResponseHead::NotFound => ResponseState::NotFound,
            ResponseHead::Found { length_bytes, .. } => {
                self.length_bytes = length_bytes;
                match length_bytes {
                    0 => ResponseState::Trailer(0),
                    _ => ResponseState::Body,
                }
            }
        };
        Ok(Some(Event::Head(head)))
    }

    fn body(&mut self) -> Option<Event> {
        if self.buffer.is_empty() {
            return None;
        }
        let left = self.length_bytes - self.received_bytes;
        let take = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(self.buffer.len());
        self.received_bytes += take as u64;
        if self.received_bytes == self.length_bytes {
            self.state = ResponseState::Trailer(0);
        }
        Some(Event::Data(self.buffer.split_to(take).freeze()))
    }

    fn trailer(&mut self, mut seen: usize) -> Result<Option<Event>, Error> {
        while let (Some(&byte), Some(&wanted)) = (self.buffer.first(), TRAILER.get(seen)) {
            if byte != wanted {
                return Err(Error::InvalidTrailer);
            }
            self.buffer.advance(1);
            seen += 1;
        }
        self.state = ResponseState::Trailer(seen);
        Ok((seen == TRAILER.len()).then(|| self.end()))
    }

    fn end(&mut self) -> Event {
        self.state = ResponseState::Over;
        self.is_reusable = self.buffer.is_empty() && self.is_request_sent;
        Event::End {
            reusable: self.is_reusable,
        }
    }
}

impl DecodeResponse for ResponseReader {
    type Event = Event;
    type Error = Error;

    fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    fn set_request_sent(&mut self, is_sent: bool) {
        self.is_request_sent = is_sent;
    }

    fn next_event(&mut self) -> Result<Option<Event>, Error> {
        match self.state {
            ResponseState::Head => self.head(),
            ResponseState::Body => Ok(self.body()),
            ResponseState::Trailer(seen) => self.trailer(seen),
            ResponseState::NotFound => Ok(Some(self.end())),
            ResponseState::Over => Ok(None),
        }
    }

    /// A failure within the value makes it truncated as an end does.
    fn end_of_input(&mut self, _: &mut Option<io::Error>) -> Result<Option<Event>, Error> {
        match self.state {
            ResponseState::Body => Err(Error::Truncated {
                received_bytes: self.received_bytes,
                expected_bytes: self.length_bytes,
            }),
            ResponseState::Trailer(_) => Err(Error::InvalidTrailer),
            ResponseState::Head | ResponseState::NotFound | ResponseState::Over => Ok(None),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, ResponseState::Over)
    }

    fn is_reusable(&self) -> bool {
        self.is_reusable
    }
}

fn parse_line(line: &[u8], key: &[u8]) -> Result<ResponseHead, Error> {
    if line == b"END" {
        return Ok(ResponseHead::NotFound);
    }
    let Some(rest) = line.strip_prefix(b"VALUE ") else {
        return Err(Error::InvalidResponse(shown(line)));
    };
    let Some(rest) = rest
        .strip_prefix(key)
        .and_then(|rest| rest.strip_prefix(b" "))
    else {
        return Err(Error::InvalidKey(shown(line)));
    };
    // A third number is the `cas` of `gets`, which was not asked for.
    let mut numbers = rest.split(|&byte| byte == b' ').map(number);
    let flags = numbers.next().flatten();
    let length = numbers.next().flatten();
    match (
        flags.and_then(|flags| u32::try_from(flags).ok()),
        length,
        numbers.next(),
    ) {
        (Some(flags), Some(length_bytes), None) => Ok(ResponseHead::Found {
            flags,
            length_bytes,
        }),
        _ => Err(Error::InvalidNumber(shown(line))),
    }
}

/// Digits and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()
}

fn shown(line: &[u8]) -> String {
    let start = line.get(..SHOWN_BYTES).unwrap_or(line);
    String::from_utf8_lossy(start).into_owned()
}

/// See [`crate::fuzz_exchange`].
pub fn fuzz(data: &[u8]) {
    let whole = run(data, usize::MAX);
    let single = run(data, 1);
    assert_eq!(whole, single);
}

/// Head, value and end of an answer that comes in pieces; the error as a text.
fn run(data: &[u8], piece_bytes: usize) -> Result<(Option<ResponseHead>, Vec<u8>, bool), String> {
    const HEAD_LIMIT_BYTES: usize = 64;
    let mut reader =
        ResponseReader::new(Bytes::from_static(b"k"), HEAD_LIMIT_BYTES, BytesMut::new());
    let (mut head, mut value) = (None, Vec::new());
    for piece in data.chunks(piece_bytes.min(data.len().max(1))) {
        reader.buffer().extend_from_slice(piece);
        while let Some(event) = reader.next_event().map_err(|error| error.to_string())? {
            match event {
                Event::Head(found) => head = Some(found),
                Event::Data(bytes) => value.extend_from_slice(&bytes),
                Event::End { .. } => return Ok((head, value, true)),
            }
        }
    }
    Ok((head, value, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_decoded_whole_and_in_pieces() {
        let found = |flags, length_bytes| {
            Some(ResponseHead::Found {
                flags,
                length_bytes,
            })
        };
        for (text, wanted) in [
            (
                &b"VALUE k 0 8\r\nSEE-THIS\r\nEND\r\n"[..],
                (found(0, 8), &b"SEE-THIS"[..], true),
            ),
            (
                b"VALUE k 2 2\r\n\r\n\r\nEND\r\n",
                (found(2, 2), b"\r\n", true),
            ),
            (b"VALUE k 0 0\r\n\r\nEND\r\n", (found(0, 0), b"", true)),
            (b"END\r\n", (Some(ResponseHead::NotFound), b"", true)),
            (b"VALUE k 0 8\r\nSEE", (found(0, 8), b"SEE", false)),
            (b"VALUE k 0 3\r\nSEE\r\nEN", (found(0, 3), b"SEE", false)),
            (b"VAL", (None, b"", false)),
        ] {
            for piece in [1, 2, 5, usize::MAX] {
                let (head, value, ended) = run(text, piece).expect("an answer");
                assert_eq!(
                    (head, value.as_slice(), ended),
                    wanted,
                    "{text:?} by {piece}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_answer_to_this_request_is_refused() {
        for (text, why) in [
            (&b"ERROR\r\n"[..], "invalid response"),
            (b"SERVER_ERROR out of memory\r\n", "invalid response"),
            (b"\r\n", "invalid response"),
            (b"VALUE other 0 1\r\n", "invalid key"),
            (b"VALUE kk 0 1\r\n", "invalid key"),
            (b"VALUE k\r\n", "invalid key"),
            (b"VALUE k 0\r\n", "invalid flags or length"),
            (b"VALUE k 0 -1\r\n", "invalid flags or length"),
            (b"VALUE k 0 1 2\r\n", "invalid flags or length"),
            (b"VALUE k 4294967296 1\r\n", "invalid flags or length"),
            (
                b"VALUE k 0 99999999999999999999\r\n",
                "invalid flags or length",
            ),
            (b"VALUE k 0 1\r\nabc", "invalid trailer"),
            (b"VALUE k 0 1\r\na\r\nENDED", "invalid trailer"),
            (&[b'x'; 100], "more than 64 bytes"),
        ] {
            for piece in [1, usize::MAX] {
                let error = run(text, piece).expect_err("no answer");
                assert!(error.contains(why), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn a_connection_with_more_on_it_is_not_used_again() {
        let mut reader = ResponseReader::new(Bytes::from_static(b"k"), 64, BytesMut::new());
        reader
            .buffer()
            .extend_from_slice(b"VALUE k 0 1\r\na\r\nEND\r\nmore");
        let mut last = None;
        while let Some(event) = reader.next_event().expect("an answer") {
            last = Some(event);
        }
        assert_eq!(last, Some(Event::End { reusable: false }));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic_nor_depend_on_their_pieces(
            start in proptest::sample::select(vec!["", "VALUE k 0 3\r\n", "END", "VALUE k 0 "]),
            rest in proptest::collection::vec(proptest::num::u8::ANY, 0..80),
        ) {
            fuzz(&[start.as_bytes(), &rest].concat());
        }
    }
}
