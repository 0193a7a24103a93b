//! The Range field (RFC 9110 §14.2), read as nginx reads it: which parts of a
//! response of known length are asked for. `If-Range` comes before
//! (`conditional.rs`).

/// The ranges of a Range field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// 206 with these parts, in the order asked for: first byte, byte after the
    /// last. One or more, none empty.
    Satisfiable(Vec<(u64, u64)>),
    /// 416.
    NotSatisfiable,
    /// 200 with everything: no byte range, more than `max_ranges`, or parts that
    /// add up to more than the whole.
    Ignore,
}

/// Reads the value of a Range field for a response of `length` bytes.
/// `max_ranges` is nginx's directive (`None` is its default, no limit; zero
/// turns ranges off). Memory is bounded by the value's length.
pub fn parse_ranges(value: &[u8], length: u64, max_ranges: Option<usize>) -> Ranges {
    let spec = match value.split_at_checked(6) {
        Some((unit, spec)) if unit.eq_ignore_ascii_case(b"bytes=") && !spec.is_empty() => spec,
        _ => return Ranges::Ignore,
    };
    if max_ranges == Some(0) {
        return Ranges::Ignore;
    }
    let mut ranges = Vec::new();
    let mut total = 0u64;
    for part in spec.split(|&byte| byte == b',') {
        let Some((start, end)) = parse_range(part, length) else {
            return Ranges::NotSatisfiable;
        };
        if start < end {
            if Some(ranges.len()) == max_ranges {
                return Ranges::Ignore;
            }
            ranges.push((start, end));
            total = total.saturating_add(end - start);
        } else if start == 0 {
            // `-0`, or any range of an empty response.
            return Ranges::Ignore;
        }
    }
    if ranges.is_empty() {
        Ranges::NotSatisfiable
    } else if total > length {
        Ranges::Ignore
    } else {
        Ranges::Satisfiable(ranges)
    }
}

/// `first-last`, `first-` or `-suffix` with spaces around the parts, cut to the
/// response; an empty result means that it lies outside.
fn parse_range(part: &[u8], length: u64) -> Option<(u64, u64)> {
    let dash = memchr::memchr(b'-', part)?;
    let (first, last) = part.split_at(dash);
    let (first, last) = (trim(first), trim(last.get(1..)?));
    if first.is_empty() {
        let suffix = number(last)?;
        return Some((length.saturating_sub(suffix), length));
    }
    let start = number(first)?;
    if last.is_empty() {
        return Some((start, length));
    }
    Some((start, number(last)?.saturating_add(1).min(length)))
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Digits only, up to `i64::MAX` as in nginx.
pub fn number(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (number <= i64::MAX as u64).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::Ranges::{Ignore, NotSatisfiable, Satisfiable};
    use super::*;

    #[test]
    fn ranges_are_read_as_nginx_does() {
        let some = |ranges: &[(u64, u64)]| Satisfiable(ranges.to_vec());
        for (value, expected) in [
            ("bytes=0-8", some(&[(0, 9)])),
            ("BYTES=0-8", some(&[(0, 9)])),
            ("bytes=-10", some(&[(990, 1000)])),
            ("bytes=-2000", some(&[(0, 1000)])),
            ("bytes=990-", some(&[(990, 1000)])),
            ("bytes=990-1990", some(&[(990, 1000)])),
            (
                "bytes=0-9, -10, 10-19",
                some(&[(0, 10), (990, 1000), (10, 20)]),
            ),
            (
                "bytes=0-9, -10, 100000-, 10-19",
                some(&[(0, 10), (990, 1000), (10, 20)]),
            ),
            ("bytes=0-10001", some(&[(0, 1000)])),
            ("bytes= 0 - 8 ", some(&[(0, 9)])),
            ("bytes=0-10001, 0-0", Ignore),
            ("bytes=0-, 0-", Ignore),
            ("bytes=-0", NotSatisfiable),
            ("bytes=100000-", NotSatisfiable),
            ("bytes=alpha", NotSatisfiable),
            ("bytes=10-alpha", NotSatisfiable),
            ("bytes=10", NotSatisfiable),
            ("bytes=10-11 12-", NotSatisfiable),
            ("bytes=5-4", NotSatisfiable),
            ("bytes=-", NotSatisfiable),
            ("bytes=0-0,", NotSatisfiable),
            ("bytes=99999999999999999999-", NotSatisfiable),
            ("bytes=", Ignore),
            ("lines=0-1", Ignore),
            ("", Ignore),
        ] {
            assert_eq!(
                parse_ranges(value.as_bytes(), 1000, None),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn more_than_max_ranges_gets_everything() {
        for (value, max, expected) in [
            ("bytes=0-9, -10", 2, Satisfiable(vec![(0, 10), (990, 1000)])),
            (
                "bytes=0-9, -10, 10000-",
                2,
                Satisfiable(vec![(0, 10), (990, 1000)]),
            ),
            ("bytes=0-9, -10, 10-19", 2, Ignore),
            ("bytes=0-9", 0, Ignore),
        ] {
            assert_eq!(
                parse_ranges(value.as_bytes(), 1000, Some(max)),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn an_empty_response_has_no_ranges() {
        for value in ["bytes=0-", "bytes=0-5", "bytes=-5"] {
            assert_eq!(parse_ranges(value.as_bytes(), 0, None), Ignore, "{value}");
        }
    }
}
