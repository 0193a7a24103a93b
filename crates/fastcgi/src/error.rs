//! The errors of an exchange, and who caused each of them.
//!
//! A caller decides three things from an [`Error`]: the response to the client, the log message, and
//! whether another server may be asked. The facts for the last are here
//! ([`Error::before_first_byte`]); the decision is not.

use std::fmt;
use std::io;

use upstream_exchange::{Side, StreamError};

/// A failed exchange. The connection is never reusable after one.
#[derive(Debug)]
pub enum Error {
    /// No connection could be made. For callers that connect; the exchange
    /// itself starts with a connected stream.
    Connect(io::Error),
    /// The stream to PHP, or the body of the request. (A worker that dies with input unread resets the
    /// connection.)
    Stream(StreamError),
    /// The params are larger than [`crate::params::MAX_PARAMS_BYTES`].
    ParamsTooLarge,
    /// FCGI_OVERLOADED: the application is out of some resource.
    Overloaded,
    /// FCGI_CANT_MPX_CONN: the application still works on another request
    /// of this connection.
    CannotMultiplex,
    /// FCGI_UNKNOWN_ROLE: the application is no responder.
    UnknownRole,
    /// PHP broke the record protocol.
    Malformed(RecordFault),
    /// PHP sent a malformed response head.
    InvalidHead(HeadFault),
    /// The response head is larger than the limit the caller gave.
    HeadTooLarge { limit_bytes: usize },
    /// The response body ended early, after the head was delivered.
    Truncated {
        how: Truncation,
        received_bytes: u64,
        /// The length that `Content-Length` promised, in bytes.
        expected_bytes: Option<u64>,
    },
}

/// How a response body came to be too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The connection ended or was reset without END_REQUEST: a worker died.
    ConnectionClosed,
    /// END_REQUEST came before `Content-Length` bytes had.
    RequestEnded,
}

/// How PHP broke the record protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    UnsupportedVersion(u8),
    /// A type that only a web server sends.
    UnexpectedType(u8),
    UnexpectedRequestId(u16),
    /// An END_REQUEST body below its eight bytes.
    ShortEndRequest(u16),
    UnknownProtocolStatus(u8),
    /// STDOUT data after the record that closes STDOUT.
    DataAfterStdoutClosed,
}

/// The reason why a response head was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadFault {
    /// A line that is no field. Holds its start, for the log.
    InvalidLine(String),
    /// A NUL or CR within a line.
    ForbiddenByte(String),
    InvalidStatus(String),
    InvalidContentLength(String),
    /// Two `Content-Length` fields that differ.
    ConflictingContentLength,
    /// STDOUT or the request ended within the head.
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connect(source) => write!(f, "cannot connect to upstream: {source}"),
            Error::Stream(StreamError::RequestBody(source)) => {
                write!(f, "cannot read the request body: {source}")
            }
            Error::ParamsTooLarge => f.write_str("the request's params are too large"),
            Error::Stream(StreamError::Io { side, source, .. }) => {
                let doing = match side {
                    Side::Write => "send request to",
                    Side::Read => "read response from",
                };
                write!(f, "cannot {doing} upstream: {source}")
            }
            Error::Stream(StreamError::Closed { .. }) => f.write_str(
                "upstream prematurely closed connection while reading response header from upstream",
            ),
            Error::Overloaded => f.write_str("upstream is overloaded"),
            Error::CannotMultiplex => f.write_str("upstream cannot multiplex requests"),
            Error::UnknownRole => f.write_str("upstream is not a responder"),
            Error::Malformed(fault) => write!(f, "upstream sent {fault}"),
            Error::InvalidHead(fault) => write!(f, "upstream {fault}"),
            Error::HeadTooLarge { limit_bytes } => write!(
                f,
                "upstream sent too big header: more than {limit_bytes} bytes"
            ),
            Error::Truncated {
                how,
                received_bytes,
                expected_bytes,
            } => {
                let how = match how {
                    Truncation::ConnectionClosed => "connection",
                    Truncation::RequestEnded => "FastCGI request",
                };
                write!(
                    f,
                    "upstream prematurely closed {how} after {received_bytes}"
                )?;
                match expected_bytes {
                    Some(expected) => write!(f, " of {expected} bytes of the response body"),
                    None => f.write_str(" bytes of the response body"),
                }
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Connect(source) => Some(source),
            Error::Stream(error) => error.source().map(|source| source as _),
            _ => None,
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        Error::Stream(error)
    }
}

impl From<HeadFault> for Error {
    fn from(fault: HeadFault) -> Error {
        Error::InvalidHead(fault)
    }
}

impl From<RecordFault> for Error {
    fn from(fault: RecordFault) -> Error {
        Error::Malformed(fault)
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordFault::UnsupportedVersion(version) => {
                write!(f, "unsupported FastCGI protocol version: {version}")
            }
            RecordFault::UnexpectedType(kind) => write!(f, "invalid FastCGI record type: {kind}"),
            RecordFault::UnexpectedRequestId(id) => {
                write!(f, "unexpected FastCGI request id: {id}")
            }
            RecordFault::ShortEndRequest(length) => {
                write!(f, "an END_REQUEST record of {length} bytes")
            }
            RecordFault::UnknownProtocolStatus(status) => {
                write!(f, "unknown FastCGI protocol status: {status}")
            }
            RecordFault::DataAfterStdoutClosed => {
                f.write_str("data after it had closed FastCGI stdout")
            }
        }
    }
}

impl fmt::Display for HeadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeadFault::InvalidLine(line) => write!(f, "sent invalid header: \"{line}\""),
            HeadFault::ForbiddenByte(line) => {
                write!(f, "sent invalid header: \"{line}\" holds NUL or CR")
            }
            HeadFault::InvalidStatus(value) => write!(f, "sent invalid status \"{value}\""),
            HeadFault::InvalidContentLength(value) => {
                write!(f, "sent invalid \"Content-Length\" header: \"{value}\"")
            }
            HeadFault::ConflictingContentLength => {
                f.write_str("sent conflicting \"Content-Length\" headers")
            }
            HeadFault::Incomplete => {
                f.write_str("prematurely closed FastCGI stdout while reading response header")
            }
        }
    }
}
