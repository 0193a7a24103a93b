//! The bytes for the socket: frames that are written here, and pieces of bodies that are only
//! referred to, in order, for one large vectored write. Belongs to the transport, which keeps
//! it while the socket takes no more.

use bytes::Bytes;

/// A piece of body up to this is copied: that costs less than an entry of its own in a
/// vectored write.
const COPY_BYTES: usize = 512;
/// Memory for frames that is kept once all is written.
const KEPT_BYTES: usize = 16 * 1024;

/// Bytes to write, in order.
#[derive(Debug, Default)]
pub struct Output {
    frames: Vec<u8>,
    pieces: Vec<Piece>,
    /// The end of the last piece in `frames`.
    frames_cut: usize,
    /// How many pieces are written, and how much of the next one.
    written: usize,
    written_of_next: usize,
    len: usize,
}

#[derive(Debug)]
enum Piece {
    /// A range of `frames`.
    Frames(usize, usize),
    Body(Bytes),
}

impl Output {
    /// Creates an output with nothing to write.
    pub fn new() -> Self {
        Output::default()
    }

    /// Returns how many bytes there are to write.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Are there no bytes to write?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes to write, in order. No slice is empty.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let last = self.frames.get(self.frames_cut..).unwrap_or_default();
        let pieces = self.pieces.get(self.written..).unwrap_or_default();
        let slices = pieces.iter().map(|piece| match piece {
            Piece::Frames(start, end) => self.frames.get(*start..*end).unwrap_or_default(),
            Piece::Body(body) => body,
        });
        slices
            .chain([last])
            .enumerate()
            .map(|(nth, slice)| match nth {
                0 => slice.get(self.written_of_next..).unwrap_or_default(),
                _ => slice,
            })
            .filter(|slice| !slice.is_empty())
    }

    /// Notes that `written` bytes were written.
    pub fn advance(&mut self, written: usize) {
        let mut left = written.min(self.len);
        self.len -= left;
        if self.len == 0 {
            self.clear();
            return;
        }
        while let Some(piece) = self.pieces.get_mut(self.written) {
            let len = match piece {
                Piece::Frames(start, end) => *end - *start,
                Piece::Body(body) => body.len(),
            };
            if left < len - self.written_of_next {
                break;
            }
            left -= len - self.written_of_next;
            *piece = Piece::Frames(0, 0);
            self.written += 1;
            self.written_of_next = 0;
        }
        self.written_of_next += left;
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.frames.shrink_to(KEPT_BYTES);
        self.pieces.clear();
        self.frames_cut = 0;
        self.written = 0;
        self.written_of_next = 0;
    }

    /// Adds the frames that `write` writes.
    #[inline]
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.frames.len();
        write(&mut self.frames);
        self.len += self.frames.len() - before;
    }

    /// Adds a piece of body.
    #[inline]
    pub(crate) fn push_body(&mut self, body: Bytes) {
        self.len += body.len();
        if body.len() <= COPY_BYTES {
            self.frames.extend_from_slice(&body);
            return;
        }
        let cut = self.frames.len();
        if cut > self.frames_cut {
            self.pieces.push(Piece::Frames(self.frames_cut, cut));
            self.frames_cut = cut;
        }
        self.pieces.push(Piece::Body(body));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(parts: &[(bool, usize)]) -> (Output, Vec<u8>) {
        let (mut output, mut whole) = (Output::new(), Vec::new());
        for (nth, &(is_body, len)) in parts.iter().enumerate() {
            let part = vec![nth as u8; len];
            whole.extend_from_slice(&part);
            match is_body {
                true => output.push_body(part.into()),
                false => output.write(|out| out.extend_from_slice(&part)),
            }
        }
        (output, whole)
    }

    #[test]
    fn large_bodies_are_not_copied_and_small_ones_need_no_slice() {
        let (output, whole) =
            filled(&[(false, 9), (true, 40), (false, 9), (true, 600), (false, 9)]);
        let lens: Vec<usize> = output.slices().map(<[u8]>::len).collect();
        assert_eq!(lens, [58, 600, 9]);
        assert_eq!(output.slices().collect::<Vec<_>>().concat(), whole);
    }

    proptest! {
        #[test]
        fn everything_is_written_once_and_in_order(
            parts in proptest::collection::vec((any::<bool>(), 0..1500usize), 0..12),
            steps in proptest::collection::vec(0..2000usize, 0..40),
        ) {
            let (mut output, whole) = filled(&parts);
            let mut written = 0;
            for step in steps.into_iter().chain([usize::MAX]) {
                prop_assert_eq!(output.len(), whole.len() - written);
                prop_assert_eq!(output.slices().collect::<Vec<_>>().concat(), &whole[written..]);
                prop_assert!(output.slices().all(|slice| !slice.is_empty()));
                output.advance(step);
                written = whole.len().min(written.saturating_add(step));
            }
            prop_assert!(output.is_empty());
            prop_assert!(output.pieces.is_empty());
        }
    }
}
