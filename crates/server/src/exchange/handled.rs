//! The result of a stage that ends a request's way or redirects it.

use http_semantics::Fields;

use crate::exchange::client_facts::ClientFacts;
use crate::exchange::reply::Reply;

/// The result of a stage that ends a round.
pub enum StageEnd {
    Reply(Box<Reply>),
    /// No content, only a status: an error page or the built-in one.
    Status(u16),
    /// Like `Status`, with fields that go along (`WWW-Authenticate`, `Retry-After`).
    StatusWith(u16, Fields),
    /// Start over with another path.
    Redirect {
        path: Vec<u8>,
        args: Vec<u8>,
    },
    /// Go on in `location @name`; the name with its `@`.
    Named(Vec<u8>),
    /// The upstream's response names another path or location (X-Accel-Redirect).
    Diverted(Box<Diversion>),
    /// The client has left: no answer can be sent.
    ClientGone,
    /// Close without an answer (`return 444`).
    Close,
}

/// A response in whose place another path or location answers.
pub struct Diversion {
    pub facts: ClientFacts,
    pub then: StageEnd,
}
