//! The server's clock: one steady count of unix milliseconds for every thread,
//! and the texts that are made from it at most once a second per thread.
//!
//! Wall time is read once at the start and moved on by the monotonic clock, so
//! that a step of the system's clock neither expires nor revives a response.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

struct Origin {
    instant: Instant,
    unix: Duration,
    zone: TimeZone,
}

fn origin() -> &'static Origin {
    static ORIGIN: OnceLock<Origin> = OnceLock::new();
    ORIGIN.get_or_init(|| Origin {
        instant: Instant::now(),
        unix: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        zone: TimeZone::system(),
    })
}

/// Now, in unix milliseconds.
pub fn now() -> u64 {
    let origin = origin();
    u64::try_from((origin.unix + origin.instant.elapsed()).as_millis()).unwrap_or(u64::MAX)
}

/// Local date and time of a unix time in seconds.
pub fn local(unix_seconds: i64) -> jiff::Zoned {
    Timestamp::from_second(unix_seconds)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned(origin().zone.clone())
}

/// The texts of one second.
#[derive(Default)]
struct Texts {
    second: u64,
    http_date: String,
    log_time: String,
    iso8601: String,
    error_log: String,
}

thread_local! {
    static TEXTS: RefCell<Texts> = RefCell::default();
}

fn with_texts<R>(now_ms: u64, read: impl FnOnce(&Texts) -> R) -> R {
    TEXTS.with_borrow_mut(|texts| {
        let second = now_ms / 1000;
        if texts.second != second {
            let seconds = i64::try_from(second).unwrap_or(i64::MAX);
            let local = local(seconds);
            *texts = Texts {
                second,
                http_date: httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second)),
                log_time: local.strftime("%d/%b/%Y:%H:%M:%S %z").to_string(),
                iso8601: local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
                error_log: local.strftime("%Y/%m/%d %H:%M:%S").to_string(),
            };
        }
        read(texts)
    })
}

/// Appends the `Date` field's value (RFC 9110 §5.6.7).
pub fn put_http_date(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.http_date.as_bytes())
    });
}

/// Appends `$time_local`: `20/Nov/2026:18:38:56 +0000`.
pub fn put_log_time(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.log_time.as_bytes())
    });
}

/// Appends `$time_iso8601`.
pub fn put_iso8601(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.iso8601.as_bytes())
    });
}

/// Appends the error log's time: `2026/11/20 18:38:56`.
pub fn put_error_log_time(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.error_log.as_bytes())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_second_asked_for() {
        let mut out = Vec::new();
        put_http_date(784_111_777_000, &mut out);
        assert_eq!(out, b"Sun, 06 Nov 1994 08:49:37 GMT");
        out.clear();
        put_http_date(784_111_778_999, &mut out);
        assert_eq!(out, b"Sun, 06 Nov 1994 08:49:38 GMT");
    }

    #[test]
    fn the_clock_does_not_step_back() {
        let first = now();
        assert!(now() >= first);
    }
}
