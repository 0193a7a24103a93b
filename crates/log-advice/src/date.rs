//! The times of logs: `$time_local`, `$time_iso8601` and `$msec`, as milliseconds since the Unix epoch.

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
/// Of time zones.
const MOST_OFFSET_HOURS: u64 = 24;

/// A time, and whether it has milliseconds.
#[must_use]
pub fn parse(text: &[u8]) -> Option<(u64, bool)> {
    local(text)
        .or_else(|| iso8601(text))
        .map(|seconds| (seconds * 1000, false))
        .or_else(|| msec(text).map(|at| (at, true)))
}

/// `23/Nov/2026:11:22:38 +0100`, in seconds.
fn local(text: &[u8]) -> Option<u64> {
    let month = text.get(3..6)?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    if text.get(2) != Some(&b'/') || text.get(6) != Some(&b'/') || text.get(11) != Some(&b':') {
        return None;
    }
    let day = number(text.get(..2)?)?;
    let year = number(text.get(7..11)?)?;
    let clock = clock(text.get(12..20)?)?;
    seconds(
        (year, month, day),
        clock,
        text.get(20..)?.trim_ascii_start(),
    )
}

/// `2026-11-23T11:22:38+01:00`, in seconds; a fraction is read past.
fn iso8601(text: &[u8]) -> Option<u64> {
    if text.get(4) != Some(&b'-') || text.get(7) != Some(&b'-') {
        return None;
    }
    if !matches!(text.get(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let day = (
        number(text.get(..4)?)?,
        number(text.get(5..7)?)?,
        number(text.get(8..10)?)?,
    );
    let clock = clock(text.get(11..19)?)?;
    let mut zone = text.get(19..)?;
    if let Some(rest) = zone.strip_prefix(b".") {
        let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
        zone = rest.get(digits..)?;
    }
    seconds(day, clock, zone)
}

/// `1795432958.123`
fn msec(text: &[u8]) -> Option<u64> {
    let dot = text.len().checked_sub(4)?;
    if text.get(dot) != Some(&b'.') || !(9..=12).contains(&dot) {
        return None;
    }
    Some(number(text.get(..dot)?)? * 1000 + number(text.get(dot + 1..)?)?)
}

/// `11:22:38`, in seconds.
fn clock(text: &[u8]) -> Option<u64> {
    if text.get(2) != Some(&b':') || text.get(5) != Some(&b':') {
        return None;
    }
    let hours = number(text.get(..2)?)?;
    let minutes = number(text.get(3..5)?)?;
    let seconds = number(text.get(6..8)?)?;
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

fn seconds(day: (u64, u64, u64), clock: u64, zone: &[u8]) -> Option<u64> {
    let since_epoch = days(day)? * 86_400 + clock;
    let (sign, digits) = match zone {
        b"" | b"Z" | b"z" => return Some(since_epoch),
        [sign @ (b'+' | b'-'), digits @ ..] => (*sign, digits),
        _ => return None,
    };
    let hours = number(digits.get(..2)?)?;
    let minutes = digits.get(2..)?;
    let minutes = number(minutes.strip_prefix(b":").unwrap_or(minutes))?;
    if hours > MOST_OFFSET_HOURS || minutes > 59 {
        return None;
    }
    let offset = hours * 3600 + minutes * 60;
    match sign {
        b'+' => since_epoch.checked_sub(offset),
        _ => Some(since_epoch + offset),
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar.
fn days((year, month, day): (u64, u64, u64)) -> Option<u64> {
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one.
    let years = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = years * 365 + years / 4 - years / 100 + years / 400 + day_of_year;
    days.checked_sub(719_468)
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
