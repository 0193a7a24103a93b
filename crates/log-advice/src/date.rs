//! The times of logs: `$time_local`, `$time_iso8601` and `$msec`, as milliseconds since the Unix epoch.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;

/// A time, and whether it has milliseconds.
#[must_use]
pub fn parse(text: &[u8]) -> Option<(u64, bool)> {
    // The formats differ in their first bytes, so that only one is tried.
    let moment = match text.get(2) {
        Some(b'/') => local(text),
        _ if text.get(4) == Some(&b'-') => iso8601(text),
        _ => return msec(text).map(|at| (at, true)),
    };
    let seconds = u64::try_from(moment?.as_second()).ok()?;
    Some((seconds * 1000, false))
}

/// `23/Nov/2026:11:22:38 +0100`
fn local(text: &[u8]) -> Option<Timestamp> {
    let time = BrokenDownTime::parse("%d/%b/%Y:%H:%M:%S %z", text);
    time.ok()?.to_timestamp().ok()
}

/// `2026-11-23T11:22:38+01:00`; without an offset it is UTC.
fn iso8601(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let utc = || {
        Offset::UTC
            .to_timestamp(text.parse::<DateTime>().ok()?)
            .ok()
    };
    text.parse().ok().or_else(utc)
}

/// `1795432958.123`
fn msec(text: &[u8]) -> Option<u64> {
    let dot = text.len().checked_sub(4)?;
    if text.get(dot) != Some(&b'.') || !(9..=12).contains(&dot) {
        return None;
    }
    Some(number(text.get(..dot)?)? * 1000 + number(text.get(dot + 1..)?)?)
}

/// Digits and nothing else.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_times_of_logs_are_read() {
        let cases: [(&str, Option<(u64, bool)>); 15] = [
            ("01/Jan/1970:00:00:01 +0000", Some((1_000, false))),
            (
                "23/Nov/2026:12:22:38 +0100",
                Some((1_795_432_958_000, false)),
            ),
            (
                "23/Nov/2026:06:52:38 -0430",
                Some((1_795_432_958_000, false)),
            ),
            (
                "29/Feb/2024:00:00:00 +0000",
                Some((1_709_164_800_000, false)),
            ),
            (
                "2026-11-23T11:22:38+00:00",
                Some((1_795_432_958_000, false)),
            ),
            ("2026-11-23T11:22:38Z", Some((1_795_432_958_000, false))),
            ("2026-11-23 11:22:38.987", Some((1_795_432_958_000, false))),
            ("1795432958.123", Some((1_795_432_958_123, true))),
            ("0.123", None),
            ("23/Nix/2026:11:22:38 +0000", None),
            ("23/Nov/2026:25:22:38 +0000", None),
            ("99/Nov/2026:11:22:38 +0000", None),
            ("01/Jan/1970:00:00:01 +0100", None),
            ("2026-11-23T11:22:38+", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }
}
