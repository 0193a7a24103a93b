//! The unit of time of this crate.

/// Milliseconds since any fixed point, the same for all calls on one resolver.
pub type Millis = u64;
