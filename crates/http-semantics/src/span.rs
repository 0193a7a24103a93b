//! Parts of a request head, as offsets instead of references, so that a
//! parsed head can be kept beside the bytes it came from and a vector of fields
//! can be reused from request to request. Resolving a span never panics: one
//! that does not fit the bytes it is asked about reads as empty.

/// A half-open range of byte offsets into a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Heads are capped far below `u32::MAX` bytes before any span is made.
    pub fn new(start: usize, end: usize) -> Self {
        debug_assert!(u32::try_from(end).is_ok());
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    /// The bytes this span names, or nothing when it does not fit.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns whether the span names no byte.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// One field line: where its name and its value (without surrounding white
/// space) are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldSpan {
    /// The position of the field name.
    pub name: Span,
    /// The position of the field value.
    pub value: Span,
}
