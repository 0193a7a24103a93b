//! Private copies: a bound on how much of a zone one session may take.
//!
//! A response stored for one session carries a group (a hash of the session's identity made by the
//! caller). Each group keeps at most so many responses and bytes; past that its oldest ones go.
//! The key must hold the whole identity: the group only counts.

/// How much one group may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// At most this many stored responses per group.
    pub max_responses: usize,
    /// At most this many bytes per group.
    pub max_bytes: u64,
}
