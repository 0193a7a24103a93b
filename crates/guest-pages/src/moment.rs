//! Texts that name the present time, in seconds since 1970.

use std::time::Duration;

/// Digits of such a time, from 2001 to 2286.
const DIGITS: usize = 10;
/// The clocks of the application and of the server differ by no more seconds.
const MOST_APART: u64 = 5;

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
    digits.len() == DIGITS && named().is_some_and(|named| named.abs_diff(now) <= MOST_APART)
}

/// Returns the time for which a text with this number of decimals stays the same.
fn lasts(decimals: usize) -> Option<Duration> {
    let power = u32::try_from(decimals).ok()?;
    let micros = 1_000_000 / 10_u64.checked_pow(power)?;
    (micros > 0).then(|| Duration::from_micros(micros))
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
}
