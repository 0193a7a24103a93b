//! Whether a response may be stored, and for how long (RFC 9111 §3).
//!
//! [`decide`] gives a [`Storable`], or the named reason not to store the response. Safe by default:
//! a response with `Set-Cookie`, one to a request with `Authorization`, one with `private` and one
//! without a lifetime are not stored unless the policy allows it by name.

use crate::fields::{Field, RequestFields, first, values};
use crate::freshness::{Lifetime, LifetimeSource, initial_age, lifetime};
use crate::policy::Policy;
use crate::purge::clock::is_not_found;
use crate::reason::Reason;
use crate::time::Millis;
use crate::vary::VaryKey;
use std::sync::Arc;
use std::time::Duration;

/// The facts of the request that the decision needs.
#[derive(Clone, Copy)]
pub struct RequestFacts<'a> {
    /// The method, as sent.
    pub method: &'a [u8],
    /// The request's fields.
    pub fields: &'a dyn RequestFields,
    /// A configured condition (as in `fastcgi_no_cache`) forbids storing.
    pub no_store_condition: bool,
    /// How often the key was asked for, this time included ([`crate::Zone::count_use`]).
    pub uses: u32,
}

/// The facts of the response that the decision needs.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'a> {
    /// Status code.
    pub status: u16,
    /// All fields as the upstream sent them.
    pub fields: &'a [Field],
    /// The body's length where it is known already.
    pub declared_length: Option<u64>,
}

/// A response that may be stored and shared.
#[derive(Clone, Debug)]
pub struct Storable {
    /// Freshness lifetime, counted from the response's generation.
    pub lifetime: Duration,
    /// The one that the application has set, from now on and without the bound of the policy. `None`: it has set none, or
    /// a rule holds in its place.
    pub said: Option<Duration>,
    /// The source of the lifetime.
    pub source: LifetimeSource,
    /// Age when it was received (RFC 9111 §4.2.3).
    pub age_at_receipt: Duration,
    /// How long past its lifetime it may be served while being refreshed.
    pub stale_while_revalidate: Duration,
    /// How long past its lifetime it may be served when the upstream fails.
    pub stale_if_error: Duration,
    /// Never to be served stale on the response's own account.
    pub must_revalidate: bool,
    /// The fields of `Vary`, with this request's values.
    pub vary: Option<Arc<VaryKey>>,
    /// May be shared with collapsed requests but not stored, and why (minimum uses).
    pub share_only: Option<Reason>,
}

/// Most specific reason first: a response gets the same word whatever other reasons there are.
///
/// # Errors
/// The named reason why the response may not be stored or shared.
pub fn decide(
    request: &RequestFacts<'_>,
    response: &ResponseFacts<'_>,
    policy: &Policy,
    now: Millis,
) -> Result<Storable, Reason> {
    if request.no_store_condition {
        return Err(Reason::Condition);
    }
    if !policy.methods.contains(request.method) {
        return Err(Reason::Method);
    }
    match response.status {
        206 if !policy.stores_partial => return Err(Reason::Partial),
        200..=303 | 305..=999 => {}
        _ => return Err(Reason::Status),
    }
    if !policy.ignore.set_cookie && first(response.fields, "set-cookie").is_some() {
        return Err(Reason::SetCookie);
    }
    let not_found = policy.not_found.filter(|_| is_not_found(response.status));
    let found = match not_found {
        Some(lifetime) => Lifetime::of_rule(lifetime),
        None => match lifetime(response.status, response.fields, policy, now) {
            Err(Reason::NoCache) if is_validated_on_use(request, response, policy) => {
                Lifetime::NONE_BUT_VALIDATED
            }
            found => found?,
        },
    };
    if !policy.store_authorized && !found.allows_authorized && request.fields.has("authorization") {
        return Err(Reason::Authorization);
    }
    if found.source == LifetimeSource::Heuristic && request.fields.has("cookie") {
        return Err(Reason::CookieOutsideKey);
    }
    if response
        .declared_length
        .is_some_and(|len| len > policy.max_response_bytes)
    {
        return Err(Reason::TooLarge);
    }
    let vary = if policy.ignore.vary {
        None
    } else {
        VaryKey::of(values(response.fields, "vary"), request.fields)?.map(Arc::new)
    };
    storable(found, response, policy, vary, request.uses, now)
}

/// May a response with `no-cache` be stored? It needs a validator. The 304 that lets it be shown to another
/// visitor may say no more than that the data is the same, so that the page itself must have been made for no one in particular.
fn is_validated_on_use(
    request: &RequestFacts<'_>,
    response: &ResponseFacts<'_>,
    policy: &Policy,
) -> bool {
    let has = |name| first(response.fields, name).is_some();
    policy.stores_no_cache
        && response.status == 200
        && (has("etag") || has("last-modified"))
        && !request.fields.has("cookie")
        && !request.fields.has("authorization")
}

fn storable(
    found: Lifetime,
    response: &ResponseFacts<'_>,
    policy: &Policy,
    vary: Option<Arc<VaryKey>>,
    uses: u32,
    now: Millis,
) -> Result<Storable, Reason> {
    let age_at_receipt = match found.source.counts_age() {
        true => initial_age(response.fields, now),
        false => Duration::ZERO,
    };
    if found.source.counts_age() && found.lifetime <= age_at_receipt {
        return Err(Reason::ZeroLifetime);
    }
    let is_bounded = policy.not_found.is_none() || !is_not_found(response.status);
    let lifetime = match policy.max_fresh.filter(|_| is_bounded) {
        // It counts from the response's generation, and the bound from now.
        Some(most) => found.lifetime.min(most.saturating_add(age_at_receipt)),
        None => found.lifetime,
    };
    let is_said = !matches!(
        found.source,
        LifetimeSource::Rule | LifetimeSource::Heuristic
    );
    Ok(Storable {
        lifetime,
        said: is_said.then(|| found.lifetime.saturating_sub(age_at_receipt)),
        source: found.source,
        age_at_receipt,
        stale_while_revalidate: found
            .stale_while_revalidate
            .unwrap_or(policy.stale_while_revalidate),
        stale_if_error: found.stale_if_error.unwrap_or(policy.stale_if_error),
        must_revalidate: found.must_revalidate,
        vary,
        share_only: (uses < policy.min_uses).then_some(Reason::MinUses),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{IgnoreFields, Methods, StatusSet, ValidRule};
    use crate::testing::{T0, fields};

    struct Case {
        method: &'static [u8],
        request: &'static [&'static str],
        status: u16,
        response: &'static [&'static str],
        declared: Option<u64>,
        condition: bool,
    }

    const PLAIN: Case = Case {
        method: b"GET",
        request: &[],
        status: 200,
        response: &["Cache-Control: max-age=60"],
        declared: None,
        condition: false,
    };

    fn check(policy: &Policy, case: &Case) -> Result<(), Reason> {
        let request_fields = fields(case.request);
        let request = RequestFacts {
            method: case.method,
            fields: &request_fields,
            no_store_condition: case.condition,
            uses: 1,
        };
        let response_fields = fields(case.response);
        let response = ResponseFacts {
            status: case.status,
            fields: &response_fields,
            declared_length: case.declared,
        };
        decide(&request, &response, policy, T0).map(drop)
    }

    #[test]
    fn a_bound_holds_whatever_gives_the_lifetime() {
        let policy = Policy {
            max_fresh: Some(Duration::from_secs(2)),
            valid: vec![ValidRule {
                statuses: StatusSet::Any,
                lifetime: Duration::from_secs(5),
            }],
            ..Policy::default()
        };
        let none = fields(&[]);
        let request = RequestFacts {
            method: b"GET",
            fields: &none,
            no_store_condition: false,
            uses: 1,
        };
        let cases: [(&[&str], u64); 6] = [
            (&[], 2),
            (&["Cache-Control: s-maxage=18000"], 2),
            (&["Cache-Control: s-maxage=18000", "Age: 100"], 102),
            (&["X-Accel-Expires: 18000"], 2),
            (&["Expires: Wed, 01 Jan 2098 00:00:00 GMT"], 2),
            (&["Cache-Control: max-age=1"], 1),
        ];
        for (response, seconds) in cases {
            let response = ResponseFacts {
                status: 200,
                fields: &fields(response),
                declared_length: None,
            };
            let stored = decide(&request, &response, &policy, T0).unwrap();
            let fresh = Duration::from_secs(seconds);
            assert_eq!(stored.lifetime, fresh, "{:?}", response.fields);
        }
    }

    #[test]
    fn an_answer_that_there_is_no_page_has_a_lifetime_of_its_own() {
        let policy = Policy {
            max_fresh: Some(Duration::from_secs(1)),
            not_found: Some(Duration::from_secs(300)),
            ..Policy::default()
        };
        let none = fields(&[]);
        let request = RequestFacts {
            method: b"GET",
            fields: &none,
            no_store_condition: false,
            uses: 1,
        };
        let cases: [(u16, &[&str], Result<u64, Reason>); 6] = [
            (
                404,
                &["Cache-Control: no-cache, must-revalidate, max-age=0"],
                Ok(300),
            ),
            (410, &["Cache-Control: no-store, private"], Ok(300)),
            (404, &["Cache-Control: s-maxage=18000"], Ok(300)),
            (404, &["Set-Cookie: a=b"], Err(Reason::SetCookie)),
            (403, &["Cache-Control: no-cache"], Err(Reason::NoCache)),
            (200, &["Cache-Control: max-age=60"], Ok(1)),
        ];
        for (status, response, wanted) in cases {
            let response = ResponseFacts {
                status,
                fields: &fields(response),
                declared_length: None,
            };
            let stored = decide(&request, &response, &policy, T0);
            let lifetime = stored.map(|stored| stored.lifetime.as_secs());
            assert_eq!(lifetime, wanted, "{status} {:?}", response.fields);
        }
    }

    #[test]
    fn no_cache_is_stored_where_it_can_be_validated_and_was_made_for_no_one() {
        let policy = Policy {
            stores_no_cache: true,
            ..Policy::default()
        };
        const WITH_ETAG: &[&str] = &["Cache-Control: no-cache, max-age=60", "ETag: \"a\""];
        let no_cache = Case {
            response: WITH_ETAG,
            ..PLAIN
        };
        let refused = Err(Reason::NoCache);
        #[rustfmt::skip]
        let cases: [(&str, Case, Result<(), Reason>); 8] = [
            ("§5.2.2.4: an entity tag", no_cache, Ok(())),
            (
                "§5.2.2.4: a date",
                Case {
                    response: &["Cache-Control: no-cache", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"], ..PLAIN
                },
                Ok(()),
            ),
            ("nothing to validate", Case { response: &["Cache-Control: no-cache"], ..PLAIN }, refused),
            ("made for a cookie", Case { request: &["Cookie: a=b"], response: WITH_ETAG, ..PLAIN }, refused),
            (
                "made for credentials",
                Case { request: &["Authorization: Basic eDp5"], response: WITH_ETAG, ..PLAIN }, refused,
            ),
            ("an error", Case { status: 404, response: WITH_ETAG, ..PLAIN }, refused),
            (
                "private as well", Case { response: &["Cache-Control: private, no-cache", "ETag: \"a\""], ..PLAIN },
                Err(Reason::Private),
            ),
            (
                "sets a cookie",
                Case { response: &["Cache-Control: no-cache", "ETag: \"a\"", "Set-Cookie: a=b"], ..PLAIN },
                Err(Reason::SetCookie),
            ),
        ];
        for (name, case, expected) in cases {
            assert_eq!(check(&policy, &case), expected, "{name}");
            assert!(
                check(&Policy::default(), &case).is_err(),
                "{name}, by default"
            );
        }
    }

    #[test]
    fn safe_by_default() {
        let policy = Policy {
            max_response_bytes: 1000,
            ..Policy::default()
        };
        let with_credentials: &[&str] = &["Authorization: Basic eDp5"];
        #[rustfmt::skip]
        let cases = [
            ("plain", PLAIN, Ok(())),
            ("head", Case { method: b"HEAD", ..PLAIN }, Ok(())),
            ("post", Case { method: b"POST", ..PLAIN }, Err(Reason::Method)),
            ("lower case is another method", Case { method: b"get", ..PLAIN }, Err(Reason::Method)),
            ("unknown method", Case { method: b"BREW", ..PLAIN }, Err(Reason::Method)),
            ("error with a lifetime of its own", Case { status: 500, ..PLAIN }, Ok(())),
            ("error without", Case { status: 500, response: &[], ..PLAIN }, Err(Reason::NoLifetime)),
            ("interim", Case { status: 103, ..PLAIN }, Err(Reason::Status)),
            ("not modified", Case { status: 304, ..PLAIN }, Err(Reason::Status)),
            ("part", Case { status: 206, ..PLAIN }, Err(Reason::Partial)),
            (
                "cookie", Case { response: &["Cache-Control: max-age=60", "Set-Cookie: a=b"], ..PLAIN },
                Err(Reason::SetCookie),
            ),
            ("credentials", Case { request: with_credentials, ..PLAIN }, Err(Reason::Authorization)),
            (
                "credentials, public",
                Case { request: with_credentials, response: &["Cache-Control: public, max-age=60"], ..PLAIN },
                Ok(()),
            ),
            (
                "credentials, s-maxage",
                Case { request: with_credentials, response: &["Cache-Control: s-maxage=60"], ..PLAIN }, Ok(()),
            ),
            (
                "credentials, must-revalidate",
                Case {
                    request: with_credentials, response: &["Cache-Control: max-age=60, must-revalidate"], ..PLAIN
                },
                Ok(()),
            ),
            ("condition", Case { condition: true, ..PLAIN }, Err(Reason::Condition)),
            (
                "varies on everything", Case { response: &["Cache-Control: max-age=60", "Vary: *"], ..PLAIN },
                Err(Reason::VaryStar),
            ),
            ("as large as allowed", Case { declared: Some(1000), ..PLAIN }, Ok(())),
            ("too large", Case { declared: Some(1001), ..PLAIN }, Err(Reason::TooLarge)),
        ];
        for (name, case, expected) in cases {
            assert_eq!(check(&policy, &case), expected, "{name}");
        }
    }

    #[test]
    fn rules_allow_by_name() {
        let ignore = IgnoreFields {
            set_cookie: true,
            vary: true,
            ..IgnoreFields::default()
        };
        let any = ValidRule {
            statuses: StatusSet::Any,
            lifetime: Duration::from_secs(1),
        };
        let methods = Methods {
            get_head: true,
            post: true,
        };
        let policy = Policy {
            ignore,
            valid: vec![any],
            methods,
            store_authorized: true,
            ..Policy::default()
        };
        let case = Case {
            method: b"POST",
            request: &["Authorization: Basic eDp5"],
            status: 503,
            response: &["Set-Cookie: a=b", "Vary: *"],
            ..PLAIN
        };
        assert_eq!(check(&policy, &case), Ok(()));
    }

    #[test]
    fn below_minimum_uses_a_response_is_shared_but_not_stored() {
        let policy = Policy {
            min_uses: 3,
            ..Policy::default()
        };
        let response = fields(&["Cache-Control: max-age=60"]);
        for (uses, expected) in [
            (1, Some(Reason::MinUses)),
            (2, Some(Reason::MinUses)),
            (3, None),
        ] {
            let request = RequestFacts {
                method: b"GET",
                fields: &fields(&[]),
                no_store_condition: false,
                uses,
            };
            let response = ResponseFacts {
                status: 200,
                fields: &response,
                declared_length: None,
            };
            let found = decide(&request, &response, &policy, T0).expect("storable");
            assert_eq!(found.share_only, expected, "{uses}");
        }
    }

    #[test]
    fn every_reason_has_its_own_word_and_a_sentence() {
        let words: std::collections::HashSet<_> = Reason::ALL.iter().map(|r| r.word()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert!(reason.sentence().ends_with('.'), "{}", reason.word());
            assert!(
                reason
                    .word()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'-')
            );
        }
    }
}
