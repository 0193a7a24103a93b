//! Whether a client takes a content coding, by nginx's rules: the coding must
//! be named and its weight above zero. `*` and `identity` promise nothing, and
//! a value that cannot be read is a no: uncompressed is always right.

use crate::field_name::same_name;

/// The highest weight, and that of a coding named without one.
pub const MOST: u16 = 1000;

/// The weight that a field value gives to `coding` (RFC 9110 §12.4.2), in
/// thousandths; 0 if it is not taken. If a coding is named twice, the first counts.
pub fn value_weight(value: &[u8], coding: &[u8]) -> u16 {
    value
        .split(|&byte| byte == b',')
        .find_map(|element| weight_of(coding, element.trim_ascii_start()))
        .unwrap_or(0)
}

/// The weight that one element of the list gives to `coding`, if it is about that.
#[inline]
fn weight_of(coding: &[u8], element: &[u8]) -> Option<u16> {
    let (name, rest) = element.split_at_checked(coding.len())?;
    if !same_name(name, coding) {
        return None;
    }
    match rest.trim_ascii_start() {
        [] => Some(MOST),
        [b';', parameter @ ..] => Some(weight_of_parameter(parameter)),
        _ => None,
    }
}

/// The weight of a parameter `q=0.5`, without its semicolon; 0 if it cannot be read.
fn weight_of_parameter(parameter: &[u8]) -> u16 {
    match parameter.trim_ascii() {
        [b'q' | b'Q', b'=', weight @ ..] => thousandths(weight).unwrap_or(0),
        _ => 0,
    }
}

/// A weight (RFC 9110 §12.4.2) such as `0`, `0.5` or `1.000`, in thousandths; `None` for any other text.
pub fn thousandths(weight: &[u8]) -> Option<u16> {
    let (whole, decimals) = match weight {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    if !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = std::iter::once(whole).chain(decimals).chain(b"000").take(4);
    let sum = digits.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    (sum <= MOST).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_must_be_named_and_above_zero() {
        for (value, expected) in [
            ("gzip", true),
            ("gzip, deflate, br", true),
            ("deflate, GZIP", true),
            ("deflate,gzip ;q=0.5", true),
            ("gzip;q=1", true),
            ("gzip;q=1.000", true),
            ("gzip;Q=0.001", true),
            ("gzip; q=0.1", true),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", true),
            ("gzip;q=0", false),
            ("gzip;q=0.", false),
            ("gzip;q=0.000", false),
            ("gzip;q=0.0001", false),
            ("gzip;q=2", false),
            ("gzip;q=1.001", false),
            ("gzip;q=", false),
            ("gzip;q", false),
            ("gzip;x=1", false),
            ("gzip;q=abc", false),
            ("x-gzip", false),
            ("gzipx", false),
            ("gzip br", false),
            ("*", false),
            ("identity", false),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(
                value_weight(value.as_bytes(), b"gzip") > 0,
                expected,
                "{value}"
            );
        }
        assert!(value_weight(b"gzip, br", b"br") > 0);
    }

    #[test]
    fn weights_are_read_to_the_thousandth() {
        for (value, expected) in [
            ("br", 1000),
            ("br;q=1.0", 1000),
            ("gzip, br;q=0.5", 500),
            ("br;q=0.05", 50),
            ("br;q=0.123", 123),
            ("br;q=0", 0),
            ("br;q=0.1234", 0),
            ("gzip", 0),
        ] {
            assert_eq!(value_weight(value.as_bytes(), b"br"), expected, "{value}");
        }
    }
}
