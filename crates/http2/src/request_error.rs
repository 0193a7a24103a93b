//! Why a request cannot be served. The status for the client is a fact on the error, as
//! for HTTP/1; so is whether the request is malformed (RFC 9113 §8.1.1), in which case
//! RST_STREAM follows the answer.

use std::fmt;

use http_semantics::Excerpt;

/// An offence in a request. `Display` is the log sentence, in nginx's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// A name that begins with a colon and is not `:method`, `:scheme`, `:authority` or
    /// `:path`; `:protocol` (RFC 8441) is among them, since we do not offer it.
    UnknownPseudoField(Excerpt),
    /// A pseudo-field that came twice (§8.3).
    DuplicatePseudoField(&'static str),
    /// A pseudo-field behind another field, or in trailers (§8.3, §8.1).
    MisplacedPseudoField(Excerpt),
    /// A request without `:method`, `:scheme` or `:path` (§8.3.1).
    MissingPseudoField(&'static str),
    /// A method with a byte other than `A-Z`, `_`, `-`, or an empty one.
    InvalidMethod,
    /// A scheme that does not follow RFC 3986 §3.1.
    InvalidScheme,
    /// A `:path` that is empty, does not begin with `/`, or has white space or control
    /// characters (§8.3.1).
    InvalidPath,
    /// A field name that is empty or has an uppercase letter, a colon, white space, a
    /// control character or a byte above 0x7E (§8.2.1).
    InvalidFieldName(Excerpt),
    /// A field value with NUL, CR or LF, or with white space at its ends (§8.2.1).
    InvalidFieldValue(Excerpt),
    /// A field that speaks of a connection (§8.2.2), or TE other than `trailers`.
    ConnectionField(Excerpt),
    /// A field that may come once came twice.
    DuplicateField(&'static str),
    /// Content-Length is not a plain decimal number.
    InvalidContentLength,
    /// `:authority` and Host name different hosts (§8.3.1).
    HostDiffers,
    /// `:authority` or Host is not a host.
    InvalidHost,
    /// Neither `:authority` nor Host.
    MissingHost,
    /// More or less DATA than Content-Length declared (§8.1.1).
    BodyLength,
    /// Trailers without END_STREAM (§8.1).
    UnendedTrailers,
    /// A field name or value longer than the limit.
    FieldTooLong,
    /// All field names and values together are longer than the limit.
    HeadTooLarge,
    /// More fields than the limit.
    TooManyFields,
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
            FieldTooLong | HeadTooLarge | TooManyFields => 494,
            TraceRefused | ConnectRefused => 405,
            _ => 400,
        }
    }

    /// Returns whether the request broke the protocol, rather than a limit or a rule of
    /// ours.
    pub fn is_malformed(&self) -> bool {
        self.status() == 400
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RequestError::*;
        match self {
            UnknownPseudoField(name) => write!(f, "client sent unknown pseudo-header \"{name}\""),
            DuplicatePseudoField(name) => write!(f, "client sent duplicate {name} header"),
            MisplacedPseudoField(name) => {
                write!(f, "client sent out of order pseudo-header \"{name}\"")
            }
            MissingPseudoField(name) => write!(f, "client sent no {name} header"),
            InvalidMethod => f.write_str("client sent invalid method"),
            InvalidScheme => f.write_str("client sent invalid :scheme header"),
            InvalidPath => f.write_str("client sent invalid :path header"),
            InvalidFieldName(name) => write!(f, "client sent invalid header name: \"{name}\""),
            InvalidFieldValue(name) => {
                write!(f, "client sent header \"{name}\" with invalid value")
            }
            ConnectionField(name) => write!(f, "client sent connection-specific header \"{name}\""),
            DuplicateField(name) => write!(f, "client sent duplicate header line: \"{name}\""),
            InvalidContentLength => f.write_str("client sent invalid \"Content-Length\" header"),
            HostDiffers => f.write_str("client sent \":authority\" and \"Host\" that differ"),
            InvalidHost => f.write_str("client sent invalid host header"),
            MissingHost => f.write_str("client sent neither \":authority\" nor \"Host\" header"),
            BodyLength => f.write_str("client sent a body of other length than \"Content-Length\""),
            UnendedTrailers => f.write_str("client sent trailers without END_STREAM flag"),
            FieldTooLong => f.write_str("client sent too long header field"),
            HeadTooLarge => f.write_str("client sent too large request"),
            TooManyFields => f.write_str("client sent too many header lines"),
            TraceRefused => f.write_str("client sent TRACE method"),
            ConnectRefused => f.write_str("client sent CONNECT method"),
        }
    }
}

impl std::error::Error for RequestError {}
