//! The next bytes to write, as slices that one system call takes.

use std::io::IoSlice;

/// The most that one write takes: of FastCGI the beginning of a request, its params, and two
/// records of the body with a header each.
const MAX_SEGMENTS: usize = 6;

/// Some slices in order, none of them empty.
#[derive(Debug)]
pub struct Segments<'a> {
    slices: [IoSlice<'a>; MAX_SEGMENTS],
    used: usize,
}

impl<'a> Segments<'a> {
    /// How many there can be.
    pub const MAX: usize = MAX_SEGMENTS;

    pub(crate) fn new() -> Segments<'a> {
        Segments {
            slices: [IoSlice::new(&[]); MAX_SEGMENTS],
            used: 0,
        }
    }

    /// Adds a slice, unless it is empty. A slice beyond [`Segments::MAX`] waits for the next write.
    pub fn push(&mut self, bytes: &'a [u8]) {
        if !bytes.is_empty()
            && let Some(slice) = self.slices.get_mut(self.used)
        {
            *slice = IoSlice::new(bytes);
            self.used += 1;
        }
    }

    pub(crate) fn as_slices(&self) -> &[IoSlice<'a>] {
        self.slices.get(..self.used).unwrap_or(&self.slices)
    }
}
