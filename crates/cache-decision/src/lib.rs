//! Decides what the cache does with a request. The pipeline obeys, `explain` prints the decision, and
//! warming asks for it before it asks an application.
//!
//! Does no I/O, reads no clock and knows no `Request`: the facts of a request come from a trait, and
//! time is an argument.
//!
//! ```text
//! advice              advice for each reason, for those who run a site
//! address, pattern    targets of purges, as people write them
//! decide              the decisions, which decision.rs defines; the page to read first
//! audience            who may be shown a response
//! facts               the facts of a request and of its upstream that a decision needs
//! foresight           foreseen requests, for explain and warming
//! cookies, fields     the parts of a request that tell its response from others
//! litespeed           the words of LiteSpeed's protocol; with_cookies: their meaning for storing
//! plan                the facts of a request that may be looked up
//! stand_in            when a stale response is the answer
//! storing_policy      the directives in the terms of http-cache
//! tags                the tags that the application gives a response
//! ```

pub mod address;
pub mod advice;
mod audience;
pub mod cookies;
mod decide;
mod decision;
mod facts;
pub mod fields;
mod foresight;
pub mod litespeed;
pub mod pattern;
mod plan;
mod stand_in;
mod storing_policy;
pub mod tags;
#[cfg(test)]
mod testing;
pub mod with_cookies;

pub use audience::Audience;
pub use decide::{FlightPart, after_lookup, before_lookup, in_flight, unshared};
pub use decision::{Action, Decision};
pub use facts::{BodyPlace, PurgeReach, RequestFacts, StoredUse, UpstreamFacts};
pub use foresight::{ForeseenReason, Foresight, StoringFacts, foresee, foresee_refusal};
pub use plan::{FetchRole, PastCache, Plan, SharedPage, UseCount};
pub use stand_in::StandIn;
pub use storing_policy::{MAX_OF_OWN_COPY, storing_policy, use_stale};
