//! The times of renewals, of retries and of looks at renewal information: pure functions of the
//! time and of chance.

use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// After the first failure. Let's Encrypt takes five failed validations of a name in an hour.
const FIRST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// Between two attempts at most.
const LAST_PAUSE: Duration = Duration::from_secs(12 * 3600);
/// The longest `Retry-After` of an issuer that is obeyed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// A certificate with a shorter lifetime is renewed earlier.
const SHORT_LIFETIME: Duration = Duration::from_secs(10 * 24 * 3600);

/// Returns the time at which a certificate is renewed if the issuer suggests none: when a third of
/// its lifetime is left, or half of a short one.
pub fn renewal(not_before: SystemTime, not_after: SystemTime) -> SystemTime {
    let lifetime = not_after.duration_since(not_before).unwrap_or_default();
    let left = match lifetime < SHORT_LIFETIME {
        true => lifetime / 2,
        false => lifetime / 3,
    };
    not_after - left
}

/// A moment in the window that the issuer suggests (RFC 9773 §4.2). `chance` is below one.
pub fn within(start: SystemTime, end: SystemTime, chance: f64) -> SystemTime {
    let length = end.duration_since(start).unwrap_or_default();
    start + length.mul_f64(chance.clamp(0.0, 1.0))
}

/// Returns the wait before renewal information is asked for again, when the issuer's answer was
/// `suggested`.
pub fn next_look(suggested: Duration) -> Duration {
    suggested.clamp(HOUR, DAY)
}

/// The pause after `failures` failed attempts in a row (at least one): it doubles with each, varied
/// by `chance` by up to a fifth, and is at least `retry_after`, within bounds. `left` is the time
/// for which the certificate is still valid.
pub fn pause(
    failures: u32,
    left: Duration,
    retry_after: Option<Duration>,
    chance: f64,
) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let most = (left / 8).clamp(HOUR, LAST_PAUSE);
    let pause = doubled
        .min(most)
        .mul_f64(0.8 + 0.4 * chance.clamp(0.0, 1.0));
    pause.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
}

/// Whether less than a quarter of the lifetime is left. Renewals have failed for long then, and the
/// operator has to look.
pub fn is_late(not_before: SystemTime, not_after: SystemTime, now: SystemTime) -> bool {
    let lifetime = not_after.duration_since(not_before).unwrap_or_default();
    not_after.duration_since(now).unwrap_or_default() < lifetime / 4
}

/// A duration in the words of a log.
pub fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        7200..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: f64) -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY.mul_f64(1000.0 + days)
    }

    #[test]
    fn a_certificate_is_renewed_with_a_third_or_half_of_its_lifetime_left() {
        for (lifetime, expected) in [(90.0, 60.0), (45.0, 30.0), (6.0, 3.0)] {
            assert_eq!(renewal(at(0.0), at(lifetime)), at(expected), "{lifetime}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let minutes = |failures, left, chance| pause(failures, left, None, chance).as_secs() / 60;
        let month = DAY * 30;
        let series: Vec<u64> = (1..10)
            .map(|failures| minutes(failures, month, 0.5))
            .collect();
        assert_eq!(series, [5, 10, 20, 40, 80, 160, 320, 640, 720]);
        assert_eq!((minutes(1, month, 0.0), minutes(1, month, 1.0)), (4, 6));
        // The nearer the end, the more often.
        assert_eq!(minutes(20, DAY, 0.5), 180);
        assert_eq!(minutes(u32::MAX, Duration::ZERO, 0.5), 60);
    }

    #[test]
    fn what_the_issuer_asks_for_is_kept_within_a_bound() {
        let asked = |seconds| pause(1, DAY * 30, Some(Duration::from_secs(seconds)), 0.5);
        assert_eq!(asked(7200), Duration::from_secs(7200));
        assert_eq!(asked(1), Duration::from_secs(300));
        assert_eq!(asked(u64::MAX), DAY * 7);
    }

    #[test]
    fn a_window_is_used_as_a_whole() {
        assert_eq!(within(at(1.0), at(3.0), 0.5), at(2.0));
        assert_eq!(within(at(3.0), at(1.0), 0.5), at(3.0));
        assert_eq!(next_look(Duration::ZERO), HOUR);
        assert_eq!(next_look(DAY * 9), DAY);
    }

    #[test]
    fn a_certificate_is_late_when_renewal_should_long_have_happened() {
        assert!(!is_late(at(0.0), at(90.0), at(61.0)));
        assert!(is_late(at(0.0), at(90.0), at(70.0)));
        assert!(is_late(at(0.0), at(90.0), at(100.0)));
    }
}
