//! What a stage of a request's way comes to, where it ends that way or bends it.

use http_semantics::Fields;

use crate::exchange::reply::Reply;

/// What a stage came to.
pub enum StageEnd {
    Reply(Box<Reply>),
    /// No content, only a status: an error page or the built-in one.
    Status(u16),
    /// Likewise, with fields that go along (`WWW-Authenticate`, `Retry-After`).
    StatusWith(u16, Fields),
    /// Start over with another path.
    Redirect {
        path: Vec<u8>,
        args: Vec<u8>,
    },
    /// Go on in `location @name`; the name with its `@`.
    Named(Vec<u8>),
    /// The client has left: no answer can be sent.
    ClientGone,
    /// Close without an answer (`return 444`).
    Close,
}
