//! The meaning of a collector's answer for a batch, and when the batch is tried again
//! (<https://opentelemetry.io/docs/specs/otlp/#failures>).

use std::time::{Duration, SystemTime};

/// The outcome of one try to send a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The collector took all spans except `rejected`.
    Taken { rejected: u64, message: String },
    /// The collector may take it later.
    Later {
        reason: String,
        /// No sooner than that.
        after: Option<Duration>,
    },
    /// It never will.
    Refused { reason: String },
}

/// The pause before the second try; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);
/// A collector is not waited for longer than that, whatever it asks for.
const LONGEST_ASKED: Duration = Duration::from_secs(120);

/// Codes of gRPC after which a batch is sent again. RESOURCE_EXHAUSTED (8) is one of them only if
/// the collector sends a time.
const GRPC_LATER: [u32; 6] = [1, 4, 10, 11, 14, 15];
const GRPC_EXHAUSTED: u32 = 8;

/// The pause after `tries` tries. `asked`: the pause that the collector asks for.
pub fn pause(tries: u32, asked: Option<Duration>) -> Duration {
    let own = FIRST_PAUSE
        .saturating_mul(1 << tries.saturating_sub(1).min(8))
        .min(LONGEST_PAUSE);
    asked.map_or(own, |asked| asked.clamp(own, LONGEST_ASKED))
}

/// Returns the outcome for an HTTP status; the body has the number of rejected spans.
pub fn of_http(status: u16, retry_after: Option<Duration>, reason: &str) -> Outcome {
    let reason = match reason.is_empty() {
        true => format!("it answered {status}"),
        false => format!("it answered {status}: {reason}"),
    };
    match status {
        429 | 502 | 503 | 504 => Outcome::Later {
            reason,
            after: retry_after,
        },
        _ => Outcome::Refused { reason },
    }
}

/// Returns the outcome for a gRPC code other than 0.
pub fn of_grpc(code: u32, retry_after: Option<Duration>, message: &str) -> Outcome {
    let reason = match message.is_empty() {
        true => format!("it answered with code {code} of gRPC"),
        false => format!("it answered with code {code} of gRPC: {message}"),
    };
    let later = GRPC_LATER.contains(&code) || (code == GRPC_EXHAUSTED && retry_after.is_some());
    match later {
        true => Outcome::Later {
            reason,
            after: retry_after,
        },
        false => Outcome::Refused { reason },
    }
}

/// `Retry-After`: seconds, or a date (RFC 9110 §10.2.3).
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let moment = httpdate::parse_http_date(value).ok()?;
            Some(moment.duration_since(now).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_codes_tell_whether_to_try_again() {
        let is_later = |outcome| matches!(outcome, Outcome::Later { .. });
        for (status, later) in [
            (400, false),
            (401, false),
            (404, false),
            (413, false),
            (429, true),
            (500, false),
            (502, true),
            (503, true),
            (504, true),
        ] {
            assert_eq!(is_later(of_http(status, None, "")), later, "{status}");
        }
        for (code, later) in [
            (2, false),
            (3, false),
            (8, false),
            (12, false),
            (14, true),
            (16, false),
        ] {
            assert_eq!(is_later(of_grpc(code, None, "")), later, "{code}");
        }
        assert!(is_later(of_grpc(8, Some(Duration::from_secs(1)), "")));
    }

    #[test]
    fn pauses_grow_and_what_the_collector_asks_for_is_kept_within_bounds() {
        let seconds =
            |tries, asked: Option<u64>| pause(tries, asked.map(Duration::from_secs)).as_secs();
        assert_eq!(
            (1..8).map(|tries| seconds(tries, None)).collect::<Vec<_>>(),
            [1, 2, 4, 8, 16, 16, 16]
        );
        assert_eq!(seconds(u32::MAX, None), 16);
        assert_eq!(seconds(1, Some(7)), 7);
        assert_eq!(seconds(4, Some(0)), 8);
        assert_eq!(seconds(1, Some(1_000_000)), 120);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        let read = |value| retry_after(value, now).map(|it| it.as_secs());
        assert_eq!(read(" 3 "), Some(3));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:27 GMT"), Some(0));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-1"), None);
    }
}
