//! Whether a stale stored response may be served: pure decisions.
//!
//! Two rules count: the operator's ([`UseStale`], as `fastcgi_cache_use_stale`) and the response's
//! own (RFC 5861 windows). `must-revalidate` overrides both, as RFC 9111 §5.2.2.2 asks, unless the
//! operator ignores it by name. Neither goes beyond the operator's bounds ([`StaleBounds`]):
//!
//! ```text
//!   fresh ──┬── while_renewed ──┬── while_failing ──────────────┬── never
//!           │ shown at once     │ shown where the upstream      │
//!           │                   │ fails, or has failed lately   │
//! ```

use std::time::Duration;

/// How long a failure counts: within this time of one, a stale response is served at once, for as
/// long as it may be served at all, instead of waiting for an upstream that has just failed. Short,
/// since an upstream that is back is not asked meanwhile.
const FAILURE_COUNTS_FOR: Duration = Duration::from_secs(10);

/// The facts of [`crate::Zone::find`] about a stale response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleInfo {
    /// How long ago it stopped being fresh.
    pub past_expiry: Duration,
    /// The response's window for serving while refreshing.
    pub stale_while_revalidate: Duration,
    /// The response's window for serving on errors.
    pub stale_if_error: Duration,
    /// The response's own rule about serving it stale.
    pub rule: StaleRule,
    /// A purge has marked it stale: whatever is configured, it may be shown while it is refreshed.
    pub is_purged: bool,
    /// A purge of it may have been missed ([`crate::Zone::void`]), or a visitor was shown another answer
    /// ([`crate::StoredResponse::doubt`]): it stands in for a fetch that failed, if the operator allows that, and is not used
    /// otherwise.
    pub is_void: bool,
    /// How long ago it last stood in for a fetch that failed; none if it never has.
    pub last_failure: Option<Duration>,
}

/// A response's rule about serving it stale (RFC 9111 §4.2.4), the most permissive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleRule {
    /// Nothing: it may be served where the upstream cannot be reached.
    Unsaid,
    /// `s-maxage`: only where the operator or the response itself allows it (§5.2.2.10).
    Shared,
    /// `must-revalidate` or `proxy-revalidate`: only where the operator allows it by name.
    MustRevalidate,
    /// `no-cache`: never, it is validated on each use (§5.2.2.4).
    NoCache,
}

impl StaleInfo {
    /// Returns the facts after `time` has passed.
    #[must_use]
    pub fn after(self, time: Duration) -> StaleInfo {
        StaleInfo {
            past_expiry: self.past_expiry.saturating_add(time),
            last_failure: self.last_failure.map(|ago| ago.saturating_add(time)),
            ..self
        }
    }

    fn has_failed_lately(&self) -> bool {
        self.last_failure
            .is_some_and(|ago| ago < FAILURE_COUNTS_FOR)
    }
}

/// The longest times past its freshness lifetime that a response is served, by rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleBounds {
    /// While it is renewed, and the upstream can keep up.
    pub while_renewed: Duration,
    /// While the upstream fails or too many wait for it.
    pub while_failing: Duration,
}

impl StaleBounds {
    fn allow(&self, reason: StaleReason, stale: &StaleInfo) -> bool {
        let bound = match reason {
            StaleReason::Updating if !stale.has_failed_lately() => self.while_renewed,
            _ => self.while_failing,
        };
        stale.past_expiry < bound
    }
}

/// Why one would serve stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleReason {
    /// A refresh is under way.
    Updating,
    /// The upstream could not be reached or the connection broke.
    Error,
    /// The upstream took too long.
    Timeout,
    /// The upstream's answer made no sense.
    InvalidHeader,
    /// The queue for the upstream is full or too long.
    QueueFull,
    /// The upstream answered with this status.
    Status(u16),
}

/// The operator's conditions, one flag each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UseStale {
    /// `updating`: while a refresh is under way.
    pub updating: bool,
    /// `error`: also when the queue is full.
    pub error: bool,
    /// `timeout`.
    pub timeout: bool,
    /// `invalid_header`.
    pub invalid_header: bool,
    /// `http_500`, `http_503`, ...: these statuses.
    pub statuses: Vec<u16>,
    /// Serve stale even a response with `must-revalidate`.
    pub override_must_revalidate: bool,
    /// How long past its lifetime a response of [`StaleRule::Unsaid`] is served if the upstream
    /// cannot be reached (RFC 9111 §4.2.4), whatever the flags are.
    pub when_disconnected: Duration,
    /// None: for as long as the response is kept, or itself allows.
    pub bounds: Option<StaleBounds>,
}

/// Returns whether a stale response may be served for this reason.
#[must_use]
pub fn may_serve_stale(reason: StaleReason, allowed: &UseStale, stale: &StaleInfo) -> bool {
    let is_for_failure = !matches!(reason, StaleReason::Updating | StaleReason::QueueFull);
    if stale.is_void && !is_for_failure {
        return false;
    }
    let is_refreshed = stale.is_purged && reason == StaleReason::Updating;
    match stale.rule {
        StaleRule::NoCache => return false,
        StaleRule::MustRevalidate if !is_refreshed && !allowed.override_must_revalidate => {
            return false;
        }
        _ => {}
    }
    if allowed
        .bounds
        .is_some_and(|bounds| !bounds.allow(reason, stale))
    {
        return false;
    }
    let by_operator = match reason {
        StaleReason::Updating => allowed.updating,
        StaleReason::Error | StaleReason::QueueFull => allowed.error,
        StaleReason::Timeout => allowed.timeout,
        StaleReason::InvalidHeader => allowed.invalid_header,
        StaleReason::Status(status) => allowed.statuses.contains(&status),
    };
    if stale.is_void {
        return by_operator;
    }
    let is_disconnected = reason == StaleReason::Error
        && stale.rule == StaleRule::Unsaid
        && stale.past_expiry < allowed.when_disconnected;
    is_refreshed || by_operator || is_disconnected || by_response(reason, stale)
}

/// RFC 5861: §3 for refreshing, §4 for errors (a 5xx of these four or no answer at all).
fn by_response(reason: StaleReason, stale: &StaleInfo) -> bool {
    let window = match reason {
        StaleReason::Updating => stale.stale_while_revalidate,
        StaleReason::Status(500 | 502 | 503 | 504)
        | StaleReason::Error
        | StaleReason::Timeout
        | StaleReason::InvalidHeader
        | StaleReason::QueueFull => stale.stale_if_error,
        StaleReason::Status(_) => return false,
    };
    stale.past_expiry < window
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: StaleInfo = StaleInfo {
        past_expiry: Duration::from_secs(5),
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
        rule: StaleRule::Unsaid,
        is_purged: false,
        is_void: false,
        last_failure: None,
    };

    #[test]
    fn operator_or_response_allow_serving_stale_unless_revalidation_is_a_must() {
        let off = UseStale::default();
        let some = UseStale {
            updating: true,
            error: true,
            statuses: vec![404],
            ..off.clone()
        };
        let over = UseStale {
            override_must_revalidate: true,
            ..some.clone()
        };
        let swr = StaleInfo {
            stale_while_revalidate: Duration::from_secs(6),
            ..INFO
        };
        let sie = StaleInfo {
            stale_if_error: Duration::from_secs(6),
            ..INFO
        };
        let over_sie = StaleInfo {
            stale_if_error: Duration::from_secs(5),
            ..INFO
        };
        let must = StaleInfo {
            rule: StaleRule::MustRevalidate,
            ..swr
        };
        let disconnected = UseStale {
            when_disconnected: Duration::from_secs(10),
            ..off.clone()
        };
        let of = |rule| StaleInfo { rule, ..INFO };
        use StaleReason::*;
        #[rustfmt::skip]
        let cases = [
            ("nobody allows", &off, INFO, Updating, false),
            ("operator allows updating", &some, INFO, Updating, true),
            ("operator allows errors, so also a full queue", &some, INFO, QueueFull, true),
            ("operator did not name timeout", &some, INFO, Timeout, false),
            ("operator named the status", &some, INFO, Status(404), true),
            ("operator did not name the status", &some, INFO, Status(500), false),
            ("response allows while revalidating", &off, swr, Updating, true),
            ("that is no word about errors", &off, swr, Error, false),
            ("response allows on error", &off, sie, Status(503), true),
            ("a 404 is no error", &off, sie, Status(404), false),
            ("window over", &off, over_sie, Error, false),
            ("must-revalidate silences both", &some, must, Updating, false),
            ("unless overridden", &over, must, Updating, true),
            ("§4.2.4: the origin is gone", &disconnected, INFO, Error, true),
            (
                "§4.2.4: for a bounded time", &disconnected,
                StaleInfo { past_expiry: Duration::from_secs(10), ..INFO }, Error, false,
            ),
            ("§4.2.4: a slow origin is not gone", &disconnected, INFO, Timeout, false),
            ("§4.2.4: nor is one that fails", &disconnected, INFO, Status(503), false),
            ("§5.2.2.10: s-maxage", &disconnected, of(StaleRule::Shared), Error, false),
            ("§5.2.2.2: must-revalidate", &disconnected, of(StaleRule::MustRevalidate), Error, false),
            ("§5.2.2.4: no-cache", &disconnected, of(StaleRule::NoCache), Error, false),
            ("no-cache, whatever is named", &over, of(StaleRule::NoCache), Error, false),
            (
                "no-cache, while it is refreshed after a purge", &over,
                StaleInfo { is_purged: true, ..of(StaleRule::NoCache) }, Updating, false,
            ),
            ("s-maxage, where errors are named", &some, of(StaleRule::Shared), Error, true),
        ];
        for (name, allowed, info, reason, expected) in cases {
            assert_eq!(may_serve_stale(reason, allowed, &info), expected, "{name}");
        }
    }

    #[test]
    fn what_is_void_stands_in_for_failures_where_the_operator_says_so_and_for_nothing_else() {
        let void = StaleInfo {
            is_void: true,
            stale_while_revalidate: Duration::from_secs(60),
            stale_if_error: Duration::from_secs(60),
            ..INFO
        };
        let named = UseStale {
            updating: true,
            error: true,
            when_disconnected: Duration::from_secs(60),
            ..UseStale::default()
        };
        let unnamed = UseStale {
            error: false,
            ..named.clone()
        };
        for (reason, by_named) in [
            (StaleReason::Error, true),
            (StaleReason::Timeout, false),
            (StaleReason::Updating, false),
            (StaleReason::QueueFull, false),
            (StaleReason::Status(503), false),
        ] {
            assert_eq!(
                may_serve_stale(reason, &named, &void),
                by_named,
                "{reason:?}"
            );
            assert!(!may_serve_stale(reason, &unnamed, &void), "{reason:?}");
        }
    }

    #[test]
    fn bounds_cap_operator_and_response() {
        const fn secs(secs: u64) -> Duration {
            Duration::from_secs(secs)
        }
        let named = UseStale {
            updating: true,
            error: true,
            statuses: vec![500],
            bounds: Some(StaleBounds {
                while_renewed: secs(10),
                while_failing: secs(100),
            }),
            ..UseStale::default()
        };
        let by_response = UseStale {
            bounds: named.bounds,
            ..UseStale::default()
        };
        let stale = |past_expiry, last_failure: Option<u64>| StaleInfo {
            past_expiry: secs(past_expiry),
            stale_while_revalidate: secs(1000),
            stale_if_error: secs(1000),
            last_failure: last_failure.map(secs),
            ..INFO
        };
        use StaleReason::*;
        let cases = [
            ("within the first", stale(9, None), Updating, true),
            ("at the first", stale(10, None), Updating, false),
            ("failed just now", stale(10, Some(0)), Updating, true),
            ("failed lately", stale(99, Some(9)), Updating, true),
            ("failed long ago", stale(99, Some(10)), Updating, false),
            ("failed, but too old", stale(100, Some(0)), Updating, false),
            ("an error", stale(99, None), Error, true),
            ("a full queue", stale(99, None), QueueFull, true),
            ("a status", stale(99, None), Status(500), true),
            ("an error at the second", stale(100, None), Error, false),
            ("a queue at the second", stale(100, None), QueueFull, false),
            (
                "a status at the second",
                stale(100, None),
                Status(500),
                false,
            ),
        ];
        for (name, info, reason, expected) in cases {
            assert_eq!(may_serve_stale(reason, &named, &info), expected, "{name}");
            assert_eq!(
                may_serve_stale(reason, &by_response, &info),
                expected,
                "{name}, by the response"
            );
            let later = info.after(secs(1000));
            assert!(!may_serve_stale(reason, &named, &later), "{name}, later");
        }
        // They allow nothing by themselves.
        let nobody = StaleInfo {
            stale_while_revalidate: secs(0),
            ..stale(1, None)
        };
        assert!(!may_serve_stale(Updating, &by_response, &nobody));
    }
}
