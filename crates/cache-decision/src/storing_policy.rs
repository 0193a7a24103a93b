//! The directives' rules for storing and for stale responses, in the cache's terms.

use std::time::Duration;

use http_cache::{IgnoreFields, Methods, Policy, StaleBounds, StatusSet, UseStale, ValidRule};
use shared_request::Class;
use site::{CacheRules, LiftedByPurges, Revalidation};

use crate::audience::Audience;
use crate::plan::Plan;

/// The longest time for which a visitor's own copy is shown, whether or not anything has changed: a session that no page
/// touches for longer may be removed by PHP (`session.gc_maxlifetime`, 24 minutes by default).
pub const MAX_OF_OWN_COPY: Duration = Duration::from_secs(300);

/// `cache_heuristic`: percent of the time since `Last-Modified`, as RFC 9111 §4.2.2 suggests, and the
/// longest lifetime that comes of it.
const HEURISTIC: (u32, Duration) = (10, Duration::from_secs(24 * 60 * 60));

/// Without a line of `*_cache_use_stale`: how long past its lifetime a response is served where the
/// upstream cannot be reached (RFC 9111 §4.2.4). A restart of the upstream takes less.
const WHEN_DISCONNECTED: Duration = Duration::from_secs(10 * 60);

/// The storing policy that a plan's rules and the upstream's settings add up to.
pub fn storing_policy(plan: &Plan<'_>, exchange: &site::Exchange) -> Policy {
    let rules = plan.rules;
    let ignored = exchange.ignored_fields;
    let at_least = match (&rules.shared, plan.audience.class()) {
        (Some(shared), Some(Class::Crawler)) => shared.crawler_lifetime.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    Policy {
        methods: Methods {
            get_head: true,
            post: rules.methods.post,
        },
        ignore: IgnoreFields {
            accel_expires: ignored.x_accel_expires,
            cache_control: ignored.cache_control,
            expires: ignored.expires,
            // `*_ignore_headers` is not used here: it would hand one visitor's session to all.
            set_cookie: rules.stores_set_cookie,
            vary: ignored.vary,
        },
        valid: rules
            .valid
            .iter()
            .map(|rule| ValidRule {
                statuses: match rule.statuses.as_slice() {
                    [] => StatusSet::Any,
                    statuses => StatusSet::Of(statuses.to_vec()),
                },
                lifetime: rule.lifetime.max(at_least),
            })
            .collect(),
        not_found: plan
            .audience
            .class()
            .and(rules.shared.as_ref())
            .and_then(|shared| shared.not_found)
            // The application's own rule decides who may share a page with cookies.
            .filter(|_| plan.audience.cookies().is_none())
            // A crawler gets a 404 that is as old as a page may be.
            .map(|lifetime| lifetime.max(at_least)),
        max_fresh: match plan.audience {
            Audience::Visitor(_) => {
                let most = max_valid(plan).unwrap_or(MAX_OF_OWN_COPY);
                Some(most.min(MAX_OF_OWN_COPY))
            }
            _ => max_valid(plan).map(|most| most.max(at_least)),
        },
        store_authorized: rules.stores_authorized,
        heuristic: rules.heuristic.then_some(HEURISTIC),
        stores_no_cache: rules.revalidation != Revalidation::Off
            && matches!(plan.audience, Audience::Everybody),
        min_uses: rules.min_uses,
        ..Policy::default()
    }
}

/// `cache_max_valid`, unless the application's purges are known to arrive.
fn max_valid(plan: &Plan<'_>) -> Option<Duration> {
    let most = plan.rules.max_valid?;
    let arrivals = plan.zone.purge_arrivals();
    let is_lifted = match most.lifted {
        LiftedByPurges::Never => false,
        LiftedByPurges::OnceSeen => arrivals.is_known(false),
        LiftedByPurges::FromStart => arrivals.is_known(true),
    };
    (!is_lifted).then_some(most.time)
}

/// `*_cache_use_stale` in the cache's terms.
pub fn use_stale(rules: &CacheRules) -> UseStale {
    let Some(named) = &rules.use_stale else {
        return UseStale {
            when_disconnected: WHEN_DISCONNECTED,
            bounds: stale_bounds(rules),
            ..UseStale::default()
        };
    };
    let statuses = [500, 502, 503, 504, 403, 404, 429];
    UseStale {
        updating: named.updating,
        error: named.error,
        timeout: named.timeout,
        invalid_header: named.invalid_header,
        statuses: statuses
            .into_iter()
            .filter(|&status| named.has_status(status))
            .collect(),
        // nginx's directive is the operator's word by name; it wins there too.
        override_must_revalidate: true,
        when_disconnected: Duration::ZERO,
        bounds: stale_bounds(rules),
    }
}

fn stale_bounds(rules: &CacheRules) -> Option<StaleBounds> {
    rules.stale.as_ref().map(|stale| StaleBounds {
        while_renewed: stale.while_renewed,
        while_failing: stale.while_failing,
    })
}
