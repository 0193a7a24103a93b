//! One frame, read. A payload is borrowed; padding and the five bytes of the old priority
//! scheme are taken off.

use super::{ACK, END_HEADERS, END_STREAM, FrameKind, HEADER_BYTES, PADDED, PRIORITY, StreamId};
use crate::error::{ConnectionError, ErrorCode, FrameError, StreamError};

/// The nine bytes before each payload (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the payload.
    pub length: u32,
    /// Type.
    pub kind: FrameKind,
    /// Flags; their meaning depends on the type.
    pub flags: u8,
    /// The stream, or the connection.
    pub stream: StreamId,
}

impl FrameHeader {
    /// Reads the header at the start of `bytes`; `None` if there is no whole one.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [l2, l1, l0, kind, flags, s3, s2, s1, s0] = *bytes.first_chunk::<HEADER_BYTES>()?;
        Some(FrameHeader {
            length: u32::from_be_bytes([0, l2, l1, l0]),
            kind: FrameKind::from_number(kind),
            flags,
            stream: StreamId::new(u32::from_be_bytes([s3, s2, s1, s0])),
        })
    }

    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A parsed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A piece of a body. `padding` counts all bytes of the payload that are not data:
    /// flow control counts them too.
    Data {
        data: &'a [u8],
        padding: usize,
        end_stream: bool,
    },
    /// A field block or its beginning.
    Headers {
        fragment: &'a [u8],
        end_stream: bool,
        end_headers: bool,
        /// The stream it depends on, in the old priority scheme.
        depends_on: Option<StreamId>,
    },
    /// The stream it depends on, in the old priority scheme.
    Priority { depends_on: StreamId },
    /// The end of a stream.
    ResetStream { code: ErrorCode },
    /// Pairs of identifier (two bytes) and value (four bytes).
    Settings { pairs: &'a [[u8; 6]] },
    /// Our settings are in force at the peer.
    SettingsAck,
    /// No client may send one.
    PushPromise,
    /// To be sent back, or one of ours that came back.
    Ping { payload: [u8; 8], ack: bool },
    /// No further streams.
    GoAway { last: StreamId, code: ErrorCode },
    /// A window grows by this.
    WindowUpdate { increment: u32 },
    /// The rest of a field block.
    Continuation {
        fragment: &'a [u8],
        end_headers: bool,
    },
    /// A new priority for a stream.
    PriorityUpdate(PriorityUpdate<'a>),
    /// A type of an extension.
    Unknown,
}

/// RFC 9218 §7.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityUpdate<'a> {
    /// The stream in question.
    pub stream: StreamId,
    /// The value, in the form of a `priority` field.
    pub value: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the payload of a frame, which has the length that its header declares.
    ///
    /// # Errors
    /// The frame itself is not valid.
    #[inline]
    pub(crate) fn parse(header: FrameHeader, payload: &'a [u8]) -> Result<Self, FrameError> {
        check_stream(header)?;
        match header.kind {
            FrameKind::Data => {
                let data = without_padding(header, payload)?;
                Ok(Frame::Data {
                    data,
                    padding: payload.len() - data.len(),
                    end_stream: header.has(END_STREAM),
                })
            }
            FrameKind::Headers => parse_headers(header, payload),
            FrameKind::Continuation => Ok(Frame::Continuation {
                fragment: payload,
                end_headers: header.has(END_HEADERS),
            }),
            FrameKind::WindowUpdate => Ok(Frame::WindowUpdate {
                increment: number(header, payload)? & 0x7fff_ffff,
            }),
            FrameKind::ResetStream => Ok(Frame::ResetStream {
                code: ErrorCode(number(header, payload)?),
            }),
            FrameKind::Settings => parse_settings(header, payload),
            FrameKind::Ping => Ok(Frame::Ping {
                payload: *exactly(header, payload)?,
                ack: header.has(ACK),
            }),
            FrameKind::GoAway => {
                let (last, rest) = split_number(header, payload)?;
                let (code, _debug) = split_number(header, rest)?;
                Ok(Frame::GoAway {
                    last: StreamId::new(last),
                    code: ErrorCode(code),
                })
            }
            FrameKind::Priority => match payload.split_first_chunk::<4>() {
                Some((depends_on, [_weight])) => Ok(Frame::Priority {
                    depends_on: StreamId::new(u32::from_be_bytes(*depends_on)),
                }),
                _ => Err(FrameError::Stream(
                    header.stream,
                    StreamError::InvalidPriority,
                )),
            },
            FrameKind::PriorityUpdate => {
                let (stream, value) = split_number(header, payload)?;
                let stream = StreamId::new(stream);
                Ok(Frame::PriorityUpdate(PriorityUpdate { stream, value }))
            }
            FrameKind::PushPromise => Ok(Frame::PushPromise),
            FrameKind::Unknown(_) => Ok(Frame::Unknown),
        }
    }
}

/// Returns whether the frame is where its type belongs: on a stream, or on the
/// connection.
#[inline]
fn check_stream(header: FrameHeader) -> Result<(), ConnectionError> {
    use FrameKind::*;
    let is_valid = match header.kind {
        Data | Headers | Priority | ResetStream | Continuation => !header.stream.is_connection(),
        Settings | Ping | GoAway | PriorityUpdate => header.stream.is_connection(),
        PushPromise | WindowUpdate | Unknown(_) => true,
    };
    match is_valid {
        true => Ok(()),
        false => Err(ConnectionError::InvalidStream(header.kind, header.stream)),
    }
}

fn parse_headers(header: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, FrameError> {
    let payload = without_padding(header, payload)?;
    let (depends_on, fragment) = if header.has(PRIORITY) {
        let (depends_on, rest) = split_number(header, payload)?;
        let (_weight, fragment) = rest.split_first().ok_or(invalid_length(header))?;
        (Some(StreamId::new(depends_on)), fragment)
    } else {
        (None, payload)
    };
    Ok(Frame::Headers {
        fragment,
        end_stream: header.has(END_STREAM),
        end_headers: header.has(END_HEADERS),
        depends_on,
    })
}

fn parse_settings(header: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, FrameError> {
    match payload.as_chunks::<6>() {
        ([], []) if header.has(ACK) => Ok(Frame::SettingsAck),
        (pairs, []) if !header.has(ACK) => Ok(Frame::Settings { pairs }),
        _ => Err(invalid_length(header).into()),
    }
}

fn without_padding(header: FrameHeader, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    if !header.has(PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(invalid_length(header))?;
    let end = rest
        .len()
        .checked_sub(usize::from(padding))
        .ok_or(ConnectionError::InvalidPadding(header.kind))?;
    Ok(rest.get(..end).unwrap_or_default())
}

fn invalid_length(header: FrameHeader) -> ConnectionError {
    ConnectionError::InvalidLength(header.kind, header.length)
}

fn exactly<const N: usize>(
    header: FrameHeader,
    payload: &[u8],
) -> Result<&[u8; N], ConnectionError> {
    payload.try_into().map_err(|_| invalid_length(header))
}

fn number(header: FrameHeader, payload: &[u8]) -> Result<u32, ConnectionError> {
    exactly(header, payload).map(|bytes| u32::from_be_bytes(*bytes))
}

fn split_number(header: FrameHeader, payload: &[u8]) -> Result<(u32, &[u8]), ConnectionError> {
    let (number, rest) = payload.split_first_chunk().ok_or(invalid_length(header))?;
    Ok((u32::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Frame<'_>, FrameError> {
        let header = FrameHeader {
            length: payload.len() as u32,
            kind: FrameKind::from_number(kind),
            flags,
            stream: StreamId::new(stream),
        };
        Frame::parse(header, payload)
    }

    #[test]
    fn a_header_is_read_without_the_reserved_bit() {
        let header = FrameHeader::read(&[1, 2, 3, 8, 0x29, 0xff, 0xff, 0xff, 0xff, 7]).unwrap();
        assert_eq!(header.length, 0x01_02_03);
        assert_eq!(header.kind, FrameKind::WindowUpdate);
        assert_eq!(header.flags, 0x29);
        assert_eq!(header.stream, StreamId::MAX);
        assert_eq!(FrameHeader::read(&[0; 8]), None);
    }

    #[test]
    fn padding_is_taken_off_and_counted() {
        assert_eq!(
            parse(0, PADDED | END_STREAM, 1, b"\x03abc\0\0\0"),
            Ok(Frame::Data {
                data: b"abc",
                padding: 4,
                end_stream: true
            })
        );
        assert_eq!(
            parse(
                1,
                PADDED | PRIORITY | END_HEADERS,
                3,
                b"\x02\x80\0\0\x05\xffblock\0\0"
            ),
            Ok(Frame::Headers {
                fragment: b"block",
                end_stream: false,
                end_headers: true,
                depends_on: Some(StreamId::new(5)),
            })
        );
    }

    #[test]
    fn frames_that_cannot_be_are_refused_with_the_code_of_the_standard() {
        use ErrorCode as E;
        for (kind, flags, stream, payload, code) in [
            (0, 0, 0, &b""[..], E::PROTOCOL_ERROR),
            (0, PADDED, 1, b"", E::FRAME_SIZE_ERROR),
            (0, PADDED, 1, b"\x01", E::PROTOCOL_ERROR),
            (1, 0, 0, b"", E::PROTOCOL_ERROR),
            (1, PADDED, 1, b"\x03ab", E::PROTOCOL_ERROR),
            (1, PRIORITY, 1, b"\0\0\0\x03", E::FRAME_SIZE_ERROR),
            (2, 0, 0, b"\0\0\0\0\0", E::PROTOCOL_ERROR),
            (2, 0, 1, b"\0\0\0\0", E::FRAME_SIZE_ERROR),
            (2, 0, 1, b"\0\0\0\0\0\0", E::FRAME_SIZE_ERROR),
            (3, 0, 0, b"\0\0\0\0", E::PROTOCOL_ERROR),
            (3, 0, 1, b"\0\0\0", E::FRAME_SIZE_ERROR),
            (4, 0, 1, b"", E::PROTOCOL_ERROR),
            (4, 0, 0, b"\0\0\0", E::FRAME_SIZE_ERROR),
            (4, ACK, 0, b"\0\0\0\0\0\0", E::FRAME_SIZE_ERROR),
            (6, 0, 1, b"12345678", E::PROTOCOL_ERROR),
            (6, 0, 0, b"1234567", E::FRAME_SIZE_ERROR),
            (7, 0, 1, b"\0\0\0\0\0\0\0\0", E::PROTOCOL_ERROR),
            (7, 0, 0, b"\0\0\0\0\0\0\0", E::FRAME_SIZE_ERROR),
            (8, 0, 0, b"\0\0\0", E::FRAME_SIZE_ERROR),
            (9, 0, 0, b"", E::PROTOCOL_ERROR),
            (16, 0, 1, b"\0\0\0\x01u=1", E::PROTOCOL_ERROR),
            (16, 0, 0, b"\0\0\0", E::FRAME_SIZE_ERROR),
        ] {
            let got = match parse(kind, flags, stream, payload) {
                Err(FrameError::Connection(error)) => error.code(),
                Err(FrameError::Stream(_, error)) => error.code(),
                Ok(frame) => panic!("{frame:?}"),
            };
            assert_eq!(got, code, "type {kind} {payload:?}");
        }
    }

    #[test]
    fn the_other_frames_are_read() {
        assert_eq!(
            parse(7, 0, 0, b"\x80\0\0\x07\0\0\0\x0bcalm"),
            Ok(Frame::GoAway {
                last: StreamId::new(7),
                code: ErrorCode::ENHANCE_YOUR_CALM
            })
        );
        assert_eq!(
            parse(8, 0, 1, b"\x80\0\0\x07"),
            Ok(Frame::WindowUpdate { increment: 7 })
        );
        assert_eq!(
            parse(16, 0, 0, b"\0\0\0\x05u=1, i"),
            Ok(Frame::PriorityUpdate(PriorityUpdate {
                stream: StreamId::new(5),
                value: b"u=1, i"
            }))
        );
        assert_eq!(
            parse(4, 0, 0, b"\0\x04\0\0\0\x01"),
            Ok(Frame::Settings {
                pairs: &[*b"\0\x04\0\0\0\x01"]
            })
        );
        assert_eq!(parse(4, ACK, 0, b""), Ok(Frame::SettingsAck));
        assert_eq!(parse(0xbb, 0xff, 9, b"?"), Ok(Frame::Unknown));
        assert_eq!(
            parse(2, 0, 3, b"\0\0\0\x03\x10"),
            Ok(Frame::Priority {
                depends_on: StreamId::new(3)
            })
        );
    }
}
