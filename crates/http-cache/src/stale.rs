//! Whether a stale stored response may be served: pure decisions.
//!
//! Two voices count: the operator's ([`UseStale`], as `fastcgi_cache_use_stale`) and the
//! response's own (RFC 5861 windows). `must-revalidate` silences both, as RFC 9111 §5.2.2.2 asks,
//! unless the operator overrides it by name.

use std::time::Duration;

/// What [`crate::Zone::lookup`] tells about a stale response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleInfo {
    /// How long ago it stopped being fresh.
    pub past_expiry: Duration,
    /// The response's window for serving while refreshing.
    pub stale_while_revalidate: Duration,
    /// The response's window for serving on errors.
    pub stale_if_error: Duration,
    /// The response forbids serving it stale.
    pub must_revalidate: bool,
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
    /// Serve stale even where the response says `must-revalidate`.
    pub override_must_revalidate: bool,
}

/// Whether a stale response may be served for this reason.
#[must_use]
pub fn may_serve_stale(reason: StaleReason, allowed: &UseStale, stale: &StaleInfo) -> bool {
    if stale.must_revalidate && !allowed.override_must_revalidate {
        return false;
    }
    let by_operator = match reason {
        StaleReason::Updating => allowed.updating,
        StaleReason::Error | StaleReason::QueueFull => allowed.error,
        StaleReason::Timeout => allowed.timeout,
        StaleReason::InvalidHeader => allowed.invalid_header,
        StaleReason::Status(status) => allowed.statuses.contains(&status),
    };
    by_operator || by_response(reason, stale)
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
        must_revalidate: false,
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
            must_revalidate: true,
            ..swr
        };
        use StaleReason::*;
        let cases = [
            ("nobody allows", &off, INFO, Updating, false),
            ("operator allows updating", &some, INFO, Updating, true),
            (
                "operator allows errors, so also a full queue",
                &some,
                INFO,
                QueueFull,
                true,
            ),
            ("operator did not name timeout", &some, INFO, Timeout, false),
            ("operator named the status", &some, INFO, Status(404), true),
            (
                "operator did not name the status",
                &some,
                INFO,
                Status(500),
                false,
            ),
            (
                "response allows while revalidating",
                &off,
                swr,
                Updating,
                true,
            ),
            ("that is no word about errors", &off, swr, Error, false),
            ("response allows on error", &off, sie, Status(503), true),
            ("a 404 is no error", &off, sie, Status(404), false),
            ("window over", &off, over_sie, Error, false),
            (
                "must-revalidate silences both",
                &some,
                must,
                Updating,
                false,
            ),
            ("unless overridden", &over, must, Updating, true),
        ];
        for (name, allowed, info, reason, expected) in cases {
            assert_eq!(may_serve_stale(reason, allowed, &info), expected, "{name}");
        }
    }
}
