//! HTTP dates (RFC 9110 §5.6.7) as seconds since 1970: written as IMF-fixdate,
//! read in all three formats. The calendar of everybody who writes a date that is no local time:
//! local times are the server's clock's, by jiff, which has the zones.

use std::time::{Duration, UNIX_EPOCH};

/// Length of an IMF-fixdate.
pub const DATE_BYTES: usize = 29;

/// 9999-12-31T23:59:59Z, the last second that four digits of a year can say.
const LAST_SECOND: u64 = 253_402_300_799;

/// `Sun, 06 Nov 1994 08:49:37 GMT` for seconds since 1970, which are clamped to
/// the years 1970 to 9999.
pub fn format(unix_seconds: i64) -> [u8; DATE_BYTES] {
    let seconds = u64::try_from(unix_seconds).unwrap_or(0).min(LAST_SECOND);
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut out = *b"Thu, 00 Jan 0000 00:00:00 GMT";
    // 1 January 1970 was a Thursday.
    const WEEKDAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    out[0..3].copy_from_slice(WEEKDAYS[(days % 7) as usize]);
    out[5..7].copy_from_slice(&two_digits(day));
    out[8..11].copy_from_slice(MONTHS[(month - 1) as usize]);
    out[12..14].copy_from_slice(&two_digits(year / 100));
    out[14..16].copy_from_slice(&two_digits(year % 100));
    out[17..19].copy_from_slice(&two_digits(time / 3600));
    out[20..22].copy_from_slice(&two_digits(time / 60 % 60));
    out[23..25].copy_from_slice(&two_digits(time % 60));
    out
}

/// Seconds since 1970 for an IMF-fixdate, RFC 850 or asctime date; `None` for
/// anything else and for dates before 1970.
pub fn parse(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    let since: Duration = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

fn two_digits(value: u64) -> [u8; 2] {
    [b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]
}

/// Year, month (1 to 12) and day of the month for days since 1970. Counts years
/// from March, so that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    // Days from 1 March of the year 0 to 1970.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_read_back() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (2_147_483_647, "Tue, 19 Jan 2038 03:14:07 GMT"),
            (6_442_450_943, "Fri, 25 Feb 2174 09:42:23 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(String::from_utf8_lossy(&format(seconds)), text);
            assert_eq!(parse(text.as_bytes()), Some(seconds), "{text}");
        }
        assert_eq!(format(-5), format(0));
        assert_eq!(format(i64::MAX), format(253_402_300_799));
    }

    #[test]
    fn every_day_agrees_with_another_implementation() {
        for day in 0..60_000 {
            let seconds = day * 86_400 + day % 86_400;
            let other = UNIX_EPOCH + Duration::from_secs(seconds as u64);
            assert_eq!(
                String::from_utf8_lossy(&format(seconds)),
                httpdate::fmt_http_date(other)
            );
        }
    }

    #[test]
    fn the_three_formats_say_the_same_and_others_nothing() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
        for text in [
            "",
            "0",
            "wrong",
            "Sun, 06 Nov 1994",
            "Sun, 32 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
