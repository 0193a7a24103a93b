//! Decides what the cache does with a request. The pipeline obeys, `explain` prints the decision, and
//! warming asks for it before it asks an application.
//!
//! Does no I/O, reads no clock and knows no `Request`: what counts of a request is asked for by a
//! trait, and time is an argument.
//!
//! ```text
//! address, pattern    by what stored responses are purged, as people write it
//! cookies, fields     what of a request tells its response from others
//! litespeed           the words of LiteSpeed's protocol; with_cookies: what they mean for storing
//! plan                who may share the response, where it is stored
//! stand_in            when a stale response is the answer
//! storing_policy      the directives in the terms of http-cache
//! tags                what the application says that a response was made of
//! ```

pub mod address;
pub mod cookies;
pub mod fields;
pub mod litespeed;
pub mod pattern;
mod plan;
mod stand_in;
mod storing_policy;
pub mod tags;
pub mod with_cookies;

pub use plan::{Audience, Plan};
pub use stand_in::StandIn;
pub use storing_policy::{storing_policy, use_stale};
