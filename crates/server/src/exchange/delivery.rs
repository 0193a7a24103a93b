//! The answer to a request: the response once it is known, how much of it has been sent, and the
//! stages' decisions on how to send it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use http_semantics::Fields;
use transport::outbound::SentHead;

use crate::exchange::error_page::ErrorPage;
use crate::exchange::reply::{Reply, ReplyHead};

#[derive(Default)]
pub struct Delivery {
    /// The response once its head is known: `$sent_http_*`, `$status`. Its body
    /// is on its way.
    pub reply: Option<Box<Reply>>,
    /// The connection facts of the head that was sent.
    pub sent_head: Option<SentHead>,
    pub status: u16,
    pub bytes_sent: AtomicU64,
    pub head_bytes_sent: AtomicU64,
    pub is_complete: bool,
    pub error_page: ErrorPage,
    pub limit_rate: Option<u64>,
    /// X-Accel-Buffering, where it was sent.
    pub accel_buffering: Option<bool>,
    /// Text of the `Server` field, where it is configured with variables.
    pub server_text: Option<Vec<u8>>,
    /// Fields behind the body.
    pub trailers: Fields,
    /// Most requests have none.
    pub carried: Option<Box<CarriedToResponse>>,
}

/// Facts from earlier stages for the response.
#[derive(Default)]
pub struct CarriedToResponse {
    /// Fields of the response that X-Accel-Redirect replaced, to be sent on.
    pub fields: Fields,
    /// Fields of an error that its page is to carry (`WWW-Authenticate`).
    pub error_fields: Fields,
    pub accel_charset: Option<Vec<u8>>,
    /// The rules of `.htaccess` files for the response to this request.
    pub rules: Option<Box<htaccess::ResponseRules>>,
}

impl Delivery {
    /// Returns the facts for the response, to add to them.
    pub fn carried(&mut self) -> &mut CarriedToResponse {
        self.carried.get_or_insert_default()
    }

    /// Notes the rules of `.htaccess` files for the response. Most responses have none.
    pub fn set_rules(&mut self, rules: Option<Box<htaccess::ResponseRules>>) {
        if rules.is_some() || self.carried.is_some() {
            self.carried().rules = rules;
        }
    }

    /// Returns the status of the answer with this head: its own, or that of an error whose page it is.
    pub fn status_of(&self, head: &ReplyHead) -> u16 {
        self.error_page.forced_status().unwrap_or(head.status)
    }

    pub fn body_bytes_sent(&self) -> u64 {
        let head = self.head_bytes_sent.load(Relaxed);
        self.bytes_sent.load(Relaxed).saturating_sub(head)
    }
}
