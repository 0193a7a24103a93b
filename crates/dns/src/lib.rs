//! Names to addresses, and addresses to names, at run time: the work of the directive `resolver`.
//!
//! [`Resolver::resolve`] answers from memory while an answer is valid, lets requests for one name
//! share one question, and asks exactly the name servers it was given (`exchange`): over UDP, then
//! over TCP where the answer was truncated. hickory encodes and decodes the messages (`message`).
//! One resolver is shared by all threads; the time is an argument, and timers only bound the waits
//! for a name server or for a shared question.
//!
//! The rules are nginx's: errors are not remembered, an answer is valid for
//! the smallest TTL of its records or for `valid`, and malformed or foreign
//! datagrams are passed over until the question is asked again elsewhere.

mod cache;
mod error;
mod exchange;
mod message;
mod millis;
mod resolver;

pub use error::{Fault, ResolveError};
pub use message::Service;
pub use millis::Millis;
pub use resolver::{Addresses, HostNames, Resolver, ResolverSpec, Services};
