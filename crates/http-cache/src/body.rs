//! A stored body: bytes in a few pieces, each the size of an allocator's class.
//!
//! Allocators hand out memory in size classes; jemalloc has four per power of two. A body of
//! 21 KB in one piece takes the class of 24 KB and wastes an eighth. Cut into 20 KB and 1 KB it
//! wastes nothing, and two pieces go out in one `writev` as well as one does.
//!
//! ```text
//!   21504 bytes  ->  [ 20480 ][ 1024 ]
//! ```

use crate::memory_file::{FileSlot, MemoryFile};
use crate::size_class::{allocated, class_below};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// The largest piece. Bigger ones would save little and ask the allocator for long runs of pages.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// Below this a tail is not cut further: the bookkeeping of one more piece (64 bytes) would cost
/// more than the rounding it saves.
const MIN_CUT_BYTES: usize = 1024;

/// The counter that `Bytes` makes on the first clone of a piece.
pub(crate) const COUNTER_BYTES: usize = 32;

/// The memory of one of several pieces beside its bytes: the handle in the list and its counter.
const PIECE_BYTES: usize = size_of::<Bytes>() + COUNTER_BYTES;

/// The bytes of a stored response. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pieces: Pieces,
    len: u64,
    /// The file copy of the bytes; `None` if they are too few or too many for one.
    file: Option<Arc<FileSlot>>,
}

#[derive(Clone, Debug)]
enum Pieces {
    /// The handle is in the body itself: a list would be one more address to read for each hit.
    One(Bytes),
    Many(Arc<[Bytes]>),
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::One(Bytes::new())
    }
}

impl Body {
    /// Copies `received` into pieces that fit the allocator's size classes. The received buffers
    /// are free afterwards, however large the buffers they were cut from.
    #[must_use]
    pub fn pack(received: &[Bytes]) -> Body {
        let len: usize = received.iter().map(Bytes::len).sum();
        let mut source = received.iter();
        let mut rest: &[u8] = &[];
        let mut pieces = piece_lengths(len)
            .map(|piece_len| {
                let mut piece = Vec::with_capacity(piece_len);
                while piece.len() < piece_len {
                    if rest.is_empty() {
                        match source.next() {
                            Some(next) => rest = next,
                            None => break,
                        }
                    }
                    let (now, later) = rest.split_at(rest.len().min(piece_len - piece.len()));
                    piece.extend_from_slice(now);
                    rest = later;
                }
                // Length and capacity are equal: the buffer is taken over as it is.
                Bytes::from(piece)
            })
            .peekable();
        let first = pieces.next().unwrap_or_default();
        match pieces.peek() {
            None => Body::whole(first),
            Some(_) => Body {
                pieces: Pieces::Many(std::iter::once(first).chain(pieces).collect()),
                len: len as u64,
                file: FileSlot::for_body(len as u64),
            },
        }
    }

    /// A body that is one piece.
    pub(crate) fn whole(piece: Bytes) -> Body {
        let len = piece.len() as u64;
        Body {
            pieces: Pieces::One(piece),
            len,
            file: FileSlot::for_body(len),
        }
    }

    /// Total length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces, in order.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        match &self.pieces {
            Pieces::One(_) if self.len == 0 => &[],
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many(pieces) => pieces,
        }
    }

    /// The pieces of a byte range, sharing memory; the range is cut to the body's length.
    pub fn slice(&self, range: Range<u64>) -> impl Iterator<Item = Bytes> + '_ {
        let mut start_of_chunk = 0u64;
        self.chunks().iter().filter_map(move |chunk| {
            let start = start_of_chunk;
            let end = start + chunk.len() as u64;
            start_of_chunk = end;
            let from = range.start.max(start);
            let to = range.end.min(end);
            // Both differences are at most the chunk's length, which is a usize.
            (from < to).then(|| chunk.slice((from - start) as usize..(to - start) as usize))
        })
    }

    /// Returns the file copy of a body that is sent whole: counts the request, and makes the file
    /// when the body was requested often enough. See [`crate::memory_file`].
    #[must_use]
    pub fn file(&self) -> Option<&MemoryFile> {
        self.file.as_ref()?.ask(self.chunks())
    }

    pub(crate) fn file_slot(&self) -> Option<&FileSlot> {
        self.file.as_deref()
    }

    /// Bytes of memory the body takes, its file aside, as the allocator rounds them, with its bookkeeping.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let pieces = match &self.pieces {
            Pieces::One(piece) => allocated(piece.len()) + COUNTER_BYTES,
            Pieces::Many(pieces) => {
                let each = pieces.iter().map(|c| allocated(c.len()) + PIECE_BYTES);
                each.sum::<usize>() + 16
            }
        };
        pieces + self.file.as_ref().map_or(0, |_| FileSlot::size_bytes())
    }
}

/// The lengths to cut a body of `len` bytes into.
fn piece_lengths(len: usize) -> impl Iterator<Item = usize> {
    let mut left = len;
    std::iter::from_fn(move || {
        let wanted = left.min(MAX_PIECE_BYTES);
        let waste = allocated(wanted) - wanted;
        let piece = match wanted {
            0 => return None,
            small if small <= MIN_CUT_BYTES => small,
            // One part in 64 is not worth another piece.
            fitting if waste <= fitting / 64 => fitting,
            other => class_below(other),
        };
        left -= piece;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn a_page_of_21_kb_wastes_nothing() {
        let body = Body::pack(&[Bytes::from(numbered(21504))]);
        let lens: Vec<usize> = body.chunks().iter().map(Bytes::len).collect();
        assert_eq!(lens, [20480, 1024]);
    }

    #[test]
    fn packing_keeps_the_bytes_and_little_more_memory() {
        for len in (0..200).chain((200..300_000).step_by(997)) {
            let bytes = numbered(len);
            let received: Vec<Bytes> = bytes.chunks(1000).map(Bytes::copy_from_slice).collect();
            let body = Body::pack(&received);
            assert_eq!(body.len(), len as u64);
            assert_eq!(body.chunks().concat(), bytes);
            if len > 4096 {
                assert!(
                    body.size_bytes() * 100 < len * 112,
                    "{len}: {}",
                    body.size_bytes()
                );
            }
        }
    }

    #[test]
    fn slices_are_the_bytes_of_the_range() {
        let bytes = numbered(100_000);
        let body = Body::pack(&[Bytes::from(bytes.clone())]);
        for (from, to) in [
            (0, 100_000),
            (0, 1),
            (65_535, 65_537),
            (99_999, 100_000),
            (5, 5),
            (10, 90_000),
        ] {
            let cut: Vec<u8> = body.slice(from..to).flatten().collect();
            assert_eq!(cut, bytes[from as usize..to as usize], "{from}..{to}");
        }
        assert_eq!(body.slice(100_000..u64::MAX).count(), 0);
        assert_eq!(
            body.slice(0..u64::MAX).map(|c| c.len()).sum::<usize>(),
            100_000
        );
    }
}
