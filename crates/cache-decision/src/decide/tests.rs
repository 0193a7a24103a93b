use std::time::Duration;

use http_cache::FoundResponse;
use shared_request::{Class, Rules};
use site::SharedRules;

use super::*;
use crate::facts::PurgeReach;
use crate::foresight::foresee;
use crate::plan::UseCount;
use crate::testing::{T0, TestRequest, TestUpstream, TestZone, condition, head, named, rules};

fn shared() -> CacheRules {
    CacheRules {
        shared: Some(Box::new(SharedRules {
            request: Arc::new(Rules::default()),
            key: None,
            crawler_lifetime: None,
            not_found: None,
            litespeed: false,
            guest_sessions: site::GuestSessions::Off,
        })),
        ..rules()
    }
}

/// A decision in a word, with its reason.
fn shown(decision: &Decision) -> (&'static str, Option<Forward>, Option<Reason>) {
    let action = match &decision.action {
        Action::Off => "off",
        Action::Purge(PurgeReach::Zone) => "purge",
        Action::Purge(PurgeReach::OwnHost) => "purge own host",
        Action::RefusePurge => "refuse",
        Action::Invalidate => "invalidate",
        Action::Direct => "direct",
        Action::Alone => "alone",
        Action::Validate(_) => "validate",
        Action::Collapse => "collapse",
        Action::CollapseLater => "collapse later",
        Action::Prove => "prove",
        Action::Hit => "hit",
        Action::ShowStale(_, ServedFrom::StaleError) => "stale for an error",
        Action::ShowStale(..) => "stale",
        Action::Refresh(_) => "refresh",
    };
    (action, decision.forward, decision.reason)
}

/// Returns the decision before the lookup; `None`: the request is looked up.
fn before(
    request: TestRequest,
    rules: &CacheRules,
) -> Option<(&'static str, Option<Forward>, Option<Reason>)> {
    match before_lookup(&mut request.clone(), rules) {
        Ok((_, past)) => past.as_ref().map(shown),
        Err(decision) => Some(shown(&decision)),
    }
}

#[test]
fn a_plain_get_is_looked_up() {
    assert_eq!(before(TestRequest::default(), &rules()), None);
    assert_eq!(before(TestRequest::default(), &shared()), None);
}

#[test]
fn methods_are_forwarded_and_writes_invalidate() {
    let of = |method| TestRequest {
        method,
        ..TestRequest::default()
    };
    let by_method = |action| Some((action, Some(Forward::Method), Some(Reason::Method)));
    for (method, expected) in [
        (Method::Head, None),
        (Method::Post, by_method("invalidate")),
        (Method::Put, by_method("invalidate")),
        (Method::Delete, by_method("invalidate")),
        (Method::Options, by_method("off")),
        (Method::Purge, by_method("off")),
        // RFC 9111 §4.4: whether they are safe is not known.
        (Method::Other, by_method("invalidate")),
    ] {
        assert_eq!(before(of(method), &rules()), expected, "{method:?}");
    }
    let unconverted = CacheRules {
        convert_head: false,
        ..rules()
    };
    assert_eq!(before(of(Method::Head), &unconverted), by_method("off"));
}

#[test]
fn a_post_is_looked_up_by_a_body_in_memory() {
    let mut posts = rules();
    posts.methods.post = true;
    for (body, expected) in [
        (BodyPlace::None, None),
        (BodyPlace::Memory, None),
        (
            BodyPlace::Elsewhere,
            Some(("off", Some(Forward::Bypass), Some(Reason::Body))),
        ),
    ] {
        let request = TestRequest {
            method: Method::Post,
            body,
            ..TestRequest::default()
        };
        assert_eq!(before(request, &posts), expected, "{body:?}");
    }
}

#[test]
fn a_get_with_a_body_is_for_one_client_where_the_application_may_see_it() {
    let request = |passes_body| TestRequest {
        body: BodyPlace::Memory,
        passes_body,
        ..TestRequest::default()
    };
    let direct = Some(("direct", Some(Forward::Bypass), Some(Reason::Body)));
    assert_eq!(before(request(true), &rules()), direct);
    assert_eq!(before(request(false), &rules()), None);
    assert_eq!(before(request(false), &shared()), direct);
}

#[test]
fn a_request_that_bypasses_is_stored_unless_it_is_for_one_visitor() {
    let bypasses = |rules: CacheRules| CacheRules {
        bypass: condition("1"),
        ..rules
    };
    let plain = TestRequest::default;
    let writer = || TestRequest {
        is_writer: true,
        ..plain()
    };
    let personal = || TestRequest {
        audience: Err(Reason::Cookie),
        ..plain()
    };
    let upgrade = || TestRequest {
        is_upgrade: true,
        ..plain()
    };
    for (request, rules, action, why) in [
        (plain(), bypasses(rules()), "alone", Reason::Bypass),
        (plain(), bypasses(shared()), "direct", Reason::Bypass),
        (writer(), rules(), "direct", Reason::OwnWrite),
        (writer(), bypasses(rules()), "direct", Reason::OwnWrite),
        (personal(), shared(), "direct", Reason::Cookie),
        (upgrade(), rules(), "direct", Reason::Upgrade),
        (upgrade(), bypasses(rules()), "direct", Reason::Upgrade),
    ] {
        let expected = Some((action, Some(Forward::Bypass), Some(why)));
        assert_eq!(before(request, &rules), expected);
    }
    let zero = CacheRules {
        bypass: condition("0"),
        ..rules()
    };
    assert_eq!(before(plain(), &zero), None);
}

#[test]
fn ranges_far_back_are_not_looked_up() {
    let limited = CacheRules {
        max_range_offset: Some(100),
        ..rules()
    };
    let past = Some(("direct", Some(Forward::Bypass), Some(Reason::Range)));
    for (range, expected) in [
        (None, None),
        (Some(&b"bytes=99-"[..]), None),
        (Some(b"bytes=100-"), past),
        (Some(b"bytes=-5"), past),
        (Some(b"lines=1-2"), past),
    ] {
        let request = TestRequest {
            range,
            ..TestRequest::default()
        };
        assert_eq!(before(request.clone(), &limited), expected, "{range:?}");
        assert_eq!(before(request, &rules()), None, "{range:?}");
    }
}

#[test]
fn without_a_lease_requests_go_past_what_is_stored_and_what_is_under_way() {
    let with = |stored_use| TestRequest {
        stored_use,
        ..TestRequest::default()
    };
    let past = |action| Some((action, Some(Forward::Bypass), Some(Reason::NoLease)));
    let request = || with(StoredUse::Forbidden);
    assert_eq!(before(request(), &rules()), past("collapse later"));
    let unlocked = CacheRules {
        lock: false,
        ..rules()
    };
    assert_eq!(before(request(), &unlocked), past("alone"));
    assert_eq!(before(with(StoredUse::WithoutPromise), &rules()), None);
}

#[test]
fn a_purge_needs_its_condition_and_a_client_that_may() {
    let of = |method, reach| TestRequest {
        method,
        reach,
        ..TestRequest::default()
    };
    let purges = |value| CacheRules {
        purge: condition(value),
        ..rules()
    };
    let purge = |action| Some((action, None, Some(Reason::Purge)));
    let zone = Some(PurgeReach::Zone);
    for (method, value, reach, expected) in [
        (Method::Purge, "1", zone, purge("purge")),
        (Method::Get, "1", zone, purge("purge")),
        (
            Method::Purge,
            "1",
            Some(PurgeReach::OwnHost),
            purge("purge own host"),
        ),
        (Method::Purge, "1", None, Some(("refuse", None, None))),
        (Method::Get, "0", zone, None),
    ] {
        let request = of(method, reach);
        assert_eq!(before(request, &purges(value)), expected, "{method:?}");
    }
    // A program on this machine may not purge, and is refused.
    let here = TestRequest {
        is_here: true,
        ..of(Method::Purge, None)
    };
    assert_eq!(
        before(here.clone(), &purges("0")),
        Some(("refuse", None, None))
    );
    let method = Some(("off", Some(Forward::Method), Some(Reason::Method)));
    assert_eq!(before(here, &rules()), method);
    // Elsewhere the application answers it.
    assert_eq!(before(of(Method::Purge, None), &purges("0")), method);
}

impl TestZone {
    /// Returns the decision after this time.
    fn decided(
        &self,
        rules: CacheRules,
        audience: Audience,
        upstream: TestUpstream,
        after: Duration,
    ) -> (&'static str, Option<Forward>, Option<Reason>) {
        let (rules, now) = (Arc::new(rules), T0.plus(after));
        let mut plan = Plan::new((&self.zone, &rules), self.key.clone(), audience, None);
        let head = head(&["Accept-Language: de"]);
        let foreseen = foresee(&mut plan, &head, &upstream, (UseCount::Foreseen, now));
        plan.count_use(UseCount::Noted, now);
        let decided = match self.zone.find(&self.key.as_ref(), &plan.fields(&head), now) {
            FoundResponse::Fresh(_) => shown(&Decision::HIT),
            FoundResponse::NotFresh(found) => {
                let stand_in = StandIn::of(&found, &rules, now);
                shown(&after_lookup(&plan, &found, &stand_in, &upstream, now))
            }
        };
        assert_eq!(shown(&foreseen.decision), decided, "as `explain` says");
        decided
    }
}

const FIVE_SECONDS: (&str, &str) = ("cache-control", "max-age=5");
const IDLE: TestUpstream = TestUpstream {
    queue_length: 0,
    is_crawler: false,
    leaves_out_refresh: false,
};

#[test]
fn a_miss_is_collapsed_if_requests_wait_for_each_other() {
    let test = TestZone::new(&[]);
    let decided = |rules| test.decided(rules, Audience::Everybody, IDLE, Duration::ZERO);
    let miss = Some(Forward::UriMiss);
    assert_eq!(decided(rules()), ("collapse", miss, None));
    let lock = false;
    assert_eq!(
        decided(CacheRules { lock, ..rules() }),
        ("alone", miss, None)
    );
}

#[test]
fn a_response_is_stored_once_its_key_was_asked_for_often_enough() {
    let test = TestZone::new(&[]);
    let thrice = || CacheRules {
        min_uses: 3,
        ..rules()
    };
    let decided = || test.decided(thrice(), Audience::Everybody, IDLE, Duration::ZERO);
    let too_few = ("direct", Some(Forward::UriMiss), Some(Reason::MinUses));
    assert_eq!(decided(), too_few);
    assert_eq!(decided(), too_few);
    assert_eq!(decided(), ("collapse", Some(Forward::UriMiss), None));
}

#[test]
fn what_cannot_be_shared_is_fetched_without_others() {
    let test = TestZone::new(&[]);
    let until = T0.plus(Duration::from_secs(5));
    let key = test.key.as_ref();
    test.zone
        .remember_not_shareable(&key, Reason::Private, until);
    let class = Audience::Class(Class::Desktop, None);
    for (audience, action) in [(Audience::Everybody, "alone"), (class, "direct")] {
        let decided = test.decided(rules(), audience, IDLE, Duration::ZERO);
        assert_eq!(
            decided,
            (action, Some(Forward::Miss), Some(Reason::Private))
        );
    }
}

#[test]
fn another_variant_may_make_one_leave() {
    let test = TestZone::new(&[FIVE_SECONDS, ("vary", "accept-language")]);
    let decided = test.decided(rules(), Audience::Everybody, IDLE, Duration::ZERO);
    let full = Some(Reason::TooManyVariants);
    assert_eq!(decided, ("collapse", Some(Forward::VaryMiss), full));
    let decision = Decision::forwarded(Action::Collapse, Forward::VaryMiss, full);
    assert_eq!(decision.why_not_kept(), None);
}

#[test]
fn a_stale_response_is_shown_as_the_rules_and_the_response_let() {
    let plain = || TestZone::new(&[FIVE_SECONDS]);
    let revalidated = || {
        TestZone::new(&[(
            "cache-control",
            "max-age=5, stale-while-revalidate=60, stale-if-error=60",
        )])
    };
    let stands_in = || TestZone::new(&[("cache-control", "max-age=5, stale-if-error=60")]);
    let updating = || {
        let mut rules = CacheRules {
            background_update: true,
            ..rules()
        };
        named(&mut rules).updating = true;
        rules
    };
    let mut not_in_background = updating();
    not_in_background.background_update = false;
    let queued = CacheRules {
        queue_stale: Some(2),
        ..rules()
    };
    let full = TestUpstream {
        leaves_out_refresh: true,
        ..IDLE
    };
    let long = TestUpstream {
        queue_length: 3,
        ..IDLE
    };
    let crawler = TestUpstream {
        queue_length: 1,
        is_crawler: true,
        ..IDLE
    };
    let crawler_alone = TestUpstream {
        queue_length: 0,
        ..crawler
    };
    let visitor = TestUpstream {
        is_crawler: false,
        ..crawler
    };
    let stale = ("collapse", Some(Forward::Stale), None);
    // RFC 9111 §5.2.2.4: not even while it is fetched anew.
    let no_cache = TestZone::new(&[("cache-control", "no-cache"), ("etag", "\"a\"")]);
    let validated = ("validate", Some(Forward::Stale), Some(Reason::NoCache));
    let said = |action| (action, None, None);
    for (test, rules, upstream, expected) in [
        (plain(), rules(), IDLE, stale),
        (plain(), updating(), IDLE, said("refresh")),
        (plain(), updating(), full, said("stale")),
        (plain(), not_in_background, IDLE, stale),
        (stands_in(), rules(), crawler_alone, stale),
        (stands_in(), rules(), visitor, stale),
        (stands_in(), rules(), crawler, said("stale for an error")),
        (revalidated(), queued, long, said("stale for an error")),
        (no_cache, updating(), IDLE, validated),
    ] {
        let after = Duration::from_secs(6);
        let decided = test.decided(rules, Audience::Everybody, upstream, after);
        assert_eq!(decided, expected);
    }
}

#[test]
fn a_request_shows_a_stale_response_before_it_waits() {
    let test = TestZone::new(&[FIVE_SECONDS]);
    let mut rules = rules();
    named(&mut rules).updating = true;
    let (updating, plain) = (Arc::new(rules), Arc::new(crate::testing::rules()));
    let now = T0.plus(Duration::from_secs(6));
    let head = head(&[]);
    let part = |rules: &Arc<CacheRules>, is_own_visit| {
        let key = test.key.clone();
        let plan = Plan::new((&test.zone, rules), key, Audience::Everybody, None);
        let fields = plan.fields(&head);
        let FoundResponse::NotFresh(found) = test.zone.find(&plan.key.as_ref(), &fields, now)
        else {
            panic!("it is stale");
        };
        let stand_in = StandIn::of(&found, rules, now);
        let join = plan.join_request(&fields, b"", now);
        let join = test.zone.collapse(&join, &found);
        in_flight(join, &plan.audience, &stand_in, is_own_visit, now)
    };
    let leading = part(&plain, false);
    assert!(matches!(leading, FlightPart::Lead(_)));
    assert!(matches!(part(&updating, false), FlightPart::ShowStale(_)));
    assert!(matches!(part(&plain, false), FlightPart::Follow(_)));
    assert!(matches!(part(&plain, true), FlightPart::Busy));
}
