//! HTTP dates (RFC 9110 §5.6.7) as seconds since 1970: written as IMF-fixdate, read in all three
//! formats, whatever the case of their letters (RFC 9111 §4.2). `httpdate` has the calendar; local
//! times are jiff's, which has the zones.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::HttpDate;

/// Length of an IMF-fixdate.
pub const DATE_BYTES: usize = 29;

/// 9999-12-31T23:59:59Z, the last second that four digits of a year can say.
const LAST_SECOND: u64 = 253_402_300_799;

/// `Sun, 06 Nov 1994 08:49:37 GMT` for seconds since 1970, which are clamped to
/// the years 1970 to 9999.
pub fn format(unix_seconds: i64) -> [u8; DATE_BYTES] {
    let seconds = u64::try_from(unix_seconds).unwrap_or(0).min(LAST_SECOND);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds));
    // An IMF-fixdate of these years has just these bytes.
    let _ = write!(out.as_mut_slice(), "{date}");
    out
}

/// Seconds since 1970 for an IMF-fixdate, RFC 850 or asctime date; `None` for anything else and for
/// dates before 1970. Names of days and months may be in any case. A day of the week that is not the
/// date's own is passed over: it adds nothing to the date.
pub fn parse(value: &[u8]) -> Option<i64> {
    let value = value.trim_ascii();
    let (day_name, date) = match memchr::memchr(b',', value) {
        Some(comma) => (value.get(..comma)?, value.get(comma + 1..)?),
        None => value.split_at_checked(3)?,
    };
    if !is_day_name(day_name) {
        return None;
    }
    let fields = match (value.len() - date.len(), date) {
        // ` 06 Nov 1994 08:49:37 GMT`
        (4, [b' ', d, e, b' ', m, o, n, b' ', year @ .., b' ', g, t, z])
            if value.contains(&b',') && is_gmt([*g, *t, *z]) =>
        {
            let (year, time) = year.split_at_checked(4)?;
            let year = number(year)?;
            ([*d, *e], [*m, *o, *n], year, time.strip_prefix(b" ")?)
        }
        // ` 06-Nov-94 08:49:37 GMT`
        (
            7..,
            [
                b' ',
                d,
                e,
                b'-',
                m,
                o,
                n,
                b'-',
                y,
                a,
                b' ',
                time @ ..,
                b' ',
                g,
                t,
                z,
            ],
        ) if is_gmt([*g, *t, *z]) => {
            let year = number(&[*y, *a])?;
            let century = if year < 70 { 2000 } else { 1900 };
            ([*d, *e], [*m, *o, *n], century + year, time)
        }
        // ` Nov  6 08:49:37 1994`
        (3, [b' ', m, o, n, b' ', d, e, b' ', time @ .., b' ', y, a, r, s]) => {
            let tens = if *d == b' ' { b'0' } else { *d };
            let year = number(&[*y, *a, *r, *s])?;
            ([tens, *e], [*m, *o, *n], year, time)
        }
        _ => return None,
    };
    let (day, month, year, time) = fields;
    let &[h, i, b':', j, k, b':', l, n] = time else {
        return None;
    };
    let (hour, minute, second) = (number(&[h, i])?, number(&[j, k])?, number(&[l, n])?);
    if hour > 23 || minute > 59 || second > 59 || year < 1970 {
        return None;
    }
    let days = days_since_1970(year, month_number(month)?, number(&day)?)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// The name of a day, or its first three letters.
fn is_day_name(name: &[u8]) -> bool {
    const DAYS: [&[u8]; 7] = [
        b"monday",
        b"tuesday",
        b"wednesday",
        b"thursday",
        b"friday",
        b"saturday",
        b"sunday",
    ];
    DAYS.iter().any(|day| {
        name.eq_ignore_ascii_case(day)
            || day.get(..3).is_some_and(|it| it.eq_ignore_ascii_case(name))
    })
}

fn is_gmt(zone: [u8; 3]) -> bool {
    zone.eq_ignore_ascii_case(b"GMT")
}

/// Counted from 0.
fn month_number(name: [u8; 3]) -> Option<i64> {
    const MONTHS: &[u8] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let names = MONTHS.as_chunks::<3>().0;
    let at = names
        .iter()
        .position(|month| month.eq_ignore_ascii_case(&name))?;
    i64::try_from(at).ok()
}

/// A number of digits alone.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, digit| {
        let value = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        Some(sum * 10 + value)
    })
}

/// The days from 1970 to a date of a year of four digits, in the Gregorian calendar; none if its month has no such day.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    const DAYS_BEFORE: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let at = usize::try_from(month).ok()?;
    let (before, after) = (*DAYS_BEFORE.get(at)?, *DAYS_BEFORE.get(at + 1)?);
    let length = after - before + i64::from(is_leap && month == 1);
    if !(1..=length).contains(&day) {
        return None;
    }
    let leap_days = |years: i64| years / 4 - years / 100 + years / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    Some(years + before + i64::from(is_leap && month > 1) + day - 1)
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
    fn the_three_formats_say_the_same_and_others_nothing() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
            "SUN, 06 nov 1994 08:49:37 gmt",
            "sunday, 06-NOV-94 08:49:37 Gmt",
            "SUN NOV  6 08:49:37 1994",
            // Its weekday is another.
            "Mon, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
        for text in [
            "",
            "0",
            "wrong",
            "Sun, 06 Nov 1994",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 2023 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov  1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    /// The calendar of `httpdate`, which writes, and the one that reads are the same.
    #[test]
    fn each_day_of_eight_centuries_is_read_as_it_was_written() {
        for day in 0..292_194 {
            let second = day * 86_400 + day % 86_400;
            assert_eq!(parse(&format(second)), Some(second), "day {day}");
        }
    }
}
