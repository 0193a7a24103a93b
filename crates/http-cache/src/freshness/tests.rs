use super::*;
use crate::policy::IgnoreFields;
use crate::testing::{T0, decide_200, fields};
use crate::{RequestFacts, ResponseFacts, decide};

/// Response lines, and the lifetime in milliseconds or the reason not to store the response.
type Case<'a> = (&'a str, &'a [&'a str], Result<u64, Reason>);

fn check(policy: &Policy, cases: &[Case<'_>]) {
    for (name, lines, expected) in cases {
        let found = decide_200(&[], &fields(lines), policy);
        let millis = found.map(|s| s.lifetime.as_millis() as u64);
        assert_eq!(millis, *expected, "{name}");
    }
}

#[test]
fn first_voice_that_speaks_gives_the_lifetime() {
    let minute = ValidRule {
        statuses: StatusSet::Any,
        lifetime: Duration::from_secs(60),
    };
    let policy = Policy {
        valid: vec![minute],
        ..Policy::default()
    };
    let past = "Expires: Thu, 01 Jan 1970 00:00:01 GMT";
    check(
        &policy,
        &[
            ("rule when nothing is said", &[], Ok(60_000)),
            (
                "rule when nothing about time is said",
                &["Cache-Control: public"],
                Ok(60_000),
            ),
            ("accel in seconds", &["X-Accel-Expires: 5"], Ok(5_000)),
            ("accel in fractions", &["X-Accel-Expires: 0.5"], Ok(500)),
            (
                "accel without whole part",
                &["X-Accel-Expires: .25"],
                Ok(250),
            ),
            (
                "accel at a moment",
                &["X-Accel-Expires: @784111780"],
                Ok(3_000),
            ),
            (
                "accel at a fraction",
                &["X-Accel-Expires: @784111777.25"],
                Ok(250),
            ),
            (
                "accel at a moment gone by",
                &["X-Accel-Expires: @60"],
                Ok(0),
            ),
            (
                "accel zero forbids",
                &["X-Accel-Expires: 0"],
                Err(Reason::ZeroLifetime),
            ),
            (
                "accel zero beats max-age",
                &["Cache-Control: max-age=60", "X-Accel-Expires: 0"],
                Err(Reason::ZeroLifetime),
            ),
            (
                "accel off is invalid",
                &["X-Accel-Expires: off"],
                Ok(60_000),
            ),
            (
                "accel negative is invalid",
                &["X-Accel-Expires: -1"],
                Ok(60_000),
            ),
            (
                "accel two points is invalid",
                &["X-Accel-Expires: 1.2.3"],
                Ok(60_000),
            ),
            (
                "accel second is ignored",
                &["X-Accel-Expires: 60", "X-Accel-Expires: 0"],
                Ok(60_000),
            ),
            (
                "accel beats no-cache",
                &["X-Accel-Expires: 7", "Cache-Control: no-cache", past],
                Ok(7_000),
            ),
            (
                "targeted beats cache-control",
                &["CDN-Cache-Control: max-age=9", "Cache-Control: no-store"],
                Ok(9_000),
            ),
            (
                "targeted beats expires",
                &["CDN-Cache-Control: public", past],
                Ok(60_000),
            ),
            (
                "targeted can forbid",
                &["CDN-Cache-Control: no-store", "Cache-Control: max-age=60"],
                Err(Reason::NoStoreDirective),
            ),
            (
                "broken targeted is void",
                &[
                    "CDN-Cache-Control: max-age=9, =",
                    "Cache-Control: max-age=8",
                ],
                Ok(8_000),
            ),
            (
                "targeted quoted number is void",
                &["CDN-Cache-Control: max-age=\"9\""],
                Ok(60_000),
            ),
            (
                "s-maxage beats max-age",
                &["Cache-Control: max-age=1, s-maxage=2"],
                Ok(2_000),
            ),
            (
                "max-age beats expires",
                &["Cache-Control: max-age=3", past],
                Ok(3_000),
            ),
            (
                "expires in the future",
                &["Expires: Sun, 06 Nov 1994 08:49:47 GMT"],
                Ok(10_000),
            ),
            (
                "expires counts from date",
                &[
                    "Date: Sun, 06 Nov 1994 08:49:36 GMT",
                    "Expires: Sun, 06 Nov 1994 08:49:40 GMT",
                ],
                Ok(4_000),
            ),
            ("expires in the past", &[past], Err(Reason::ZeroLifetime)),
            ("expires zero", &["Expires: 0"], Err(Reason::ZeroLifetime)),
            (
                "expires that is no date",
                &["Expires: tomorrow"],
                Err(Reason::UnknownLifetime),
            ),
            (
                "expires twice",
                &[
                    "Expires: Sun, 06 Nov 1994 08:49:47 GMT",
                    "Expires: Sun, 06 Nov 1994 08:49:47 GMT",
                ],
                Err(Reason::ZeroLifetime),
            ),
            (
                "private",
                &["Cache-Control: private, max-age=3"],
                Err(Reason::Private),
            ),
            (
                "private with names",
                &["Cache-Control: private=\"a, b\", max-age=3"],
                Err(Reason::Private),
            ),
            (
                "no-cache with max-age",
                &["Cache-Control: no-cache", "Cache-Control: max-age=60"],
                Err(Reason::NoCache),
            ),
            (
                "no-store understood",
                &["Cache-Control: no-store, must-understand, max-age=4"],
                Ok(4_000),
            ),
        ],
    );
}

#[test]
fn cache_control_that_cannot_be_understood_counts_as_stale() {
    let stale = Err(Reason::UnknownLifetime);
    check(
        &Policy::default(),
        &[
            ("quoted", &["Cache-Control: max-age=\"10\""], Ok(10_000)),
            ("upper case", &["CACHE-CONTROL: MAX-AGE=10"], Ok(10_000)),
            (
                "leading zeros",
                &["Cache-Control: max-age=0010"],
                Ok(10_000),
            ),
            (
                "quoted comma before",
                &["Cache-Control: x=\"a,max-age=1\\\"\", max-age=10"],
                Ok(10_000),
            ),
            (
                "first of two",
                &["Cache-Control: max-age=10, max-age=20"],
                Ok(10_000),
            ),
            (
                "first of two lines",
                &["Cache-Control: max-age=10", "Cache-Control: max-age=0"],
                Ok(10_000),
            ),
            (
                "overflow is cut",
                &["Cache-Control: max-age=9223372036854775808"],
                Ok((1 << 31) * 1000),
            ),
            ("letters", &["Cache-Control: max-age=ten"], stale),
            ("trailing letter", &["Cache-Control: max-age=10a"], stale),
            ("negative", &["Cache-Control: max-age=-10"], stale),
            ("decimal", &["Cache-Control: max-age=1.5"], stale),
            ("single quotes", &["Cache-Control: max-age='10'"], stale),
            ("no value", &["Cache-Control: max-age"], stale),
            ("empty value", &["Cache-Control: max-age="], stale),
            (
                "space before number",
                &["Cache-Control: max-age= 10"],
                stale,
            ),
            (
                "space before equals is another directive",
                &["Cache-Control: max-age =10"],
                Err(Reason::NoLifetime),
            ),
            (
                "unknown only",
                &["Cache-Control: foo=bar"],
                Err(Reason::NoLifetime),
            ),
        ],
    );
}

#[test]
fn age_gathered_upstream_shortens_the_lifetime() {
    let left = |lines: &[&str]| {
        decide_200(&[], &fields(lines), &Policy::default())
            .map(|s| (s.lifetime - s.age_at_receipt).as_secs())
    };
    #[rustfmt::skip]
    let table: [(&str, &[&str], Result<u64, Reason>); 8] = [
        ("age", &["Cache-Control: max-age=10", "Age: 4"], Ok(6)),
        ("age as old as allowed", &["Cache-Control: max-age=10", "Age: 10"], Err(Reason::ZeroLifetime)),
        ("first age counts", &["Cache-Control: max-age=10", "Age: 4, 9"], Ok(6)),
        ("age that is no number", &["Cache-Control: max-age=10", "Age: -4"], Ok(10)),
        ("old date", &["Cache-Control: max-age=10", "Date: Sun, 06 Nov 1994 08:49:32 GMT"], Ok(5)),
        ("date of this second", &["Cache-Control: max-age=1", "Date: Sun, 06 Nov 1994 08:49:36 GMT"], Ok(1)),
        ("date ahead", &["Cache-Control: max-age=1", "Date: Sun, 06 Nov 1994 09:49:36 GMT"], Ok(1)),
        ("accel does not care", &["X-Accel-Expires: 10", "Age: 20"], Ok(10)),
    ];
    for (name, lines, expected) in table {
        assert_eq!(left(lines), expected, "{name}");
    }
}

#[test]
fn ignored_fields_are_silent() {
    let ignore = IgnoreFields {
        accel_expires: true,
        cache_control: true,
        expires: true,
        ..Default::default()
    };
    let policy = Policy {
        ignore,
        ..Policy::default()
    };
    check(
        &policy,
        &[(
            "all",
            &[
                "X-Accel-Expires: 0",
                "Cache-Control: no-store",
                "Expires: 0",
            ],
            Err(Reason::NoLifetime),
        )],
    );
}

#[test]
fn rules_apply_in_order_and_zero_forbids() {
    let rule = |statuses, secs| ValidRule {
        statuses,
        lifetime: Duration::from_secs(secs),
    };
    let rules = [
        rule(StatusSet::Of(vec![404]), 5),
        rule(StatusSet::Of(vec![500]), 0),
        rule(StatusSet::Any, 60),
    ];
    let policy = Policy {
        valid: rules.into(),
        ..Policy::default()
    };
    for (status, expected) in [
        (200, Ok(60)),
        (404, Ok(5)),
        (500, Err(Reason::ZeroLifetime)),
    ] {
        let found = lifetime(status, &[], &policy, T0).map(|l| l.lifetime.as_secs());
        assert_eq!(found, expected, "{status}");
    }
}

#[test]
fn heuristic_is_a_bounded_share_of_the_time_since_modified() {
    let policy = Policy {
        heuristic: Some((10, Duration::from_secs(50))),
        ..Policy::default()
    };
    check(
        &policy,
        &[
            (
                "a tenth",
                &["Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT"],
                Ok(10_000),
            ),
            (
                "bounded",
                &["Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT"],
                Ok(50_000),
            ),
            ("nothing to go by", &[], Err(Reason::NoLifetime)),
        ],
    );
    let modified = ["Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT"];
    let public = [modified[0], "Cache-Control: public"];
    let with_cookie = ["Cookie: a=b"];
    let no_lifetime = Err(Reason::NoLifetime);
    type Fields<'a> = &'a [&'a str];
    let cases: [(u16, Fields<'_>, Fields<'_>, Result<u64, Reason>); 7] = [
        (404, &[], &modified, Ok(10)),
        (201, &[], &modified, no_lifetime),
        (599, &[], &modified, no_lifetime),
        (599, &[], &public, Ok(10)),
        (206, &[], &public, Err(Reason::Partial)),
        (200, &with_cookie, &modified, Err(Reason::CookieOutsideKey)),
        (200, &with_cookie, &["Cache-Control: max-age=10"], Ok(10)),
    ];
    for (status, request, response, expected) in cases {
        let request = RequestFacts {
            method: b"GET",
            fields: &fields(request),
            no_store_condition: false,
            uses: 1,
        };
        let facts = ResponseFacts {
            status,
            fields: &fields(response),
            declared_length: None,
        };
        let found = decide(&request, &facts, &policy, T0);
        let lifetime = found.map(|found| found.lifetime.as_secs());
        assert_eq!(lifetime, expected, "{status} {response:?}");
    }
    check(
        &Policy::default(),
        &[(
            "off by default",
            &["Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT"],
            Err(Reason::NoLifetime),
        )],
    );
}

#[test]
fn stale_windows_are_heard_whoever_gave_the_lifetime() {
    let lines = [
        "X-Accel-Expires: 1",
        "Cache-Control: stale-while-revalidate=20, stale-if-error=x",
    ];
    let found = decide_200(&[], &fields(&lines), &Policy::default()).expect("storable");
    assert_eq!(found.stale_while_revalidate, Duration::from_secs(20));
    assert_eq!(found.stale_if_error, Duration::ZERO);
}

#[test]
fn arbitrary_values_never_panic() {
    let mut random = crate::testing::Random(1);
    let alphabet = b"max-age=s,\"\\ 019.@;\nno-store\xff";
    for _ in 0..20_000 {
        let len = random.below(40);
        let data: Vec<u8> = (0..len)
            .map(|_| alphabet[random.below(alphabet.len())])
            .collect();
        fuzz_cache_control(&data);
    }
}
