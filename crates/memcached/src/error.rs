//! The errors of an exchange, and who caused each of them.

use std::fmt;

use upstream_exchange::{Side, StreamError};

/// A failed exchange. The connection is never reusable after one.
#[derive(Debug)]
pub enum Error {
    /// The stream. A command has no body; were there one, the command could not be sent.
    Stream(StreamError),
    /// The first line is no answer to `get`. Holds its start, for the log.
    InvalidResponse(String),
    /// The answer is about another key than was asked for.
    InvalidKey(String),
    /// Flags or length are no numbers, or too large. Holds the line's start.
    InvalidNumber(String),
    /// The first line is longer than the limit the caller gave.
    HeadTooLarge { limit_bytes: usize },
    /// The bytes behind the value are not the end of the answer.
    InvalidTrailer,
    /// The value ended early, after the head was delivered.
    Truncated {
        received_bytes: u64,
        expected_bytes: u64,
    },
}

impl Error {
    /// See [`StreamError::before_first_byte`].
    pub fn before_first_byte(&self) -> bool {
        matches!(self, Error::Stream(error) if error.before_first_byte())
    }

    /// Whether memcached answered, and wrongly.
    pub fn is_invalid_response(&self) -> bool {
        matches!(
            self,
            Error::InvalidResponse(_)
                | Error::InvalidKey(_)
                | Error::InvalidNumber(_)
                | Error::HeadTooLarge { .. }
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Stream(StreamError::Closed { .. }) => {
                f.write_str("memcached prematurely closed connection")
            }
            Error::Stream(StreamError::Io {
                side: Side::Read,
                source,
                ..
            }) => write!(f, "reading from memcached failed: {source}"),
            Error::Stream(StreamError::Io { source, .. } | StreamError::RequestBody(source)) => {
                write!(f, "sending to memcached failed: {source}")
            }
            Error::InvalidResponse(line) => {
                write!(f, "memcached sent invalid response: \"{line}\"")
            }
            Error::InvalidKey(line) => {
                write!(f, "memcached sent invalid key in response \"{line}\"")
            }
            Error::InvalidNumber(line) => {
                write!(
                    f,
                    "memcached sent invalid flags or length in response \"{line}\""
                )
            }
            Error::HeadTooLarge { limit_bytes } => {
                write!(
                    f,
                    "memcached sent a first line of more than {limit_bytes} bytes"
                )
            }
            Error::InvalidTrailer => f.write_str("memcached sent invalid trailer"),
            Error::Truncated {
                received_bytes,
                expected_bytes,
            } => write!(
                f,
                "memcached closed connection after {received_bytes} of {expected_bytes} bytes"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
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
