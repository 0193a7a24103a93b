//! The channel into which a fetch puts an upstream's informational responses (RFC 9110 §15.2; 103: RFC 8297). The
//! task that waits for the fetch reads them at the other end; the fetch knows nothing of clients.

use bytes::Bytes;
use tokio::sync::mpsc;

/// An informational response with a status other than 100 and 101.
pub struct Hint {
    pub status: u16,
    pub fields: Vec<(Bytes, Bytes)>,
}

/// Hints that wait at most: the number that an upstream may send before its response. Beyond that the client is
/// slower than several upstreams in turn, and goes without.
const MAX_WAITING_HINTS: usize = http_client::MAX_INTERIM_RESPONSES as usize;

/// The end that the fetch writes to.
pub struct HintSender(mpsc::Sender<Hint>);

impl HintSender {
    /// Both ends.
    pub fn channel() -> (HintSender, mpsc::Receiver<Hint>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_HINTS);
        (HintSender(sender), receiver)
    }

    /// Never waits: the response is not to be late for its hints.
    pub fn send(&self, hint: Hint) {
        let _ = self.0.try_send(hint);
    }
}
