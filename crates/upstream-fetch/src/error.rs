//! The reasons why a fetch came to no response, and how operating-system errors are shown in log lines.

use std::io;

use transport::request_body::ClientFault;

/// The reason why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchError {
    /// Could not be reached, or closed the connection.
    Error,
    Timeout,
    InvalidHeader,
    /// All servers are down or full.
    NoLiveUpstreams,
    /// The queue is full or the wait in it too long.
    Overloaded(Overload),
    /// It was not sent, because the servers are busy: a background request, or one whose visitors have
    /// left.
    LeftOut,
    /// The last of several answered with a status that `*_next_upstream` names.
    Status(u16),
    /// The address that connections are to come from cannot be had.
    Local,
    /// The client's body was at fault; it gets this status.
    Client(u16),
}

/// The answer to a client that finds no place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overload {
    /// 429 where it is the client's own requests, or those of crawlers, that are too many; otherwise 503.
    pub status: u16,
    /// Seconds after which it may come again.
    pub retry_after: u16,
}

impl FetchError {
    pub fn status(self) -> u16 {
        match self {
            FetchError::Error | FetchError::InvalidHeader | FetchError::NoLiveUpstreams => 502,
            FetchError::Timeout => 504,
            FetchError::Local => 500,
            FetchError::Overloaded(overload) => overload.status,
            FetchError::LeftOut => 503,
            FetchError::Status(status) | FetchError::Client(status) => status,
        }
    }
}

/// One server did not give a response.
pub(super) struct Failure {
    pub error: FetchError,
    pub request: FailedRequest,
}

/// How far a request got that was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedRequest {
    /// It has not reached the server.
    Unsent,
    /// It may have reached the server.
    Sent,
    /// The request was sent, and the connection ended before a byte came back. It is worth asking the
    /// same pool of our own again, where that is allowed: its master may have been restarted.
    Unanswered,
    /// It was answered with a status that `*_next_upstream` names.
    Refused,
}

/// The status that a client gets whose body could not be handed on.
pub(super) fn client_status(error: &io::Error) -> u16 {
    error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ClientFault>())
        .map_or(400, |fault| fault.0.status())
}
