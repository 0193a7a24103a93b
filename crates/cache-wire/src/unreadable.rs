//! The end of the reading.

/// Bytes that are not of the protocol, or a part of it that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;
