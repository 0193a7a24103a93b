//! Texts that name the present time, in seconds since 1970.

use std::time::Duration;

/// Digits of such a time, from 2001 to 2286.
const DIGITS: usize = 10;
/// The clocks of the application and of the server differ by no more seconds.
const MAX_APART: u64 = 5;

/// How long the present time lasts in the words of a text: a second where it has whole seconds, a tenth where it has
/// one decimal. `None`: it does not name it.
pub(crate) fn longest(text: &[u8], now: u64) -> Option<Duration> {
    let mut longest = None;
    let mut rest = text;
    while let Some(at) = rest.iter().position(u8::is_ascii_digit) {
        let number = rest.get(at..).unwrap_or_default();
        let (digits, behind) = number.split_at(digits(number));
        let decimals = match behind {
            [b'.', behind @ ..] => self::digits(behind),
            _ => 0,
        };
        if is_near(digits, now) {
            longest = longest.max(lasts(decimals));
        }
        rest = behind;
    }
    longest
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn is_near(digits: &[u8], now: u64) -> bool {
    let named = || std::str::from_utf8(digits).ok()?.parse::<u64>().ok();
    digits.len() == DIGITS && named().is_some_and(|named| named.abs_diff(now) <= MAX_APART)
}

/// Returns the time for which a text with this number of decimals stays the same.
fn lasts(decimals: usize) -> Option<Duration> {
    let power = u32::try_from(decimals).ok()?;
    let micros = 1_000_000 / 10_u64.checked_pow(power)?;
    (micros > 0).then(|| Duration::from_micros(micros))
}

/// Seconds of a day.
const DAY: u64 = 86_400;

/// The time, in millionths of a second, that a text names in digits, perhaps with a point: in seconds, or in thousandths
/// or millionths of them. `None`: none within a day of `now`, in seconds.
pub(crate) fn near(text: &[u8], now: u64) -> Option<u64> {
    let (whole, rest) = text.split_at(digits(text));
    let unit = match whole.len() {
        DIGITS => 1_000_000,
        13 => 1_000,
        16 => 1,
        _ => return None,
    };
    let decimals = match rest {
        [] => 0,
        [b'.', decimals @ ..] if digits(decimals) == decimals.len() => {
            let millionths = decimals.iter().chain(std::iter::repeat(&b'0')).take(6);
            let millionths = millionths.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
            millionths * unit / 1_000_000
        }
        _ => return None,
    };
    let named: u64 = std::str::from_utf8(whole).ok()?.parse().ok()?;
    let micros = named.checked_mul(unit)?.checked_add(decimals)?;
    ((micros / 1_000_000).abs_diff(now) <= DAY).then_some(micros)
}

/// Is it the date of this day, of the one before or of the next (`2026-11-29`)?
pub(crate) fn is_near_date(text: &[u8], now: u64) -> bool {
    let today = now / DAY;
    let mut days = today.saturating_sub(1)..=today.saturating_add(1);
    days.any(|day| date(day).as_bytes() == text)
}

/// The date of a day since 1970.
fn date(day: u64) -> String {
    // Years begin in March, so that the leap day is a year's last one.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = match month < 10 {
        true => (month + 3, 0),
        false => (month - 9, 1),
    };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_time_lasts_as_long_as_its_decimals() {
        let longest = |text: &str| super::longest(text.as_bytes(), 1_795_949_198);
        assert_eq!(
            longest("key=1795949198.1:2:55c1"),
            Some(Duration::from_millis(100))
        );
        assert_eq!(
            longest("?v=1795949196&w=1795949198.25"),
            Some(Duration::from_secs(1))
        );
        assert_eq!(longest("1795949198.123456789"), None);
        assert_eq!(longest("1795949198.1234567890123456789012345"), None);
        assert_eq!(longest("1795940000 and 17959491981 and 179594919"), None);
        assert_eq!(longest("99999999999999999999999999"), None);
        assert_eq!(longest(""), None);
    }

    #[test]
    fn times_and_dates_of_this_day_are_near() {
        let near = |text: &str| near(text.as_bytes(), 1_795_949_198);
        assert_eq!(near("1795949198"), Some(1_795_949_198_000_000));
        assert_eq!(near("1795949198.25"), Some(1_795_949_198_250_000));
        assert_eq!(near("1795949198250"), Some(1_795_949_198_250_000));
        assert_eq!(near("1795949198250000"), Some(1_795_949_198_250_000));
        for other in [
            "1795849198",
            "179594919",
            "123456789-12",
            "1795949198.x",
            "1795949198-1",
            "202611290001",
            "",
        ] {
            assert_eq!(near(other), None, "{other}");
        }
        let is_date = |text: &str, now| is_near_date(text.as_bytes(), now);
        assert!(is_date("2026-11-29", 1_795_949_198));
        assert!(is_date("2026-11-30", 1_795_949_198));
        assert!(!is_date("2026-12-01", 1_795_949_198));
        assert!(!is_date("2026-11-99", 1_795_949_198));
        assert!(!is_date("2026-1-129", 1_795_949_198));
        assert!(is_date("2028-02-29", 1_835_395_200));
        assert!(is_date("1970-01-01", 0));
    }
}
