//! Values that many directives share: sizes, times, `on` and `off`.
//!
//! Pure functions of a word's text. Sizes and times follow nginx's
//! "Configuration file measurement units"; each function names its differences. An error has the
//! range of the wrong bytes, so that a [`Diagnostic`] can underline them.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use crate::ast::Word;
use crate::diagnostic::Diagnostic;

/// The reason why a text is not such a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}: expected {expected}")]
pub struct ValueError {
    /// The mistake, as in `invalid size "12q"`.
    pub message: String,
    /// The text expected at `range`.
    pub expected: Cow<'static, str>,
    /// The bytes of the text it is about.
    pub range: Range<usize>,
    pub hint: Option<String>,
}

impl ValueError {
    /// The error as a diagnostic on the word that held the text.
    pub fn at(&self, word: &Word) -> Diagnostic {
        let mut diagnostic =
            Diagnostic::error(word.part(self.range.clone()), &self.message).label(&*self.expected);
        diagnostic.hint.clone_from(&self.hint);
        diagnostic
    }
}

/// Bytes from `512`, `64k`, `1m`, `2g` (or capitals; factors of 1024).
///
/// nginx takes `g` for file offsets only; here every size may have it.
///
/// # Errors
///
/// Anything else, fractions included, and sizes above `i64::MAX` bytes.
pub fn parse_size(text: &str) -> Result<u64, ValueError> {
    let digits = digits(text);
    let unit = text.get(digits..).unwrap_or_default();
    let scale = match unit {
        "" => Some(1),
        "k" | "K" => Some(1 << 10),
        "m" | "M" => Some(1 << 20),
        "g" | "G" => Some(1 << 30),
        _ => None,
    };
    let error = |expected: &'static str, range, hint: Option<&str>| ValueError {
        message: format!("invalid size \"{text}\""),
        expected: expected.into(),
        range,
        hint: hint.map(str::to_owned),
    };
    if digits == 0 {
        return Err(error(
            "a number of bytes, such as 512, 64k or 1m",
            0..text.len(),
            None,
        ));
    }
    let Some(scale) = scale else {
        let hint = match unit.to_ascii_lowercase().as_str() {
            "kb" | "kib" | "mb" | "mib" | "gb" | "gib" => Some("write the unit as one letter"),
            other if other.starts_with(['.', ',']) => {
                Some("fractions are not allowed; use a smaller unit, such as 1536k for 1.5m")
            }
            _ => None,
        };
        return Err(error(
            "k, m, g or nothing after the number",
            digits..text.len(),
            hint,
        ));
    };
    text.get(..digits)
        .and_then(|number| number.parse::<i64>().ok())
        .and_then(|number| number.checked_mul(scale))
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(|| error("at most 9223372036854775807 bytes", 0..text.len(), None))
}

/// Units from long to short, with their length in milliseconds.
const UNITS: [(&str, u64); 8] = [
    ("y", 365 * 86_400_000),
    ("M", 30 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A duration from `30`, `500ms`, `1h30m`, `"1h 30m"`: units `y M w d h m s
/// ms`, each at most once and longer ones first; a number without unit, last,
/// counts seconds.
///
/// nginx takes `ms` for some directives and `y` and `M` for the others; here
/// all may have all. nginx reads a unit without number as 0; here it is an
/// error.
///
/// # Errors
///
/// Anything else, fractions included, and times above `i64::MAX` milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, ValueError> {
    let error = |expected: &'static str, range, hint: Option<String>| ValueError {
        message: format!("invalid time \"{text}\""),
        expected: expected.into(),
        range,
        hint,
    };
    let mut total: u64 = 0;
    let mut at = text.len() - text.trim_start_matches(' ').len();
    let start = at;
    // Units before this index of `UNITS` have been used or passed.
    let mut next_unit = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        if rest.is_empty() && at > start {
            break;
        }
        let digits = digits(rest);
        if digits == 0 {
            let expected = "a number, such as in 30s, 500ms or 1h30m";
            return Err(error(expected, at..text.len(), None));
        }
        let after = rest.get(digits..).unwrap_or_default();
        let letters = after.len()
            - after
                .trim_start_matches(|c: char| !" 0123456789".contains(c))
                .len();
        let unit = after.get(..letters).unwrap_or_default();
        let unit_range = at + digits..at + digits + letters;
        let known = UNITS.iter().position(|(name, _)| *name == unit);
        let index = match (unit, known) {
            ("", _) => 6,
            (_, Some(index)) => index,
            (other, None) => {
                let hint = unit_hint(text, other);
                return Err(error("one of the units ms s m h d w M y", unit_range, hint));
            }
        };
        if index < next_unit {
            let expected = "longer units before shorter ones, each once";
            return Err(error(expected, at..unit_range.end, None));
        }
        next_unit = if unit.is_empty() {
            UNITS.len()
        } else {
            index + 1
        };
        let scale = UNITS.get(index).map_or(1, |(_, scale)| *scale);
        total = rest
            .get(..digits)
            .and_then(|number| number.parse::<u64>().ok())
            .and_then(|number| number.checked_mul(scale))
            .and_then(|millis| millis.checked_add(total))
            .filter(|millis| i64::try_from(*millis).is_ok())
            .ok_or_else(|| error("a shorter time", at..unit_range.end, None))?;
        let tail = text.get(unit_range.end..).unwrap_or_default();
        at = unit_range.end + (tail.len() - tail.trim_start_matches(' ').len());
    }
    Ok(Duration::from_millis(total))
}

/// The unit that the author may have meant.
fn unit_hint(text: &str, unit: &str) -> Option<String> {
    if unit.starts_with(['.', ',']) {
        let seconds = text.strip_suffix('s').unwrap_or(text).replace(',', ".");
        return match seconds.parse::<f64>() {
            Ok(value) if value.is_finite() && (0.0..1e9).contains(&value) => Some(format!(
                "fractions are not allowed; write {}ms",
                (value * 1000.0).round()
            )),
            _ => Some("fractions are not allowed; use a smaller unit, down to ms".to_owned()),
        };
    }
    let meant = match unit.to_ascii_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" | "S" => "s",
        "min" | "mins" | "minute" | "minutes" => "m for minutes",
        "hour" | "hours" | "hr" => "h",
        "day" | "days" => "d",
        "week" | "weeks" => "w",
        "mon" | "month" | "months" => "M for months",
        "year" | "years" => "y",
        "msec" | "millis" | "milliseconds" => "ms",
        _ => return None,
    };
    Some(format!("write {meant}"))
}

fn digits(text: &str) -> usize {
    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len()
}

/// `on` or `off`, in any case of letters, as nginx has it.
///
/// # Errors
///
/// Any other text.
pub fn parse_on_off(text: &str) -> Result<bool, ValueError> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("on") {
        return Ok(true);
    }
    if is("off") {
        return Ok(false);
    }
    let meant = if ["true", "yes", "1", "enable", "enabled"]
        .into_iter()
        .any(is)
    {
        Some("write on".to_owned())
    } else if ["false", "no", "0", "disable", "disabled", "none"]
        .into_iter()
        .any(is)
    {
        Some("write off".to_owned())
    } else {
        None
    };
    Err(ValueError {
        message: format!("invalid value \"{text}\""),
        expected: "on or off".into(),
        range: 0..text.len(),
        hint: meant,
    })
}

/// `a, b or c`
pub fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The candidate that the author of `word` most likely meant, if one is near: at most one wrong,
/// missing, added or swapped letter in three.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Longer words are no typing mistake, and distance costs their square.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_nginx_accepts_for_offsets() {
        let cases = [
            ("0", Some(0)),
            ("1", Some(1)),
            ("1k", Some(1024)),
            ("1K", Some(1024)),
            ("64m", Some(64 << 20)),
            ("2G", Some(2 << 30)),
            ("9223372036854775807", Some(i64::MAX as u64)),
            ("9223372036854775808", None),
            ("8589934592g", None),
            ("1kb", None),
            ("1.5m", None),
            ("", None),
            ("k", None),
            ("-1", None),
            (" 1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_are_those_nginx_accepts_for_either_kind_of_directive() {
        let cases = [
            ("30", Some(30_000)),
            ("30s", Some(30_000)),
            ("500ms", Some(500)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m", Some(5_400_000)),
            ("1h30", Some(3_630_000)),
            ("1m 30", Some(90_000)),
            ("1s500ms", Some(1_500)),
            ("1s500", None),
            ("1M", Some(2_592_000_000)),
            ("2y", Some(63_072_000_000)),
            ("30  ", Some(30_000)),
            (" 5", Some(5_000)),
            ("9223372036854775", Some(9_223_372_036_854_775_000)),
            ("9223372036854776", None),
            ("30 1m", None),
            ("1m1h", None),
            ("1m1m", None),
            ("1 s", None),
            ("1S", None),
            ("1hm", None),
            ("h", None),
            ("", None),
            (" ", None),
            ("-1", None),
            ("0.5s", None),
            ("1.5", None),
        ];
        for (text, expected) in cases {
            let millis = parse_duration(text).ok().map(|time| time.as_millis());
            assert_eq!(millis, expected, "{text:?}");
        }
    }

    #[test]
    fn errors_point_at_the_wrong_part_and_say_what_to_write() {
        let error = parse_duration("1h0.5s").unwrap_err();
        assert_eq!(
            (error.range, &*error.expected),
            (3..4, "one of the units ms s m h d w M y")
        );
        let cases = [
            (
                parse_duration("0.5s").unwrap_err(),
                "fractions are not allowed; write 500ms",
            ),
            (
                parse_duration("1.5").unwrap_err(),
                "fractions are not allowed; write 1500ms",
            ),
            (parse_duration("10min").unwrap_err(), "write m for minutes"),
            (
                parse_size("1MB").unwrap_err(),
                "write the unit as one letter",
            ),
            (parse_on_off("true").unwrap_err(), "write on"),
        ];
        for (error, hint) in cases {
            assert_eq!(error.hint.as_deref(), Some(hint), "{error}");
        }
    }

    #[test]
    fn on_and_off_may_be_written_in_capitals() {
        assert_eq!(parse_on_off("ON"), Ok(true));
        assert_eq!(parse_on_off("Off"), Ok(false));
        assert!(parse_on_off("1").is_err());
    }

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let names = ["root", "return", "proxy_pass", "fastcgi_pass", "gzip"];
        let cases = [
            ("fastcgi_pas", Some("fastcgi_pass")),
            ("rooot", Some("root")),
            ("GZIP", Some("gzip")),
            ("retrun", Some("return")),
            ("banana", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(did_you_mean(word, names), expected, "{word}");
        }
    }
}
