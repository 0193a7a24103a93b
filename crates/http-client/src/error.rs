//! The errors of an exchange, and who caused each of them.
//!
//! A caller decides three things from an [`Error`]: the response to the client, the log message,
//! and whether another server may be asked. The facts for the last are here
//! ([`Error::before_first_byte`]); the decision is not. The words are nginx's if its error log
//! has them; the caller adds the step that failed ("while reading response header from
//! upstream").

use std::fmt;
use std::io;

use http1::ResponseError;
use http1::chunked::ChunkedError;
use system_error::SystemError;
use upstream_exchange::{Side, StreamError};

/// A failed exchange. The connection is never reusable after one.
#[derive(Debug)]
pub enum Error {
    /// The stream, or the body of the request.
    Stream(StreamError),
    /// The upstream spoke before it was asked: no answer to this request.
    Unsolicited,
    /// A response head that is malformed or ambiguous.
    InvalidHead(ResponseError),
    /// A response head, interim or final, above the limit that the caller gave.
    HeadTooLarge { limit_bytes: usize },
    /// A 101 that the request did not ask for, or that came before all of it was sent. Passed on,
    /// it would make the client take the rest for a tunnel (RFC 9110 §15.2.2).
    UnaskedUpgrade,
    /// More than [`crate::MAX_INTERIM_RESPONSES`] before the final one.
    TooManyInterimResponses,
    /// A malformed chunked body.
    InvalidChunk {
        fault: ChunkedError,
        received_bytes: u64,
    },
    /// The body ended early, after the head was delivered.
    Truncated {
        received_bytes: u64,
        /// The length that `Content-Length` promised, in bytes; `None` for a chunked body, and
        /// for one without a length whose stream failed.
        expected_bytes: Option<u64>,
        /// The error of the stream; `None` when the upstream closed it.
        source: Option<io::Error>,
    },
}

impl Error {
    /// See [`StreamError::before_first_byte`].
    pub fn before_first_byte(&self) -> bool {
        match self {
            Error::Stream(error) => error.before_first_byte(),
            // Nothing of the request was sent.
            Error::Unsolicited => true,
            _ => false,
        }
    }

    /// Whether the bytes do not even begin as a response: on a reused connection they belong
    /// behind the response before, and this request got no answer.
    pub fn is_leftover(&self) -> bool {
        matches!(self, Error::InvalidHead(ResponseError::InvalidStatusLine))
    }

    /// Whether the upstream answered without a valid response head (`invalid_header` of
    /// `proxy_next_upstream`).
    pub fn is_invalid_head(&self) -> bool {
        matches!(
            self,
            Error::InvalidHead(_)
                | Error::HeadTooLarge { .. }
                | Error::UnaskedUpgrade
                | Error::TooManyInterimResponses
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Stream(StreamError::RequestBody(source)) => {
                write!(f, "cannot read the request body: {source}")
            }
            Error::Unsolicited => f.write_str("upstream sent data before the request"),
            Error::Stream(StreamError::Io { side, source, .. }) => {
                let call = match side {
                    Side::Write => "writev()",
                    Side::Read => "recv()",
                };
                write!(f, "{call} failed ({})", SystemError(source))
            }
            Error::Stream(StreamError::Closed { .. }) => {
                f.write_str("upstream prematurely closed connection")
            }
            Error::InvalidHead(fault) => fault.fmt(f),
            Error::HeadTooLarge { limit_bytes } => write!(
                f,
                "upstream sent too big header: more than {limit_bytes} bytes"
            ),
            Error::UnaskedUpgrade => {
                f.write_str("upstream switched protocols although nobody asked for it")
            }
            Error::TooManyInterimResponses => {
                f.write_str("upstream sent too many informational responses")
            }
            Error::InvalidChunk {
                fault,
                received_bytes,
            } => write!(
                f,
                "upstream sent invalid chunked response: {fault} after {received_bytes} bytes"
            ),
            Error::Truncated {
                received_bytes,
                expected_bytes,
                source,
            } => {
                match source {
                    Some(source) => write!(f, "recv() failed ({})", SystemError(source))?,
                    None => f.write_str("upstream prematurely closed connection")?,
                }
                write!(f, " after {received_bytes}")?;
                if let Some(expected) = expected_bytes {
                    write!(f, " of {expected}")?;
                }
                f.write_str(" bytes of the response body")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Stream(error) => error.source().map(|source| source as _),
            Error::InvalidHead(fault) => Some(fault),
            Error::InvalidChunk { fault, .. } => Some(fault),
            Error::Truncated { source, .. } => source
                .as_ref()
                .map(|source| source as &dyn std::error::Error),
            _ => None,
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        Error::Stream(error)
    }
}

impl From<ResponseError> for Error {
    fn from(fault: ResponseError) -> Error {
        Error::InvalidHead(fault)
    }
}
