//! Host names as clients send them, in the Host field or in an absolute-form target:
//! validated (RFC 3986 §3.2.2, as nginx since 1.29.4), lowercased, without port and
//! without the trailing dot. A name that passes has no slash, no white space and no
//! control character, so it may go into logs, cache keys and `server_name` matching.

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// A valid host and perhaps a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    /// Lowercase, without trailing dot; an IP literal keeps its brackets.
    /// Borrowed when the client sent it that way.
    pub name: Cow<'a, [u8]>,
    /// The port, if one was given (`example.com:` has none).
    pub port: Option<u16>,
}

/// Reads `host [ ":" port ]`; `None` when it is not one.
pub fn parse_host(bytes: &[u8]) -> Option<Host<'_>> {
    let (name, after, has_upper) = if bytes.first() == Some(&b'[') {
        let end = memchr::memchr(b']', bytes)? + 1;
        let (name, after) = bytes.split_at_checked(end)?;
        if !is_ip_literal(name) {
            return None;
        }
        (name, after, name.iter().any(u8::is_ascii_uppercase))
    } else {
        let (len, has_upper) = scan_reg_name(bytes)?;
        let (name, after) = bytes.split_at_checked(len)?;
        let name = name.strip_suffix(b".").unwrap_or(name);
        if name.is_empty() || name.ends_with(b".") {
            return None;
        }
        (name, after, has_upper)
    };
    let port = match after {
        [] | b":" => None,
        [b':', digits @ ..] => Some(parse_port(digits)?),
        _ => return None,
    };
    let name = if has_upper {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    };
    Some(Host { name, port })
}

/// The class of a byte in a name: most need no second look.
const PLAIN: u8 = 0;
const UPPER: u8 = 1;
const DOT: u8 = 2;
const PERCENT: u8 = 3;
const END: u8 = 4;
const REFUSED: u8 = 5;

static NAME_BYTES: [u8; 256] = {
    let mut table = [REFUSED; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'.' => DOT,
            b'%' => PERCENT,
            b':' => END,
            b'A'..=b'Z' => UPPER,
            plain if is_unreserved_or_sub_delim(plain) => PLAIN,
            _ => REFUSED,
        };
        byte += 1;
    }
    table
};

/// The length of the reg-name (RFC 3986 §3.2.2) that `bytes` begin with, up to
/// a colon or the end, and whether it has capital letters. No two dots stand
/// together in it.
fn scan_reg_name(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut has_upper = false;
    let mut after_dot = false;
    let mut at = 0;
    loop {
        let plain = plain_len(bytes.get(at..)?);
        after_dot &= plain == 0;
        at += plain;
        let Some(&byte) = bytes.get(at) else {
            break;
        };
        let class = NAME_BYTES[usize::from(byte)];
        match class {
            PLAIN => {}
            UPPER => has_upper = true,
            DOT if after_dot => return None,
            DOT => {}
            PERCENT => {
                let [high, low] = bytes.get(at + 1..at + 3)? else {
                    return None;
                };
                if !(high.is_ascii_hexdigit() && low.is_ascii_hexdigit()) {
                    return None;
                }
                has_upper |= high.is_ascii_uppercase() || low.is_ascii_uppercase();
                at += 2;
            }
            END => break,
            _ => return None,
        }
        after_dot = class == DOT;
        at += 1;
    }
    Some((at, has_upper))
}

/// Returns how many bytes that need no second look `bytes` begin with.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    let plain = |&&byte: &&u8| NAME_BYTES[usize::from(byte)] == PLAIN;
    bytes.iter().take_while(plain).count()
}

fn parse_port(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |port, &byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    })
}

fn is_ip_literal(name: &[u8]) -> bool {
    let Some(inner) = name
        .strip_prefix(b"[")
        .and_then(|rest| rest.strip_suffix(b"]"))
    else {
        return false;
    };
    match inner {
        [b'v' | b'V', rest @ ..] => is_ip_future(rest),
        _ => std::str::from_utf8(inner).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    }
}

/// `1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`
fn is_ip_future(rest: &[u8]) -> bool {
    let Some(dot) = memchr::memchr(b'.', rest) else {
        return false;
    };
    let (version, address) = rest.split_at(dot);
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && address.len() > 1
        && address
            .iter()
            .all(|&byte| byte == b':' || is_unreserved_or_sub_delim(byte))
}

const fn is_unreserved_or_sub_delim(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_lowercased_and_lose_port_and_trailing_dot() {
        let future = "[v0123456789aBcDeF.!$&'()*+,;=-._~AbC:]";
        for (text, name, port) in [
            ("l", "l", None),
            ("L", "l", None),
            ("abcd-ef.g02.xyz:", "abcd-ef.g02.xyz", None),
            ("123.40.56.78:", "123.40.56.78", None),
            (
                "www.abcd-ef.g02.xyz:8080",
                "www.abcd-ef.g02.xyz",
                Some(8080),
            ),
            ("abcd-ef.g02.xyz.", "abcd-ef.g02.xyz", None),
            ("abcd-ef.g02.xyz.:88", "abcd-ef.g02.xyz", Some(88)),
            (
                "AbC-d93.0.34ZhGt-s.nk.Ru:88",
                "abc-d93.0.34zhgt-s.nk.ru",
                Some(88),
            ),
            ("a_b", "a_b", None),
            ("a%41", "a%41", None),
            ("[abcd::ef98:0:7654:321]", "[abcd::ef98:0:7654:321]", None),
            ("[ABCD::1]:80", "[abcd::1]", Some(80)),
            (
                "[::ffff:12.30.67.89]:4321",
                "[::ffff:12.30.67.89]",
                Some(4321),
            ),
            (future, &future.to_lowercase(), None),
        ] {
            let host = parse_host(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(host.name, name.as_bytes(), "{text}");
            assert_eq!(host.port, port, "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        #[rustfmt::skip]
        let cases = [
            "", ".", "..", ":80", "example.com.:1.2", "123.49.0.78:98777", "a:65536", "123.40.56.78:9000:80",
            "example.com/\\:552", "\\e/xample.com", "..examp-LE.com", "com.exa-m.45..:",
            "[abcd::e\\f98:0/:7654:321]", "[abcd\\::ef98:0:7654:321/]:12", "[abcd::ef98:0:7654:321].",
            "[abcd::ef98:0:7654:321].:98", "[abcd::ef98:0:7654:321]..:98", "[ab..cd::ef98:0:7654:321]",
            "extra[abcd::ef98:0:7654:321]:98", "[abcd::ef98:0:7654:321", "localhost\x02", "a b", "user@a", "a%zz",
            "a%4", "a\u{e9}", "a\0b", "[", "[]", "[v.x]", "[v1.]", "a:+1", "a: 1",
        ];
        for text in cases {
            assert_eq!(parse_host(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_lowercase_host_is_not_copied() {
        let host = parse_host(b"example.com:8080").unwrap();
        assert!(matches!(host.name, Cow::Borrowed(b"example.com")));
    }
}
