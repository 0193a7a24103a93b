//! Protocol errors of clients and upstreams: which side caused it, and the text
//! for the log. The status answered to the client is a fact on the error, so
//! that one place elsewhere can turn any of these into a response.

use std::fmt;

use http_semantics::Excerpt;

use http_semantics::TargetError;

/// An offence in a request. `Display` is the log sentence, in nginx's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// A method with a byte other than `A-Z`, `_`, `-`, or an empty one.
    InvalidMethod,
    /// An HTTP/0.9 request with a method other than GET.
    InvalidMethodIn09,
    /// A request line that does not follow the grammar.
    InvalidRequestLine,
    /// An HTTP version of 2.0 or above.
    UnsupportedVersion,
    /// A request line longer than a large buffer.
    UriTooLong,
    /// A field line longer than a large buffer (a piece of it is kept).
    FieldTooLong(Excerpt),
    /// More field lines than all large buffers hold.
    HeadTooLarge,
    /// More field lines than `max_headers`.
    TooManyFields,
    /// A field line that cannot be read in one way only.
    InvalidField(Excerpt),
    /// A field that may come once came twice.
    DuplicateField(Excerpt),
    /// An HTTP/1.1 request without Host.
    MissingHost,
    /// A Host field value or target authority that is not a host.
    InvalidHost,
    /// A request target that does not decode (bad `%`, above the root, ...).
    InvalidTarget,
    /// Content-Length is not a plain decimal number.
    InvalidContentLength,
    /// Content-Length beside Transfer-Encoding.
    LengthWithTransferEncoding,
    /// Transfer-Encoding in an HTTP/1.0 request.
    TransferEncodingIn10,
    /// A transfer coding other than exactly `chunked`.
    UnknownTransferEncoding(Excerpt),
    /// TRACE, which would echo the client's cookies.
    TraceRefused,
    /// CONNECT, which only a tunnel may answer.
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

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RequestError::*;
        match self {
            InvalidMethod => f.write_str("client sent invalid method"),
            InvalidMethodIn09 => f.write_str("client sent invalid method in HTTP/0.9 request"),
            InvalidRequestLine => f.write_str("client sent invalid request"),
            UnsupportedVersion => f.write_str("client sent invalid version"),
            UriTooLong => f.write_str("client sent too long URI"),
            FieldTooLong(line) => write!(f, "client sent too long header line: \"{line}...\""),
            HeadTooLarge => f.write_str("client sent too large request"),
            TooManyFields => f.write_str("client sent too many header lines"),
            InvalidField(line) => write!(f, "client sent invalid header line: \"{line}...\""),
            DuplicateField(line) => write!(f, "client sent duplicate header line: \"{line}\""),
            MissingHost => f.write_str("client sent HTTP/1.1 request without \"Host\" header"),
            InvalidHost => f.write_str("client sent invalid host header"),
            InvalidTarget => f.write_str("client sent invalid request"),
            InvalidContentLength => f.write_str("client sent invalid \"Content-Length\" header"),
            LengthWithTransferEncoding => f.write_str(
                "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
            ),
            TransferEncodingIn10 => {
                f.write_str("client sent HTTP/1.0 request with \"Transfer-Encoding\" header")
            }
            UnknownTransferEncoding(value) => {
                write!(f, "client sent unknown \"Transfer-Encoding\": \"{value}\"")
            }
            TraceRefused => f.write_str("client sent TRACE method"),
            ConnectRefused => f.write_str("client sent CONNECT method"),
        }
    }
}

impl std::error::Error for RequestError {}

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// The first line is no HTTP/1 status line.
    InvalidStatusLine,
    /// The head is longer than the buffer it may take.
    TooLarge,
    /// More field lines than we keep.
    TooManyFields,
    /// A field line that cannot be read in one way only.
    InvalidField(Excerpt),
    /// Content-Length is not one plain decimal number.
    InvalidContentLength,
    /// Content-Length or Transfer-Encoding came twice.
    DuplicateFraming,
    /// Content-Length beside Transfer-Encoding.
    LengthWithTransferEncoding,
    /// A transfer coding other than exactly `chunked`.
    UnknownTransferEncoding(Excerpt),
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ResponseError::*;
        match self {
            InvalidStatusLine => f.write_str("upstream sent no valid HTTP/1.0 header"),
            TooLarge => f.write_str("upstream sent too big header"),
            TooManyFields => f.write_str("upstream sent too many header lines"),
            InvalidField(line) => write!(f, "upstream sent invalid header: \"{line}...\""),
            InvalidContentLength => f.write_str("upstream sent invalid \"Content-Length\" header"),
            DuplicateFraming => f.write_str(
                "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
            ),
            LengthWithTransferEncoding => f.write_str(
                "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
            ),
            UnknownTransferEncoding(value) => {
                write!(f, "upstream sent unknown \"Transfer-Encoding\": \"{value}\"")
            }
        }
    }
}

impl std::error::Error for ResponseError {}
