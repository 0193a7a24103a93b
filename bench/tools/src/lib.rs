//! Small programs for `make bench`: `bench-floor`, a server that does nothing but receive and
//! send; `bench-load`, a client that asks at a given rate and measures from the moment a
//! request was due; `bench-load-http3`, one that asks over HTTP/3 as fast as answers come.
//! And for `scripts/floods`: `bench-flood`, which sends what costs a server more than a client,
//! and `bench-visitors`, who ask for a page meanwhile.
//!
//! The parts that they share, and those that can be tested without a socket, live here. Neither ships.

pub mod latency;
pub mod quic;
pub mod socket;
pub mod targets;
pub mod tls;
