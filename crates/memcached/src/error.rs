//! The errors of an exchange, and who caused each of them.

use std::fmt;
use std::io;

use upstream_exchange::{Side, StreamError};

/// A failed exchange. The connection is never reusable after one.
#[derive(Debug)]
pub enum Error {
    /// The stream failed before the answer's first line was complete.
    Io {
        side: Side,
        /// True when no byte of the answer had arrived.
        before_first_byte: bool,
        source: io::Error,
    },
    /// memcached closed the connection before the first line was complete.
    Closed { before_first_byte: bool },
    /// The first line is no answer to `get`. Holds its start, for the log.
    InvalidResponse(String),
    /// The answer is about another key than was asked for.
    InvalidKey(String),
    /// Flags or length are no numbers, or too large. Holds the line's start.
    InvalidNumber(String),
    /// The first line is longer than the limit the caller gave.
    HeadTooLarge { limit_bytes: usize },
    /// What stands behind the value is not the end of the answer.
    InvalidTrailer,
    /// The value ended early, after the head was delivered.
    Truncated {
        received_bytes: u64,
        expected_bytes: u64,
    },
}

impl Error {
    /// Whether nothing of an answer had arrived: a reused connection that was
    /// closed while idle looks like this.
    pub fn before_first_byte(&self) -> bool {
        match self {
            Error::Io {
                before_first_byte, ..
            }
            | Error::Closed { before_first_byte } => *before_first_byte,
            _ => false,
        }
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
            Error::Io { side, source, .. } => {
                let doing = match side {
                    Side::Write => "sending to",
                    Side::Read => "reading from",
                };
                write!(f, "{doing} memcached failed: {source}")
            }
            Error::Closed { .. } => f.write_str("memcached prematurely closed connection"),
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
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        match error {
            StreamError::Io {
                side,
                before_first_byte,
                source,
            } => Error::Io {
                side,
                before_first_byte,
                source,
            },
            StreamError::Closed { before_first_byte } => Error::Closed { before_first_byte },
            // A command has no body; were there one, the command could not be sent.
            StreamError::RequestBody(source) => Error::Io {
                side: Side::Write,
                before_first_byte: false,
                source,
            },
        }
    }
}
