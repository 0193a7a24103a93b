//! Values of the present moment within a statement: PHP has read the clock, and the next moment's
//! statement is another one.

const NEAR_SECONDS: i64 = 60;
const DAY_SECONDS: i64 = 86_400;
/// From one end of the world's time zones to the other.
const MAX_OFFSET_SECONDS: i64 = 15 * 3_600;
/// Time zones differ from UTC by whole quarters of an hour.
const OFFSET_STEP_SECONDS: i64 = 900;

/// Whether a text has a number of seconds, milliseconds or more since 1970, a date with a time or a day
/// that is about `now`, in any time zone.
pub(crate) fn speaks_of_now(text: &[u8], now: i64) -> bool {
    let mut at = 0;
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
        // A date in parts, or one number.
        if is_near_number(&rest[..digits], now) || (digits == 4 && is_near_date(rest, now)) {
            return true;
        }
        at += digits;
    }
    false
}

fn is_near_number(digits: &[u8], now: i64) -> bool {
    let number = |from: usize, to: usize| number_of(&digits[from..to]);
    match digits.len() {
        8 => is_near_day(number(0, 4), number(4, 6), number(6, 8), now),
        // Seconds, or what begins with them: milliseconds, microseconds.
        10 | 13 | 16 | 19 if (number(0, 10) - now).abs() <= NEAR_SECONDS => true,
        14 => {
            let day = seconds_of_day(number(0, 4), number(4, 6), number(6, 8));
            is_near_moment(
                day + number(8, 10) * 3_600 + number(10, 12) * 60 + number(12, 14),
                now,
            )
        }
        _ => false,
    }
}

/// `2026-11-25` with or without a time behind it.
fn is_near_date(text: &[u8], now: i64) -> bool {
    let part = |from: usize, separators: &[u8]| {
        let [separator, tens, ones] = text.get(from..from + 3)? else {
            return None;
        };
        let is_number =
            separators.contains(separator) && tens.is_ascii_digit() && ones.is_ascii_digit();
        is_number.then(|| number_of(&[*tens, *ones]))
    };
    let (Some(month), Some(day)) = (part(4, b"-/."), part(7, b"-/.")) else {
        return false;
    };
    let year = number_of(&text[..4]);
    match (part(10, b" T+_"), part(13, b":")) {
        (Some(hour), Some(minute)) => {
            let second = part(16, b":").unwrap_or(0);
            let moment = seconds_of_day(year, month, day) + hour * 3_600 + minute * 60 + second;
            is_near_moment(moment, now)
        }
        _ => is_near_day(year, month, day, now),
    }
}

fn number_of(digits: &[u8]) -> i64 {
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

fn is_near_moment(moment: i64, now: i64) -> bool {
    let difference = moment - now;
    let from_step = difference.rem_euclid(OFFSET_STEP_SECONDS);
    difference.abs() <= MAX_OFFSET_SECONDS
        && (from_step <= NEAR_SECONDS || OFFSET_STEP_SECONDS - from_step <= NEAR_SECONDS)
}

fn is_near_day(year: i64, month: i64, day: i64, now: i64) -> bool {
    let start = seconds_of_day(year, month, day);
    (start - MAX_OFFSET_SECONDS..start + DAY_SECONDS + MAX_OFFSET_SECONDS).contains(&now)
}

/// Returns the second at which a day begins, in UTC (days from civil, by Howard Hinnant).
fn seconds_of_day(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468) * DAY_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-25 10:20:30 UTC.
    const NOW: i64 = 1_795_602_030;

    #[test]
    fn values_of_the_present_are_found_in_each_form() {
        for (text, expected) in [
            ("1795602030", true),
            ("1795601971", true),
            ("1795601969", false),
            ("1795602030123", true),
            ("'a:1:{i:1795602031;}'", true),
            ("17956020301", false),
            ("'2026-11-25 10:20:30'", true),
            ("'2026-11-25 10:21'", true),
            ("'2026-11-25T11:20:59'", true),
            ("'2026-11-25 04:50:00'", true),
            ("'2026-11-25 10:28:00'", false),
            ("'2026-11-24 10:20:30'", false),
            ("20261125102030", true),
            ("20261125103000", false),
            ("'2026-11-25'", true),
            ("'2026-11-24'", true),
            ("20261125", true),
            ("'2026-11-23'", false),
            ("'2026-11-28'", false),
            ("id = 5 AND y = 2026 AND m = 11", false),
            ("2026-1-1", false),
            ("2026-", false),
            ("", false),
        ] {
            assert_eq!(speaks_of_now(text.as_bytes(), NOW), expected, "{text}");
        }
    }

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(seconds_of_day(1970, 1, 1), 0);
        assert_eq!(seconds_of_day(2000, 3, 1), 951_868_800);
        assert_eq!(seconds_of_day(2026, 11, 25) + 37_230, NOW);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_looked_at_without_a_panic(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60),
            text in "[0-9 :T-]{0,40}",
        ) {
            speaks_of_now(&bytes, NOW);
            speaks_of_now(text.as_bytes(), NOW);
        }
    }
}
