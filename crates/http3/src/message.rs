//! The frames of a request stream (RFC 9114 §4.1): a head, a body, perhaps trailers.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::{Code, Error};
use crate::frame;

/// Cuts the bytes of a request stream into the pieces of a request.
#[derive(Debug)]
pub struct MessageReader {
    stage: Stage,
    /// The frame that is being read: its type, and how much of it is still to come.
    frame: Option<(u64, u64)>,
    max_block_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Body,
    /// Behind the trailers.
    End,
}

/// A piece of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The field block of its head.
    Head(Bytes),
    /// Bytes of its body, at least one.
    Body(Bytes),
    /// The field block of its trailers.
    Trailers(Bytes),
    /// A field block beyond the limit. The rest of the stream cannot be used.
    TooLarge,
}

impl MessageReader {
    /// `max_block_bytes`: as large may a field block be.
    pub fn new(max_block_bytes: usize) -> MessageReader {
        MessageReader {
            stage: Stage::Head,
            frame: None,
            max_block_bytes,
        }
    }

    /// The next piece; `None` if more has to be read for it.
    ///
    /// # Errors
    /// The client broke the protocol: the connection ends.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Piece>, Error> {
        loop {
            let (kind, left) = match self.frame {
                Some(frame) => frame,
                None => match self.begin_frame(input)? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
            match kind {
                frame::HEADERS if left > self.max_block_bytes as u64 => {
                    return Ok(Some(Piece::TooLarge));
                }
                frame::HEADERS if (here as u64) < left => return Ok(None),
                frame::HEADERS => {
                    self.frame = None;
                    let block = input.split_to(here).freeze();
                    return Ok(Some(self.take_block(block)));
                }
                _ if left == 0 => self.frame = None,
                _ if here == 0 => return Ok(None),
                _ => {
                    self.frame = Some((kind, left - here as u64));
                    let bytes = input.split_to(here);
                    if kind == frame::DATA {
                        return Ok(Some(Piece::Body(bytes.freeze())));
                    }
                }
            }
        }
    }

    fn take_block(&mut self, block: Bytes) -> Piece {
        match self.stage {
            Stage::Head => {
                self.stage = Stage::Body;
                Piece::Head(block)
            }
            Stage::Body | Stage::End => {
                self.stage = Stage::End;
                Piece::Trailers(block)
            }
        }
    }

    fn begin_frame(&mut self, input: &mut BytesMut) -> Result<Option<(u64, u64)>, Error> {
        let Some((kind, length, head_bytes)) = frame::read_head(input) else {
            return Ok(None);
        };
        let is_expected = match kind {
            frame::DATA => self.stage == Stage::Body,
            frame::HEADERS => self.stage != Stage::End,
            frame::CANCEL_PUSH
            | frame::SETTINGS
            | frame::PUSH_PROMISE
            | frame::GOAWAY
            | frame::MAX_PUSH_ID => false,
            kind => !frame::is_reserved(kind),
        };
        if !is_expected {
            let reason = "sent a frame that has no place in a request";
            return Err(Error::new(Code::FRAME_UNEXPECTED, reason));
        }
        input.advance(head_bytes);
        self.frame = Some((kind, length));
        Ok(self.frame)
    }

    /// Ends the stream; `left` has the bytes that no piece was made of. Returns whether a
    /// whole request came.
    ///
    /// # Errors
    /// A frame was cut off (§7.1).
    pub fn finish(&self, left: &[u8]) -> Result<bool, Error> {
        let is_cut = !left.is_empty() || self.frame.is_some_and(|(_, left)| left > 0);
        match is_cut {
            true => Err(Error::new(
                Code::FRAME_ERROR,
                "ended a stream within a frame",
            )),
            false => Ok(self.stage != Stage::Head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(bytes: &[u8], step: usize) -> Result<Vec<Piece>, Error> {
        let mut reader = MessageReader::new(8);
        let (mut input, mut pieces) = (BytesMut::new(), Vec::new());
        for some in bytes.chunks(step) {
            input.extend_from_slice(some);
            while let Some(piece) = reader.next(&mut input)? {
                pieces.push(piece);
                if pieces.last() == Some(&Piece::TooLarge) {
                    return Ok(pieces);
                }
            }
        }
        reader.finish(&input)?;
        Ok(pieces)
    }

    #[test]
    fn a_request_is_cut_into_its_pieces() {
        // With frames of an unknown type, which are left out (§9), and an empty DATA frame.
        let bytes =
            b"\x21\x02zz\x01\x02hd\x21\x00\x00\x00\x00\x03abc\x40\x21\x01z\x00\x01d\x01\x02tr";
        let whole = pieces(bytes, bytes.len()).unwrap();
        let piece = |text: &'static [u8]| Bytes::from_static(text);
        assert_eq!(
            whole,
            [
                Piece::Head(piece(b"hd")),
                Piece::Body(piece(b"abc")),
                Piece::Body(piece(b"d")),
                Piece::Trailers(piece(b"tr")),
            ]
        );
        let mut body = Vec::new();
        for piece in pieces(bytes, 1).unwrap() {
            if let Piece::Body(bytes) = piece {
                body.extend_from_slice(&bytes);
            }
        }
        assert_eq!(body, b"abcd");
    }

    #[test]
    fn frames_out_of_place_end_the_connection() {
        let unexpected = Some(Code::FRAME_UNEXPECTED);
        for (bytes, expected) in [
            (&b"\x00\x01a"[..], unexpected),
            (b"\x04\x00", unexpected),
            (b"\x01\x01h\x05\x00", unexpected),
            (b"\x01\x01h\x02\x00", unexpected),
            (b"\x01\x01h\x01\x01t\x00\x01a", unexpected),
            (b"\x01\x01h\x01\x01t\x01\x01t", unexpected),
            (b"\x01\x01h\x00\x02a", Some(Code::FRAME_ERROR)),
            (b"\x01\x01h\x00", Some(Code::FRAME_ERROR)),
            (b"\x01\x01h", None),
        ] {
            let code = pieces(bytes, 1).err().map(|error| error.code);
            assert_eq!(code, expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_field_block_is_bounded_before_it_comes() {
        assert_eq!(pieces(b"\x01\x40\xff", 1).unwrap(), [Piece::TooLarge]);
    }
}
