//! Why a request cannot be served. The status for the client is a fact on the error, as
//! for HTTP/1; so is whether the request is malformed (RFC 9113 §8.1.1), in which case
//! RST_STREAM follows the answer.

use http_semantics::Excerpt;

/// An offence in a request. `Display` is the log sentence, in nginx's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A name that begins with a colon and is not `:method`, `:scheme`, `:authority` or
    /// `:path`; `:protocol` (RFC 8441) is among them, since we do not offer it.
    #[error("client sent unknown pseudo-header \"{0}\"")]
    UnknownPseudoField(Excerpt),
    /// A pseudo-field that came twice (§8.3).
    #[error("client sent duplicate {0} header")]
    DuplicatePseudoField(&'static str),
    /// A pseudo-field behind another field, or in trailers (§8.3, §8.1).
    #[error("client sent out of order pseudo-header \"{0}\"")]
    MisplacedPseudoField(Excerpt),
    /// A request without `:method`, `:scheme` or `:path` (§8.3.1).
    #[error("client sent no {0} header")]
    MissingPseudoField(&'static str),
    /// A method with a byte other than `A-Z`, `_`, `-`, or an empty one.
    #[error("client sent invalid method")]
    InvalidMethod,
    /// A scheme that does not follow RFC 3986 §3.1.
    #[error("client sent invalid :scheme header")]
    InvalidScheme,
    /// A `:path` that is empty, does not begin with `/`, or has white space or control
    /// characters (§8.3.1).
    #[error("client sent invalid :path header")]
    InvalidPath,
    /// A field name that is empty or has an uppercase letter, a colon, white space, a
    /// control character or a byte above 0x7E (§8.2.1).
    #[error("client sent invalid header name: \"{0}\"")]
    InvalidFieldName(Excerpt),
    /// A field value with NUL, CR or LF, or with white space at its ends (§8.2.1).
    #[error("client sent header \"{0}\" with invalid value")]
    InvalidFieldValue(Excerpt),
    /// A field that speaks of a connection (§8.2.2), or TE other than `trailers`.
    #[error("client sent connection-specific header \"{0}\"")]
    ConnectionField(Excerpt),
    /// A field that may come once came twice.
    #[error("client sent duplicate header line: \"{0}\"")]
    DuplicateField(&'static str),
    /// Content-Length is not a plain decimal number.
    #[error("client sent invalid \"Content-Length\" header")]
    InvalidContentLength,
    /// `:authority` and Host name different hosts (§8.3.1).
    #[error("client sent \":authority\" and \"Host\" that differ")]
    HostDiffers,
    /// `:authority` or Host is not a host.
    #[error("client sent invalid host header")]
    InvalidHost,
    /// Neither `:authority` nor Host.
    #[error("client sent neither \":authority\" nor \"Host\" header")]
    MissingHost,
    /// More or less DATA than Content-Length declared (§8.1.1).
    #[error("client sent a body of other length than \"Content-Length\"")]
    BodyLength,
    /// Trailers without END_STREAM (§8.1).
    #[error("client sent trailers without END_STREAM flag")]
    UnendedTrailers,
    /// A field name or value longer than the limit.
    #[error("client sent too long header field")]
    FieldTooLong,
    /// All field names and values together are longer than the limit.
    #[error("client sent too large request")]
    HeadTooLarge,
    /// More fields than the limit.
    #[error("client sent too many header lines")]
    TooManyFields,
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
