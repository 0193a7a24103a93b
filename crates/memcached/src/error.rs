//! The errors of an exchange, and who caused each of them.

use upstream_exchange::{Side, StreamError};

/// A failed exchange. The connection is never reusable after one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream. A command has no body; were there one, the command could not be sent.
    #[error("{}", stream_failure(.0))]
    Stream(StreamError),
    /// The first line is no answer to `get`. Holds its start, for the log.
    #[error("memcached sent invalid response: \"{0}\"")]
    InvalidResponse(String),
    /// The answer is about another key than was asked for.
    #[error("memcached sent invalid key in response \"{0}\"")]
    InvalidKey(String),
    /// Flags or length are no numbers, or too large. Holds the line's start.
    #[error("memcached sent invalid flags or length in response \"{0}\"")]
    InvalidNumber(String),
    /// The first line is longer than the limit the caller gave.
    #[error("memcached sent a first line of more than {limit_bytes} bytes")]
    HeadTooLarge { limit_bytes: usize },
    /// The bytes behind the value are not the end of the answer.
    #[error("memcached sent invalid trailer")]
    InvalidTrailer,
    /// The value ended early, after the head was delivered.
    #[error("memcached closed connection after {received_bytes} of {expected_bytes} bytes")]
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

fn stream_failure(error: &StreamError) -> String {
    match error {
        StreamError::Closed { .. } => "memcached prematurely closed connection".to_owned(),
        StreamError::Io {
            side: Side::Read,
            source,
            ..
        } => format!("reading from memcached failed: {source}"),
        StreamError::Io { source, .. } | StreamError::RequestBody(source) => {
            format!("sending to memcached failed: {source}")
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        Error::Stream(error)
    }
}
