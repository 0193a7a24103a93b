//! An HTTP/1 request in terms of an exchange: the bytes that are sent, and the bounds of its
//! response. Both directions are driven by `upstream-exchange`.
//!
//! ```text
//! start ─ next ─ next ─ ... ─ End ─ into_stream
//!                  └─ Head of an upgrade ─ into_tunnel
//! ```

use bytes::{Bytes, BytesMut};
use upstream_exchange::{NoBody, Protocol};

use crate::request::{BodyFraming, RequestEncoder};
use crate::response::{ExpectedResponse, ResponseReader};

/// One request under way. Its last event is [`crate::Event::End`], or the head of an upgrade.
pub type Exchange<S, B = NoBody> = upstream_exchange::Exchange<S, RequestSpec, B>;

/// An HTTP/1 request: its head, and the facts and bounds for its response.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    /// Request line, fields and empty line, ready to be sent. They must agree
    /// with the other members; nothing here is derived from them.
    pub head: Bytes,
    /// How the body is framed.
    pub body: BodyFraming,
    /// The method is HEAD, so the answer has no body.
    pub head_request: bool,
    /// The connection may be used again if the upstream agrees: the head does not have `Connection:
    /// close` (or has `keep-alive` in HTTP/1.0).
    pub keep_alive: bool,
    /// The head asks for an upgrade, so a 101 makes a tunnel. Otherwise it is an error.
    pub allow_upgrade: bool,
    /// Bound of each response head (`proxy_buffer_size`).
    pub head_limit_bytes: usize,
    /// The caller has seen that the stream was silent when it was taken: the exchange does not look
    /// again before the first byte is sent.
    pub known_silent: bool,
}

impl Protocol for RequestSpec {
    type Request = RequestEncoder;
    type Response = ResponseReader;

    fn start(self) -> (RequestEncoder, ResponseReader) {
        let expected = ExpectedResponse {
            head_limit_bytes: self.head_limit_bytes,
            head_request: self.head_request,
            allow_upgrade: self.allow_upgrade,
            keep_alive: self.keep_alive,
            known_silent: self.known_silent,
        };
        (
            RequestEncoder::new(self.head, self.body),
            // Without memory until the first bytes are there.
            ResponseReader::new(expected, BytesMut::new()),
        )
    }
}
