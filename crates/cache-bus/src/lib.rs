//! The bus by which nodes share purges, at a Redis or Valkey. `cache-nodes` has the rules; this crate connects, waits
//! and reports.
//!
//! ```text
//! Bus::publish ─► outbox ─► publish ─► confirm ─► Bus::confirmed          purges of this node
//! log ─► read ─► NodeHost::apply ─► renew                                 purges of the others
//! renew, each quarter of a lease ─► Bus::may_use_stored                    asked by each request
//! ```
//!
//! One thread does all of it, so that a busy server does not lose its lease. A lost connection is made again
//! within a bound; nothing that was published is forgotten until it is confirmed.

mod administration;
mod connection;
mod engine;
mod member;
mod outbox;
mod pages;
mod random;
mod seal;
mod secrets;
mod sentinel;
mod settings;
mod state;
mod timer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use administration::Administration;
pub use cache_nodes::{AppliedPurges, BootMillis};
pub use connection::BusError;
pub use engine::{EngineFacts, Epoch, KnownNode, KnownNodes};
pub use outgoing::tls;
pub use pages::{FetchTurn, GivenPage, OpenedPage, SharedPages, TakenPage};
pub use seal::{MIN_KEY_BYTES, NodeSeal};
pub use secrets::{SECRET_ENTRY, SharedSecrets, open_secret, turn_token};
pub use settings::{BusSettings, EngineAddress, HostPort, Login};
pub use state::{BusEvent, BusState};

use member::Member;

/// The host of a node, which has the pages.
pub trait NodeHost: Send + Sync + 'static {
    /// Applies purges of other nodes, in their order. Pages that were stored or under way before are not used
    /// afterwards. May block.
    fn apply(&self, purges: &[Vec<u8>]);

    /// All that is stored, and all that is under way, is void: purges may have been missed. May block.
    fn void(&self);

    /// Reports that all purges up to this position are applied, those of this node too. Called if pages are shared.
    fn advanced(&self, epoch: &Epoch, position: u64);

    /// Reports that all purges up to there are applied: stored pages may be used by a later life that reads the log
    /// from there on. Called now and then, and when the node leaves. Must not block.
    fn keep(&self, applied: &AppliedPurges<Epoch>);

    /// Logs an event.
    fn tell(&self, event: BusEvent);
}

/// A node on the bus, until it is dropped.
pub struct Bus {
    member: Arc<Member>,
}

impl Bus {
    /// Becomes a node, as soon as the engine can be reached. `applied` is the position up to which the stored pages
    /// have seen purges; without one they are void.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(
        settings: BusSettings,
        host: Arc<dyn NodeHost>,
        applied: Option<AppliedPurges<Epoch>>,
    ) -> io::Result<Bus> {
        let member = Arc::new(Member::new(settings, host, applied)?);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .thread_name("cache-nodes")
            .build()?;
        let of_thread = member.clone();
        let thread = std::thread::Builder::new().name("cache-nodes".to_owned());
        thread.spawn(move || runtime.block_on(of_thread.run()))?;
        Ok(Bus { member })
    }

    /// Whether stored pages may be used by a request that was read before `now`.
    #[inline]
    pub fn may_use_stored(&self, now: BootMillis) -> bool {
        now.0 < self.member.lease_until.load(Ordering::Acquire)
    }

    /// How long ago the last lease has ended; `None`: there was none in this life, or it was given up.
    pub fn lease_ended(&self, now: BootMillis) -> Option<Duration> {
        let until = self.member.lease_until.load(Ordering::Acquire);
        (until > 0).then(|| Duration::from_millis(now.0.saturating_sub(until)))
    }

    /// Publishes a purge that was applied here to the other nodes. Returns its number: see [`Bus::confirmed`].
    pub fn publish(&self, purge: Vec<u8>) -> u64 {
        self.member.publish(purge)
    }

    /// Like [`Bus::publish`], for an entry that is no purge, and that `merge` combines with another that waits to be
    /// published. `None`: these two do not go together.
    pub fn publish_merged(
        &self,
        entry: Vec<u8>,
        merge: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>,
    ) -> u64 {
        self.member.publish_merged(entry, merge)
    }

    /// The number of the last purge that was published.
    pub fn last_published(&self) -> u64 {
        self.member.outbox.lock().last()
    }

    /// Resolves once all purges up to a number hold on all nodes.
    pub async fn confirmed(&self, number: u64) {
        let mut confirmed = self.member.confirmed.subscribe();
        // The sender lives as long as `self`.
        let _ = confirmed.wait_for(|confirmed| *confirmed >= number).await;
    }

    /// The pages that nodes share, if they do.
    pub fn pages(&self) -> Option<&SharedPages> {
        self.member.pages.as_ref()
    }

    /// Returns the position up to which all purges are applied to stored pages, also if the engine cannot be reached.
    pub fn applied_to_stored(&self) -> Option<AppliedPurges<Epoch>> {
        self.member.applied_to_stored()
    }

    /// Returns the position up to which purges are applied here, while this node is a member.
    pub fn applied(&self) -> Option<AppliedPurges<Epoch>> {
        self.member.applied_as_member()
    }

    /// How things stand.
    pub fn state(&self) -> BusState {
        self.member.state()
    }

    /// Leaves: this node uses nothing any more that is stored, and the others need not wait for it.
    pub fn leave(&self) {
        self.member.leave();
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.leave();
    }
}
