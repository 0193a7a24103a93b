//! The answer to a request: the response once it is known, how much of it has been sent, and the
//! stages' decisions on how to send it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use http_semantics::Fields;
use transport::outbound::SentHead;

use crate::exchange::error_page::ErrorPage;
use crate::exchange::reply::Reply;

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
}

impl Delivery {
    pub fn body_bytes_sent(&self) -> u64 {
        let head = self.head_bytes_sent.load(Relaxed);
        self.bytes_sent.load(Relaxed).saturating_sub(head)
    }
}
