//! The rules by which several nodes share purges: when a purge has returned, no node begins an
//! answer with older data.
//!
//! Purges travel in one counted log that an engine keeps (Redis or Valkey). A node may use its
//! stored pages only while it holds a lease, and a purge returns once each node has applied it or
//! has certainly lost its lease.
//!
//! ```text
//!  purge here ─► publish ─► n ─► confirm ──► Confirmed            the purge returns
//!                                   └──────► Missing ─(W on the publisher's clock)─► confirm
//!
//!  away ─► join ─► catching up ─► lease ◄─► renew (each L/4)      Node::may_use
//!    ▲       └ gap, or another epoch without a lease: all stored pages are void
//!    └────── connection lost, or no member any more
//! ```
//!
//! The crate does no I/O and reads no clock: the time is an argument ([`BootMillis`], of a clock
//! that goes on while the machine sleeps). Clocks of nodes may differ by any amount, and in speed
//! by less than 1 %. `tests/model` runs these types against a model of engines, failovers, crashes
//! and pauses.

mod confirmation;
mod engine;
mod node;
mod rule;
mod time;

pub use confirmation::{Confirmation, ConfirmationState};
pub use engine::{
    ConfirmAnswer, ConfirmCall, JoinAnswer, JoinCall, MissingNode, PublishAnswer, RenewAnswer,
    RenewCall,
};
pub use node::{AppliedPurges, JoinEffect, LogEntryEffect, Node};
pub use rule::{EveryRule, Rule, Rules};
pub use time::{BootMillis, LeaseTimes};
