//! The streams that carry no request (RFC 9114 §6.2, RFC 9204 §4.2).

use bytes::{Buf, BytesMut};
use http2::hpack::{HpackError, integer};

use crate::error::{Code, Error};
use crate::{frame, varint};

/// A control frame's payload at most: far more than all settings that there are.
const MAX_CONTROL_BYTES: u64 = 4096;
/// Control frames of one connection: more than one SETTINGS, a GOAWAY and greased frames.
const MAX_CONTROL_FRAMES: u32 = 1000;

/// The type of a unidirectional stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    Control,
    /// Only a server may have one.
    Push,
    QpackEncoder,
    QpackDecoder,
    /// A type of an extension, or one sent only to exercise the rule that unknown types
    /// are ignored (§6.2.3).
    Unknown,
}

impl StreamKind {
    /// Reads it from the front of a stream; `None` if there are too few bytes.
    pub fn read(input: &mut BytesMut) -> Option<StreamKind> {
        let (kind, length) = varint::read(input)?;
        input.advance(length);
        Some(match kind {
            0x00 => StreamKind::Control,
            0x01 => StreamKind::Push,
            0x02 => StreamKind::QpackEncoder,
            0x03 => StreamKind::QpackDecoder,
            _ => StreamKind::Unknown,
        })
    }
}

/// A frame of the client's control stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    Settings,
    /// It wants no more pushes; server push is not supported.
    GoAway,
}

/// Reads the control stream.
#[derive(Debug, Default)]
pub struct ControlReader {
    has_settings: bool,
    frames: u32,
    /// Bytes that are still to come of an ignored frame.
    skipped: u64,
}

impl ControlReader {
    /// The next frame that means something; `None` if more has to be read.
    ///
    /// # Errors
    /// The client broke the protocol: the connection ends.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<ControlFrame>, Error> {
        loop {
            if self.skipped > 0 {
                let here = self.skipped.min(input.len() as u64);
                input.advance(usize::try_from(here).unwrap_or(0));
                self.skipped -= here;
                if self.skipped > 0 {
                    return Ok(None);
                }
            }
            let Some((kind, length, head_bytes)) = frame::read_head(input) else {
                return Ok(None);
            };
            self.check(kind, length)?;
            let is_known = matches!(
                kind,
                frame::SETTINGS | frame::GOAWAY | frame::CANCEL_PUSH | frame::MAX_PUSH_ID
            );
            let payload_end = head_bytes + usize::try_from(length).unwrap_or(usize::MAX - 16);
            if is_known && input.len() < payload_end {
                return Ok(None);
            }
            self.frames += 1;
            input.advance(head_bytes);
            if !is_known {
                self.skipped = length;
                continue;
            }
            let payload = input.split_to(payload_end - head_bytes);
            match kind {
                frame::SETTINGS => {
                    check_settings(&payload)?;
                    self.has_settings = true;
                    return Ok(Some(ControlFrame::Settings));
                }
                frame::GOAWAY => return Ok(Some(ControlFrame::GoAway)),
                _ => {}
            }
        }
    }

    fn check(&self, kind: u64, length: u64) -> Result<(), Error> {
        let error = |code, reason| Err(Error::new(code, reason));
        if self.frames >= MAX_CONTROL_FRAMES {
            return error(Code::EXCESSIVE_LOAD, "sent too many control frames");
        }
        match kind {
            frame::SETTINGS if self.has_settings => {
                error(Code::FRAME_UNEXPECTED, "sent SETTINGS twice")
            }
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => error(
                Code::FRAME_UNEXPECTED,
                "sent a frame that has no place on the control stream",
            ),
            kind if frame::is_reserved(kind) => {
                error(Code::FRAME_UNEXPECTED, "sent a frame of HTTP/2")
            }
            kind if kind != frame::SETTINGS && !self.has_settings => {
                error(Code::MISSING_SETTINGS, "did not begin with SETTINGS")
            }
            frame::SETTINGS | frame::GOAWAY | frame::CANCEL_PUSH | frame::MAX_PUSH_ID
                if length > MAX_CONTROL_BYTES =>
            {
                error(Code::EXCESSIVE_LOAD, "sent too large a control frame")
            }
            _ => Ok(()),
        }
    }
}

/// Checks the settings, of which none is needed; those of HTTP/2 must not be there
/// (§7.2.4.1), nor one twice.
fn check_settings(mut payload: &[u8]) -> Result<(), Error> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let pair = varint::read(payload).and_then(|(identifier, length)| {
            let rest = payload.get(length..)?;
            let (_, value_length) = varint::read(rest)?;
            Some((identifier, rest.get(value_length..)?))
        });
        let Some((identifier, rest)) = pair else {
            return Err(Error::new(Code::FRAME_ERROR, "sent broken SETTINGS"));
        };
        if matches!(identifier, 0x02..=0x05) || seen.contains(&identifier) {
            return Err(Error::new(Code::SETTINGS_ERROR, "sent invalid SETTINGS"));
        }
        seen.push(identifier);
        payload = rest;
    }
    Ok(())
}

/// Reads the instructions of the client's decoder, which was sent nothing to acknowledge.
#[derive(Debug, Default)]
pub struct DecoderReader;

impl DecoderReader {
    /// # Errors
    /// An instruction other than Stream Cancellation (RFC 9204 §4.4.2).
    pub fn take(&mut self, input: &mut BytesMut) -> Result<(), Error> {
        let error = |reason| Error::new(Code::QPACK_DECODER_STREAM_ERROR, reason);
        while let Some(&first) = input.first() {
            if first & 0xc0 != 0x40 {
                return Err(error("acknowledges what was not sent"));
            }
            let mut rest = input.get(1..).unwrap_or_default();
            match integer::read(first, 6, &mut rest) {
                Ok(_) => {
                    let used = input.len() - rest.len();
                    input.advance(used);
                }
                Err(HpackError::Truncated) => return Ok(()),
                Err(_) => return Err(error("sent a broken instruction of QPACK")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8], step: usize) -> Result<Vec<ControlFrame>, Code> {
        let (mut reader, mut input) = (ControlReader::default(), BytesMut::new());
        let mut frames = Vec::new();
        for some in bytes.chunks(step) {
            input.extend_from_slice(some);
            while let Some(frame) = reader.next(&mut input).map_err(|error| error.code)? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    #[test]
    fn settings_come_first_and_once() {
        for (bytes, expected) in [
            (
                &b"\x04\x02\x06\x10\x21\x03abc\x0d\x01\x05\x07\x01\x00"[..],
                Ok(vec![ControlFrame::Settings, ControlFrame::GoAway]),
            ),
            (b"\x07\x01\x00", Err(Code::MISSING_SETTINGS)),
            (b"\x21\x00", Err(Code::MISSING_SETTINGS)),
            (b"\x04\x00\x04\x00", Err(Code::FRAME_UNEXPECTED)),
            (b"\x04\x00\x00\x00", Err(Code::FRAME_UNEXPECTED)),
            (b"\x04\x00\x08\x00", Err(Code::FRAME_UNEXPECTED)),
            (b"\x04\x02\x02\x00", Err(Code::SETTINGS_ERROR)),
            (b"\x04\x04\x06\x00\x06\x00", Err(Code::SETTINGS_ERROR)),
            (b"\x04\x01\x06", Err(Code::FRAME_ERROR)),
            (b"\x04\x80\x01\x00\x00", Err(Code::EXCESSIVE_LOAD)),
        ] {
            assert_eq!(frames(bytes, bytes.len()), expected, "{bytes:?}");
            assert_eq!(frames(bytes, 1), expected, "{bytes:?}");
        }
    }

    #[test]
    fn the_clients_decoder_has_nothing_to_say() {
        let mut input = BytesMut::from(&b"\x44\x7f\x01\x7f"[..]);
        assert_eq!(DecoderReader.take(&mut input), Ok(()));
        assert_eq!(&input[..], b"\x7f", "the rest of an integer is waited for");
        let mut input = BytesMut::from(&b"\x84"[..]);
        assert!(DecoderReader.take(&mut input).is_err());
    }
}
