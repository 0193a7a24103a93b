//! Responses whose guard decides whether they may be shown.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::*;
use crate::{Guard, GuardVerdict, PurgeListener, StaleReason, UseStale, may_serve_stale};

/// A guard with a settable verdict, which counts how often its fetch began.
#[derive(Debug, Clone, Default)]
struct SwitchedGuard(Arc<(AtomicU8, AtomicUsize)>);

impl SwitchedGuard {
    fn say(&self, verdict: GuardVerdict) {
        self.0.0.store(verdict as u8, Relaxed);
    }

    /// For visitors it is outdated until it is decided.
    fn leave_open(&self) {
        self.0.0.store(OPEN, Relaxed);
    }

    fn begun(&self) -> usize {
        self.0.1.load(Relaxed)
    }
}

impl Guard for SwitchedGuard {
    fn begin(&self) {
        self.0.1.fetch_add(1, Relaxed);
        self.say(GuardVerdict::Good);
    }

    fn verdict(&self, _: Millis) -> GuardVerdict {
        match self.0.0.load(Relaxed) {
            0 => GuardVerdict::Good,
            1 => GuardVerdict::Unknown,
            _ => GuardVerdict::Outdated,
        }
    }

    fn is_over(&self, now: Millis) -> bool {
        self.0.0.load(Relaxed) != OPEN && self.verdict(now) == GuardVerdict::Outdated
    }
}

const OPEN: u8 = 9;

/// A guard that holds followers until it is given a verdict.
#[derive(Debug, Clone, Default)]
struct HoldingGuard(Arc<(Mutex<Option<GuardVerdict>>, Notify)>);

impl HoldingGuard {
    fn say(&self, verdict: GuardVerdict) {
        *self.0.0.lock() = Some(verdict);
        self.0.1.notify_waiters();
    }
}

impl Guard for HoldingGuard {
    fn begin(&self) {}

    fn verdict(&self, _: Millis) -> GuardVerdict {
        self.0.0.lock().unwrap_or(GuardVerdict::Pending)
    }

    fn holds_followers(&self) -> bool {
        true
    }

    fn decided(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            self.0.1.notified().await;
            *self.0.0.lock() == Some(GuardVerdict::Good)
        })
    }
}

fn lead_held(client: &Client<'_>) -> (Leader, HoldingGuard) {
    let (leader, guard) = (client.lead(), HoldingGuard::default());
    leader.set_guard(Box::new(guard.clone()));
    leader.progress().under_way(T0);
    (leader, guard)
}

fn lead(client: &Client<'_>) -> (Leader, SwitchedGuard) {
    let (leader, guard) = (client.lead(), SwitchedGuard::default());
    leader.set_guard(Box::new(guard.clone()));
    (leader, guard)
}

fn stored(client: &Client<'_>) -> (Arc<StoredResponse>, SwitchedGuard) {
    let (leader, guard) = lead(client);
    let stored = publish(leader, SECOND, &[], None).complete(T0);
    (stored.expect("stored"), guard)
}

#[test]
fn a_fetch_is_joined_only_while_nothing_has_changed_since_it_was_sent() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (leader, guard) = lead(&client);
    let _early = client.follow();
    // Until it is sent, and while it stands in line, it will read what is there then.
    guard.say(GuardVerdict::Outdated);
    assert!(matches!(client.join(), Join::Follow(_)));
    leader.progress().in_line();
    assert!(matches!(client.join(), Join::Follow(_)));
    leader.progress().under_way(T0);
    assert_eq!(guard.begun(), 1);
    assert!(matches!(client.join(), Join::Follow(_)));
    for verdict in [GuardVerdict::Unknown, GuardVerdict::Outdated] {
        guard.say(verdict);
        assert!(matches!(client.join(), Join::After(_)), "{verdict:?}");
    }
}

#[test]
fn held_followers_wait_until_the_response_is_stored_and_its_guard_has_decided() {
    for verdict in [GuardVerdict::Good, GuardVerdict::Outdated] {
        let zone = zone();
        let client = Client::new(&zone, &[]);
        let (leader, guard) = lead_held(&client);
        let mut follower = client.follow();
        let mut filling = publish(leader, SECOND, &[], None);
        let mut own = filling.reader();
        filling.push(part("one "), T0);
        assert_eq!(read(&mut own), ("one ".into(), None));
        assert!(client.wait(&mut follower).is_none());
        let mut late = client.follow();
        filling.complete(T0).expect("stored");
        for follower in [&mut follower, &mut late] {
            let Some(FollowerOutcome::Complete(stored)) = client.wait(follower) else {
                panic!("it is there");
            };
            let mut is_for_it = pin!(zone.is_for_followers(&stored, T0));
            assert_eq!(now(is_for_it.as_mut()), None);
            guard.say(verdict);
            assert_eq!(now(is_for_it), Some(verdict == GuardVerdict::Good));
            *guard.0.0.lock() = None;
        }
    }
}

#[test]
fn held_followers_of_a_response_that_is_not_stored_look_again() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (leader, _guard) = lead_held(&client);
    let mut follower = client.follow();
    let mut filling = publish(leader, SECOND, &[], None);
    filling.share_only(Reason::MinUses);
    filling.complete(T0).expect_err("not stored");
    let outcome = client.wait(&mut follower);
    assert!(matches!(outcome, Some(FollowerOutcome::LeftOut)));
}

#[test]
fn a_response_whose_guard_has_not_decided_is_neither_shown_nor_fetched_again() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (leader, guard) = lead_held(&client);
    let filling = publish(leader, SECOND, &[], None);
    let before = client.not_fresh();
    filling.complete(T0).expect("stored");
    assert!(matches!(client.collapse(&before), Join::Pending));
    let found = client.not_fresh();
    let mut decided = pin!(found.decided());
    assert_eq!(now(decided.as_mut()), None);
    guard.say(GuardVerdict::Good);
    assert_eq!(now(decided), Some(true));
    assert!(matches!(client.find(), FoundResponse::Fresh(_)));
}

#[test]
fn a_sweep_leaves_what_is_not_decided() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (_stored, guard) = stored(&client);
    guard.leave_open();
    assert_eq!(zone.sweep(T0, usize::MAX).removed, 0);
    guard.say(GuardVerdict::Outdated);
    assert_eq!(zone.sweep(T0, usize::MAX).removed, 1);
}

#[test]
fn after_a_change_one_fetch_follows_the_other_for_all_who_came_meanwhile() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (leader, guard) = lead(&client);
    leader.progress().under_way(T0);
    guard.say(GuardVerdict::Outdated);
    let (Join::After(first), Join::After(_second)) = (client.join(), client.join()) else {
        panic!("they wait until it is over");
    };
    assert_eq!(now(first.ended()), None);
    publish(leader, SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    assert_eq!(now(first.ended()), Some(FlightEnd::Over));
    let later = zone.collapse_later(&client.request(), T0);
    let LaterJoin::Lead(next) = later else {
        panic!("the first to look leads");
    };
    next.set_guard(Box::new(SwitchedGuard::default()));
    let later = zone.collapse_later(&client.request(), T0);
    assert!(matches!(later, LaterJoin::Follow(_)));
    // One that came since joins it as well.
    assert!(matches!(client.join(), Join::Follow(_)));
}

#[test]
fn a_refresh_in_the_background_is_not_begun_twice_for_a_change() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    publish(client.lead(), SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    let later = Client {
        now: T0.plus(Duration::from_secs(2)),
        ..Client::new(&zone, &[])
    };
    let found = later.not_fresh();
    let leader = zone
        .refresh(&later.request(), &found)
        .expect("it refreshes");
    let guard = SwitchedGuard::default();
    leader.set_guard(Box::new(guard.clone()));
    guard.say(GuardVerdict::Outdated);
    assert!(zone.refresh(&later.request(), &found).is_none());
}

#[test]
fn each_lookup_asks_the_guard() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (_, guard) = stored(&client);
    for _ in 0..3 {
        assert!(matches!(client.find(), FoundResponse::Fresh(_)));
    }
    guard.say(GuardVerdict::Outdated);
    assert!(matches!(client.not_fresh().kind, NotFreshKind::Miss));
    guard.say(GuardVerdict::Good);
    assert!(matches!(client.find(), FoundResponse::Fresh(_)));
    // Without an answer it stands in for a fetch that failed, and for no other.
    guard.say(GuardVerdict::Unknown);
    let found = client.not_fresh();
    let (_, info) = found.stale().expect("it is kept");
    let all = UseStale {
        updating: true,
        error: true,
        ..UseStale::default()
    };
    assert!(may_serve_stale(StaleReason::Error, &all, info));
    assert!(!may_serve_stale(StaleReason::Updating, &all, info));
}

#[test]
fn a_kept_response_is_fresh_beyond_its_lifetime_until_its_guard_or_a_purge_ends_it() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (response, guard) = stored(&client);
    let until = T0.plus(Duration::from_secs(3600));
    let later = Client {
        now: T0.plus(Duration::from_secs(3599)),
        ..Client::new(&zone, &[])
    };
    assert!(!matches!(later.find(), FoundResponse::Fresh(_)));
    assert!(zone.keep(&client.key.as_ref(), &response, until));
    assert!(matches!(later.find(), FoundResponse::Fresh(_)));
    assert!(
        !zone.keep(&client.key.as_ref(), &response, until),
        "it is another one by now"
    );
    guard.say(GuardVerdict::Outdated);
    assert!(matches!(later.not_fresh().kind, NotFreshKind::Miss));
    assert_eq!(zone.sweep(T0, 1000).removed, 1);

    let (response, _guard) = stored(&client);
    assert!(zone.keep(&client.key.as_ref(), &response, until));
    zone.purge(
        PurgeTarget::Key(client.key.as_ref()),
        PurgeMode::Soft,
        T0.plus(Duration::from_secs(1)),
    );
    assert!(!matches!(later.find(), FoundResponse::Fresh(_)));

    let unguarded = publish(later.lead(), SECOND, &[], None).complete(T0);
    let unguarded = unguarded.expect("stored");
    assert!(!zone.keep(&client.key.as_ref(), &unguarded, until));
}

struct Nobody;

impl PurgeListener for Nobody {
    fn purged(&self, _: &str, _: PurgeTarget<'_>, _: PurgeMode) {}
}

#[test]
fn what_was_fetched_before_the_end_of_another_process_is_not_shown_by_its_guard() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let (_before, _) = stored(&client);
    zone.begin_beside(Arc::new(Nobody));
    assert!(zone.is_beside_another());
    assert!(matches!(client.not_fresh().kind, NotFreshKind::Miss));
    let (_meanwhile, _) = stored(&client);
    assert!(matches!(client.not_fresh().kind, NotFreshKind::Miss));
    let (under_way, _) = lead(&client);
    zone.end_beside();
    assert!(!zone.trusts_guards(), "its PHP may still write");
    assert!(matches!(client.not_fresh().kind, NotFreshKind::Miss));
    zone.trust_guards();
    assert!(zone.trusts_guards());
    publish(under_way, SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    assert!(matches!(client.not_fresh().kind, NotFreshKind::Miss));
    let (_after, _) = stored(&client);
    assert!(matches!(client.find(), FoundResponse::Fresh(_)));
}

/// Says that it is asked, and answers once it is let.
#[derive(Debug)]
struct SlowGuard {
    asked: Sender<()>,
    answers: Mutex<Receiver<GuardVerdict>>,
}

/// The other end of a [`SlowGuard`].
struct SlowGuardHandle {
    asked: Receiver<()>,
    answer: Sender<GuardVerdict>,
}

/// Only a test that fails waits for that long.
const FAILS_AFTER: Duration = Duration::from_secs(60);

impl SlowGuard {
    fn new() -> (SlowGuard, SlowGuardHandle) {
        let ((asked, is_asked), (answer, answers)) = (channel(), channel());
        let guard = SlowGuard {
            asked,
            answers: Mutex::new(answers),
        };
        let handle = SlowGuardHandle {
            asked: is_asked,
            answer,
        };
        (guard, handle)
    }
}

impl Guard for SlowGuard {
    fn begin(&self) {}

    fn verdict(&self, _: Millis) -> GuardVerdict {
        self.asked.send(()).expect("a test");
        let answer = self.answers.lock().recv_timeout(FAILS_AFTER);
        answer.expect("an answer")
    }
}

/// All keys are in one shard.
fn one_shard() -> Arc<Zone> {
    Zone::new(ZoneConfig {
        shards: 1,
        ..ZoneConfig::default()
    })
}

#[test]
fn other_keys_of_a_shard_are_looked_up_stored_and_purged_while_a_guard_is_asked() {
    let zone = one_shard();
    let (client, (guard, handle)) = (Client::new(&zone, &[]), SlowGuard::new());
    let leader = client.lead();
    leader.set_guard(Box::new(guard));
    publish(leader, SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    let other = Client {
        key: key("/other"),
        ..Client::new(&zone, &[])
    };
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| client.find());
        handle.asked.recv_timeout(FAILS_AFTER).expect("it is asked");
        publish(other.lead(), SECOND, &[], None)
            .complete(T0)
            .expect("stored");
        assert!(matches!(other.find(), FoundResponse::Fresh(_)));
        zone.purge(
            PurgeTarget::Key(other.key.as_ref()),
            PurgeMode::Hard,
            other.now,
        );
        assert!(matches!(other.not_fresh().kind, NotFreshKind::Miss));
        handle.answer.send(GuardVerdict::Good).expect("it waits");
        let found = asking.join().expect("a lookup");
        assert!(matches!(found, FoundResponse::Fresh(_)));
    });
}

#[test]
fn a_purge_while_a_guard_is_asked_counts_and_one_before_needs_no_answer() {
    for (target, is_seen) in [
        (PurgeTarget::Everything, true),
        // It leaves the shard, from which the lookup has taken it before.
        (PurgeTarget::Key(key("/").as_ref()), false),
    ] {
        let zone = one_shard();
        let (client, (guard, handle)) = (Client::new(&zone, &[]), SlowGuard::new());
        let leader = client.lead();
        leader.set_guard(Box::new(guard));
        publish(leader, SECOND, &[], None)
            .complete(T0)
            .expect("stored");
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| client.find());
            handle.asked.recv_timeout(FAILS_AFTER).expect("it is asked");
            zone.purge(target, PurgeMode::Hard, client.now);
            handle.answer.send(GuardVerdict::Good).expect("it waits");
            let found = asking.join().expect("a lookup");
            assert_eq!(matches!(found, FoundResponse::NotFresh(_)), is_seen);
        });
        // The guard is not asked any more: it would wait for an answer.
        assert!(matches!(client.not_fresh().kind, NotFreshKind::Miss));
    }
}

#[test]
fn other_keys_are_fetched_while_the_guard_of_a_fetch_is_asked() {
    let zone = one_shard();
    let (client, (guard, handle)) = (Client::new(&zone, &[]), SlowGuard::new());
    let leader = client.lead();
    leader.set_guard(Box::new(guard));
    leader.progress().under_way(T0);
    let other = Client {
        key: key("/other"),
        ..Client::new(&zone, &[])
    };
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| client.join());
        handle.asked.recv_timeout(FAILS_AFTER).expect("it is asked");
        let _led = other.lead();
        handle.answer.send(GuardVerdict::Good).expect("it waits");
        assert!(matches!(asking.join(), Ok(Join::Follow(_))));

        // The fetch ends while its guard is asked, and its response is found.
        let asking = scope.spawn(|| client.join());
        handle.asked.recv_timeout(FAILS_AFTER).expect("it is asked");
        publish(leader, SECOND, &[], None)
            .complete(T0)
            .expect("stored");
        handle.answer.send(GuardVerdict::Good).expect("it waits");
        assert!(matches!(asking.join(), Ok(Join::Fresh(_))));
    });
}
