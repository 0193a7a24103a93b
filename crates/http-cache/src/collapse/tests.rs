//! Collapsing as scripts: each test is a short story of leaders and followers on one thread.

use super::*;
use crate::testing::{T0, fields, key, storable};
use crate::{
    CacheKey, Field, PurgeMode, PurgeTarget, ResponseHead, StaleReason, Storable, UseStale,
    ZoneConfig, may_serve_stale,
};
use bytes::Bytes;
use client::{Client, SECOND, now, part, publish, read, zone, zone_with};
use std::future::Future;

mod client;
mod guarded;
mod later;
mod lookup;
mod room;
mod wake_ups;

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
    assert_eq!(filling.complete(T0).expect("stored").group(), Some(7));
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
fn a_slow_fetch_does_not_replace_a_response_that_was_asked_for_later() {
    let zone = zone();
    let first = Client::new(&zone, &[]);
    let slow = first.lead();
    let later = Client {
        now: T0.plus(Duration::from_secs(6)),
        lock_age: Some(Duration::from_secs(5)),
        ..Client::new(&zone, &[])
    };
    let complete = |mut leader: Leader, made_in: u64, at: u64| {
        leader.note_made_in(Duration::from_secs(made_in));
        let (storable, fields) = (storable(SECOND, &[]), fields(SECOND));
        let head = ResponseHead {
            fields: &fields,
            ..ResponseHead::OK
        };
        let at = T0.plus(Duration::from_secs(at));
        leader.publish_head(&head, &storable, at).complete(at)
    };
    let newer = complete(later.lead(), 1, 7).expect("stored");
    assert_eq!(complete(slow, 8, 8).map(drop), Err(Reason::Superseded));
    let found = zone.stored_for(&first.key.as_ref(), &first.fields);
    assert!(Arc::ptr_eq(&found.expect("stored"), &newer));

    // The next one was asked for after it, and one that comes from a clock ahead of this one is not compared.
    let at = T0.plus(Duration::from_secs(9));
    let last = Client { now: at, ..first };
    complete(last.lead(), 1, 9).expect("stored");
    let ahead = zone.detached(&last.request());
    complete(ahead, 0, 3600).expect("stored");
    complete(zone.detached(&last.request()), 1, 10).expect("stored");
}

#[test]
fn a_doubted_response_stands_in_for_failures_alone_once_it_is_stale() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let filling = publish(client.lead(), SECOND, &[], None);
    filling.complete(T0).expect("stored").doubt();
    assert!(matches!(client.join(), Join::Fresh(_)));
    let later = Client {
        now: T0.plus(Duration::from_secs(2)),
        ..client
    };
    let not_fresh = later.not_fresh();
    let (_, stale) = not_fresh.stale().expect("stale");
    let allowed = UseStale {
        updating: true,
        error: true,
        ..UseStale::default()
    };
    assert!(!may_serve_stale(StaleReason::Updating, &allowed, stale));
    assert!(may_serve_stale(StaleReason::Error, &allowed, stale));
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
    let mut filling = leader.publish_head(&ResponseHead::OK, &decided, T0);
    filling.push(part("shared"), T0);
    assert_eq!(filling.complete(T0).map(drop), Err(Reason::MinUses));
    let mut reader = client.stream(&mut follower);
    assert_eq!(read(&mut reader), ("shared".into(), Some(Ok(()))));
    client.lead();
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
