//! Collapsing as scripts: each test is a short story of leaders and followers on one thread.

use super::*;
use crate::testing::{T0, fields, key, storable};
use crate::{CacheKey, Field, PurgeMode, PurgeTarget, ResponseHead, Storable, ZoneConfig};
use bytes::Bytes;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

fn zone() -> Arc<Zone> {
    zone_with(1 << 20)
}

fn zone_with(max_response_bytes: u64) -> Arc<Zone> {
    Zone::new(ZoneConfig {
        max_response_bytes,
        shards: 2,
        ..ZoneConfig::default()
    })
}

struct Client<'a> {
    zone: &'a Arc<Zone>,
    key: CacheKey,
    fields: Vec<Field>,
    now: Millis,
    lock_age: Option<Duration>,
    group: Option<u64>,
}

impl<'a> Client<'a> {
    fn new(zone: &'a Arc<Zone>, lines: &[&str]) -> Client<'a> {
        Client {
            zone,
            key: key("/"),
            fields: fields(lines),
            now: T0,
            lock_age: None,
            group: None,
        }
    }

    fn request(&self) -> JoinRequest<'_> {
        let (key, fields, now) = (self.key.as_ref(), &self.fields, self.now);
        JoinRequest {
            key,
            fields,
            now,
            lock_age: self.lock_age,
            group: self.group,
            address: b"",
            came_at: self.zone.stamp(),
            may_have_tags: false,
            urgency: Urgency::Page,
            expects: None,
        }
    }

    fn find(&self) -> FoundResponse {
        self.zone.find(&self.key.as_ref(), &self.fields, self.now)
    }

    fn not_fresh(&self) -> NotFresh {
        match self.find() {
            FoundResponse::NotFresh(found) => found,
            FoundResponse::Fresh(response) => panic!("not fresh, not {response:?}"),
        }
    }

    fn collapse(&self, found: &NotFresh) -> Join {
        self.zone.collapse(&self.request(), found)
    }

    /// Looks, and plays its part.
    fn join(&self) -> Join {
        match self.find() {
            FoundResponse::Fresh(response) => Join::Fresh(response),
            FoundResponse::NotFresh(found) => self.collapse(&found),
        }
    }

    fn refresh(&self) -> Option<Leader> {
        self.zone.refresh(&self.request(), &self.not_fresh())
    }

    fn lead(&self) -> Leader {
        match self.join() {
            Join::Lead(leader) => leader,
            other => panic!("leads, not {other:?}"),
        }
    }

    fn follow(&self) -> Follower {
        match self.join() {
            Join::Follow(follower) => follower,
            other => panic!("follows, not {other:?}"),
        }
    }

    fn wait(&self, follower: &mut Follower) -> Option<FollowerOutcome> {
        now(follower.wait(&self.fields))
    }

    fn stream(&self, follower: &mut Follower) -> Reader {
        match self.wait(follower) {
            Some(FollowerOutcome::Streaming(reader)) => reader,
            other => panic!("streams, not {other:?}"),
        }
    }
}

/// What a future gives at once.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn publish(
    leader: Leader,
    lines: &[&str],
    request: &[Field],
    declared: Option<u64>,
) -> ArrivingResponse {
    let storable = storable(lines, request);
    let fields = fields(lines);
    let reason = Bytes::new();
    let head = ResponseHead {
        status: 200,
        reason: &reason,
        fields: &fields,
        declared_length: declared,
    };
    leader.publish_head(&head, &storable, T0)
}

const SECOND: &[&str] = &["Cache-Control: max-age=1"];

/// Reads what there is: the bytes, and how it ended (None: not yet).
fn read(reader: &mut Reader) -> (String, Option<Result<(), TruncatedResponse>>) {
    let mut text = String::new();
    loop {
        match now(reader.next_chunk()) {
            Some(Ok(Some(bytes))) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Some(Ok(None)) => return (text, Some(Ok(()))),
            Some(Err(truncated)) => return (text, Some(Err(truncated))),
            None => return (text, None),
        }
    }
}

fn part(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn followers_read_the_body_while_it_arrives() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let mut early = client.follow();
    assert!(client.wait(&mut early).is_none());
    let mut filling = publish(leader, SECOND, &[], None);
    let mut own = filling.reader();
    assert_eq!(filling.push(part("one "), T0), PushResult::Kept);
    let mut early = client.stream(&mut early);
    assert_eq!(early.head().status, 200);
    assert_eq!(read(&mut early), ("one ".into(), None));
    let mut late = client.stream(&mut client.follow());
    filling.push(part("two"), T0);
    let stored = filling.complete(T0).expect("stored");
    assert_eq!(read(&mut early), ("two".into(), Some(Ok(()))));
    assert_eq!(read(&mut late), ("one two".into(), Some(Ok(()))));
    assert_eq!(read(&mut own), ("one two".into(), Some(Ok(()))));
    assert!(Arc::ptr_eq(&stored, &own.stored().expect("stored")));
    assert!(matches!(client.join(), Join::Fresh(_)));
    assert_eq!(zone.stats().in_flight, 0);
}

#[test]
fn what_is_fetched_for_a_group_counts_against_it() {
    let zone = zone();
    let client = Client {
        group: Some(7),
        ..Client::new(&zone, &[])
    };
    let filling = publish(client.lead(), SECOND, &[], None);
    assert_eq!(filling.complete(T0).expect("stored").group, Some(7));
}

#[test]
fn a_response_that_may_not_be_shared_frees_all_followers_and_is_remembered() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let mut followers: Vec<Follower> = (0..100).map(|_| client.follow()).collect();
    leader.not_shareable(Reason::SetCookie, Duration::from_secs(2), T0);
    for follower in &mut followers {
        let freed = client.wait(follower);
        assert!(matches!(
            freed,
            Some(FollowerOutcome::NotShareable(Reason::SetCookie))
        ));
    }
    assert!(matches!(
        client.join(),
        Join::Alone(AloneReason::NotShareable(Reason::SetCookie))
    ));
    let later = Client {
        now: T0.plus(Duration::from_secs(2)),
        ..Client::new(&zone, &[])
    };
    later.lead();
}

#[test]
fn a_leader_that_dies_releases_everybody_and_one_takes_over() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let mut follower = {
        let _leader = client.lead();
        client.follow()
    };
    assert!(matches!(
        client.wait(&mut follower),
        Some(FollowerOutcome::Failed(502))
    ));
    let _next = client.lead();
    client.follow();
}

#[test]
fn a_filling_that_dies_truncates_its_readers_and_stores_nothing() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let mut filling = publish(client.lead(), SECOND, &[], None);
    let mut reader = client.stream(&mut client.follow());
    filling.push(part("half"), T0);
    drop(filling);
    assert_eq!(
        read(&mut reader),
        ("half".into(), Some(Err(TruncatedResponse)))
    );
    client.lead();
    assert_eq!(zone.stats().stored, 0);
}

#[test]
fn a_filling_that_is_shared_only_reaches_its_readers_and_is_not_stored() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let mut filling = publish(client.lead(), SECOND, &[], Some(5));
    let mut reader = client.stream(&mut client.follow());
    filling.push(part("whole"), T0);
    filling.share_only(Reason::ExcessData);
    assert_eq!(filling.complete(T0).err(), Some(Reason::ExcessData));
    assert_eq!(read(&mut reader), ("whole".into(), Some(Ok(()))));
    client.lead();
    assert_eq!(zone.stats().stored, 0);
}

#[test]
fn a_body_of_another_length_than_declared_is_truncated() {
    for declared in [3, 5] {
        let zone = zone();
        let client = Client::new(&zone, &[]);
        let mut filling = publish(client.lead(), SECOND, &[], Some(declared));
        let mut reader = filling.reader();
        filling.push(part("four"), T0);
        assert_eq!(filling.complete(T0).map(drop), Err(Reason::Truncated));
        assert_eq!(read(&mut reader).1, Some(Err(TruncatedResponse)));
    }
}

#[test]
fn a_leader_without_progress_lets_one_more_lead() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let _stuck = client.lead();
    let age = |millis| Client {
        now: T0.plus(Duration::from_millis(millis)),
        lock_age: Some(Duration::from_secs(5)),
        ..Client::new(&zone, &[])
    };
    age(4999).follow();
    let _second = age(5000).lead();
    age(9999).follow();
    let _third = age(10_000).lead();
    drop(_stuck);
    age(10_001).follow();
}

#[test]
fn waiting_in_line_for_the_upstream_is_not_slowness() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let age = |millis| Client {
        now: T0.plus(Duration::from_millis(millis)),
        lock_age: Some(Duration::from_secs(5)),
        ..Client::new(&zone, &[])
    };
    leader.progress().in_line();
    let follower = age(60_000).follow();
    assert_eq!(follower.last_progress(), None);
    let sent = T0.plus(Duration::from_secs(61));
    leader.progress().under_way(sent);
    assert_eq!(follower.last_progress(), Some(sent));
    age(65_999).follow();
    let _second = age(66_000).lead();
}

#[test]
fn a_fetch_is_deserted_when_its_leader_and_all_followers_have_left() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let (first, progress) = (leader.waiting_request(), leader.progress());
    let mut second = client.follow();
    assert!(client.wait(&mut second).is_none());
    drop(first);
    assert_eq!(now(progress.deserted()), None);
    drop(second);
    assert_eq!(now(progress.deserted()), Some(()));
    // Another comes before the leader has seen it.
    let mut third = client.follow();
    assert!(!progress.is_deserted());
    leader.left_out();
    let outcome = client.wait(&mut third);
    assert!(matches!(outcome, Some(FollowerOutcome::LeftOut)));

    let leader = client.lead();
    leader.waiting_request().keep_fetching();
    drop(client.follow());
    assert!(!leader.progress().is_deserted());
}

#[test]
fn followers_that_select_another_variant_go_their_own_way() {
    let zone = zone();
    let de = Client::new(&zone, &["Accept-Language: de"]);
    let en = Client::new(&zone, &["Accept-Language: en"]);
    let leader = de.lead();
    let (mut same, mut other) = (de.follow(), en.follow());
    let lines = &["Cache-Control: max-age=1", "Vary: Accept-Language"];
    let filling = publish(leader, lines, &de.fields, None);
    de.stream(&mut same);
    assert!(matches!(
        en.wait(&mut other),
        Some(FollowerOutcome::VaryMismatch)
    ));
    // Known to vary now: one leader for each variant, side by side.
    let second = en.lead();
    let mut third = en.follow();
    de.follow();
    let fr = Client::new(&zone, &["Accept-Language: fr"]);
    fr.lead();
    filling.complete(T0).expect("stored");
    publish(second, lines, &en.fields, None)
        .complete(T0)
        .expect("stored");
    assert!(matches!(
        en.wait(&mut third),
        Some(FollowerOutcome::Complete(_))
    ));
    assert!(matches!(de.join(), Join::Fresh(_)));
    // Also when all of it is stale and gone from the table.
    let [de_late, en_late] = [&de, &en].map(|c| Client {
        now: T0.plus(Duration::from_secs(5)),
        fields: c.fields.clone(),
        ..Client::new(&zone, &[])
    });
    let (_one, _two) = (de_late.lead(), en_late.lead());
    en_late.follow();
}

#[test]
fn one_refresh_at_a_time_and_none_when_fresh() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    publish(client.lead(), SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    assert!(matches!(client.find(), FoundResponse::Fresh(_)));
    let late = Client {
        now: T0.plus(Duration::from_secs(3)),
        ..Client::new(&zone, &[])
    };
    let refresh = late.refresh().expect("stale");
    assert!(refresh.stale().is_some());
    assert!(late.refresh().is_none(), "under way");
    drop(refresh);
    assert!(late.refresh().is_some(), "failed: again");
}

#[test]
fn a_304_freshens_the_fields_and_shares_the_body() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let lines = &["Cache-Control: max-age=1", "ETag: \"a\"", "X-Old: 1"];
    let mut filling = publish(client.lead(), lines, &[], None);
    filling.push(Bytes::from("body".repeat(1000)), T0);
    let old = filling.complete(T0).expect("stored");
    let late = Client {
        now: T0.plus(Duration::from_secs(3)),
        ..Client::new(&zone, &[])
    };
    let leader = late.refresh().expect("stale");
    let mut follower = late.follow();
    let fresher = fields(&["Cache-Control: max-age=9"]);
    let after = leader.stale().expect("stale").fields_after(&fresher);
    let decided =
        crate::testing::decide_200(&[], &after, &crate::Policy::default()).expect("storable");
    let new = leader
        .freshen(&fresher, None, &decided, late.now)
        .expect("stored");
    assert_eq!(new.fresh_for(late.now), Duration::from_secs(9));
    assert_eq!(new.body.chunks()[0].as_ptr(), old.body.chunks()[0].as_ptr());
    assert_eq!(new.fields.first("x-old"), Some(&b"1"[..]));
    assert!(
        matches!(late.wait(&mut follower), Some(FollowerOutcome::Complete(r)) if Arc::ptr_eq(&r, &new))
    );
    assert_eq!(zone.stats().responses, 1);
}

#[test]
fn a_304_that_names_more_in_vary_is_for_its_own_visitor() {
    let zone = zone();
    let client = Client::new(&zone, &["Accept-Language: de"]);
    let lines = &["Cache-Control: max-age=1", "ETag: \"a\""];
    let mut filling = publish(client.lead(), lines, &[], None);
    filling.push(Bytes::from_static(b"body"), T0);
    filling.complete(T0).expect("stored");
    let late = Client {
        now: T0.plus(Duration::from_secs(3)),
        ..Client::new(&zone, &["Accept-Language: de"])
    };
    let leader = late.refresh().expect("stale");
    let fresher = fields(&["Cache-Control: max-age=9", "Vary: Accept-Language"]);
    let after = leader.stale().expect("stale").fields_after(&fresher);
    let decided = crate::testing::decide_200(
        &fields(&["Accept-Language: de"]),
        &after,
        &crate::Policy::default(),
    )
    .expect("storable");
    let new = leader
        .freshen(&fresher, None, &decided, late.now)
        .expect("stored");
    let vary = new.vary.as_ref().expect("it varies");
    assert!(vary.matches(&fields(&["Accept-Language: de"])));
    assert!(!vary.matches(&fields(&["Accept-Language: en"])));
    assert_eq!(zone.stats().responses, 1, "nothing is left for all");
}

#[test]
fn nobody_joins_a_fetch_begun_before_a_purge() {
    for mode in [PurgeMode::Soft, PurgeMode::Hard] {
        let zone = zone();
        let client = Client::new(&zone, &[]);
        let old = publish(client.lead(), SECOND, &[], None);
        let mut before = client.stream(&mut client.follow());
        zone.purge(PurgeTarget::Key(client.key.as_ref()), mode, T0);
        let new = client.lead();
        assert_eq!(old.complete(T0).map(drop), Err(Reason::Purged));
        assert_eq!(
            read(&mut before).1,
            Some(Ok(())),
            "who came before is served"
        );
        client.follow();
        publish(new, SECOND, &[], None)
            .complete(T0)
            .expect("stored");
    }
}

#[test]
fn what_is_shared_below_minimum_uses_is_not_stored() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let mut follower = client.follow();
    let share_only = Some(Reason::MinUses);
    let decided = Storable {
        share_only,
        ..storable(SECOND, &[])
    };
    let reason = Bytes::new();
    let head = ResponseHead {
        status: 200,
        reason: &reason,
        fields: &[],
        declared_length: None,
    };
    let mut filling = leader.publish_head(&head, &decided, T0);
    filling.push(part("shared"), T0);
    assert_eq!(filling.complete(T0).map(drop), Err(Reason::MinUses));
    let mut reader = client.stream(&mut follower);
    assert_eq!(read(&mut reader), ("shared".into(), Some(Ok(()))));
    client.lead();
}

/// Whether its task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_fetch_that_waits_for_room_goes_on_when_its_slow_reader_leaves() {
    let zone = zone_with(1 << 20);
    let client = Client::new(&zone, &[]);
    let mut filling = publish(client.lead(), SECOND, &[], None);
    let slow = filling.reader();
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..4 {
        filling.push(chunk.clone(), T0);
    }
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut room = pin!(filling.room());
    let mut poll = || room.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending() && !woken.0.load(Ordering::Relaxed));
    drop(slow);
    assert!(woken.0.load(Ordering::Relaxed) && poll().is_ready());
}

#[test]
fn a_response_that_outgrows_the_bound_passes_through_in_a_window() {
    let zone = zone_with(3 << 20);
    let client = Client::new(&zone, &[]);
    let before = zone.stats().used_bytes;
    let mut filling = publish(client.lead(), SECOND, &[], None);
    let mut slow = filling.reader();
    let mut waiting = client.follow();
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..3 {
        assert_eq!(filling.push(chunk.clone(), T0), PushResult::Kept);
    }
    assert_eq!(
        zone.stats().used_bytes,
        before + (3 << 20),
        "bytes on their way are counted"
    );
    assert_eq!(filling.push(chunk.clone(), T0), PushResult::TooLarge);
    assert_eq!(zone.stats().used_bytes, before);
    assert!(
        now(filling.room()).is_none(),
        "the slow reader has four chunks to go"
    );
    assert!(matches!(
        client.join(),
        Join::Alone(AloneReason::NotShareable(Reason::TooLarge))
    ));
    for _ in 0..3 {
        assert!(matches!(now(slow.next_chunk()), Some(Ok(Some(_)))));
    }
    assert!(now(filling.room()).is_some());
    let late = client.wait(&mut waiting);
    assert!(
        matches!(late, Some(FollowerOutcome::NotShareable(Reason::TooLarge))),
        "its beginning is gone"
    );
    assert_eq!(filling.push(chunk.clone(), T0), PushResult::TooLarge);
    let mut rest = 0;
    while let Some(bytes) = slow.try_next_chunk() {
        rest += bytes.len();
    }
    assert_eq!(rest, 2 << 20);
    drop(slow);
    assert_eq!(filling.push(chunk, T0), PushResult::Unwanted);
    assert_eq!(filling.complete(T0).map(drop), Err(Reason::TooLarge));
    assert_eq!(zone.stats().used_bytes, before);
}

#[test]
fn only_a_reader_for_whom_others_wait_is_broken_off() {
    let zone = zone_with(3 << 20);
    let client = Client::new(&zone, &[]);
    let mut filling = publish(client.lead(), SECOND, &[], None);
    let (mut slow, mut quick) = (filling.reader(), filling.reader());
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..4 {
        filling.push(chunk.clone(), T0);
    }
    filling.break_off_slowest();
    assert!(now(filling.room()).is_none(), "both have much to read");
    while quick.try_next_chunk().is_some() {}
    assert!(now(filling.room()).is_none());
    filling.break_off_slowest();
    assert!(now(filling.room()).is_some());
    assert!(matches!(now(slow.next_chunk()), Some(Err(_))));
    drop(slow);
    filling.push(chunk, T0);
    assert!(matches!(now(quick.next_chunk()), Some(Ok(Some(_)))));
}

#[test]
fn a_detached_fetch_is_followed_by_nobody_and_stored_all_the_same() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let alone = zone.detached(&client.request());
    let _leader = client.lead();
    publish(alone, SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    assert!(matches!(client.find(), FoundResponse::Fresh(_)));
}

#[test]
fn a_response_complete_between_lookup_and_collapse_is_found() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let filling = publish(client.lead(), SECOND, &[], None);
    let found = client.not_fresh();
    filling.complete(T0).expect("stored");
    assert!(matches!(client.collapse(&found), Join::Fresh(_)));
}

#[test]
fn a_refusal_between_lookup_and_collapse_is_heeded() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let found = client.not_fresh();
    leader.not_shareable(Reason::Private, Duration::from_secs(5), T0);
    assert!(matches!(
        client.collapse(&found),
        Join::Alone(AloneReason::NotShareable(Reason::Private))
    ));
}

#[test]
fn a_stale_response_that_was_purged_after_the_lookup_is_not_used() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    publish(client.lead(), SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    let late = Client {
        now: T0.plus(Duration::from_secs(3)),
        ..Client::new(&zone, &[])
    };
    let found = late.not_fresh();
    assert!(matches!(found.kind, NotFreshKind::Stale(..)));
    zone.purge(
        PurgeTarget::Key(late.key.as_ref()),
        PurgeMode::Hard,
        late.now,
    );
    let leader = zone.refresh(&late.request(), &found).expect("leads");
    assert!(leader.stale().is_none());
}

#[test]
fn a_variant_that_is_missing_is_fetched_as_one_without_another_look() {
    let zone = zone();
    let (de, en) = (
        Client::new(&zone, &["L: de"]),
        Client::new(&zone, &["L: en"]),
    );
    let lines = &["Cache-Control: max-age=1", "Vary: L"];
    publish(de.lead(), lines, &de.fields, None)
        .complete(T0)
        .expect("stored");
    let found = en.not_fresh();
    assert!(matches!(found.kind, NotFreshKind::VaryMiss));
    let Join::Lead(leader) = en.collapse(&found) else {
        panic!("leads");
    };
    let names = leader.varies_on().map(|spec| spec.names().to_vec());
    assert_eq!(names, Some(vec!["l".to_owned()]));
    en.follow();
}

#[test]
fn what_is_known_of_the_site_tells_the_first_visitors_of_a_key_apart() {
    let zone = zone();
    let (de, en) = (
        Client::new(&zone, &["L: de"]),
        Client::new(&zone, &["L: en"]),
    );
    let site = key("site");
    zone.note_page_of_site(&site.as_ref(), &["l".to_owned()]);
    let expected = zone.site_varies_on(&site.as_ref());
    let expects = expected.as_ref();
    let join = |client: &Client| {
        let request = JoinRequest {
            expects,
            ..client.request()
        };
        zone.collapse(&request, &client.not_fresh())
    };
    let Join::Lead(german) = join(&de) else {
        panic!("leads");
    };
    assert_eq!(german.varies_on(), expected);
    let Join::Lead(_english) = join(&en) else {
        panic!("does not wait for the page in German");
    };
    assert!(matches!(join(&de), Join::Follow(_)));
}

#[test]
fn a_request_is_counted_once_however_often_it_looks_again() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let counts = || {
        let stats = zone.stats();
        (stats.hits, stats.stale_hits, stats.misses)
    };
    let Join::Lead(leader) = client.collapse(&client.not_fresh()) else {
        panic!("leads");
    };
    assert_eq!(counts(), (0, 0, 1));
    publish(leader, SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    let (key, fields) = (client.key.as_ref(), &client.fields);
    assert!(matches!(
        zone.find_again(&key, fields, T0),
        FoundResponse::Fresh(_)
    ));
    assert_eq!(counts(), (0, 0, 1));
    assert!(matches!(client.find(), FoundResponse::Fresh(_)));
    assert_eq!(counts(), (1, 0, 1));
    let late = Client {
        now: T0.plus(Duration::from_secs(3)),
        ..Client::new(&zone, &[])
    };
    assert!(late.refresh().is_some());
    assert_eq!(counts(), (1, 1, 1));
}

/// The wake-ups themselves, with a real runtime: a thousand sleepers and one leader.
#[tokio::test]
async fn a_thousand_followers_are_woken_by_one_leader() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let mut follower = client.follow();
            tokio::spawn(async move {
                let mut reader = match follower.wait(&Vec::<Field>::new()).await {
                    FollowerOutcome::Streaming(reader) => reader,
                    FollowerOutcome::Complete(response) => return response.body.len(),
                    other => panic!("{other:?}"),
                };
                let mut len = 0;
                while let Some(bytes) = reader.next_chunk().await.expect("whole") {
                    len += bytes.len() as u64;
                }
                len
            })
        })
        .collect();
    tokio::task::yield_now().await;
    let mut filling = publish(leader, SECOND, &[], Some(100));
    for _ in 0..10 {
        filling.push(part("0123456789"), T0);
        tokio::task::yield_now().await;
    }
    filling.complete(T0).expect("stored");
    for task in tasks {
        assert_eq!(task.await.expect("no panic"), 100);
    }
}

/// The length of the body a follower is given, whole or while it arrives.
async fn followed_len(client: &Client<'_>, mut follower: Follower) -> u64 {
    let mut reader = match follower.wait(&client.fields).await {
        FollowerOutcome::Complete(response) => return response.body.len(),
        FollowerOutcome::Streaming(reader) => reader,
        other => panic!("{other:?}"),
    };
    let mut len = 0;
    while let Ok(Some(bytes)) = reader.next_chunk().await {
        len += bytes.len() as u64;
    }
    len
}

/// Leads or follows to the end. True: it led, and so has fetched.
fn fetch_or_follow(client: &Client<'_>, runtime: &tokio::runtime::Runtime) -> bool {
    match client.join() {
        Join::Lead(leader) => {
            let mut filling = publish(leader, SECOND, &[], None);
            filling.push(part("body"), T0);
            filling.complete(T0).expect("stored");
            true
        }
        Join::Follow(follower) => {
            // Only a lost wake-up would ever take so long.
            let bound = Duration::from_secs(20);
            let len = runtime.block_on(async {
                tokio::time::timeout(bound, followed_len(client, follower)).await
            });
            assert_eq!(len, Ok(4));
            false
        }
        Join::Fresh(_) => false,
        Join::Alone(why) => panic!("{why:?}"),
    }
}

/// Threads meet at a barrier for each key and ask at once: one of them fetches, whichever way the
/// lookup, the collapse and the ending of the flight interleave.
#[test]
fn threads_that_ask_at_once_cause_one_fetch() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let (threads, rounds) = (3, 2000);
    let zone = zone();
    let barrier = std::sync::Barrier::new(threads);
    let fetches: Vec<AtomicUsize> = (0..rounds).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build();
                let runtime = runtime.expect("a runtime");
                for (round, fetches) in fetches.iter().enumerate() {
                    let client = Client {
                        key: key(&format!("/{round}")),
                        ..Client::new(&zone, &[])
                    };
                    barrier.wait();
                    let has_fetched = fetch_or_follow(&client, &runtime);
                    fetches.fetch_add(usize::from(has_fetched), SeqCst);
                }
            });
        }
    });
    for (round, fetches) in fetches.iter().enumerate() {
        assert_eq!(fetches.load(SeqCst), 1, "round {round}");
    }
}
