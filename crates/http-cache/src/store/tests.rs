use super::*;
use crate::testing::{NO_FIELDS, Random, T0, fields, key, response, storable};
use crate::{
    CacheKey, Field, GroupLimits, LifetimeSource, Millis, PurgeMode, PurgeTarget, Reason,
    ResponseHead, StoredHead, StoredResponse,
};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

const BIG: Duration = Duration::from_secs(1_000_000);

fn zone(budget: u64) -> Arc<Zone> {
    Zone::new(ZoneConfig {
        memory_budget_bytes: budget,
        shards: 4,
        inactive: BIG,
        ..ZoneConfig::default()
    })
}

fn put(zone: &Zone, name: &str, secs: u32, len: usize) -> Result<Arc<StoredResponse>, Reason> {
    zone.insert(
        &key(name).as_ref(),
        response(secs, len, T0, zone.stamp()),
        T0,
    )
}

fn look(zone: &Zone, name: &str, now: Millis) -> &'static str {
    match zone.find(&key(name).as_ref(), NO_FIELDS, now) {
        FoundResponse::Fresh(_) => "fresh",
        FoundResponse::NotFresh(found) => match found.kind {
            NotFreshKind::Stale(..) => "stale",
            NotFreshKind::VaryMiss => "vary miss",
            NotFreshKind::Miss => "miss",
            NotFreshKind::NotShareable(_) => "not shareable",
        },
    }
}

fn after(secs: f64) -> Millis {
    T0.plus(Duration::from_secs_f64(secs))
}

#[test]
fn a_response_is_fresh_then_stale_to_the_millisecond() {
    let zone = zone(1 << 20);
    assert_eq!(look(&zone, "a", T0), "miss");
    put(&zone, "a", 1, 100).expect("stored");
    for (secs, expected) in [
        (0.0, "fresh"),
        (0.999, "fresh"),
        (1.0, "stale"),
        (90.0, "stale"),
    ] {
        assert_eq!(look(&zone, "a", after(secs)), expected, "{secs}");
    }
    let FoundResponse::NotFresh(found) = zone.find(&key("a").as_ref(), NO_FIELDS, after(1.5))
    else {
        panic!("not fresh");
    };
    assert!(
        matches!(found.kind, NotFreshKind::Stale(_, info) if info.past_expiry.as_millis() == 500)
    );
    let stats = zone.stats();
    assert_eq!((stats.hits, stats.stale_hits, stats.misses), (2, 3, 1));
}

/// RFC 9111 §5.2.2.4, also for a request that began before the response was stored.
#[test]
fn what_is_always_validated_is_fresh_for_no_request() {
    let zone = zone(1 << 20);
    let mut response = response(1, 100, T0, zone.stamp());
    (response.head.lifetime_source, response.head.expires_at) = (LifetimeSource::NoCache, T0);
    zone.insert(&key("a").as_ref(), response, T0)
        .expect("stored");
    let before = Millis(T0.0 - 1);
    assert_eq!(look(&zone, "a", before), "stale");
    assert_eq!(look(&zone, "a", T0), "stale");
}

#[test]
fn a_page_of_21_kb_costs_at_most_1_15_times_its_bytes() {
    let zone = zone(1 << 30);
    let before = zone.stats().used_bytes;
    for i in 0..1000 {
        put(&zone, &format!("httpexample.org/a/page/{i}GET"), 60, 21504).expect("stored");
    }
    let used = zone.stats().used_bytes - before;
    assert!(used * 100 < 1000 * 21504 * 107, "{used}");
}

/// Makes one random change to a zone that several threads share.
fn disturb(zone: &Zone, random: &mut Random) {
    let name = format!("k{}", random.below(300));
    match random.below(10) {
        0 => {
            let named = key(&name);
            let target = PurgeTarget::Key(named.as_ref());
            zone.purge(target, PurgeMode::Hard, T0);
        }
        1..=4 => drop(look(zone, &name, T0)),
        _ => drop(put(zone, &name, 60, random.below(20_000))),
    }
}

#[test]
fn the_budget_is_never_exceeded_whatever_threads_do() {
    let budget = 600_000;
    let zone = zone(budget);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let zone = &zone;
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..3000 {
                    disturb(zone, &mut random);
                    assert!(zone.stats().used_bytes <= budget);
                }
            });
        }
    });
    assert!(zone.stats().evicted > 0);
    // Nothing has leaked: without responses, the budget is as at first.
    zone.purge(PurgeTarget::Prefix(b""), PurgeMode::Hard, T0);
    assert_eq!(zone.stats().responses, 0);
    assert_eq!(
        zone.stats().used_bytes,
        Zone::new(zone.config.clone()).stats().used_bytes
    );
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let zone = Zone::new(ZoneConfig {
        memory_budget_bytes: 100_000,
        max_response_bytes: 200_000,
        shards: 2,
        ..ZoneConfig::default()
    });
    assert_eq!(put(&zone, "a", 1, 200_001).map(drop), Err(Reason::TooLarge));
    assert_eq!(put(&zone, "a", 1, 150_000).map(drop), Err(Reason::NoRoom));
    assert_eq!(put(&zone, "a", 1, 50_000).map(drop), Ok(()));
}

#[test]
fn replacing_a_response_leaves_one() {
    let zone = zone(1 << 20);
    put(&zone, "a", 1, 10).expect("stored");
    let used = zone.stats().used_bytes;
    put(&zone, "a", 1, 10).expect("stored");
    assert_eq!((zone.stats().responses, zone.stats().used_bytes), (1, used));
}

fn put_variant(zone: &Zone, name: &str, vary: &str, request: &[Field], body: &str) {
    let storable = storable(
        &["Cache-Control: max-age=60", &format!("Vary: {vary}")],
        request,
    );
    let response = StoredResponse::new(
        StoredHead::new(&ResponseHead::OK, &storable, T0),
        crate::Body::pack(&[Bytes::copy_from_slice(body.as_bytes())]),
        zone.stamp(),
    );
    zone.insert(&key(name).as_ref(), response, T0)
        .expect("stored");
}

fn body_for(zone: &Zone, name: &str, request: &[Field]) -> Option<String> {
    match zone.find(&key(name).as_ref(), &request, T0) {
        FoundResponse::Fresh(r) => String::from_utf8(r.body.chunks().concat()).ok(),
        _ => None,
    }
}

#[test]
fn each_request_gets_the_variant_its_fields_select() {
    let zone = zone(1 << 20);
    let lang = |value: &str| fields(&[&format!("Accept-Language: {value}")]);
    put_variant(&zone, "a", "Accept-Language", &lang("de"), "hallo");
    put_variant(&zone, "a", "Accept-Language", &lang("en"), "hello");
    put_variant(&zone, "b", "Accept-Language", &lang("fr"), "salut");
    assert_eq!(body_for(&zone, "a", &lang("de")).as_deref(), Some("hallo"));
    assert_eq!(body_for(&zone, "a", &lang("en")).as_deref(), Some("hello"));
    assert_eq!(body_for(&zone, "a", &lang("fr")), None);
    assert_eq!(look(&zone, "a", T0), "vary miss");
}

#[test]
fn variants_are_bounded_and_the_oldest_goes() {
    let zone = Zone::new(ZoneConfig {
        max_variants: 3,
        ..ZoneConfig::default()
    });
    let request = |i: usize| fields(&[&format!("X: {i}")]);
    for i in 0..5 {
        put_variant(&zone, "a", "X", &request(i), "body");
    }
    let kept: Vec<bool> = (0..5)
        .map(|i| body_for(&zone, "a", &request(i)).is_some())
        .collect();
    assert_eq!(kept, [false, false, true, true, true]);
    assert_eq!(zone.stats().variants_dropped, 2);
    // A newcomer that varies on something else ends the old ones' time.
    put_variant(&zone, "a", "Y", &[], "body");
    assert_eq!(zone.stats().responses, 1);
}

#[test]
fn a_variant_that_is_used_outlives_any_number_that_are_not() {
    let zone = Zone::new(ZoneConfig {
        max_variants: 3,
        ..ZoneConfig::default()
    });
    let request = |i: usize| fields(&[&format!("X: {i}")]);
    put_variant(&zone, "a", "X", &request(0), "used");
    assert!(body_for(&zone, "a", &request(0)).is_some());
    for i in 1..100 {
        put_variant(&zone, "a", "X", &request(i), "body");
    }
    assert_eq!(body_for(&zone, "a", &request(0)).as_deref(), Some("used"));
    assert_eq!(zone.stats().responses, 3);
    assert_eq!(zone.stats().variants_dropped, 97);
}

#[test]
fn what_comes_back_to_a_full_zone_is_stored_one_time_in_eight() {
    let zone = zone(64 << 10);
    let places = || (0..80).filter(|_| zone.has_place_for(4000)).count();
    assert_eq!(places(), 80);
    for i in 0..100 {
        put(&zone, &format!("page{i}"), 60, 4000).expect("stored");
    }
    assert!(zone.stats().evicted > 0);
    assert_eq!(places(), 10);
    zone.purge(PurgeTarget::Everything, PurgeMode::Hard, T0);
    zone.sweep(T0, usize::MAX);
    assert_eq!(places(), 80);
}

#[test]
fn tables_of_an_empty_zone_are_given_back_and_grow_again() {
    let zone = zone(1 << 20);
    for round in 0..3 {
        for i in 0..600 {
            put(&zone, &format!("page{i}"), 60, 10).expect("stored");
        }
        zone.shrink();
        assert_eq!(look(&zone, "page7", T0), "fresh", "{round}");
        zone.purge(PurgeTarget::Everything, PurgeMode::Hard, T0);
        zone.sweep(T0, usize::MAX);
        let slots = || zone.shards.iter().map(|cell| cell.shard.read().slots_len());
        assert!(slots().sum::<usize>() >= 600, "{round}");
        zone.shrink();
        assert_eq!(slots().sum::<usize>(), 0, "{round}");
        assert_eq!(look(&zone, "page7", T0), "miss", "{round}");
    }
}

#[test]
fn sweep_removes_what_nobody_asks_for_and_what_is_too_stale() {
    let config = ZoneConfig {
        inactive: Duration::from_secs(10),
        keep_stale: Some(Duration::from_secs(3)),
        shards: 4,
        ..ZoneConfig::default()
    };
    let zone = Zone::new(config);
    for i in 0..600 {
        put(&zone, &format!("idle{i}"), 60, 10).expect("stored");
    }
    put(&zone, "used", 60, 10).expect("stored");
    put(&zone, "short", 1, 10).expect("stored");
    assert_eq!(zone.sweep(after(3.9), usize::MAX).removed, 0);
    assert_eq!(
        zone.sweep(after(4.0), usize::MAX).removed,
        1,
        "short: 1 s fresh, kept 3 s more"
    );
    assert_eq!(look(&zone, "used", after(9.0)), "fresh");
    let mut removed = 0;
    for _ in 0..20 {
        let swept = zone.sweep(after(10.0), 100);
        assert!(swept.looked_at <= 100);
        removed += swept.removed;
    }
    assert_eq!(removed, 600);
    assert_eq!(look(&zone, "used", after(18.9)), "fresh");
}

#[test]
fn uses_are_counted_and_forgotten() {
    let zone = Zone::new(ZoneConfig {
        inactive: Duration::from_secs(10),
        ..Default::default()
    });
    let count = |secs| zone.count_use(&key("a").as_ref(), after(secs));
    assert_eq!(
        [count(0.0), count(5.0), count(14.0), count(25.0)],
        [1, 2, 3, 1]
    );
    assert_eq!(zone.count_use(&key("b").as_ref(), T0), 1);
}

#[test]
fn a_key_that_cannot_be_shared_is_remembered_for_a_while() {
    let zone = zone(1 << 20);
    zone.remember_not_shareable(&key("a").as_ref(), Reason::Private, after(5.0));
    assert_eq!(look(&zone, "a", after(4.9)), "not shareable");
    assert_eq!(look(&zone, "b", T0), "miss");
    assert_eq!(look(&zone, "a", after(5.0)), "miss");
    zone.remember_not_shareable(&key("a").as_ref(), Reason::Private, after(5.0));
    put(&zone, "a", 1, 10).expect("stored");
    assert_eq!(look(&zone, "a", after(2.0)), "stale");
}

#[test]
fn answers_that_there_is_no_page_go_together_also_those_on_their_way() {
    let zone = zone(1 << 20);
    let put = |name: &str, status, stamp| {
        let mut response = response(60, 10, T0, stamp);
        response.head.status = status;
        zone.insert(&key(name).as_ref(), response, T0)
            .expect("stored");
    };
    let before = zone.stamp();
    let answers = [
        ("page", 200),
        ("wrong", 404),
        ("gone", 410),
        ("denied", 403),
    ];
    for (name, status) in answers {
        put(name, status, before);
    }
    zone.purge(PurgeTarget::NotFound, PurgeMode::Hard, T0);
    // Their fetches began before, and ended after.
    put("late", 404, before);
    put("new", 404, zone.stamp());
    for (name, expected) in [
        ("page", "fresh"),
        ("wrong", "miss"),
        ("gone", "miss"),
        ("denied", "fresh"),
        ("late", "miss"),
        ("new", "fresh"),
    ] {
        assert_eq!(look(&zone, name, T0), expected, "{name}");
    }
    zone.sweep(T0, 1000);
    assert_eq!(zone.stats().responses, 3);
}

#[test]
fn purges_hit_what_they_name() {
    let targets: [(&str, PurgeTarget<'_>, [bool; 3]); 4] = [
        (
            "key",
            PurgeTarget::Key(crate::KeyRef::new(b"/a/1")),
            [true, false, false],
        ),
        ("prefix", PurgeTarget::Prefix(b"/a/"), [true, true, false]),
        ("everything", PurgeTarget::Everything, [true, true, true]),
        ("nothing", PurgeTarget::Prefix(b"/c"), [false, false, false]),
    ];
    for (name, target, hit) in targets {
        for (mode, hit_word) in [(PurgeMode::Soft, "stale"), (PurgeMode::Hard, "miss")] {
            let zone = zone(1 << 20);
            let keys = ["/a/1", "/a/2", "/b"];
            let _ = keys.map(|key| put(&zone, key, 60, 10).expect("stored"));
            let purged = zone.purge(target, mode, after(1.0));
            assert_eq!(
                purged.responses,
                hit.iter().filter(|&&h| h).count(),
                "{name}"
            );
            assert_eq!(zone.stats().purged, purged.responses as u64, "{name}");
            let found = keys.map(|key| look(&zone, key, after(1.0)));
            assert_eq!(
                found,
                hit.map(|h| if h { hit_word } else { "fresh" }),
                "{name}"
            );
            let _ = keys.map(|key| put(&zone, key, 60, 10).expect("stored"));
            assert_eq!(
                keys.map(|key| look(&zone, key, after(1.0))),
                ["fresh"; 3],
                "{name}, later"
            );
        }
    }
}

#[test]
fn a_fetch_begun_before_a_purge_is_not_stored() {
    let key = key("/a/1");
    for (target, hit) in [
        (PurgeTarget::Key(key.as_ref()), true),
        (PurgeTarget::Prefix(b"/a"), true),
        (PurgeTarget::Everything, true),
        (PurgeTarget::Prefix(b"/b"), false),
        (PurgeTarget::Key(crate::KeyRef::new(b"/b")), false),
    ] {
        for mode in [PurgeMode::Soft, PurgeMode::Hard] {
            let zone = zone(1 << 20);
            let began = zone.stamp();
            zone.purge(target, mode, T0);
            let stored = zone
                .insert(&key.as_ref(), response(60, 10, T0, began), T0)
                .map(drop);
            let expected = if hit { Err(Reason::Purged) } else { Ok(()) };
            assert_eq!(stored, expected, "{target:?}");
            assert_eq!(
                zone.insert(&key.as_ref(), response(60, 10, T0, zone.stamp()), T0)
                    .map(drop),
                Ok(())
            );
        }
    }
}

#[test]
fn a_storm_of_purges_never_lets_an_outdated_fetch_in() {
    for prefix in [false, true] {
        let zone = zone(1 << 20);
        let began = zone.stamp();
        let target = key("/target");
        let purge = |key: &CacheKey| match prefix {
            true => zone.purge(PurgeTarget::Prefix(key.bytes()), PurgeMode::Hard, T0),
            false => zone.purge(PurgeTarget::Key(key.as_ref()), PurgeMode::Hard, T0),
        };
        purge(&target);
        // More purges than the purge log keeps apart.
        for i in 0..5000 {
            purge(&key(&format!("/other/{i}")));
        }
        let stored = zone.insert(&target.as_ref(), response(60, 10, T0, began), T0);
        assert_eq!(stored.map(drop), Err(Reason::Purged));
    }
}

/// The version that is stored: the length of the body. Stores the newest on a miss.
fn find_or_insert_version(zone: &Zone, key: &CacheKey, version: &AtomicU64) -> Option<u64> {
    if let FoundResponse::Fresh(found) = zone.find(&key.as_ref(), NO_FIELDS, T0) {
        return Some(found.body.len());
    }
    let began = zone.stamp();
    let seen = version.load(SeqCst);
    std::thread::yield_now();
    let made = response(60, seen as usize, T0, began);
    let _ = zone.insert(&key.as_ref(), made, T0);
    None
}

/// The promise of DESIGN.md section 6, raced by threads: writers publish a version, purge, and from
/// then on readers must not see an older one.
#[test]
fn no_answer_begun_after_a_purge_shows_older_data() {
    let zone = zone(1 << 22);
    let version = AtomicU64::new(0);
    let purged_version = AtomicU64::new(0);
    let key = key("/page");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for v in 1..=3000 {
                version.store(v, SeqCst);
                let target = match v % 3 {
                    0 => PurgeTarget::Key(key.as_ref()),
                    1 => PurgeTarget::Prefix(b"/pa"),
                    _ => PurgeTarget::Everything,
                };
                zone.purge(target, PurgeMode::Hard, T0);
                purged_version.store(v, SeqCst);
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while purged_version.load(Relaxed) < 3000 {
                    let at_least = purged_version.load(SeqCst);
                    let found = find_or_insert_version(&zone, &key, &version);
                    assert!(
                        found.is_none_or(|found| found >= at_least),
                        "{found:?} {at_least}"
                    );
                }
            });
        }
    });
}

#[test]
fn a_group_keeps_no_more_than_its_share() {
    let limits = GroupLimits {
        max_responses: 3,
        max_bytes: 52_000,
    };
    let zone = Zone::new(ZoneConfig {
        group_limits: Some(limits),
        ..ZoneConfig::default()
    });
    let put = |name: &str, group: u64, len: usize| {
        let mut made = response(60, len, T0, zone.stamp());
        made.set_group(Some(group));
        zone.insert(&key(name).as_ref(), made, T0).expect("stored");
    };
    for i in 0..5 {
        put(&format!("alice{i}"), 1, 10);
    }
    put("bob", 2, 10);
    let found = ["alice0", "alice1", "alice2", "alice4", "bob"].map(|k| look(&zone, k, T0));
    assert_eq!(found, ["miss", "miss", "fresh", "fresh", "fresh"]);
    put("large", 1, 50_500);
    assert_eq!(look(&zone, "alice4", T0), "miss", "bytes count too");
    assert_eq!(
        (look(&zone, "large", T0), look(&zone, "bob", T0)),
        ("fresh", "fresh")
    );
    // A response that leaves for other reasons no longer counts.
    zone.purge(PurgeTarget::Key(key("large").as_ref()), PurgeMode::Hard, T0);
    put("again", 1, 50_500);
    assert_eq!(look(&zone, "again", T0), "fresh");
    for name in ["carol1", "carol2", "carol3"] {
        put(name, 3, 10);
    }
    zone.purge(
        PurgeTarget::Key(key("carol3").as_ref()),
        PurgeMode::Hard,
        T0,
    );
    put("carol4", 3, 10);
    let found = ["carol1", "carol2", "carol4"].map(|k| look(&zone, k, T0));
    assert_eq!(found, ["fresh", "fresh", "fresh"]);
}

/// Least recently used, to compare with.
#[derive(Default)]
struct Lru {
    order: VecDeque<(u64, u64)>,
    last: HashMap<u64, u64>,
    clock: u64,
}

impl Lru {
    fn hit(&mut self, item: u64, capacity: usize) -> bool {
        self.clock += 1;
        let hit = self.last.insert(item, self.clock).is_some();
        self.order.push_back((item, self.clock));
        while self.last.len() > capacity {
            let Some((oldest, at)) = self.order.pop_front() else {
                break;
            };
            if self.last.get(&oldest) == Some(&at) {
                self.last.remove(&oldest);
            }
        }
        hit
    }
}

#[test]
fn eviction_keeps_more_hits_than_lru_on_a_skewed_trace_with_scans() {
    let (items, capacity, requests) = (5_000, 500, 100_000);
    let zone = Zone::new(ZoneConfig {
        memory_budget_bytes: 1 << 20,
        shards: 1,
        inactive: BIG,
        ..Default::default()
    });
    // The budget that holds `capacity` responses.
    let fixed = zone.stats().used_bytes;
    put(&zone, "item-00000", 60, 10).expect("stored");
    let each = zone.stats().used_bytes - fixed;
    let config = ZoneConfig {
        memory_budget_bytes: fixed + each * capacity as u64,
        ..zone.config.clone()
    };
    let zone = Zone::new(config);

    let mut sums: Vec<f64> = Vec::new();
    for rank in 1..=items {
        sums.push(sums.last().copied().unwrap_or(0.0) + 1.0 / f64::from(rank).powf(0.9));
    }
    let total = sums.last().copied().unwrap_or(1.0);
    let (mut random, mut lru, mut lru_hits) = (Random(7), Lru::default(), 0u64);
    for request in 0..requests {
        // A crawler comes by: every tenth request is for something that visitors do not ask for.
        let item = match request % 10 {
            0 => 20_000 + request % 70_000,
            _ => sums.partition_point(|&sum| sum < random.unit() * total) as u64,
        };
        lru_hits += u64::from(lru.hit(item, capacity));
        let name = format!("item-{item:05}");
        if look(&zone, &name, T0) != "fresh" {
            put(&zone, &name, 60, 10).expect("stored");
        }
    }
    let hits = zone.stats().hits;
    assert!(
        hits > lru_hits + lru_hits / 50,
        "SIEVE {hits}, LRU {lru_hits} of {requests}"
    );
}
