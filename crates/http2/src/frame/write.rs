//! Frames, written. Payloads that are not ours to copy (bodies) follow a header alone.

use super::{ACK, END_STREAM, FrameKind, HEADER_BYTES, StreamId};
use crate::error::ErrorCode;

/// Writes the nine bytes before a payload of `length` bytes, below 2^24.
#[inline]
pub fn write_frame_header(
    out: &mut Vec<u8>,
    length: usize,
    kind: FrameKind,
    flags: u8,
    stream: StreamId,
) {
    debug_assert!(length < 1 << 24);
    let [_, l2, l1, l0] = (length as u32).to_be_bytes();
    let [s3, s2, s1, s0] = stream.number().to_be_bytes();
    let header: [u8; HEADER_BYTES] = [l2, l1, l0, kind.number(), flags, s3, s2, s1, s0];
    out.extend_from_slice(&header);
}

/// Sets the length of the frame whose header is at `start`.
#[inline]
pub(crate) fn set_frame_length(out: &mut [u8], start: usize, length: usize) {
    let [_, l2, l1, l0] = (length as u32).to_be_bytes();
    if let Some(place) = out.get_mut(start..start + 3) {
        place.copy_from_slice(&[l2, l1, l0]);
    }
}

/// Writes the header of a DATA frame; the data follow.
#[inline]
pub fn write_data_header(out: &mut Vec<u8>, stream: StreamId, length: usize, end_stream: bool) {
    let flags = if end_stream { END_STREAM } else { 0 };
    write_frame_header(out, length, FrameKind::Data, flags, stream);
}

/// Writes a SETTINGS frame of identifiers and values.
pub fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let length = settings.len() * 6;
    write_frame_header(out, length, FrameKind::Settings, 0, StreamId::CONNECTION);
    for (identifier, value) in settings {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Writes the acknowledgement of a SETTINGS frame.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    write_frame_header(out, 0, FrameKind::Settings, ACK, StreamId::CONNECTION);
}

/// Writes a PING frame, or the acknowledgement of one.
pub fn write_ping(out: &mut Vec<u8>, payload: [u8; 8], ack: bool) {
    let flags = if ack { ACK } else { 0 };
    write_frame_header(out, 8, FrameKind::Ping, flags, StreamId::CONNECTION);
    out.extend_from_slice(&payload);
}

/// Writes a GOAWAY frame without debug data.
pub fn write_goaway(out: &mut Vec<u8>, last: StreamId, code: ErrorCode) {
    write_frame_header(out, 8, FrameKind::GoAway, 0, StreamId::CONNECTION);
    out.extend_from_slice(&last.number().to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Writes a RST_STREAM frame.
pub fn write_reset(out: &mut Vec<u8>, stream: StreamId, code: ErrorCode) {
    write_frame_header(out, 4, FrameKind::ResetStream, 0, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Writes a WINDOW_UPDATE frame.
pub fn write_window_update(out: &mut Vec<u8>, stream: StreamId, increment: u32) {
    write_frame_header(out, 4, FrameKind::WindowUpdate, 0, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, FrameHeader};

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        write_settings(&mut out, &[(4, 65_536), (3, 128)]);
        write_settings_ack(&mut out);
        write_ping(&mut out, *b"12345678", true);
        write_goaway(&mut out, StreamId::MAX, ErrorCode::NO_ERROR);
        write_reset(&mut out, StreamId::new(5), ErrorCode::CANCEL);
        write_window_update(&mut out, StreamId::new(7), 0x7fff_ffff);
        write_data_header(&mut out, StreamId::new(9), 2, true);
        out.extend_from_slice(b"hi");

        let mut rest = &out[..];
        let mut frames = Vec::new();
        while let Some(header) = FrameHeader::read(rest) {
            let (payload, after) = rest[HEADER_BYTES..].split_at(header.length as usize);
            frames.push((
                header.stream.number(),
                Frame::parse(header, payload).unwrap(),
            ));
            rest = after;
        }
        assert_eq!(
            frames,
            [
                (
                    0,
                    Frame::Settings {
                        pairs: &[*b"\0\x04\0\x01\0\0", *b"\0\x03\0\0\0\x80"]
                    }
                ),
                (0, Frame::SettingsAck),
                (
                    0,
                    Frame::Ping {
                        payload: *b"12345678",
                        ack: true
                    }
                ),
                (
                    0,
                    Frame::GoAway {
                        last: StreamId::MAX,
                        code: ErrorCode::NO_ERROR
                    }
                ),
                (
                    5,
                    Frame::ResetStream {
                        code: ErrorCode::CANCEL
                    }
                ),
                (
                    7,
                    Frame::WindowUpdate {
                        increment: 0x7fff_ffff
                    }
                ),
                (
                    9,
                    Frame::Data {
                        data: b"hi",
                        padding: 0,
                        end_stream: true
                    }
                ),
            ]
        );
    }
}
