//! The errors of an exchange, and who caused each of them.
//!
//! A caller decides three things from an [`Error`]: the response to the client, the log message,
//! and whether another server may be asked. The facts for the last are here
//! ([`Error::before_first_byte`]); the decision is not. The words are nginx's if its error log
//! has them; the caller adds the step that failed ("while reading response header from
//! upstream").

use std::io;

use http1::ResponseError;
use http1::chunked::ChunkedError;
use system_error::SystemError;
use upstream_exchange::{Side, StreamError};

/// A failed exchange. The connection is never reusable after one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream, or the body of the request.
    #[error("{}", stream_failure(.0))]
    Stream(StreamError),
    /// The upstream spoke before it was asked: no answer to this request.
    #[error("upstream sent data before the request")]
    Unsolicited,
    /// A response head that is malformed or ambiguous.
    #[error("{0}")]
    InvalidHead(#[from] ResponseError),
    /// A response head, interim or final, above the limit that the caller gave.
    #[error("upstream sent too big header: more than {limit_bytes} bytes")]
    HeadTooLarge { limit_bytes: usize },
    /// A 101 that the request did not ask for, or that came before all of it was sent. Passed on,
    /// it would make the client take the rest for a tunnel (RFC 9110 §15.2.2).
    #[error("upstream switched protocols although nobody asked for it")]
    UnaskedUpgrade,
    /// More than [`crate::MAX_INTERIM_RESPONSES`] before the final one.
    #[error("upstream sent too many informational responses")]
    TooManyInterimResponses,
    /// A malformed chunked body.
    #[error("upstream sent invalid chunked response: {fault} after {received_bytes} bytes")]
    InvalidChunk {
        #[source]
        fault: ChunkedError,
        received_bytes: u64,
    },
    /// The body ended early, after the head was delivered.
    #[error(
        "{} after {received_bytes}{} bytes of the response body",
        end_of_stream(.source),
        of_expected(.expected_bytes)
    )]
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

fn stream_failure(error: &StreamError) -> String {
    match error {
        StreamError::RequestBody(source) => format!("cannot read the request body: {source}"),
        StreamError::Io { side, source, .. } => {
            let call = match side {
                Side::Write => "writev()",
                Side::Read => "recv()",
            };
            format!("{call} failed ({})", SystemError(source))
        }
        StreamError::Closed { .. } => end_of_stream(&None),
    }
}

fn end_of_stream(failure: &Option<io::Error>) -> String {
    match failure {
        Some(error) => format!("recv() failed ({})", SystemError(error)),
        None => "upstream prematurely closed connection".to_owned(),
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
