//! Where a fetch puts the fields of an upstream's 103 (RFC 8297). The task that waits for the fetch
//! reads them at the other end; the fetch knows nothing of clients.

use bytes::Bytes;
use tokio::sync::mpsc;

/// The fields of a 103.
pub type HintFields = Vec<(Bytes, Bytes)>;

/// As many as an upstream may send before its response. Beyond that the client is
/// slower than several upstreams in turn, and goes without.
const MAX_WAITING_HINTS: usize = http_client::MAX_INTERIM_RESPONSES as usize;

/// The end that the fetch writes to.
pub struct HintSender(mpsc::Sender<HintFields>);

impl HintSender {
    /// Both ends.
    pub fn channel() -> (HintSender, mpsc::Receiver<HintFields>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_HINTS);
        (HintSender(sender), receiver)
    }

    /// Never waits: the response is not to be late for its hints.
    pub fn send(&self, fields: HintFields) {
        let _ = self.0.try_send(fields);
    }
}
