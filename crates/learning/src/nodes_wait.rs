//! How long PHP waits until other machines know what it has written (`cache_nodes`).
//!
//! They know within a few milliseconds, or after two seconds where one of them has been killed. If it takes longer, this
//! machine or another one cannot reach the engine. PHP goes on then, and nothing old is shown all the same: a machine without a lease
//! shows nothing that is stored, and one with a lease has asked the database since PHP's COMMIT, because it shows no kept page for
//! longer than two seconds after it has ([`poll::HOLDS`](crate::poll::HOLDS)).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::failpoint;
use crate::other_nodes::{NodesKnow, OtherNodes};

/// Longer than a lease of two seconds is waited for, and than [`poll::HOLDS`](crate::poll::HOLDS).
const WAITS_FOR_NODES: Duration = Duration::from_millis(2300);

/// The time for which the library waits for an answer, and PHP with it where none comes. It has to be longer than
/// [`WAITS_FOR_NODES`].
const HOLD_MILLISECONDS: u32 = 3000;

/// A fault for a test: the other machines get no entries.
fn is_alone() -> bool {
    static IS_ALONE: LazyLock<bool> = LazyLock::new(|| failpoint::is("alone"));
    *IS_ALONE
}

/// A change in the result of the waits, for the error log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitNews {
    Unconfirmed,
    ConfirmedAgain,
}

impl WaitNews {
    /// For the error log.
    pub const fn sentence(self) -> &'static str {
        match self {
            WaitNews::Unconfirmed => {
                "not all nodes confirm what PHP writes: each statement that writes takes 2.3 s longer"
            }
            WaitNews::ConfirmedAgain => "all nodes confirm what PHP writes again",
        }
    }
}

/// The other machines to which a pool reports its writes.
#[derive(Default)]
pub struct NodesOfPool {
    nodes: Mutex<Option<Arc<dyn OtherNodes>>>,
    is_unconfirmed: AtomicBool,
}

impl NodesOfPool {
    pub fn set(&self, nodes: Option<Arc<dyn OtherNodes>>) {
        *self.nodes.lock() = nodes;
    }

    pub fn get(&self) -> Option<Arc<dyn OtherNodes>> {
        let nodes = self.nodes.lock().clone();
        nodes.filter(|_| !is_alone())
    }

    /// For how long a write is held that Mayfly does not acknowledge.
    pub fn hold_milliseconds(&self) -> u32 {
        match *self.nodes.lock() {
            Some(_) => HOLD_MILLISECONDS,
            None => 0,
        }
    }

    /// Waits until all nodes know, but no longer than is of use: a process that has gone waits for nothing.
    pub async fn wait(&self, know: NodesKnow, process: &UnixStream) -> Option<WaitNews> {
        tokio::select! {
            () = know => {
                let was_unconfirmed = self.is_unconfirmed.swap(false, Ordering::Relaxed);
                was_unconfirmed.then_some(WaitNews::ConfirmedAgain)
            }
            () = tokio::time::sleep(WAITS_FOR_NODES) => {
                let was_unconfirmed = self.is_unconfirmed.swap(true, Ordering::Relaxed);
                (!was_unconfirmed).then_some(WaitNews::Unconfirmed)
            }
            _ = says_something(process) => None,
        }
    }
}

/// Waits until a process sends something, or has gone.
async fn says_something(process: &UnixStream) -> io::Result<()> {
    let look = || {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(process, &mut [0; 1], flags)?;
        Ok(())
    };
    process.async_io(Interest::READABLE, look).await
}
