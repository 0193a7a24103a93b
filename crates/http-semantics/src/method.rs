//! Request methods that the server distinguishes, and their meaning.

/// A method that the server itself distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Patch,
    Trace,
    Connect,
    Purge,
    Other,
}

impl Method {
    /// The method of this name.
    #[must_use]
    pub fn parse(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"PATCH" => Method::Patch,
            b"TRACE" => Method::Trace,
            b"CONNECT" => Method::Connect,
            b"PURGE" => Method::Purge,
            _ => Method::Other,
        }
    }

    /// May change something on the origin server (RFC 9110 §9.2.1).
    #[must_use]
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Method::Post | Method::Put | Method::Patch | Method::Delete
        )
    }

    /// Makes responses stored for its target out of date once it has succeeded (RFC 9111 §4.4): it is
    /// unsafe, or the server does not know whether it is. PURGE is left out, since the server itself
    /// decides who may purge.
    #[must_use]
    pub fn invalidates(self) -> bool {
        self.is_write() || self == Method::Other
    }

    /// Asks for a representation of the target (RFC 9110 §9.2.1).
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }

    /// Sending it twice has the effect of sending it once (RFC 9110 §9.2.2).
    #[must_use]
    pub fn is_idempotent(self) -> bool {
        !matches!(
            self,
            Method::Post | Method::Patch | Method::Connect | Method::Other
        )
    }
}
