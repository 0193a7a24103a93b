//! Groups of upstream servers, whatever protocol they speak.
//!
//! A request asks its [`Group`] for a [`Lease`]: the right to have one request in flight at one
//! server. The group chooses the server as nginx does (`balance`), remembers failures (`peer`),
//! never has more in flight at a server than its `max_conns`, nor in all than the limit that finds itself
//! (`turns`), keeps the other requests in line (`queue`) in fair turns and those of visitors before
//! background ones (`fair_queue`), and holds the connections that are kept between requests (`idle`). `membership` follows the addresses of a server's name, and
//! the results of health checks.
//!
//! ```text
//! GroupSpec -> Group::acquire -> Lease -> Lease::connect -> Connection
//!                  ^  |                                        |
//!             queue+  +--- Lease::report / drop <--- Lease::keep
//! ```
//!
//! A group is shared by all threads. The time is an argument everywhere; the
//! one timer is the deadline of a request that waits in line. See
//! `LIFECYCLE.md` beside this crate's manifest for the states.

mod balance;
mod counts;
mod endpoint;
mod group;
mod idle;
mod lease;
mod membership;
mod millis;
mod peer;
mod queue;
mod spec;
mod tried;
mod turns;
mod worker_times;

#[cfg(test)]
mod tests;

pub use counts::Counts;
pub use endpoint::{BindError, Endpoint, LocalEnd, StdStream, Stream};
pub use fair_queue::Class;
pub use group::{AcquireError, Admission, Group, PickKey, ServerSnapshot};
pub use idle::{ConnectionScope, IdlePool, ParkedConnection};
pub use lease::{Connection, Lease};
pub use membership::Watch;
pub use millis::Millis;
pub use peer::{Health, Outcome, Standing};
pub use queue::Ticket;
pub use spec::{GroupSpec, Keepalive, Method, QueueSpec, ServerSpec, SpecError, TurnsSpec};
pub use tried::TriedSet;
pub use turns::TurnsSnapshot;
