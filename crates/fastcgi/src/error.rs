//! The errors of an exchange, and who caused each of them.
//!
//! A caller decides three things from an [`Error`]: the response to the client, the log message, and
//! whether another server may be asked. The facts for the last are here
//! ([`Error::before_first_byte`]); the decision is not.

use std::io;

use upstream_exchange::{Side, StreamError};

/// A failed exchange. The connection is never reusable after one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be made. For callers that connect; the exchange
    /// itself starts with a connected stream.
    #[error("cannot connect to upstream: {0}")]
    Connect(#[source] io::Error),
    /// The stream to PHP, or the body of the request. (A worker that dies with input unread resets the
    /// connection.)
    #[error("{}", stream_failure(.0))]
    Stream(StreamError),
    /// The params are larger than [`crate::params::MAX_PARAMS_BYTES`].
    #[error("the request's params are too large")]
    ParamsTooLarge,
    /// FCGI_OVERLOADED: the application is out of some resource.
    #[error("upstream is overloaded")]
    Overloaded,
    /// FCGI_CANT_MPX_CONN: the application still works on another request
    /// of this connection.
    #[error("upstream cannot multiplex requests")]
    CannotMultiplex,
    /// FCGI_UNKNOWN_ROLE: the application is no responder.
    #[error("upstream is not a responder")]
    UnknownRole,
    /// PHP broke the record protocol.
    #[error("upstream sent {0}")]
    Malformed(#[from] RecordFault),
    /// PHP sent a malformed response head.
    #[error("upstream {0}")]
    InvalidHead(#[from] HeadFault),
    /// The response head is larger than the limit the caller gave.
    #[error("upstream sent too big header: more than {limit_bytes} bytes")]
    HeadTooLarge { limit_bytes: usize },
    /// The response body ended early, after the head was delivered.
    #[error(
        "upstream prematurely closed {how} after {received_bytes}{} bytes of the response body",
        of_expected(.expected_bytes)
    )]
    Truncated {
        how: Truncation,
        received_bytes: u64,
        /// The length that `Content-Length` promised, in bytes.
        expected_bytes: Option<u64>,
    },
}

/// How a response body came to be too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Truncation {
    /// The connection ended or was reset without END_REQUEST: a worker died.
    #[error("connection")]
    ConnectionClosed,
    /// END_REQUEST came before `Content-Length` bytes had.
    #[error("FastCGI request")]
    RequestEnded,
}

/// How PHP broke the record protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    #[error("unsupported FastCGI protocol version: {0}")]
    UnsupportedVersion(u8),
    /// A type that only a web server sends.
    #[error("invalid FastCGI record type: {0}")]
    UnexpectedType(u8),
    #[error("unexpected FastCGI request id: {0}")]
    UnexpectedRequestId(u16),
    /// An END_REQUEST body below its eight bytes.
    #[error("an END_REQUEST record of {0} bytes")]
    ShortEndRequest(u16),
    #[error("unknown FastCGI protocol status: {0}")]
    UnknownProtocolStatus(u8),
    /// STDOUT data after the record that closes STDOUT.
    #[error("data after it had closed FastCGI stdout")]
    DataAfterStdoutClosed,
}

/// The reason why a response head was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadFault {
    /// A line that is no field. Holds its start, for the log.
    #[error("sent invalid header: \"{0}\"")]
    InvalidLine(String),
    /// A NUL or CR within a line.
    #[error("sent invalid header: \"{0}\" holds NUL or CR")]
    ForbiddenByte(String),
    #[error("sent invalid status \"{0}\"")]
    InvalidStatus(String),
    #[error("sent invalid \"Content-Length\" header: \"{0}\"")]
    InvalidContentLength(String),
    /// Two `Content-Length` fields that differ.
    #[error("sent conflicting \"Content-Length\" headers")]
    ConflictingContentLength,
    /// STDOUT or the request ended within the head.
    #[error("prematurely closed FastCGI stdout while reading response header")]
    Incomplete,
}

impl Error {
    /// See [`StreamError::before_first_byte`].
    pub fn before_first_byte(&self) -> bool {
        match self {
            Error::Connect(_) | Error::ParamsTooLarge => true,
            Error::Stream(error) => error.before_first_byte(),
            // By these codes the application reports that it did not begin.
            Error::Overloaded | Error::CannotMultiplex | Error::UnknownRole => true,
            _ => false,
        }
    }
}

fn stream_failure(error: &StreamError) -> String {
    match error {
        StreamError::RequestBody(source) => format!("cannot read the request body: {source}"),
        StreamError::Io { side, source, .. } => {
            let doing = match side {
                Side::Write => "send request to",
                Side::Read => "read response from",
            };
            format!("cannot {doing} upstream: {source}")
        }
        StreamError::Closed { .. } => {
            "upstream prematurely closed connection while reading response header from upstream"
                .into()
        }
    }
}

fn of_expected(expected_bytes: &Option<u64>) -> String {
    expected_bytes.map_or_else(String::new, |expected| format!(" of {expected}"))
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        Error::Stream(error)
    }
}
