//! Frames (RFC 9114 §7): a type, a length, a payload. Frames that a server sends are
//! written here; those of a client are read in `message.rs` and `control.rs`.

use http2::hpack::TABLE_BYTES;

use crate::varint;

pub(crate) const DATA: u64 = 0x00;
pub(crate) const HEADERS: u64 = 0x01;
pub(crate) const CANCEL_PUSH: u64 = 0x03;
pub(crate) const SETTINGS: u64 = 0x04;
pub(crate) const PUSH_PROMISE: u64 = 0x05;
pub(crate) const GOAWAY: u64 = 0x07;
pub(crate) const MAX_PUSH_ID: u64 = 0x0d;

/// SETTINGS_QPACK_MAX_TABLE_CAPACITY and SETTINGS_QPACK_BLOCKED_STREAMS (RFC 9204 §5)
const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
/// Requests that may wait for insertions at once. Each holds its field block meanwhile.
pub const MAX_BLOCKED_STREAMS: usize = 16;
/// SETTINGS_MAX_FIELD_SECTION_SIZE
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
/// The type of the stream that begins with SETTINGS (§6.2.1).
const CONTROL_STREAM: u64 = 0x00;
/// The type of the stream of our decoder (RFC 9204 §4.2).
const DECODER_STREAM: u64 = 0x03;

/// Types that stand for frames of HTTP/2 (§7.2.8): they must not be sent.
pub(crate) fn is_reserved(kind: u64) -> bool {
    matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
}

/// Type and length from the front of `input`, and how many bytes they had.
pub(crate) fn read_head(input: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, kind_len) = varint::read(input)?;
    let (length, length_len) = varint::read(input.get(kind_len..)?)?;
    Some((kind, length, kind_len + length_len))
}

pub(crate) fn write_head(out: &mut Vec<u8>, kind: u64, length: u64) {
    varint::write(out, kind);
    varint::write(out, length);
}

/// Returns the frame head before `length` bytes of a body.
pub fn data_frame_head(length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(9);
    write_head(&mut out, DATA, length as u64);
    out
}

/// Returns the first bytes of the server's decoder stream.
pub fn decoder_stream() -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(&mut out, DECODER_STREAM);
    out
}

/// Returns the first bytes of the server's control stream: its type and SETTINGS.
pub fn settings(max_field_section_bytes: u64) -> Vec<u8> {
    let mut pairs = Vec::new();
    for (identifier, value) in [
        (QPACK_MAX_TABLE_CAPACITY, TABLE_BYTES as u64),
        (MAX_FIELD_SECTION_SIZE, max_field_section_bytes),
        (QPACK_BLOCKED_STREAMS, MAX_BLOCKED_STREAMS as u64),
    ] {
        varint::write(&mut pairs, identifier);
        varint::write(&mut pairs, value);
    }
    let mut out = Vec::new();
    varint::write(&mut out, CONTROL_STREAM);
    write_head(&mut out, SETTINGS, pairs.len() as u64);
    out.extend_from_slice(&pairs);
    out
}

/// Requests from this stream on are not served (§5.2); `None`: which, is not known yet.
pub fn goaway_frame(first_refused: Option<u64>) -> Vec<u8> {
    // The last one that a client could begin: a multiple of four.
    let stream = first_refused.unwrap_or(varint::MAX - 3);
    let mut id = Vec::new();
    varint::write(&mut id, stream);
    let mut out = Vec::new();
    write_head(&mut out, GOAWAY, id.len() as u64);
    out.extend_from_slice(&id);
    out
}
