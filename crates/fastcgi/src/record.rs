//! The FastCGI record: eight bytes, then content, then padding.
//!
//! ```text
//!   0        1      2   3        4      5         6         7
//!   version  type   request id   content length   padding   reserved
//! ```
//!
//! FastCGI Specification 1.0, sections 3.3 and 8. Records are written
//! without padding, which the specification permits and PHP does not need.
//! Used from both sides: by the client here and by responders in tests.

use bytes::{BufMut, BytesMut};

/// FCGI_VERSION_1.
pub const VERSION: u8 = 1;
/// The id of every request: a connection carries one at a time.
pub const REQUEST_ID: u16 = 1;
/// Length of a record header.
pub const HEADER_BYTES: usize = 8;
/// The largest content of a record: its length has two bytes.
pub const MAX_CONTENT_BYTES: usize = 65_535;
/// The content of a record in a longer stream: the largest multiple of
/// eight, so that PHP reads from aligned offsets.
pub const STREAM_CONTENT_BYTES: usize = 65_528;
/// Length of a BEGIN_REQUEST and of an END_REQUEST body.
pub const BODY_BYTES: usize = 8;

/// FCGI_BEGIN_REQUEST, role responder, without FCGI_KEEP_CONN.
pub const BEGIN_REQUEST: [u8; 16] = [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
/// FCGI_BEGIN_REQUEST, role responder, with FCGI_KEEP_CONN.
pub const BEGIN_REQUEST_KEEP_CONN: [u8; 16] = [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0];
/// The empty record that closes PARAMS.
pub const PARAMS_END: [u8; HEADER_BYTES] = [1, 4, 0, 1, 0, 0, 0, 0];
/// The empty record that closes STDIN.
pub const STDIN_END: [u8; HEADER_BYTES] = [1, 5, 0, 1, 0, 0, 0, 0];

/// Record types (specification, section 8). Constants rather than an enum,
/// since a byte from the network may be anything.
pub mod kind {
    pub const BEGIN_REQUEST: u8 = 1;
    pub const ABORT_REQUEST: u8 = 2;
    pub const END_REQUEST: u8 = 3;
    pub const PARAMS: u8 = 4;
    pub const STDIN: u8 = 5;
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
    pub const DATA: u8 = 8;
    pub const UNKNOWN_TYPE: u8 = 11;
}

/// Protocol statuses of END_REQUEST (specification, section 5.5).
pub mod protocol_status {
    pub const REQUEST_COMPLETE: u8 = 0;
    pub const CANT_MPX_CONN: u8 = 1;
    pub const OVERLOADED: u8 = 2;
    pub const UNKNOWN_ROLE: u8 = 3;
}

/// The eight bytes of a record's header, decoded; the content's length cannot
/// be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    pub version: u8,
    pub kind: u8,
    pub request_id: u16,
    pub content_bytes: u16,
    pub padding_bytes: u8,
}

impl RecordHeader {
    /// A header of our version and request id, without padding.
    pub const fn new(kind: u8, content_bytes: u16) -> RecordHeader {
        RecordHeader {
            version: VERSION,
            kind,
            request_id: REQUEST_ID,
            content_bytes,
            padding_bytes: 0,
        }
    }

    /// Any eight bytes are a header; whether it makes sense is the decoder's
    /// question.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> RecordHeader {
        let [version, kind, id1, id0, length1, length0, padding, _] = bytes;
        RecordHeader {
            version,
            kind,
            request_id: u16::from_be_bytes([id1, id0]),
            content_bytes: u16::from_be_bytes([length1, length0]),
            padding_bytes: padding,
        }
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let [id1, id0] = self.request_id.to_be_bytes();
        let [length1, length0] = self.content_bytes.to_be_bytes();
        [
            self.version,
            self.kind,
            id1,
            id0,
            length1,
            length0,
            self.padding_bytes,
            0,
        ]
    }
}

/// Appends `content` as records of `kind`, as many as it takes; none for
/// empty content, since an empty record closes a stream.
pub fn put_stream(out: &mut BytesMut, kind: u8, content: &[u8]) {
    for part in content.chunks(STREAM_CONTENT_BYTES) {
        // A chunk is at most 65,528 bytes, so the length always fits.
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        out.reserve(HEADER_BYTES + part.len());
        out.put_slice(&RecordHeader::new(kind, length).encode());
        out.put_slice(part);
    }
}

/// Appends an END_REQUEST record, as a responder does.
pub fn put_end_request(out: &mut BytesMut, app_status: u32, protocol_status: u8) {
    out.put_slice(&RecordHeader::new(kind::END_REQUEST, BODY_BYTES as u16).encode());
    out.put_u32(app_status);
    out.put_slice(&[protocol_status, 0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_encoding_and_decoding() {
        let header = RecordHeader {
            version: 1,
            kind: kind::STDOUT,
            request_id: 0x1234,
            content_bytes: 0xfedc,
            padding_bytes: 255,
        };
        assert_eq!(
            header.encode(),
            [1, 6, 0x12, 0x34, 0xfe, 0xdc, 255, 0],
            "big-endian, in the specification's order"
        );
        assert_eq!(RecordHeader::decode(header.encode()), header);
    }

    #[test]
    fn constant_records_are_what_the_encoder_writes() {
        assert_eq!(PARAMS_END, RecordHeader::new(kind::PARAMS, 0).encode());
        assert_eq!(STDIN_END, RecordHeader::new(kind::STDIN, 0).encode());
        assert_eq!(
            BEGIN_REQUEST[..8],
            RecordHeader::new(kind::BEGIN_REQUEST, 8).encode()
        );
        assert_eq!(BEGIN_REQUEST_KEEP_CONN[..10], BEGIN_REQUEST[..10]);
        assert_eq!(BEGIN_REQUEST_KEEP_CONN[10], 1, "FCGI_KEEP_CONN");
    }

    #[test]
    fn long_streams_are_cut_into_records_and_empty_ones_write_nothing() {
        let mut out = BytesMut::new();
        put_stream(&mut out, kind::STDIN, b"");
        assert!(out.is_empty());

        put_stream(&mut out, kind::STDIN, &vec![7; STREAM_CONTENT_BYTES + 3]);
        assert_eq!(out.len(), STREAM_CONTENT_BYTES + 3 + 2 * HEADER_BYTES);
        assert_eq!(
            out[STREAM_CONTENT_BYTES + 8..][..8],
            RecordHeader::new(kind::STDIN, 3).encode()
        );
    }
}
