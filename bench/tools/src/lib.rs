//! Two small programs for `make bench`: `bench-floor`, a server that does nothing but receive and
//! send, and `bench-load`, a client that asks at a given rate and measures from the moment a
//! request was due.
//!
//! What both need and what can be tested without a socket lives here. Neither ships.

pub mod answer;
pub mod latency;
pub mod socket;
pub mod targets;
