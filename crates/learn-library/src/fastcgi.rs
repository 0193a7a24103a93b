//! The FastCGI connection, read from PHP's side: which fetch a request is for, and when it ends.
//!
//! ```text
//! head of 8 bytes (version, kind, id, length of the content, of the padding) ─► content ─► padding ─► head
//! ```
#![forbid(unsafe_code)]

use learn_record::FETCH_PARAMETER;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMETERS: u8 = 4;

/// Bytes of all parameters of a request. A request with more has no number.
const MAX_PARAMETER_BYTES: usize = 128 * 1024;

/// Room that is kept for the next request.
const KEPT_PARAMETER_BYTES: usize = 16 * 1024;

/// The position within a stream of records.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    head: [u8; 8],
    head_bytes: usize,
    content: usize,
    padding: usize,
}

enum Piece<'a> {
    /// A record of this kind begins.
    Head {
        kind: u8,
        is_empty: bool,
    },
    Content {
        kind: u8,
        bytes: &'a [u8],
    },
}

impl Position {
    fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Piece<'a>> {
        while !bytes.is_empty() {
            let kind = self.head[1];
            if self.content > 0 {
                let (content, rest) = bytes.split_at(self.content.min(bytes.len()));
                self.content -= content.len();
                *bytes = rest;
                return Some(Piece::Content {
                    kind,
                    bytes: content,
                });
            }
            if self.padding > 0 {
                let count = self.padding.min(bytes.len());
                self.padding -= count;
                *bytes = &bytes[count..];
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(8 - self.head_bytes));
            self.head[self.head_bytes..self.head_bytes + part.len()].copy_from_slice(part);
            self.head_bytes += part.len();
            *bytes = rest;
            if self.head_bytes == 8 {
                self.head_bytes = 0;
                let [_, kind, _, _, high, low, padding, _] = self.head;
                self.content = usize::from(u16::from_be_bytes([high, low]));
                self.padding = usize::from(padding);
                let is_empty = self.content == 0;
                return Some(Piece::Head { kind, is_empty });
            }
        }
        None
    }
}

/// An event of the FastCGI connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEvent {
    /// A request begins; the one before it is over.
    Begins,
    /// Its parameters are there.
    Parameters {
        /// 0 where the request has no number.
        fetch: u64,
    },
}

/// Both directions of one connection.
#[derive(Debug, Default)]
pub(crate) struct FastCgi {
    requests: Position,
    responses: Position,
    parameters: Vec<u8>,
}

impl FastCgi {
    /// Bytes that PHP has read.
    pub(crate) fn received(&mut self, mut bytes: &[u8], mut see: impl FnMut(RequestEvent)) {
        while let Some(piece) = self.requests.next(&mut bytes) {
            match piece {
                Piece::Head {
                    kind: BEGIN_REQUEST,
                    ..
                } => {
                    self.parameters.clear();
                    self.parameters.shrink_to(KEPT_PARAMETER_BYTES);
                    see(RequestEvent::Begins);
                }
                Piece::Head {
                    kind: PARAMETERS,
                    is_empty: true,
                } => {
                    let is_whole = self.parameters.len() < MAX_PARAMETER_BYTES;
                    let parameters = if is_whole { &self.parameters[..] } else { &[] };
                    let fetch = fetch_number(parameters);
                    see(RequestEvent::Parameters { fetch });
                }
                Piece::Content {
                    kind: PARAMETERS,
                    bytes,
                } => {
                    let room = MAX_PARAMETER_BYTES - self.parameters.len();
                    self.parameters
                        .extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                _ => {}
            }
        }
    }

    /// Whether these bytes, which PHP is about to write, end a request.
    pub(crate) fn ends_request(&self, mut bytes: &[u8]) -> bool {
        let mut ahead = self.responses;
        while let Some(piece) = ahead.next(&mut bytes) {
            if matches!(
                piece,
                Piece::Head {
                    kind: END_REQUEST,
                    ..
                }
            ) {
                return true;
            }
        }
        false
    }

    /// Bytes that PHP has written.
    pub(crate) fn sent(&mut self, mut bytes: &[u8]) {
        while self.responses.next(&mut bytes).is_some() {}
    }
}

fn fetch_number(mut bytes: &[u8]) -> u64 {
    let mut number = 0;
    while let Some((name, value)) = parameter(&mut bytes) {
        if name == FETCH_PARAMETER.as_bytes() {
            number = decimal(value).unwrap_or(0);
        }
    }
    number
}

fn parameter<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let name = length(bytes)?;
    let value = length(bytes)?;
    let (name, rest) = bytes.split_at_checked(name)?;
    let (value, rest) = rest.split_at_checked(value)?;
    *bytes = rest;
    Some((name, value))
}

/// A length of one byte, or of four with the highest bit set.
fn length(bytes: &mut &[u8]) -> Option<usize> {
    let (first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        *bytes = rest;
        return Some(usize::from(*first));
    }
    let (four, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_be_bytes(*four) & 0x7fff_ffff).ok()
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        let head = [1, kind, 0, 1, length[0], length[1], 3, 0];
        [&head[..], content, &[0; 3]].concat()
    }

    fn request(parameters: &[u8]) -> Vec<u8> {
        let (first, second) = parameters.split_at(parameters.len() / 2);
        [
            record(BEGIN_REQUEST, &[0; 8]),
            record(PARAMETERS, first),
            record(PARAMETERS, second),
            record(PARAMETERS, b""),
            record(5, b"body"),
            record(5, b""),
        ]
        .concat()
    }

    fn events(pieces: usize, bytes: &[u8]) -> Vec<RequestEvent> {
        let mut connection = FastCgi::default();
        let mut events = Vec::new();
        for piece in bytes.chunks(pieces) {
            connection.received(piece, |event| events.push(event));
        }
        events
    }

    #[test]
    fn number_of_the_fetch_is_found_in_pieces_of_any_size() {
        let parameters = b"\x0c\x80\0\0\x02MAYFLY_FETCH42\x01\x01AB";
        let bytes = [request(parameters), request(b"\x01\x01AB")].concat();
        let with = |fetch| RequestEvent::Parameters { fetch };
        let expected = [
            RequestEvent::Begins,
            with(42),
            RequestEvent::Begins,
            with(0),
        ];
        for size in 1..bytes.len() {
            assert_eq!(events(size, &bytes), expected, "pieces of {size}");
        }
    }

    #[test]
    fn nonsense_in_parameters_is_no_number() {
        for parameters in [
            &b"\x0c\x03MAYFLY_FETCH4x2"[..],
            b"\x0c\x7fMAYFLY_FETCH42",
            b"\xff\xff",
            b"\x0c",
        ] {
            let seen = events(1000, &request(parameters));
            assert_eq!(
                seen[1],
                RequestEvent::Parameters { fetch: 0 },
                "{parameters:?}"
            );
        }
    }

    #[test]
    fn end_of_a_request_is_seen_before_it_is_written() {
        let output = record(6, b"\x01\x03\0\0\0\0\0\0\x01\x03\0\0\0\0\0\0");
        let end = record(END_REQUEST, &[0; 8]);
        let mut connection = FastCgi::default();
        assert!(!connection.ends_request(&output));
        connection.sent(&output[..9]);
        assert!(
            !connection.ends_request(&output[9..]),
            "the content looks like an end"
        );
        assert!(connection.ends_request(&[&output[9..], &end].concat()));
        connection.sent(&output[9..]);
        assert!(connection.ends_request(&end));
        connection.sent(&end);
        assert!(!connection.ends_request(&output), "the next request");
    }
}
