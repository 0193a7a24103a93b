//! A body that is at hand, read piece by piece.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::held_files::HeldFile;
use super::outbound::{ArrivingBody, MaybeApart, NextBytes, Segment};
use crate::open_file::OpenFile;

/// Read from a file at once, where its bytes go through memory.
pub const READ_BYTES: usize = 64 * 1024;

/// The pieces of a body, in order.
pub struct Pieces {
    pieces: VecDeque<Piece>,
    /// The bytes in memory are a stored response's, which others have as well.
    is_stored: bool,
}

enum Piece {
    Memory(Bytes),
    File {
        file: Arc<HeldFile>,
        offset: u64,
        length: u64,
    },
}

impl Pieces {
    /// `is_stored`: segments in memory belong to a stored response.
    pub fn new(segments: VecDeque<Segment>, is_stored: bool) -> Pieces {
        let mut pieces = VecDeque::with_capacity(segments.len());
        // Ranges of one file come one after the other.
        let mut last: Option<(Arc<OpenFile>, Arc<HeldFile>)> = None;
        for segment in segments {
            pieces.push_back(match segment {
                Segment::Memory(bytes) => Piece::Memory(bytes),
                Segment::File {
                    file,
                    offset,
                    length,
                } => {
                    let held = match &last {
                        Some((same, held)) if Arc::ptr_eq(same, &file) => held.clone(),
                        _ => Arc::new(HeldFile::new(file.clone())),
                    };
                    last = Some((file, held.clone()));
                    Piece::File {
                        file: held,
                        offset,
                        length,
                    }
                }
            });
        }
        Pieces { pieces, is_stored }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Does it keep a file open?
    pub fn has_file(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::File { .. }))
    }

    /// Bytes in memory that are there for this body alone.
    pub fn memory_bytes(&self) -> usize {
        if self.is_stored {
            return 0;
        }
        let lengths = self.pieces.iter().map(|piece| match piece {
            Piece::Memory(bytes) => bytes.len(),
            Piece::File { .. } => 0,
        });
        lengths.sum()
    }

    /// The next bytes, at most as many as asked for; `None` at the end.
    ///
    /// # Errors
    /// The file could not be read, or has become shorter.
    pub fn read(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        let Some(piece) = self.pieces.front_mut() else {
            return Ok(None);
        };
        let (bytes, is_over) = match piece {
            Piece::Memory(rest) => {
                let bytes = rest.split_to(most.min(rest.len()));
                (bytes, rest.is_empty())
            }
            Piece::File {
                file,
                offset,
                length,
            } => {
                let wanted = usize::try_from(*length).unwrap_or(usize::MAX);
                let mut bytes = vec![0; wanted.min(most).min(READ_BYTES)];
                file.file().read_exact_at(&mut bytes, *offset)?;
                *offset += bytes.len() as u64;
                *length -= bytes.len() as u64;
                (Bytes::from(bytes), *length == 0)
            }
        };
        if is_over {
            self.pieces.pop_front();
        }
        Ok(Some(bytes))
    }
}

impl<X: Sync> ArrivingBody<X> for Pieces {
    fn apart(self: Box<Self>) -> MaybeApart<X> {
        Err(self)
    }

    fn next<'a>(&'a mut self, _exchange: &'a X) -> NextBytes<'a> {
        Box::pin(async move { Ok(self.read(usize::MAX)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_far_as_there_is_room() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, "0123456789").unwrap();
        let file = Arc::new(OpenFile::new(std::fs::File::open(&path).unwrap()));
        let range = |offset, length| Segment::File {
            file: file.clone(),
            offset,
            length,
        };
        let segments = [
            Segment::Memory(Bytes::from_static(b"abc")),
            range(2, 4),
            range(0, 1),
        ];
        let mut pieces = Pieces::new(segments.into(), false);
        assert_eq!((pieces.memory_bytes(), pieces.has_file()), (3, true));
        let mut read = |most| pieces.read(most).unwrap();
        for (most, expected) in [
            (2, "ab"),
            (2, "c"),
            (3, "234"),
            (usize::MAX, "5"),
            (usize::MAX, "0"),
        ] {
            assert_eq!(read(most).as_deref(), Some(expected.as_bytes()));
        }
        assert_eq!(read(1), None);
        assert!(!pieces.has_file());
    }
}
