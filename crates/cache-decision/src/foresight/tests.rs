//! What `explain` says is what happens: random requests at a real zone, each foreseen and then carried
//! out as the pipeline does it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{
    CacheKey, Forward, JoinRequest, Leader, Policy, PurgeMode, PurgeTarget,
    RequestFacts as StoringRequest, ResponseFacts, ResponseHead, ServedFrom, Zone, ZoneConfig,
};
use http_semantics::Method;
use shared_request::Class;
use site::{CacheRules, StaleTimes};

use super::*;
use crate::audience::Audience;
use crate::decide::{FlightPart, before_lookup, in_flight};
use crate::facts::{BodyPlace, PurgeReach};
use crate::testing::{Random, TestRequest, TestUpstream, condition, head, named, rules};

const REQUESTS: usize = 100_000;
const LANGUAGES: [&str; 3] = ["Accept-Language: de", "Accept-Language: en", "X-Other: 1"];

/// What became of a request.
#[derive(Debug, PartialEq)]
struct RequestFate {
    what: FateKind,
    forward: Option<Forward>,
    reason: Option<Reason>,
}

/// The same in kinds. Stored responses are told apart by where they lie.
#[derive(Debug, PartialEq)]
enum FateKind {
    NoLookup,
    Hit(*const StoredResponse),
    /// Shown stale; no fetch was to begin.
    Stale(*const StoredResponse, ServedFrom),
    /// Shown stale, and a fetch began or was under way.
    Refreshed(*const StoredResponse),
    /// Fetched for the cache, or waited for.
    Fetched,
    /// Fetched for one client.
    Direct,
}

fn kind(decision: &Decision) -> FateKind {
    match &decision.action {
        Action::Hit => FateKind::Hit(std::ptr::null()),
        Action::ShowStale(stored, served) => FateKind::Stale(Arc::as_ptr(stored), *served),
        Action::Refresh(stored) => FateKind::Refreshed(Arc::as_ptr(stored)),
        Action::Alone | Action::Collapse | Action::Validate(_) => FateKind::Fetched,
        Action::Direct => FateKind::Direct,
        Action::Off | Action::Purge(_) | Action::RefusePurge | Action::Invalidate => {
            FateKind::NoLookup
        }
    }
}

fn random_rules(random: &mut Random) -> CacheRules {
    let mut rules = CacheRules {
        min_uses: 1 + random.below(2) as u32,
        lock: !random.one_in(4),
        background_update: random.one_in(2),
        convert_head: !random.one_in(4),
        ..rules()
    };
    rules.methods.post = random.one_in(4);
    named(&mut rules).updating = random.one_in(2);
    named(&mut rules).error = random.one_in(2);
    if random.one_in(8) {
        rules.bypass = condition("1");
    }
    if random.one_in(16) {
        rules.purge = condition("1");
    }
    rules.max_range_offset = random.one_in(2).then_some(100);
    rules.queue_stale = random.one_in(2).then_some(1);
    rules.stale = random.one_in(4).then_some(StaleTimes {
        while_renewed: Duration::from_secs(1),
        while_failing: Duration::from_secs(2),
    });
    rules
}

fn random_request(random: &mut Random) -> TestRequest {
    let plain = TestRequest::default();
    let methods = [Method::Head, Method::Post, Method::Put, Method::Purge];
    TestRequest {
        method: match random.one_in(4) {
            true => methods[random.below(4) as usize],
            false => plain.method,
        },
        body: [BodyPlace::Memory, BodyPlace::Elsewhere, BodyPlace::None]
            [random.below(12).min(2) as usize],
        is_upgrade: random.one_in(32),
        reach: (!random.one_in(4)).then_some(PurgeReach::Zone),
        audience: match random.below(16) {
            0 => Err(Reason::Cookie),
            1..6 => Ok(Audience::Class(Class::Desktop, None)),
            _ => Ok(Audience::Everybody),
        },
        is_writer: random.one_in(32),
        range: random.one_in(8).then_some(&b"bytes=200-"[..]),
        no_cache: random.one_in(8),
        ..plain
    }
}

/// A zone, fetches under way, and what the application will answer.
struct World {
    random: Random,
    zone: Arc<Zone>,
    now: Millis,
    under_way: Vec<(Leader, bool)>,
}

impl World {
    /// Ends a fetch. The application's answer may be stored, unless it is private.
    fn end(&mut self, leader: Leader, no_cache: bool) {
        let is_private = self.random.one_in(4);
        let control = match is_private {
            true => "private",
            false => "max-age=3, stale-while-revalidate=2, stale-if-error=2",
        };
        let vary = ["accept-language", "x-other"][self.random.below(2) as usize];
        let fields = [("cache-control", control), ("vary", vary)];
        let fields = fields.map(|(name, value)| (Bytes::from(name), Bytes::from(value)));
        let request = StoringRequest {
            method: b"GET",
            fields: &http_cache::NoFields,
            no_store_condition: no_cache,
            uses: 1,
        };
        let response = ResponseFacts {
            status: 200,
            fields: &fields,
            declared_length: None,
        };
        let decided = http_cache::decide(&request, &response, &Policy::default(), self.now);
        match decided {
            Err(why) => {
                let remembered = Duration::from_secs(self.random.below(3));
                leader.not_shareable(why, remembered, self.now);
            }
            Ok(storable) => {
                let stored = ResponseHead {
                    status: 200,
                    reason: b"",
                    fields: &fields,
                    declared_length: None,
                };
                let mut arriving = leader.publish_head(&stored, &storable, self.now);
                arriving.push(Bytes::from_static(b"page"), self.now);
                // It may have been purged meanwhile.
                let _ = arriving.complete(self.now);
            }
        }
    }

    /// Ends the fetch now, or leaves it under way for those who come next.
    fn fetch(&mut self, leader: Leader, no_cache: bool) {
        match self.random.one_in(3) {
            true => self.under_way.push((leader, no_cache)),
            false => self.end(leader, no_cache),
        }
    }

    /// Time passes, fetches end, pages are purged.
    fn go_on(&mut self) {
        self.now = self
            .now
            .plus(Duration::from_millis(self.random.below(1000)));
        if self.random.one_in(3) && !self.under_way.is_empty() {
            let at = self.random.below(self.under_way.len() as u64) as usize;
            let (leader, no_cache) = self.under_way.swap_remove(at);
            match self.random.one_in(8) {
                true => leader.failed(),
                false => self.end(leader, no_cache),
            }
        }
        let key = CacheKey::new(vec![b'0' + self.random.below(4) as u8]);
        let mode = match self.random.below(64) {
            0 => PurgeMode::Hard,
            1..4 => PurgeMode::Soft,
            _ => return,
        };
        self.zone
            .purge(PurgeTarget::Key(key.as_ref()), mode, self.now);
    }

    /// Carries a request out, as the pipeline does.
    fn carry_out(
        &mut self,
        mut plan: Plan<'_>,
        head: &RequestHead,
        upstream: TestUpstream,
        no_cache: bool,
    ) -> RequestFate {
        let (zone, now) = (self.zone.clone(), self.now);
        let as_decided = |decision: &Decision, what| RequestFate {
            what,
            forward: decision.forward,
            reason: decision.reason,
        };
        let join = |plan: &Plan<'_>, run: &mut dyn FnMut(&JoinRequest<'_>)| {
            run(&plan.join_request(&plan.fields(head), b"", now));
        };
        if let Some(past) = plan.past.clone() {
            if let Action::Alone = past.action {
                let mut leader = None;
                join(&plan, &mut |join| leader = Some(zone.detached(join)));
                self.end(leader.unwrap(), no_cache);
            }
            return as_decided(&past, kind(&past));
        }
        let found = match zone.find(&plan.key.as_ref(), &plan.fields(head), now) {
            FoundResponse::NotFresh(found) => found,
            FoundResponse::Fresh(stored) => {
                return as_decided(&Decision::HIT, FateKind::Hit(Arc::as_ptr(&stored)));
            }
        };
        plan.came_at = zone.stamp();
        plan.count_use(UseCount::Noted, now);
        let stand_in = StandIn::of(&found, plan.rules, now);
        let decision = after_lookup(&plan, &found, &stand_in, &upstream, now);
        let what = match &decision.action {
            Action::Refresh(stored) => {
                let mut leader = None;
                join(&plan, &mut |join| leader = zone.refresh(join, &found));
                if let Some(leader) = leader {
                    self.fetch(leader, no_cache);
                }
                FateKind::Refreshed(Arc::as_ptr(stored))
            }
            Action::Collapse => {
                let mut part = None;
                join(&plan, &mut |join| part = Some(zone.collapse(join, &found)));
                match in_flight(part.unwrap(), &plan.audience, &stand_in, false, now) {
                    FlightPart::Lead(leader) => {
                        self.fetch(leader, no_cache);
                        FateKind::Fetched
                    }
                    FlightPart::Follow(_) | FlightPart::ShowStale(_) => FateKind::Fetched,
                    part => panic!("nothing happened since the lookup: {part:?}"),
                }
            }
            Action::Alone => {
                let mut leader = None;
                join(&plan, &mut |join| leader = Some(zone.detached(join)));
                self.end(leader.unwrap(), no_cache);
                FateKind::Fetched
            }
            _ => kind(&decision),
        };
        as_decided(&decision, what)
    }
}

#[test]
fn what_explain_says_is_what_happens() {
    let mut world = World {
        random: Random(25),
        zone: Zone::new(ZoneConfig {
            max_variants: 2,
            shards: 1,
            ..ZoneConfig::default()
        }),
        now: Millis(784_111_777_000),
        under_way: Vec::new(),
    };
    let mut seen = std::collections::BTreeMap::new();
    for number in 0..REQUESTS {
        world.go_on();
        let rules = Arc::new(random_rules(&mut world.random));
        let request = random_request(&mut world.random);
        let upstream = TestUpstream {
            queue_length: world.random.below(3) as usize,
            leaves_out_refresh: world.random.one_in(4),
        };
        let key = CacheKey::new(vec![b'0' + world.random.below(4) as u8]);
        let head = head(&[LANGUAGES[world.random.below(3) as usize]]);
        let zone = world.zone.clone();
        let plan = || match before_lookup(&mut request.clone(), &rules) {
            Ok((audience, past)) => Ok(Plan::new((&zone, &rules), key.clone(), audience, past)),
            Err(decision) => Err(decision),
        };

        let (foreseen, happened) = match (plan(), plan()) {
            (Ok(mut explained), Ok(carried_out)) => {
                let count = (UseCount::Foreseen, world.now);
                let seen = foresee(&mut explained, &head, &upstream, count);
                let why = foresee_refusal(&explained, &seen.decision, &mut request.clone());
                let what = match (kind(&seen.decision), &seen.stored) {
                    (FateKind::Hit(_), Some(stored)) => FateKind::Hit(Arc::as_ptr(stored)),
                    (what, _) => what,
                };
                let foreseen = RequestFate {
                    what,
                    forward: seen.decision.forward,
                    reason: seen.decision.reason,
                };
                let happened = world.carry_out(carried_out, &head, upstream, request.no_cache);
                if let Some(ForeseenReason::ByMoment(why)) = why {
                    assert_eq!(happened.reason, Some(why), "request {number}");
                }
                (foreseen, happened)
            }
            (Err(explained), Err(decided)) => {
                let happened = |decision: &Decision| RequestFate {
                    what: kind(decision),
                    forward: decision.forward,
                    reason: decision.reason,
                };
                (happened(&explained), happened(&decided))
            }
            _ => panic!("one request, two plans"),
        };
        assert_eq!(foreseen, happened, "request {number}");
        let kinds = seen.entry(format!("{:?}", happened.forward)).or_insert(0);
        *kinds += 1;
        if let FateKind::Hit(_) | FateKind::Stale(..) | FateKind::Refreshed(_) = happened.what {
            *seen
                .entry(kind_word(&happened.what).to_owned())
                .or_insert(0) += 1;
        }
    }
    // Each of them has happened, and often.
    for word in [
        "hit",
        "stale",
        "refreshed",
        "Some(Bypass)",
        "Some(Method)",
        "Some(Stale)",
    ]
    .into_iter()
    .chain(["Some(UriMiss)", "Some(VaryMiss)", "Some(Miss)"])
    {
        let times = seen.get(word).copied().unwrap_or(0);
        assert!(times > REQUESTS / 1000, "{word}: {times} times");
    }
}

fn kind_word(what: &FateKind) -> &'static str {
    match what {
        FateKind::Hit(_) => "hit",
        FateKind::Stale(..) => "stale",
        FateKind::Refreshed(_) => "refreshed",
        _ => "",
    }
}
