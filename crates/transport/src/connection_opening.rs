//! The opening that a listener expects of a connection before its first request.

/// The protocol layers that a listener expects ahead of requests.
// Large: parameters of `listen`, of which any may be there.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionOpening {
    /// `listen ... proxy_protocol`
    pub proxy_header: bool,
    /// `listen ... ssl`
    pub tls: bool,
    /// HTTP/2 is served as well, to those who begin with its preface (RFC 9113 §3.3).
    pub http2: bool,
}

impl ConnectionOpening {
    /// Is HTTP/1 spoken from the first byte on?
    pub fn is_plain(self) -> bool {
        self == ConnectionOpening::default()
    }
}
