//! Sockets of QUIC that take no further connections, until those that there are have ended. A closed connection stays
//! for a moment, and repeats its CONNECTION_CLOSE if the client has not received it (RFC 9000 §10.2): a process that
//! ended at once would leave clients without an answer.

use std::cell::Cell;
use std::time::Duration;

use quinn::Endpoint;

/// A closed connection stays for three times the duration of a client's answer. Clients far away do not hold up an end
/// for longer than this.
const MAX_LINGER: Duration = Duration::from_secs(1);
/// The pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

thread_local! {
    /// How many there are of this thread.
    static CLOSING: Cell<usize> = const { Cell::new(0) };
}

/// Keeps the socket until its connections are gone.
pub fn wait_for(endpoint: Endpoint) {
    // In the end of a runtime nothing is waited for.
    if endpoint.open_connections() == 0 {
        return;
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        CLOSING.set(CLOSING.get() + 1);
        let counted = ClosingSocket;
        runtime.spawn(async move {
            endpoint.wait_idle().await;
            drop(counted);
        });
    }
}

/// Waits for the last words to clients of this thread's connections, which have ended.
pub async fn last_words() {
    let gone = async {
        while CLOSING.get() > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    // Packets that do not arrive until then are not waited for.
    let _ = tokio::time::timeout(MAX_LINGER, gone).await;
}

struct ClosingSocket;

impl Drop for ClosingSocket {
    fn drop(&mut self) {
        CLOSING.set(CLOSING.get().saturating_sub(1));
    }
}
