//! Patterns of addresses and of tags: with `*` and `?`, or regular expressions.
//!
//! The time that a match takes grows with the text alone, whatever the pattern is (crate `regex`),
//! and the size of a compiled pattern is bounded.

use http_cache::Pattern;
use regex::bytes::{Regex, RegexBuilder};

use crate::address::{self, without_scheme};

/// Longest text of a pattern: more than fits into the field of a request.
const MAX_PATTERN_BYTES: usize = 16 << 10;
/// Memory of a compiled pattern.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// Memory that a matching thread may keep beside it.
const MAX_STATES_BYTES: usize = 2 << 20;
/// How deep groups may be nested.
const MAX_NESTING: u32 = 64;

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("expected a pattern of at most {} bytes", MAX_PATTERN_BYTES)]
    TooLong,
    #[error("the regular expression is too large")]
    TooLarge,
    #[error("the regular expression is not valid: {0}")]
    Invalid(String),
    #[error("addresses have no scheme: expected a pattern such as ~^example\\.org/news/")]
    HasScheme,
    #[error(
        "expected an absolute URL with * and ?, such as https://example.org/news/*, \
         or a regular expression with ~ in front"
    )]
    NotAUrl,
}

/// A regular expression over bytes, within the bounds.
///
/// # Errors
/// The expression is not valid, or not within the bounds.
pub fn regex(text: &str) -> Result<Regex, PatternError> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::TooLong);
    }
    let built = RegexBuilder::new(text)
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_STATES_BYTES)
        .nest_limit(MAX_NESTING)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
        error => {
            // The last line names the error; those before it draw its place.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            PatternError::Invalid(last.trim_start_matches("error: ").to_owned())
        }
    })
}

/// Stands before the text of a pattern that is written down: one regular expression.
const ONE: u8 = b'1';
/// Stands before the text of a pattern of two expressions, one for the host and one for the path.
/// Each is [`ABSENT`], or has [`PRESENT`] before it and [`END`] behind it, which stands in no text
/// that people write.
const TWO: u8 = b'2';
const ABSENT: u8 = b'-';
const PRESENT: u8 = b'+';
const END: u8 = 0;

/// A pattern for the texts that `regex` finds.
pub fn matching(regex: Regex) -> Pattern {
    let written = [&[ONE], regex.as_str().as_bytes()].concat();
    Pattern::matching(&written, move |text: &[u8]| regex.is_match(text))
}

/// The pattern that was written down as `written`; `None` if it cannot be read.
pub fn read_written(written: &[u8]) -> Option<Pattern> {
    let (form, text) = written.split_first()?;
    match *form {
        ONE => Some(matching(regex(std::str::from_utf8(text).ok()?).ok()?)),
        TWO => {
            let (host, rest) = read_part(text)?;
            let (path, rest) = read_part(rest)?;
            rest.is_empty().then(|| by_host_and_path(host, path))
        }
        _ => None,
    }
}

fn read_part(text: &[u8]) -> Option<(Option<Regex>, &[u8])> {
    let (mark, rest) = text.split_first()?;
    match *mark {
        ABSENT => Some((None, rest)),
        PRESENT => {
            let end = memchr::memchr(END, rest)?;
            let (part, rest) = rest.split_at(end);
            let part = regex(std::str::from_utf8(part).ok()?).ok()?;
            Some((Some(part), rest.get(1..)?))
        }
        _ => None,
    }
}

fn write_part(part: Option<&Regex>, written: &mut Vec<u8>) {
    match part {
        None => written.push(ABSENT),
        Some(part) => {
            written.push(PRESENT);
            written.extend_from_slice(part.as_str().as_bytes());
            written.push(END);
        }
    }
}

/// A pattern of addresses as people write it. `hosts` are those of a pattern that begins with `/`.
///
/// # Errors
/// The text is not valid; the error names the expected form.
pub fn of_addresses(text: &str, hosts: &[Vec<u8>]) -> Result<Pattern, PatternError> {
    match text.strip_prefix('~') {
        Some(expression) => {
            if names_a_scheme(expression) {
                return Err(PatternError::HasScheme);
            }
            regex(expression).map(matching)
        }
        None => glob(text, hosts),
    }
}

/// `^https?://` and the like, which no address begins with.
fn names_a_scheme(expression: &str) -> bool {
    let start = expression.trim_start_matches(['^', '(']);
    start.starts_with("http") && start.contains("://")
}

fn glob(text: &str, hosts: &[Vec<u8>]) -> Result<Pattern, PatternError> {
    let expression = match without_scheme(text.as_bytes()) {
        // It was ASCII that was taken away.
        Some(rest) => {
            let rest = text.get(text.len() - rest.len()..).unwrap_or_default();
            let end = rest.find('/').unwrap_or(rest.len());
            let (host, path) = rest.split_at(end);
            if host.is_empty() {
                return Err(PatternError::NotAUrl);
            }
            // A port is no part of an address.
            let host = match host.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
                _ => host,
            };
            let path = if path.is_empty() { "/" } else { path };
            translated(&host.to_ascii_lowercase()) + &translated(path)
        }
        None if text.starts_with('/') && !hosts.is_empty() => {
            let hosts = hosts.iter().map(|host| String::from_utf8_lossy(host));
            let hosts: Vec<String> = hosts.map(|host| regex::escape(&host)).collect();
            format!("(?:{}){}", hosts.join("|"), translated(text))
        }
        None => return Err(PatternError::NotAUrl),
    };
    regex(&format!("^(?:{expression})$")).map(matching)
}

/// A text with `*` and `?` as a regular expression.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(['*', '?']) {
        let (before, after) = rest.split_at(at);
        out.push_str(&regex::escape(before));
        out.push_str(if after.starts_with('*') { ".*" } else { "." });
        rest = after.get(1..).unwrap_or_default();
    }
    out.push_str(&regex::escape(rest));
    out
}

/// Addresses whose host and whose path with its query are found by one regular expression each.
pub fn by_host_and_path(host: Option<Regex>, path: Option<Regex>) -> Pattern {
    let mut written = vec![TWO];
    write_part(host.as_ref(), &mut written);
    write_part(path.as_ref(), &mut written);
    Pattern::matching(&written, move |address: &[u8]| {
        let end = memchr::memchr(b'/', address).unwrap_or(address.len());
        let (of_host, of_path) = address.split_at(end);
        let is = |regex: &Option<Regex>, text| regex.as_ref().is_none_or(|it| it.is_match(text));
        is(&host, of_host) && is(&path, of_path)
    })
}

/// All addresses of a host, whose name is as people write it.
pub fn of_host(text: &[u8]) -> Option<Pattern> {
    address::host(text).map(|host| Pattern::Host(host.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &Pattern, address: &str) -> bool {
        let Pattern::Matching { written, .. } = pattern else {
            panic!("another kind of pattern");
        };
        let again = read_written(written).expect("what is written down can be read");
        let is_match = pattern.matches(address.as_bytes());
        assert_eq!(again.matches(address.as_bytes()), is_match, "{address}");
        is_match
    }

    #[test]
    fn stars_are_any_text_and_question_marks_one_character() {
        let hosts = [b"example.org".to_vec()];
        for (pattern, address, expected) in [
            (
                "https://example.org/news/*",
                "example.org/news/5?page=2",
                true,
            ),
            ("https://example.org/news/*", "example.org/news/", true),
            ("https://example.org/news/*", "example.org/news", false),
            ("https://example.org/news/*", "an.example.org/news/5", false),
            ("https://Example.ORG:8443/n?ws", "example.org/news", true),
            ("https://*.example.org/*", "an.example.org/news", true),
            ("https://*.example.org/*", "example.org/news", false),
            ("https://example.org/a.b", "example.org/axb", false),
            ("https://example.org/a+(b", "example.org/a+(b", true),
            ("http://example.org", "example.org/", true),
            ("/news/*", "example.org/news/5", true),
            ("/news/*", "example.com/news/5", false),
            ("https://example.org/\u{fc}*", "example.org/\u{fc}x", true),
        ] {
            let found = of_addresses(pattern, &hosts).unwrap();
            assert_eq!(is_match(&found, address), expected, "{pattern} {address}");
        }
    }

    #[test]
    fn regular_expressions_are_compared_with_the_address() {
        let found = of_addresses(r"~^example\.org/news/[0-9]+$", &[]).unwrap();
        assert!(is_match(&found, "example.org/news/5"));
        assert!(!is_match(&found, "example.org/news/x"));
    }

    #[test]
    fn expression_of_the_longest_text_is_taken_and_a_longer_one_is_not() {
        let text = |bytes: usize| "a".repeat(bytes);
        assert!(regex(&text(MAX_PATTERN_BYTES)).is_ok());
        let refused = regex(&text(MAX_PATTERN_BYTES + 1)).unwrap_err().to_string();
        assert!(refused.contains("at most 16384 bytes"), "{refused}");
    }

    #[test]
    fn host_and_path_have_an_expression_each_or_none() {
        let of = |host: Option<&str>, path: Option<&str>| {
            let [host, path] = [host, path].map(|text| text.map(|text| regex(text).unwrap()));
            by_host_and_path(host, path)
        };
        for (host, path, address, expected) in [
            (
                Some("^example"),
                Some("^/news/"),
                "example.org/news/5",
                true,
            ),
            (
                Some("^example"),
                Some("^/news/"),
                "example.org/about",
                false,
            ),
            (
                Some("^example"),
                Some("^/news/"),
                "an.example.org/news/5",
                false,
            ),
            (Some("news"), None, "example.org/news/5", false),
            (Some("org$"), None, "example.org/news/5", true),
            (None, Some("org"), "example.org/news/5", false),
            (None, Some("5$"), "example.org/news/5", true),
            (None, None, "example.org/news/5", true),
        ] {
            let found = is_match(&of(host, path), address);
            assert_eq!(found, expected, "{host:?} {path:?} {address}");
        }
    }

    #[test]
    fn what_is_no_pattern_says_what_was_expected() {
        for (pattern, expected) in [
            ("/news/*", "absolute URL"),
            ("news/*", "absolute URL"),
            ("https:///*", "absolute URL"),
            ("~^https?://example", "no scheme"),
            ("~(", "unclosed group"),
            (r"~(a)\1", "backreferences"),
            ("~(?:a{1000}){1000}", "too large"),
        ] {
            let message = of_addresses(pattern, &[]).err().unwrap().to_string();
            assert!(message.contains(expected), "{pattern}: {message}");
        }
        let nested = format!("~{}{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(of_addresses(&nested, &[]).is_err());
        assert!(of_addresses(&"~a".repeat(100_000), &[]).is_err());
    }

    #[test]
    fn an_expression_that_explodes_elsewhere_is_matched_in_linear_time() {
        let found = of_addresses("~^example.org/(a*)*(a|a?)+$", &[]).unwrap();
        let address = format!("example.org/{}b", "a".repeat(100_000));
        assert!(!is_match(&found, &address));
    }
}
