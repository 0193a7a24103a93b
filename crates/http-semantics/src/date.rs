//! HTTP dates (RFC 9110 §5.6.7) as seconds since 1970: written as IMF-fixdate, read in all three
//! formats. `httpdate` has the calendar; local times are jiff's, which has the zones.

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

/// Seconds since 1970 for an IMF-fixdate, RFC 850 or asctime date; `None` for
/// anything else and for dates before 1970.
pub fn parse(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    let since: Duration = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
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
