//! The life of a node: it joins, reads, renews, publishes and confirms until its connection is lost, and begins anew.
//!
//! ```text
//! connect ─► join ─► read │ renew │ publish │ confirm      side by side
//!    ▲         ▲          └─ not a member, another epoch ─┐
//!    │         └───────────────────────────────────────────┘
//!    └─ an error, no answer in time: a pause that doubles
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cache_nodes::{
    AppliedPurges, BootMillis, ConfirmAnswer, Confirmation, ConfirmationState, EveryRule,
    JoinEffect, LeaseTimes, LogEntryEffect, MissingNode, Node, PublishAnswer, RenewAnswer,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::NodeHost;
use crate::connection::BusError;
use crate::engine::{Epoch, LogEntry, ReadEntries, RedisEngine};
use crate::outbox::Outbox;
use crate::pages::SharedPages;
use crate::random::random;
use crate::seal::NodeSeal;
use crate::settings::BusSettings;
use crate::state::{BusEvent, BusState};
use crate::timer::FineTimer;

/// The pause before a connection is made again: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Between two joins over one connection.
const JOIN_PAUSE: Duration = Duration::from_millis(20);
/// Between two publications: purges that come meanwhile go together, so that the work of all nodes and of the engine is
/// bounded however many there are.
const PUBLISH_EACH: Duration = Duration::from_micros(2400);
/// The pause between publications for each node, which counts if there are many: for each publication, each node reads
/// from the engine and sends a renewal.
const PUBLISH_EACH_OF_NODE: Duration = Duration::from_micros(200);
/// How often `confirm` is asked: some times at once, for a purge that all nodes take, then less and less often until
/// one is confirmed.
const CONFIRM_PAUSES: [(u32, Duration); 4] = [
    (3, Duration::from_micros(500)),
    (6, Duration::from_millis(1)),
    (25, Duration::from_millis(5)),
    (u32::MAX, Duration::from_millis(25)),
];
/// A node that has published asks for the others no later than this, whether or not it has read its own entry.
const OWN_POSITION_TIMEOUT: Duration = Duration::from_millis(20);
/// How often it is looked whether the lease has ended.
const WATCH_EACH: Duration = Duration::from_millis(100);
/// The time after which a node that renews its lease without applying an entry is reported.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// How often the host gets the position up to which purges are applied.
const KEEP_EACH: Duration = Duration::from_secs(1);
/// For taking one's leave.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// The reason why a round of reading, renewing, publishing and confirming ended.
enum RoundEnd {
    /// The node is no member any more, or the log is another one.
    JoinAgain,
    /// The node leaves for good.
    Left,
}

/// Nodes that entries wait for although they renew their leases.
#[derive(Default)]
struct StuckNodes {
    /// For each missing node: its state when first seen at its present position, and the time since then.
    missing: Vec<(MissingNode, Instant)>,
    logged: Vec<u64>,
}

impl StuckNodes {
    /// A node that has been at one position for [`STUCK_AFTER`] although it renews its lease; each is given once.
    fn note(&mut self, missing: &[MissingNode], now: Instant) -> Option<u64> {
        let is_at_one = |known: &MissingNode, node: &MissingNode| {
            (known.instance, known.position) == (node.instance, node.position)
        };
        self.missing
            .retain(|(known, _)| missing.iter().any(|node| is_at_one(known, node)));
        for node in missing {
            let known = self
                .missing
                .iter()
                .find(|(known, _)| is_at_one(known, node));
            let Some((known, since)) = known else {
                self.missing.push((*node, now));
                continue;
            };
            let is_stuck = node.beat > known.beat && now - *since >= STUCK_AFTER;
            if is_stuck && !self.logged.contains(&node.instance) {
                self.logged.push(node.instance);
                return Some(node.instance);
            }
        }
        None
    }
}

/// A node with its connection.
pub struct Member {
    settings: BusSettings,
    host: Arc<dyn NodeHost>,
    /// The number of this life of the node.
    instance: u64,
    node: Mutex<Node<Epoch>>,
    pub lease_until: AtomicU64,
    pub outbox: Mutex<Outbox>,
    pub confirmed: watch::Sender<u64>,
    has_purges: Notify,
    has_entry: Notify,
    has_advanced: Notify,
    /// The position that the engine knows of this node.
    known_position: watch::Sender<u64>,
    pub pages: Option<SharedPages>,
    /// Facts beside the protocol's own state.
    seen: Mutex<BusState>,
    leaves: watch::Sender<bool>,
    may_hold_lease: AtomicBool,
}

impl Member {
    pub fn new(
        settings: BusSettings,
        host: Arc<dyn NodeHost>,
        applied: Option<AppliedPurges<Epoch>>,
    ) -> io::Result<Member> {
        let times = LeaseTimes::of(settings.lease);
        let state = BusState {
            engine: settings.engine.to_string(),
            ..BusState::default()
        };
        Ok(Member {
            host,
            instance: random()?,
            node: Mutex::new(Node::new(times, applied, EveryRule)),
            lease_until: AtomicU64::new(0),
            outbox: Mutex::new(Outbox::new(settings.everything.clone())),
            confirmed: watch::Sender::new(0),
            has_purges: Notify::new(),
            has_entry: Notify::new(),
            has_advanced: Notify::new(),
            known_position: watch::Sender::new(0),
            pages: settings
                .page_key
                .as_deref()
                .and_then(NodeSeal::new)
                .map(|seal| SharedPages::new(seal, settings.name.clone())),
            seen: Mutex::new(state),
            leaves: watch::Sender::new(false),
            may_hold_lease: AtomicBool::new(true),
            settings,
        })
    }

    pub fn publish(&self, purge: Vec<u8>) -> u64 {
        let number = self.outbox.lock().add(purge);
        self.has_purges.notify_one();
        number
    }

    pub fn publish_merged(
        &self,
        entry: Vec<u8>,
        merge: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>,
    ) -> u64 {
        let number = self.outbox.lock().add_merged(entry, merge);
        self.has_purges.notify_one();
        number
    }

    pub fn leave(&self) {
        if let Some(applied) = self.applied_to_stored() {
            self.host.keep(&applied);
        }
        self.may_hold_lease.store(false, Ordering::SeqCst);
        self.lease_until.store(0, Ordering::SeqCst);
        self.leaves.send_replace(true);
    }

    pub fn state(&self) -> BusState {
        let mut state = self.seen.lock().clone();
        {
            let node = self.node.lock();
            let applied = node.applied();
            state.is_member = node.epoch().is_some();
            state.epoch = applied.map(|it| it.epoch.clone());
            state.position = applied.map_or(0, |it| it.position);
        }
        let until = self.lease_until.load(Ordering::Acquire);
        state.lease_left = (until > 0).then(|| until.cast_signed() - now().0.cast_signed());
        let outbox = self.outbox.lock();
        state.waiting = outbox.len() as u64;
        state.confirmed = outbox.confirmed();
        state
    }

    /// Runs as a node until it leaves.
    pub async fn run(&self) {
        let mut leaves = self.leaves.subscribe();
        let left = async {
            let _ = leaves.wait_for(|leaves| *leaves).await;
            // An engine that does not answer gets no message.
            sleep(LEAVE_TIMEOUT).await;
        };
        tokio::select! {
            () = self.connect_again_and_again() => {}
            () = self.watch_lease() => {}
            () = left => {}
        }
    }

    async fn connect_again_and_again(&self) {
        let mut pause = PAUSES.0;
        let mut logged: Option<BusError> = None;
        loop {
            let error = match self.session(&mut pause).await {
                Ok(RoundEnd::Left) => return,
                Ok(RoundEnd::JoinAgain) => BusError("it is joined again".to_owned()),
                Err(error) => error,
            };
            self.node.lock().leave();
            if let Some(pages) = &self.pages {
                pages.connected(None);
            }
            {
                let mut seen = self.seen.lock();
                seen.trouble = Some(error.0.clone());
                // A connection that was up had its own life: its errors are news. An expulsion is reported each time.
                if std::mem::take(&mut seen.is_connected) && error != expelled() {
                    logged = None;
                }
            }
            if logged.as_ref() != Some(&error) {
                self.host.tell(BusEvent::Trouble(error.0.clone()));
                logged = Some(error);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// From a connection to its end.
    async fn session(&self, pause: &mut Duration) -> Result<RoundEnd, BusError> {
        let engine = RedisEngine::connect(&self.settings, self.instance).await?;
        self.note_facts(&engine);
        if let Some(pages) = &self.pages {
            pages.connected(engine.calls_of_pages());
        }
        let mut leaves = self.leaves.subscribe();
        loop {
            self.join(&engine).await?;
            *pause = PAUSES.0;
            let end = tokio::select! {
                end = self.read(&engine) => end,
                end = self.renew(&engine) => end,
                end = self.send(&engine) => end,
                end = self.confirm(&engine) => end,
                _ = leaves.wait_for(|leaves| *leaves) => {
                    let _ = engine.leave().await;
                    Ok(RoundEnd::Left)
                }
            };
            match end? {
                RoundEnd::JoinAgain => self.node.lock().leave(),
                RoundEnd::Left => return Ok(RoundEnd::Left),
            }
            sleep(JOIN_PAUSE).await;
        }
    }

    fn note_facts(&self, engine: &RedisEngine) {
        let facts = engine.facts.clone();
        if facts.may_lose_log() {
            self.host.tell(BusEvent::Evicts(facts.eviction.clone()));
        }
        if self.pages.is_some() && facts.may_refuse_purges() {
            self.host.tell(BusEvent::FillsUp(facts.eviction.clone()));
        }
        let mut seen = self.seen.lock();
        seen.facts = facts;
        seen.trouble = None;
        seen.is_connected = true;
    }

    async fn join(&self, engine: &RedisEngine) -> Result<(), BusError> {
        let sent_at = now();
        let (call, epoch_before) = {
            let mut node = self.node.lock();
            let before = node.applied().map(|it| it.epoch.clone());
            (node.join(), before)
        };
        let Some(answer) = engine.join(&call, random()?).await? else {
            return Err(expelled());
        };
        let is_in_force = engine.is_in_force().await;
        if epoch_before.as_ref() != Some(&answer.epoch) {
            self.outbox.lock().publish_again();
        }
        let is_first = epoch_before.is_none();
        let effect = self.node.lock().joined(answer, is_in_force, sent_at, now());
        match effect {
            JoinEffect::Keep => {
                self.tell_advance(0);
                self.note_lease();
            }
            JoinEffect::Void { tip } => {
                let why = match is_first {
                    true => "it is not known which purges this node has missed",
                    false => "purges are missing in the log, or the engine has lost it",
                };
                self.void(why).await?;
                if self.pages.is_some() && !self.replay(engine, tip).await? {
                    self.void("the log has lost entries").await?;
                }
                self.has_applied(tip);
            }
            JoinEffect::Leave => return Err(not_in_force()),
        }
        Ok(())
    }

    /// Applies the entries that are still in the log: pages of others are compared with it, so that those can be used
    /// whose fetch began before this node joined. Whether all up to `tip` was there.
    async fn replay(&self, engine: &RedisEngine, tip: u64) -> Result<bool, BusError> {
        let Some(AppliedPurges { epoch, .. }) = self.applied() else {
            return Ok(false);
        };
        let mut position = None;
        while tip > position.unwrap_or_default() {
            let ReadEntries::Entries(entries, _) =
                engine.read(&epoch, position.unwrap_or_default()).await?
            else {
                return Ok(false);
            };
            let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
                return Ok(false);
            };
            // Before the first that is there, purges are not known.
            let before = position.unwrap_or(first.number.saturating_sub(1));
            let count = entries.len() as u64;
            if first.number != before + 1 || last.number != before + count {
                return Ok(false);
            }
            if position.is_none() {
                self.host.advanced(&epoch, before);
            }
            position = Some(last.number);
            self.apply_each(epoch.clone(), entries).await?;
        }
        Ok(true)
    }

    /// Reads the log and applies the others' purges: first with a script until there is nothing more, then as entries
    /// come.
    async fn read(&self, engine: &RedisEngine) -> Result<RoundEnd, BusError> {
        loop {
            let Some(AppliedPurges { epoch, position }) = self.applied() else {
                return Ok(RoundEnd::JoinAgain);
            };
            match engine.read(&epoch, position).await? {
                ReadEntries::OtherEpoch => return Ok(RoundEnd::JoinAgain),
                ReadEntries::Entries(entries, tip) if entries.is_empty() && tip > position => {
                    self.void("the log has lost entries").await?;
                    self.has_applied(tip);
                }
                ReadEntries::Entries(entries, _) if entries.is_empty() => {
                    self.read_as_they_come(engine, &epoch, position).await?;
                }
                ReadEntries::Entries(entries, _) => {
                    self.apply(entries).await?;
                }
            }
        }
    }

    /// Applies entries of this epoch until none comes for a while.
    async fn read_as_they_come(
        &self,
        engine: &RedisEngine,
        epoch: &Epoch,
        mut position: u64,
    ) -> Result<(), BusError> {
        loop {
            let entries = engine.wait_for_entries(epoch, position).await?;
            match self.apply(entries).await? {
                Some(last) => position = last,
                None => return Ok(()),
            }
        }
    }

    /// The number of the last entry.
    async fn apply(&self, entries: Vec<LogEntry>) -> Result<Option<u64>, BusError> {
        let Some(last) = entries.last().map(|entry| entry.number) else {
            return Ok(None);
        };
        let mut before = None;
        let mut is_whole = true;
        for LogEntry { number, .. } in &entries {
            is_whole &= match before {
                None => self.node.lock().entry(*number) != LogEntryEffect::VoidAndApply,
                Some(before) => *number == before + 1,
            };
            before = Some(*number);
        }
        if !is_whole {
            self.void("entries are missing in the log").await?;
        }
        let is_of_another = |entry: &LogEntry| entry.instance != self.instance;
        let of_others = entries.iter().filter(|entry| is_of_another(entry)).count();
        match self.applied().filter(|_| self.pages.is_some()) {
            Some(applied) => self.apply_each(applied.epoch, entries).await?,
            // Purges of this node are applied before they are published.
            None if of_others > 0 => {
                let others = entries.into_iter().filter(is_of_another);
                let purges: Vec<Vec<u8>> = others.map(|entry| entry.purge).collect();
                let host = self.host.clone();
                blocking(move || host.apply(&purges)).await?;
            }
            None => {}
        }
        self.seen.lock().applied += of_others as u64;
        self.has_applied(last);
        Ok(Some(last))
    }

    /// Applies entries one after the other, and reports each position if pages are shared. Entries of this node count
    /// too, since a page that another node has fetched before such an entry may have been taken since.
    async fn apply_each(&self, epoch: Epoch, entries: Vec<LogEntry>) -> Result<(), BusError> {
        let host = self.host.clone();
        blocking(move || {
            for LogEntry { number, purge, .. } in entries {
                host.apply(&[purge]);
                host.advanced(&epoch, number);
            }
        })
        .await
    }

    /// Renews the lease, and reports the position of this node.
    async fn renew(&self, engine: &RedisEngine) -> Result<RoundEnd, BusError> {
        let each = Duration::from_millis(self.node.lock().times().renew_each());
        let (mut kept, mut keep_from) = (None, Instant::now());
        loop {
            let sent_at = now();
            let Some(call) = self.node.lock().renew() else {
                return Ok(RoundEnd::JoinAgain);
            };
            let asked_at = Instant::now();
            let (answer, tip, nodes) = engine.renew(&call).await?;
            let renewal = asked_at.elapsed();
            let is_in_force = engine.is_in_force().await;
            self.node
                .lock()
                .renewed(&call.epoch, answer, is_in_force, sent_at, now());
            if !is_in_force {
                return Err(not_in_force());
            }
            if answer == RenewAnswer::NotMember {
                return Ok(RoundEnd::JoinAgain);
            }
            {
                let mut seen = self.seen.lock();
                (seen.tip, seen.nodes) = (tip, nodes);
                seen.renewal = Some(renewal);
            }
            self.known_position.send_replace(call.position);
            self.note_lease();
            if Instant::now() >= keep_from
                && let Some(applied) = self.applied_to_stored()
                && kept.as_ref() != Some(&applied)
            {
                self.host.keep(&applied);
                (kept, keep_from) = (Some(applied), Instant::now() + KEEP_EACH);
            }
            let _ = timeout(each, self.has_advanced.notified()).await;
        }
    }

    /// Publishes the purges of this node.
    async fn send(&self, engine: &RedisEngine) -> Result<RoundEnd, BusError> {
        let mut earliest = Instant::now();
        let mut timer = FineTimer::new()?;
        loop {
            if !self.outbox.lock().has_unpublished() {
                self.has_purges.notified().await;
            }
            timer
                .sleep(earliest.saturating_duration_since(Instant::now()))
                .await?;
            let to_publish = self.outbox.lock().take_to_publish();
            let Some((number, purges)) = to_publish else {
                continue;
            };
            earliest = Instant::now() + publish_pause(self.seen.lock().nodes);
            let Some(AppliedPurges { epoch, .. }) = self.applied() else {
                return Ok(RoundEnd::JoinAgain);
            };
            match engine.publish(&epoch, &purges).await? {
                PublishAnswer::OtherEpoch => return Ok(RoundEnd::JoinAgain),
                PublishAnswer::Published(entry) => self.outbox.lock().published(number, entry),
            }
            self.has_entry.notify_one();
        }
    }

    /// Asks whether the published purges hold on all nodes: for all of them at once, so that no purge waits for the
    /// confirmation of one before it.
    async fn confirm(&self, engine: &RedisEngine) -> Result<RoundEnd, BusError> {
        let Some(AppliedPurges { epoch, .. }) = self.applied() else {
            return Ok(RoundEnd::JoinAgain);
        };
        let mut newest = Confirmation::new(epoch, 0);
        let mut stuck = StuckNodes::default();
        let mut position_seen = self.known_position.subscribe();
        let mut timer = FineTimer::new()?;
        let (mut first, mut asked) = (0, 0);
        loop {
            let waiting = {
                let outbox = self.outbox.lock();
                outbox.first_entry().zip(outbox.last_entry())
            };
            let Some((next, last)) = waiting else {
                self.has_entry.notified().await;
                continue;
            };
            match next == first {
                true => {
                    timer.sleep(confirm_pause(asked)).await?;
                    asked += 1;
                }
                // Before that this node would be the one that is missing. The others hear of an entry when it does.
                false => {
                    (first, asked) = (next, 0);
                    let has_come = position_seen.wait_for(|position| *position >= next);
                    let _ = timeout(OWN_POSITION_TIMEOUT, has_come).await;
                }
            }
            newest.raise(last);
            let by_all = match self.ask_once(engine, &mut newest, &mut stuck).await? {
                ConfirmationState::Confirmed => newest.entry(),
                ConfirmationState::Waiting(by_all) => by_all,
                ConfirmationState::JoinFirst => return Ok(RoundEnd::JoinAgain),
                ConfirmationState::PublishAgain => {
                    self.outbox.lock().publish_again();
                    return Ok(RoundEnd::JoinAgain);
                }
            };
            let mut outbox = self.outbox.lock();
            outbox.confirm(by_all);
            self.confirmed.send_replace(outbox.confirmed());
        }
    }

    async fn ask_once(
        &self,
        engine: &RedisEngine,
        purge: &mut Confirmation<Epoch>,
        stuck: &mut StuckNodes,
    ) -> Result<ConfirmationState, BusError> {
        let call = purge.call(&self.node.lock(), now());
        let Some(call) = call else {
            return Ok(ConfirmationState::Waiting(0));
        };
        let answer = engine.confirm(&call).await?;
        if let ConfirmAnswer::Missing(missing) = &answer
            && let Some(instance) = stuck.note(missing, Instant::now())
        {
            let name = engine.name_of(instance).await?;
            self.host.tell(BusEvent::Stuck(name));
        }
        let is_in_force = engine.is_in_force().await;
        let state = purge.answered(&answer, is_in_force, &self.node.lock(), now());
        if !is_in_force {
            self.outbox.lock().publish_again();
            return Err(not_in_force());
        }
        Ok(state)
    }

    fn applied(&self) -> Option<AppliedPurges<Epoch>> {
        self.node.lock().applied().cloned()
    }

    /// Returns the position up to which purges are applied here, while this node is a member.
    pub fn applied_as_member(&self) -> Option<AppliedPurges<Epoch>> {
        let node = self.node.lock();
        node.epoch()?;
        node.applied().cloned()
    }

    fn tell_advance(&self, number: u64) {
        if self.pages.is_some()
            && let Some(AppliedPurges { epoch, position }) = self.applied()
        {
            self.host.advanced(&epoch, position.max(number));
        }
    }

    /// Returns the epoch and the position up to which all purges are applied to stored pages; `None` before that is
    /// known.
    pub fn applied_to_stored(&self) -> Option<AppliedPurges<Epoch>> {
        self.node.lock().applied_to_stored().cloned()
    }

    fn has_applied(&self, number: u64) {
        self.tell_advance(number);
        self.node.lock().has_applied(number);
        self.note_lease();
        self.has_advanced.notify_one();
    }

    /// The lease as requests see it.
    fn note_lease(&self) {
        let node = self.node.lock();
        let until = match self.may_hold_lease.load(Ordering::SeqCst) {
            true => node.lease_until().0,
            false => 0,
        };
        self.lease_until.store(until, Ordering::Release);
    }

    async fn void(&self, why: &'static str) -> Result<(), BusError> {
        let host = self.host.clone();
        blocking(move || host.void()).await?;
        self.seen.lock().voided += 1;
        self.host.tell(BusEvent::Void(why));
        Ok(())
    }

    /// Reports leases that are held and lost.
    async fn watch_lease(&self) {
        let mut held = false;
        loop {
            let holds = now().0 < self.lease_until.load(Ordering::Acquire);
            if holds != held {
                held = holds;
                let event = match holds {
                    true => BusEvent::LeaseHeld,
                    false => {
                        let mut seen = self.seen.lock();
                        seen.leases_lost += 1;
                        BusEvent::LeaseLost(seen.trouble.clone())
                    }
                };
                self.host.tell(event);
            }
            sleep(WATCH_EACH).await;
        }
    }
}

fn publish_pause(nodes: u64) -> Duration {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    PUBLISH_EACH.max(PUBLISH_EACH_OF_NODE.saturating_mul(nodes))
}

fn confirm_pause(asked: u32) -> Duration {
    let known = CONFIRM_PAUSES.iter().find(|(until, _)| asked < *until);
    known.map_or(JOIN_PAUSE, |(_, pause)| *pause)
}

fn not_in_force() -> BusError {
    BusError("a majority of the Sentinels does not name this engine any more".to_owned())
}

fn expelled() -> BusError {
    BusError("an administrator has expelled this node: restart the server".to_owned())
}

async fn blocking(work: impl FnOnce() + Send + 'static) -> Result<(), BusError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| BusError("a purge could not be applied".to_owned()))
}

/// A reading of the clock that goes on while the machine sleeps.
fn now() -> BootMillis {
    BootMillis(clock::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_publish_more_seldom() {
        let pause = |nodes| publish_pause(nodes).as_micros();
        assert_eq!([0, 3, 10, 50].map(pause), [2400, 2400, 2400, 10_000]);
    }

    #[test]
    fn a_node_that_renews_without_advancing_is_told_of_once() {
        let mut stuck = StuckNodes::default();
        let began = Instant::now();
        let mut note = |position, beat, after| {
            let (instance, now) = (7, began + after);
            let node = MissingNode {
                instance,
                beat,
                position,
            };
            stuck.note(&[node], now)
        };
        let seconds = Duration::from_secs;
        assert_eq!(note(0, 1, seconds(0)), None);
        assert_eq!(note(3, 1, STUCK_AFTER), None, "it advances");
        let later = |after| STUCK_AFTER + after;
        assert_eq!(note(3, 2, later(seconds(1))), None, "it may come to it yet");
        assert_eq!(note(3, 1, later(STUCK_AFTER)), None, "it is dead");
        assert_eq!(note(3, 9, later(STUCK_AFTER)), Some(7));
        assert_eq!(note(3, 10, later(2 * STUCK_AFTER)), None, "told");
    }
}
