//! That a foreseen decision is the one that is made, is checked with each decision (`decide/tests.rs`).

use std::time::Duration;

use http_cache::Forward;

use super::*;
use crate::audience::Audience;
use crate::testing::{T0, TestRequest, TestUpstream, TestZone, head, rules};

const FIVE_SECONDS: (&str, &str) = ("cache-control", "max-age=5");

fn past() -> Decision {
    Decision::forwarded(Action::Alone, Forward::Bypass, Some(Reason::Bypass))
}

#[test]
fn what_is_stored_is_shown_with_what_it_varies_on_whatever_is_decided() {
    let rules = Arc::new(rules());
    let head = head(&["Accept-Language: de"]);
    let upstream = TestUpstream::default();
    let varying = TestZone::new(&[FIVE_SECONDS, ("vary", "x-other")]);
    #[rustfmt::skip]
    let cases = [
        (TestZone::new(&[FIVE_SECONDS]), None, 0, ("Hit", true, false)),
        (TestZone::new(&[FIVE_SECONDS]), Some(past()), 0, ("Alone", true, false)),
        (TestZone::new(&[FIVE_SECONDS]), None, 6, ("Collapse", true, false)),
        (TestZone::new(&[FIVE_SECONDS]), Some(past()), 6, ("Alone", true, false)),
        (varying, None, 0, ("Hit", true, true)),
        (TestZone::new(&[]), None, 0, ("Collapse", false, false)),
    ];
    for (test, past, seconds, shown) in cases {
        let now = T0.plus(Duration::from_secs(seconds));
        let mut plan = Plan::new(
            (&test.zone, &rules),
            test.key.clone(),
            Audience::Everybody,
            past,
        );
        let seen = foresee(&mut plan, &head, &upstream, (UseCount::Foreseen, now));
        let action = format!("{:?}", seen.decision.action);
        let seen = (&*action, seen.stored.is_some(), seen.varies_on.is_some());
        assert_eq!(seen, shown, "after {seconds} s");
    }
}

#[test]
fn a_refusal_is_foreseen_by_the_request_by_the_moment_or_by_the_last_response() {
    let rules = Arc::new(rules());
    let collapse = |why| Decision::forwarded(Action::Collapse, Forward::UriMiss, why);
    let alone = TestRequest {
        no_cache: true,
        ..TestRequest::default()
    };
    let authorized = TestRequest {
        is_authorized: true,
        ..TestRequest::default()
    };
    let with_cookie = TestRequest {
        has_cookie: true,
        ..TestRequest::default()
    };
    let plain = TestRequest::default;
    let (miss, few) = (collapse(None), collapse(Some(Reason::MinUses)));
    let full = collapse(Some(Reason::TooManyVariants));
    let by_request = |why| Some(ForeseenReason::ByRequest(why));
    let by_moment = |why| Some(ForeseenReason::ByMoment(why));
    let by_last = |why| Some(ForeseenReason::ByLast(refusal(why)));
    #[rustfmt::skip]
    let cases = [
        (None, &miss, plain(), None, None),
        (Some(past()), &past(), plain(), None, by_request(Reason::Bypass)),
        (Some(past()), &past(), plain(), Some(Reason::Private), by_request(Reason::Bypass)),
        (None, &Decision::HIT, alone.clone(), Some(Reason::Private), None),
        (None, &few, alone.clone(), Some(Reason::Private), by_moment(Reason::MinUses)),
        (None, &miss, alone, Some(Reason::Private), by_request(Reason::Condition)),
        (None, &miss, plain(), Some(Reason::Private), by_last(Reason::Private)),
        // Another visitor's request had credentials, or cookies.
        (None, &miss, plain(), Some(Reason::Authorization), None),
        (None, &miss, authorized, Some(Reason::Authorization), by_last(Reason::Authorization)),
        (None, &full, plain(), Some(Reason::CookieOutsideKey), by_moment(Reason::TooManyVariants)),
        (None, &full, with_cookie, Some(Reason::CookieOutsideKey), by_last(Reason::CookieOutsideKey)),
    ];
    for (past, decision, request, last, expected) in cases {
        let test = TestZone::new(&[]);
        if let Some(why) = last {
            test.zone.note_refusal(&test.key.as_ref(), refusal(why));
        }
        let key = test.key.clone();
        let plan = Plan::new((&test.zone, &rules), key, Audience::Everybody, past);
        let foreseen = foresee_refusal(&plan, decision, &mut request.clone());
        assert_eq!(foreseen, expected, "{decision:?} {last:?}");
    }
}

fn refusal(why: Reason) -> Refusal {
    Refusal {
        why,
        status: 200,
        at: T0,
    }
}
