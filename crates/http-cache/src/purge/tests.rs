//! Purges by address and by tag, of stored responses and of those under way: each kind of work under way is
//! staged.

use super::*;
use crate::collapse::{Follower, FollowerOutcome, Join, JoinRequest, Leader, Urgency};
use crate::testing::{NO_FIELDS, T0, fields, key, response, storable};
use crate::{
    ArrivingResponse, CacheKey, FoundResponse, Millis, NotFreshKind, Reason, ResponseHead, Zone,
    ZoneConfig,
};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn zone() -> Arc<Zone> {
    Zone::new(ZoneConfig {
        memory_budget_bytes: 4 << 20,
        ..ZoneConfig::default()
    })
}

fn tags(texts: &[&str]) -> Tags {
    let mut tags = Tags::default();
    texts.iter().for_each(|text| tags.add(text.as_bytes()));
    tags
}

/// Stores a page for an address, with tags, fresh for an hour.
fn put(zone: &Zone, name: &CacheKey, address: &str, texts: &[&str]) -> Result<(), Reason> {
    let names = LabelNames {
        address: address.as_bytes(),
        tags: Some(&tags(texts)),
    };
    let response = response(3600, 10, T0, zone.stamp());
    zone.insert_named(&name.as_ref(), response, &names, T0)
        .map(drop)
}

fn look(zone: &Zone, name: &CacheKey) -> &'static str {
    match zone.find(&name.as_ref(), NO_FIELDS, T0.plus(Duration::from_secs(1))) {
        FoundResponse::Fresh(_) => "fresh",
        FoundResponse::NotFresh(found) => match found.kind {
            NotFreshKind::Stale(..) => "stale",
            _ => "nothing",
        },
    }
}

/// A visitor of the page `/`, whose address is `host/`.
struct Visitor<'a> {
    zone: &'a Arc<Zone>,
    came_at: Stamp,
}

impl Visitor<'_> {
    fn of(zone: &Arc<Zone>) -> Visitor<'_> {
        Visitor {
            came_at: zone.stamp(),
            zone,
        }
    }

    fn join(&self) -> Join {
        let name = key("/");
        let found = match self.zone.find(&name.as_ref(), NO_FIELDS, T0) {
            FoundResponse::Fresh(response) => return Join::Fresh(response),
            FoundResponse::NotFresh(found) => found,
        };
        self.zone.collapse(&self.request(&name), &found)
    }

    fn request<'k>(&self, name: &'k CacheKey) -> JoinRequest<'k> {
        JoinRequest {
            key: name.as_ref(),
            fields: NO_FIELDS,
            now: T0,
            lock_age: None,
            group: None,
            address: b"host/",
            came_at: self.came_at,
            may_have_tags: true,
            urgency: Urgency::Page,
            expects: None,
        }
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
}

fn wait(follower: &mut Follower) -> Option<FollowerOutcome> {
    match pin!(follower.wait(NO_FIELDS)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(followed) => Some(followed),
        Poll::Pending => None,
    }
}

fn publish(leader: Leader) -> ArrivingResponse {
    let storable = storable(&["Cache-Control: max-age=60"], &[]);
    leader.publish_head(&ResponseHead::OK, &storable, T0)
}

#[test]
fn a_tag_takes_the_responses_that_carry_it_and_no_other() {
    for (mode, after) in [(PurgeMode::Hard, "nothing"), (PurgeMode::Soft, "stale")] {
        let zone = zone();
        let (a, b, c) = (key("a"), key("b"), key("c"));
        put(&zone, &a, "host/a", &["news:5", "list"]).expect("stored");
        put(&zone, &b, "host/b", &["news:6", "list"]).expect("stored");
        put(&zone, &c, "host/c", &[]).expect("stored");
        assert_eq!(zone.count(PurgeTarget::Tag(b"list")), 2);
        let purge = |tag: &str| {
            zone.purge(PurgeTarget::Tag(tag.as_bytes()), mode, T0)
                .responses
        };
        assert_eq!(purge("news:7"), 0);
        assert_eq!([&a, &b, &c].map(|name| look(&zone, name)), ["fresh"; 3]);
        assert_eq!(purge("news:5"), 1);
        let looks = [&a, &b, &c].map(|name| look(&zone, name));
        assert_eq!(looks, [after, "fresh", "fresh"]);
        assert_eq!(purge("list"), 2);
        let looks = [&a, &b, &c].map(|name| look(&zone, name));
        assert_eq!(looks, [after, after, "fresh"]);
        // A new copy is good, although the purge of its tag is still known.
        put(&zone, &a, "host/a", &["news:5", "list"]).expect("stored");
        assert_eq!(look(&zone, &a), "fresh");
        let left = [zone.count(PurgeTarget::Tag(b"news:5")), purge("list")];
        let expected = match mode {
            // A response that was removed and has not left yet is not counted.
            PurgeMode::Hard => [1, 1],
            PurgeMode::Soft => [1, 2],
        };
        assert_eq!(left, expected);
    }
}

#[test]
fn an_address_takes_all_keys_under_it() {
    let zone = zone();
    let keys = [
        "http mobile /5",
        "https desktop /5",
        "https /5?page=2",
        "other host",
    ]
    .map(key);
    let addresses = ["host/5", "host/5", "host/5?page=2", "other/5"];
    let refill = || {
        for (name, address) in keys.iter().zip(addresses) {
            put(&zone, name, address, &[]).expect("stored");
        }
    };
    let [other, othe] = ["other", "othe"].map(|host| Pattern::Host(host.as_bytes().into()));
    let left = |target| {
        refill();
        let purged = zone.purge(target, PurgeMode::Hard, T0).responses;
        let fresh = keys.iter().filter(|name| look(&zone, name) == "fresh");
        assert_eq!(fresh.count(), keys.len() - purged);
        purged
    };
    assert_eq!(left(PurgeTarget::Address(b"host/5")), 2);
    assert_eq!(left(PurgeTarget::Address(b"host/")), 0);
    let pattern = Pattern::Prefix(b"host/5"[..].into());
    assert_eq!(left(PurgeTarget::Addresses(&pattern)), 3);
    assert_eq!(left(PurgeTarget::Addresses(&other)), 1);
    assert_eq!(left(PurgeTarget::Addresses(&othe)), 0);
    let ends = Pattern::matching(b"", |text: &[u8]| text.ends_with(b"=2"));
    assert_eq!(left(PurgeTarget::Addresses(&ends)), 1);
    assert_eq!(left(PurgeTarget::Tags(&ends)), 0, "no tag is an address");
}

#[test]
fn labels_leave_with_the_last_response_that_carries_them() {
    let zone = zone();
    let empty = zone.used_bytes();
    for round in 0..3 {
        put(&zone, &key("a"), "host/a", &["x", "y"]).expect("stored");
        put(&zone, &key("b"), "host/b", &["x", &format!("{round}")]).expect("stored");
    }
    assert_eq!(zone.count(PurgeTarget::Tag(b"0")), 0, "it was replaced");
    assert_eq!(zone.count(PurgeTarget::Tag(b"x")), 2);
    zone.purge(PurgeTarget::Prefix(b""), PurgeMode::Hard, T0);
    assert_eq!(zone.used_bytes(), empty);

    // Purged by tag they leave with the sweep.
    put(&zone, &key("a"), "host/a", &["x"]).expect("stored");
    zone.purge(PurgeTarget::Tag(b"x"), PurgeMode::Hard, T0);
    assert!(zone.used_bytes() > empty);
    while !zone.sweep(T0, 1000).round_complete {}
    assert_eq!(zone.used_bytes(), empty);
}

/// Forgotten purges make older fetches start again; a fetch that is younger is stored.
#[test]
fn purges_of_other_pages_cost_no_fetch() {
    let zone = zone();
    let began = zone.stamp();
    for number in 0..1000 {
        let other = format!("other:{number}");
        zone.purge(PurgeTarget::Tag(other.as_bytes()), PurgeMode::Hard, T0);
        zone.purge(PurgeTarget::Key(key(&other).as_ref()), PurgeMode::Hard, T0);
        zone.purge(PurgeTarget::Address(other.as_bytes()), PurgeMode::Hard, T0);
    }
    let names = LabelNames {
        address: b"host/a",
        tags: Some(&tags(&["mine"])),
    };
    let made = response(60, 10, T0, began);
    assert!(
        zone.insert_named(&key("a").as_ref(), made, &names, T0)
            .is_ok()
    );
}

#[test]
fn a_fetch_under_way_is_not_stored_when_its_tags_or_its_address_were_purged() {
    let pattern = Pattern::Prefix(b"ho"[..].into());
    let like = Pattern::matching(b"", |text: &[u8]| text.starts_with(b"ne"));
    for (target, is_hit) in [
        (PurgeTarget::Tag(b"news:5"), true),
        (PurgeTarget::Tag(b"news:6"), false),
        (PurgeTarget::Tags(&like), true),
        (PurgeTarget::Address(b"host/"), true),
        (PurgeTarget::Address(b"host/other"), false),
        (PurgeTarget::Addresses(&pattern), true),
    ] {
        for mode in [PurgeMode::Hard, PurgeMode::Soft] {
            let zone = zone();
            let mut filling = publish(Visitor::of(&zone).lead());
            zone.purge(target, mode, T0);
            filling.tags().add(b"news:5");
            let stored = filling.complete(T0).map(drop);
            let expected = match is_hit {
                true => Err(Reason::Purged),
                false => Ok(()),
            };
            assert_eq!(stored, expected, "{target:?} {mode:?}");
        }
    }
}

#[test]
fn who_comes_after_a_purge_of_a_tag_waits_until_the_tags_of_a_fetch_are_known() {
    for (tag, is_hit) in [("news:5", true), ("news:6", false)] {
        let zone = zone();
        let mut filling = publish(Visitor::of(&zone).lead());
        let mut before = Visitor::of(&zone).follow();
        zone.purge(PurgeTarget::Tag(tag.as_bytes()), PurgeMode::Hard, T0);
        let after = Visitor::of(&zone);
        let mut follower = after.follow();
        assert!(matches!(
            wait(&mut before),
            Some(FollowerOutcome::Streaming(_))
        ));
        assert!(wait(&mut follower).is_none(), "its head is not enough");
        filling.tags().add(b"news:5");
        let _ = filling.complete(T0);
        match is_hit {
            true => {
                assert!(matches!(
                    wait(&mut follower),
                    Some(FollowerOutcome::LeftOut)
                ));
                // The next fetch begins after it came: whatever is purged now, its response is good enough.
                let next = Visitor::of(&zone).lead();
                zone.purge(PurgeTarget::Tag(b"news:5"), PurgeMode::Hard, T0);
                let _filling = publish(next);
                let mut follower = after.follow();
                assert!(matches!(
                    wait(&mut follower),
                    Some(FollowerOutcome::Streaming(_))
                ));
            }
            false => assert!(matches!(
                wait(&mut follower),
                Some(FollowerOutcome::Complete(_))
            )),
        }
    }
}

#[test]
fn who_comes_after_a_purge_of_the_address_follows_no_older_fetch() {
    let zone = zone();
    let old = publish(Visitor::of(&zone).lead());
    let before = Visitor::of(&zone);
    zone.purge(PurgeTarget::Address(b"host/"), PurgeMode::Hard, T0);
    before.follow();
    let new = publish(Visitor::of(&zone).lead());
    assert_eq!(old.complete(T0).map(drop), Err(Reason::Purged));
    new.complete(T0).expect("stored");
}

#[test]
fn a_fetch_that_passes_or_fails_lets_go_of_those_who_wait_for_its_tags() {
    let zone = Zone::new(ZoneConfig {
        memory_budget_bytes: 1 << 20,
        max_response_bytes: 100,
        ..ZoneConfig::default()
    });
    let waiting = |filling: &mut dyn FnMut(ArrivingResponse)| {
        let published = publish(Visitor::of(&zone).lead());
        zone.purge(PurgeTarget::Tag(b"t"), PurgeMode::Hard, T0);
        let mut follower = Visitor::of(&zone).follow();
        assert!(wait(&mut follower).is_none());
        filling(published);
        wait(&mut follower)
    };
    assert!(matches!(
        waiting(&mut |mut filling| {
            filling.push(vec![0; 1000].into(), T0);
            std::mem::forget(filling);
        }),
        Some(FollowerOutcome::NotShareable(Reason::TooLarge))
    ));
    zone.purge(PurgeTarget::Key(key("/").as_ref()), PurgeMode::Hard, T0);
    assert!(matches!(
        waiting(&mut |filling| filling.fail()),
        Some(FollowerOutcome::Failed(502))
    ));
}

#[test]
fn a_validation_keeps_the_tags_and_a_purge_meanwhile_counts() {
    let name = key("/");
    let short = |stamp| response(5, 10, Millis(T0.0 - 10_000), stamp);
    let names = LabelNames {
        address: b"host/",
        tags: Some(&tags(&["t"])),
    };
    for (is_purged, count) in [(false, 1), (true, 0)] {
        let zone = zone();
        zone.insert_named(&name.as_ref(), short(zone.stamp()), &names, T0)
            .expect("stored");
        let leader = Visitor::of(&zone).lead();
        assert!(leader.stale().is_some());
        let mut follower = Visitor::of(&zone).follow();
        if is_purged {
            zone.purge(PurgeTarget::Tag(b"t"), PurgeMode::Hard, T0);
        }
        let storable = storable(&["Cache-Control: max-age=60"], &fields(&[]));
        let freshened = leader.freshen(&[], None, &storable, T0).map(drop);
        match is_purged {
            false => {
                assert_eq!(freshened, Ok(()));
                assert!(matches!(
                    wait(&mut follower),
                    Some(FollowerOutcome::Complete(_))
                ));
            }
            true => {
                assert_eq!(freshened, Err(Reason::Purged));
                assert!(matches!(
                    wait(&mut follower),
                    Some(FollowerOutcome::LeftOut)
                ));
            }
        }
        while !zone.sweep(T0, 1000).round_complete {}
        assert_eq!(zone.count(PurgeTarget::Tag(b"t")), count);
    }
}

#[test]
fn a_response_with_more_tags_than_are_kept_is_fresh_for_a_second() {
    let zone = zone();
    let mut filling = publish(Visitor::of(&zone).lead());
    filling.tags().add(&[b'x'; 2000]);
    assert!(filling.tags().checked().is_err());
    let stored = filling.complete(T0).expect("stored");
    assert_eq!(stored.fresh_for(T0), Duration::from_secs(1));
}

#[test]
fn a_validation_does_not_bring_back_tags_that_are_missing() {
    let zone = zone();
    let mut filling = publish(Visitor::of(&zone).lead());
    filling.tags().add(&[b'x'; 2000]);
    filling.complete(T0).expect("stored");
    let later = T0.plus(Duration::from_secs(2));
    let storable = storable(&["Cache-Control: max-age=60"], &[]);
    let mut many = Tags::default();
    many.add(&[b'x'; 2000]);
    for (tags, seconds) in [(None, 1), (Some(&many), 1), (Some(&Tags::default()), 60)] {
        let visitor = Visitor::of(&zone);
        let name = key("/");
        let found = match zone.find(&name.as_ref(), NO_FIELDS, later) {
            FoundResponse::NotFresh(found) => found,
            FoundResponse::Fresh(_) => panic!("it is fresh for a second"),
        };
        let request = JoinRequest {
            now: later,
            ..visitor.request(&name)
        };
        let leader = zone.refresh(&request, &found).expect("nobody else does");
        let stored = leader.freshen(&[], tags, &storable, later).expect("stored");
        assert_eq!(stored.fresh_for(later), Duration::from_secs(seconds));
        // For the next turn it has to be stale again.
        let soft = PurgeTarget::Key(name.as_ref());
        zone.purge(soft, PurgeMode::Soft, later);
    }
}

#[test]
fn ten_thousand_tags_on_a_response_work() {
    let zone = zone();
    let mut filling = publish(Visitor::of(&zone).lead());
    (0..10_000).for_each(|number| filling.tags().add(format!("tag:{number}").as_bytes()));
    filling.complete(T0).expect("stored");
    assert_eq!(
        zone.purge(PurgeTarget::Tag(b"tag:9999"), PurgeMode::Hard, T0)
            .responses,
        1
    );
    assert_eq!(look(&zone, &key("/")), "nothing");
}

#[test]
fn a_reference_to_a_tag_takes_eight_bytes_and_a_tag_is_counted_once() {
    let zone = zone();
    let many: Vec<String> = (0..1024).map(|number| format!("tag:{number:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let used_by = |name: &str, texts: &[&str]| {
        let before = zone.used_bytes();
        put(&zone, &key(name), "host/", texts).expect("stored");
        zone.used_bytes() - before
    };
    used_by("first", &many);
    let without = used_by("b", &[]);
    let with = used_by("c", &many);
    // The allocator rounds to a quarter of the power of two.
    assert!(with - without <= 8 * 1024 + 64, "{}", with - without);
}

#[test]
fn a_million_distinct_tags_stay_within_the_budget() {
    let zone = Zone::new(ZoneConfig {
        memory_budget_bytes: 2 << 20,
        ..ZoneConfig::default()
    });
    for page in 0..1000 {
        let texts: Vec<String> = (0..100).map(|tag| format!("{page}:{tag}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        put(&zone, &key(&page.to_string()), "host/", &texts).expect("others are evicted");
        assert!(zone.used_bytes() <= 2 << 20);
    }
    assert!(zone.stats().evicted > 0);
    zone.purge(PurgeTarget::Prefix(b""), PurgeMode::Hard, T0);
    assert_eq!(
        zone.count(PurgeTarget::Tags(&Pattern::Prefix(b""[..].into()))),
        0
    );
}

#[test]
fn what_is_void_is_kept_for_failures_only_and_what_was_purged_stays_gone() {
    let zone = zone();
    let names = |tag: &'static str| tags(&[tag]);
    let store = |name: &str, tag| {
        let tags = names(tag);
        let labels = LabelNames {
            address: b"host/",
            tags: Some(&tags),
        };
        zone.insert_named(
            &key(name).as_ref(),
            response(60, 10, T0, zone.stamp()),
            &labels,
            T0,
        )
        .expect("stored");
    };
    let found = |name: &str| match zone.find(&key(name).as_ref(), NO_FIELDS, T0) {
        crate::FoundResponse::Fresh(_) => "fresh",
        crate::FoundResponse::NotFresh(found) => match found.stale() {
            Some((_, info)) if info.is_void && !info.is_purged => "void",
            Some(_) => "stale",
            None => "nothing",
        },
    };
    store("/kept", "kept");
    store("/gone", "gone");
    let fetch = Visitor::of(&zone).lead();
    zone.purge(PurgeTarget::Tag(b"gone"), PurgeMode::Hard, T0);
    zone.void(T0);
    assert_eq!((found("/kept"), found("/gone")), ("void", "nothing"));
    zone.purge(PurgeTarget::Tag(b"kept"), PurgeMode::Soft, T0);
    assert_eq!(found("/kept"), "void", "a soft purge makes it no better");
    // A fetch that began before is not joined.
    assert!(matches!(Visitor::of(&zone).join(), Join::Lead(_)));
    drop(fetch);
    zone.purge(PurgeTarget::Tag(b"kept"), PurgeMode::Hard, T0);
    assert_eq!(found("/kept"), "nothing");
    store("/new", "kept");
    assert_eq!(found("/new"), "fresh");
}
