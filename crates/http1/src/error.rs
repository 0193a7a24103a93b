//! Protocol errors of clients and upstreams: which side caused it, and the text
//! for the log. The status answered to the client is a fact on the error, so
//! that one place elsewhere can turn any of these into a response.

use http_semantics::Excerpt;

use http_semantics::TargetError;

/// An offence in a request. `Display` is the log sentence, in nginx's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A method with a byte other than `A-Z`, `_`, `-`, or an empty one.
    #[error("client sent invalid method")]
    InvalidMethod,
    /// An HTTP/0.9 request with a method other than GET.
    #[error("client sent invalid method in HTTP/0.9 request")]
    InvalidMethodIn09,
    /// A request line that does not follow the grammar.
    #[error("client sent invalid request")]
    InvalidRequestLine,
    /// An HTTP version of 2.0 or above.
    #[error("client sent invalid version")]
    UnsupportedVersion,
    /// A request line longer than a large buffer.
    #[error("client sent too long URI")]
    UriTooLong,
    /// A field line longer than a large buffer (a piece of it is kept).
    #[error("client sent too long header line: \"{0}...\"")]
    FieldTooLong(Excerpt),
    /// More field lines than all large buffers hold.
    #[error("client sent too large request")]
    HeadTooLarge,
    /// More field lines than `max_headers`.
    #[error("client sent too many header lines")]
    TooManyFields,
    /// A field line that cannot be read in one way only.
    #[error("client sent invalid header line: \"{0}...\"")]
    InvalidField(Excerpt),
    /// A field that may come once came twice.
    #[error("client sent duplicate header line: \"{0}\"")]
    DuplicateField(Excerpt),
    /// An HTTP/1.1 request without Host.
    #[error("client sent HTTP/1.1 request without \"Host\" header")]
    MissingHost,
    /// A Host field value or target authority that is not a host.
    #[error("client sent invalid host header")]
    InvalidHost,
    /// A request target that does not decode (bad `%`, above the root, ...).
    #[error("client sent invalid request")]
    InvalidTarget,
    /// Content-Length is not a plain decimal number.
    #[error("client sent invalid \"Content-Length\" header")]
    InvalidContentLength,
    /// Content-Length beside Transfer-Encoding.
    #[error("client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time")]
    LengthWithTransferEncoding,
    /// Transfer-Encoding in an HTTP/1.0 request.
    #[error("client sent HTTP/1.0 request with \"Transfer-Encoding\" header")]
    TransferEncodingIn10,
    /// A transfer coding other than exactly `chunked`.
    #[error("client sent unknown \"Transfer-Encoding\": \"{0}\"")]
    UnknownTransferEncoding(Excerpt),
    /// TRACE, which would echo the client's cookies.
    #[error("client sent TRACE method")]
    TraceRefused,
    /// CONNECT, which only a tunnel may answer.
    #[error("client sent CONNECT method")]
    ConnectRefused,
}

impl RequestError {
    /// The status nginx answers with. 494 is shown to clients as 400 (see
    /// [`http_semantics::status::shown`]).
    pub fn status(&self) -> u16 {
        use RequestError::*;
        match self {
            UriTooLong => 414,
            FieldTooLong(_) | HeadTooLarge | TooManyFields => 494,
            UnsupportedVersion => 505,
            UnknownTransferEncoding(_) => 501,
            TraceRefused | ConnectRefused => 405,
            _ => 400,
        }
    }
}

impl From<TargetError> for RequestError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::InvalidTarget => RequestError::InvalidTarget,
            TargetError::InvalidHost => RequestError::InvalidHost,
        }
    }
}

/// The reason why an upstream's response head is refused. `Display` is the log
/// sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The first line is no HTTP/1 status line.
    #[error("upstream sent no valid HTTP/1.0 header")]
    InvalidStatusLine,
    /// The head is longer than the buffer it may take.
    #[error("upstream sent too big header")]
    TooLarge,
    /// More field lines than we keep.
    #[error("upstream sent too many header lines")]
    TooManyFields,
    /// A field line that cannot be read in one way only.
    #[error("upstream sent invalid header: \"{0}...\"")]
    InvalidField(Excerpt),
    /// Content-Length is not one plain decimal number.
    #[error("upstream sent invalid \"Content-Length\" header")]
    InvalidContentLength,
    /// Content-Length or Transfer-Encoding came twice.
    #[error("upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header")]
    DuplicateFraming,
    /// Content-Length beside Transfer-Encoding.
    #[error("upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time")]
    LengthWithTransferEncoding,
    /// A transfer coding other than exactly `chunked`.
    #[error("upstream sent unknown \"Transfer-Encoding\": \"{0}\"")]
    UnknownTransferEncoding(Excerpt),
}
