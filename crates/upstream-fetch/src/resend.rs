//! The one repetition of a request whose server closed the connection at once.

use transport::request_body::RequestBody;

use super::spec::FetchSpec;

/// Whether a request is sent once more to the server that closed its connection before a
/// byte of the answer. The server may have begun with it: whether a worker died of the
/// request or closed a connection that it was done with looks the same from here. So it
/// is done once at most, for methods that may be repeated (RFC 9110 §9.2.2), and where
/// `*_next_upstream` names `error`. This is no try of `*_next_upstream_tries`.
pub(super) struct Resend {
    is_allowed: bool,
}

impl Resend {
    pub fn allowed_by(spec: &FetchSpec) -> Resend {
        // A body that is still arriving cannot be sent twice.
        let has_body = spec.streaming.is_none() && !matches!(spec.body, RequestBody::Streamed(_));
        let named = spec.context.pass.exchange.next_upstream.error;
        Resend {
            is_allowed: named && has_body && spec.may_repeat(),
        }
    }

    pub fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// Uses it up. Was it there?
    pub fn take(&mut self) -> bool {
        std::mem::take(&mut self.is_allowed)
    }
}
