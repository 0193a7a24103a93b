//! Reads a line without knowing its format: combined, combined with more behind it, and other formats of
//! nginx whose values show their kind.
//!
//! ```text
//! 192.0.2.1 - - [23/Nov/2026:11:22:38 +0100] "GET / HTTP/1.1" 200 5120 "-" "Mozilla/5.0" HIT rt=0.012
//!               time                          request         st. bytes      agent       ...found by form
//! ```
//!
//! Values are found by their form, so that they may stand in any order behind the request: a cache
//! status is one of seven words, a duration has three decimals, an agent is quoted.

use crate::date;
use crate::entry::{CacheStatus, Entry, Fault};

/// More parts of a line are not looked at.
const MAX_PARTS: usize = 64;

/// # Errors
/// The missing part of the line.
pub fn parse(line: &[u8]) -> Result<Entry<'_>, Fault> {
    let mut found = LineFields::default();
    for part in (Parts { rest: line }).take(MAX_PARTS) {
        match found.has_request {
            false => found.before_request(part),
            true => found.after_request(part),
        }
    }
    let Some((at_ms, is_exact)) = found.time else {
        return Err(Fault::NoTime);
    };
    let entry = found.entry;
    match (found.has_request, entry.status) {
        (false, _) => Err(Fault::NoRequest),
        (_, 0) => Err(Fault::NoStatus),
        _ => Ok(Entry {
            at_ms,
            is_exact,
            user_agent: found.agent(),
            ..entry
        }),
    }
}

/// `GET /path HTTP/1.1`: method and target.
pub fn request(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = text.split(|&byte| byte == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    let is_target = matches!(target.first(), Some(b'/' | b'*')) || target.starts_with(b"http");
    let is_http = words.next().is_none_or(|it| it.starts_with(b"HTTP/"));
    (is_method && is_target && is_http).then_some((method, target))
}

/// `0.012`, and the first of `0.012, 0.100` and `0.012 : 0.100`: milliseconds.
pub fn duration_ms(text: &[u8]) -> Option<u32> {
    let text = text.split(|byte| b", :".contains(byte)).next()?;
    let dot = text.len().checked_sub(4)?;
    if text.get(dot) != Some(&b'.') {
        return None;
    }
    let seconds = date::number(text.get(..dot)?)?;
    let millis = date::number(text.get(dot + 1..)?)?;
    u32::try_from(seconds.checked_mul(1000)? + millis).ok()
}

/// `200`
pub fn status(text: &[u8]) -> Option<u16> {
    let number = u16::try_from(date::number(text)?).ok()?;
    (text.len() == 3 && (100..600).contains(&number)).then_some(number)
}

/// The form of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Quoted,
    Bracketed,
}

#[derive(Clone, Copy)]
struct Part<'l> {
    form: Form,
    /// `rt` of `rt=0.012`; empty in a value without a name.
    name: &'l [u8],
    text: &'l [u8],
}

/// The parts of a line, which blanks separate.
struct Parts<'l> {
    rest: &'l [u8],
}

impl<'l> Iterator for Parts<'l> {
    type Item = Part<'l>;

    fn next(&mut self) -> Option<Part<'l>> {
        let rest = self.rest.trim_ascii_start();
        let bracketed = match rest.first()? {
            b'"' => {
                let (text, rest) = quoted(rest.get(1..)?);
                self.rest = rest;
                return Some(part(Form::Quoted, b"", text));
            }
            b'[' => memchr::memchr(b']', rest).map(|end| {
                let text = rest.get(1..end).unwrap_or_default();
                (part(Form::Bracketed, b"", text), end + 1)
            }),
            _ => None,
        };
        if let Some((bracketed, end)) = bracketed {
            self.rest = rest.get(end..).unwrap_or_default();
            return Some(bracketed);
        }
        let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let (word, behind) = rest.split_at_checked(end)?;
        let Some((name, value)) = named(word) else {
            self.rest = behind;
            return Some(part_of(word));
        };
        if value.first() == Some(&b'"') {
            let (text, behind) = quoted(rest.get(name.len() + 2..)?);
            self.rest = behind;
            return Some(part(Form::Quoted, name, text));
        }
        self.rest = behind;
        Some(part(Form::Plain, name, value))
    }
}

fn part<'l>(form: Form, name: &'l [u8], text: &'l [u8]) -> Part<'l> {
    Part { form, name, text }
}

fn part_of(text: &[u8]) -> Part<'_> {
    part(Form::Plain, b"", text)
}

/// `name=value` with a short name of letters.
fn named(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', word)?;
    let (name, value) = word.split_at_checked(at)?;
    let is_name = |it: &u8| it.is_ascii_alphabetic() || *it == b'_';
    (!name.is_empty() && name.len() <= 32 && name.iter().all(is_name))
        .then(|| (name, value.get(1..).unwrap_or_default()))
}

/// The text up to the closing quote, and the rest behind it.
fn quoted(text: &[u8]) -> (&[u8], &[u8]) {
    let mut from = 0;
    while let Some(found) = text
        .get(from..)
        .and_then(|it| memchr::memchr2(b'"', b'\\', it))
    {
        let at = from + found;
        if text.get(at) == Some(&b'"') {
            let behind = text.get(at + 1..).unwrap_or_default();
            return (text.get(..at).unwrap_or_default(), behind);
        }
        from = at + 2;
    }
    (text, b"")
}

/// The values found so far.
#[derive(Default)]
struct LineFields<'l> {
    entry: Entry<'l>,
    time: Option<(u64, bool)>,
    has_request: bool,
    first: Option<&'l [u8]>,
    has_bytes: bool,
    quoted: [&'l [u8]; 3],
    quoted_count: usize,
}

impl<'l> LineFields<'l> {
    fn before_request(&mut self, part: Part<'l>) {
        match part.form {
            Form::Quoted => {
                if let Some((method, target)) = request(part.text) {
                    self.has_request = true;
                    self.entry.method = method;
                    self.entry.target = target;
                } else if self.time.is_some() {
                    // The bytes that a client sent in place of a request: logged, and no request.
                    self.quoted_count = self.quoted.len();
                }
            }
            Form::Bracketed => self.take_time(part.text),
            Form::Plain => {
                if part.name == b"host" {
                    self.entry.host = part.text;
                }
                // Apache's vhost_combined: the name of the site is before the address.
                match self.first {
                    None => self.first = Some(part.text),
                    Some(first) if self.entry.host.is_empty() && is_host_and_port(first) => {
                        self.entry.host = first;
                    }
                    Some(_) => {}
                }
                self.take_time(part.text);
            }
        }
    }

    fn take_time(&mut self, text: &[u8]) {
        let known = self.time.filter(|(_, is_exact)| *is_exact);
        self.time = known.or_else(|| date::parse(text)).or(self.time);
    }

    fn after_request(&mut self, part: Part<'l>) {
        if let Some(status) = CacheStatus::of(part.text) {
            self.entry.cache_status = Some(status);
        } else if part.form != Form::Quoted && date::parse(part.text).is_some() {
            self.take_time(part.text);
        } else if let Some(millis) = duration_ms(part.text).filter(|_| self.entry.status != 0) {
            self.take_duration(part.name, millis);
        } else if part.form == Form::Quoted && part.name.is_empty() {
            if let Some(free) = self.quoted.get_mut(self.quoted_count) {
                *free = part.text;
                self.quoted_count += 1;
            }
        } else if part.name == b"host" {
            self.entry.host = part.text;
        } else if part.name.is_empty() && self.entry.status == 0 {
            self.entry.status = status(part.text).unwrap_or_default();
        } else if part.name.is_empty() && !self.has_bytes {
            self.entry.body_bytes = date::number(part.text);
            self.has_bytes = self.entry.body_bytes.is_some();
        }
    }

    /// With names, as in nginx's own examples; without, the time of the request comes first.
    fn take_duration(&mut self, name: &[u8], millis: u32) {
        let is_upstream = match name {
            b"" => self.entry.request_ms.is_some(),
            b"rt" | b"request_time" | b"time" => false,
            b"urt" | b"upstream_response_time" | b"upstream_time" | b"ut" => true,
            _ => return,
        };
        match is_upstream {
            true => self.entry.upstream_ms = self.entry.upstream_ms.or(Some(millis)),
            false => self.entry.request_ms = self.entry.request_ms.or(Some(millis)),
        }
    }

    /// Returns the agent among the quoted texts: the one that looks like a browser, else the second, which
    /// stands behind Referer, else the only one.
    fn agent(&self) -> Option<&'l [u8]> {
        let all = self.quoted.get(..self.quoted_count)?;
        let browser = |it: &&&[u8]| it.starts_with(b"Mozilla/");
        all.iter()
            .find(browser)
            .or(all.get(1))
            .or(all.first())
            .copied()
    }
}

/// `example.org:443`, and no address.
fn is_host_and_port(text: &[u8]) -> bool {
    let Some(at) = memchr::memrchr(b':', text) else {
        return false;
    };
    let (host, port) = text.split_at_checked(at).unwrap_or_default();
    date::number(port.get(1..).unwrap_or_default()).is_some()
        && host.iter().any(u8::is_ascii_alphabetic)
        && !host.contains(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "[23/Nov/2026:11:22:38 +0000]";

    fn shown(line: &str) -> String {
        match parse(line.as_bytes()) {
            Err(fault) => format!("{fault:?}"),
            Ok(it) => {
                let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
                format!(
                    "{}{} {} {} {} {:?} {} {:?} {:?} {:?}",
                    if it.host.is_empty() {
                        String::new()
                    } else {
                        text(it.host) + " "
                    },
                    it.at_ms,
                    text(it.method),
                    text(it.target),
                    it.status,
                    it.body_bytes,
                    it.user_agent.map_or("-".to_owned(), text),
                    it.cache_status,
                    it.request_ms,
                    it.upstream_ms,
                )
            }
        }
    }

    #[test]
    fn values_are_found_by_their_form() {
        let cases = [
            (
                format!(r#"::1 - - {TIME} "GET /a HTTP/1.1" 200 5 "-" "Mozilla/5.0 (x)""#),
                "1795432958000 GET /a 200 Some(5) Mozilla/5.0 (x) None None None",
            ),
            (
                format!(
                    r#"example.org:443 192.0.2.1 - me {TIME} "GET /a HTTP/1.1" 200 5 "-" "curl/8""#
                ),
                "example.org:443 1795432958000 GET /a 200 Some(5) curl/8 None None None",
            ),
            (
                format!(r#"192.0.2.1 {TIME} "GET / HTTP/2.0" 200 5 0.012 MISS "curl/8""#),
                "1795432958000 GET / 200 Some(5) curl/8 Some(Miss) Some(12) None",
            ),
            (
                r#"192.0.2.1 [2026-11-23T11:22:38+00:00] "GET / HTTP/1.1" 200 HIT 0.000"#
                    .to_owned(),
                "1795432958000 GET / 200 None - Some(Hit) Some(0) None",
            ),
            (
                format!(
                    r#"1.2.3.4 - - {TIME} "HEAD /?a=\"b HTTP/1.1" 304 0 "https://a/ " "x \x22y" "10.0.0.1" rt=0.100 uct="0.001" urt="0.090, 0.001" cs=EXPIRED"#
                ),
                "1795432958000 HEAD /?a=\\\"b 304 Some(0) x \\x22y Some(Expired) Some(100) Some(90)",
            ),
            (
                r#"1795432958.123 1.2.3.4 "GET / HTTP/1.1" 200 7 0.010 0.008"#.to_owned(),
                "1795432958123 GET / 200 Some(7) - None Some(10) Some(8)",
            ),
            (
                format!(r#"1.2.3.4 - - {TIME} "GET / HTTP/1.1" 200 7 "-" "x" 1795432958.123"#),
                "1795432958123 GET / 200 Some(7) x None None None",
            ),
            (
                format!(r#"1.2.3.4 - - {TIME} "\x16\x03\x01" 400 157 "-" "-""#),
                "NoRequest",
            ),
            (
                format!(r#"1.2.3.4 - - {TIME} "" 400 0 "-" "-""#),
                "NoRequest",
            ),
            (r#"1.2.3.4 - - "GET / HTTP/1.1" 200 7"#.to_owned(), "NoTime"),
            (
                format!(r#"1.2.3.4 - - {TIME} "GET / HTTP/1.1" none"#),
                "NoStatus",
            ),
            (format!(r#"1.2.3.4 - - {TIME} "GET / HTTP/1.1"#), "NoStatus"),
            (String::new(), "NoTime"),
            ("\u{0}\u{fffd}".to_owned(), "NoTime"),
        ];
        for (line, expected) in cases {
            assert_eq!(shown(&line), expected, "{line}");
        }
    }

    #[test]
    fn no_cut_of_a_line_is_a_panic() {
        let line = format!(r#"a:1 b - - {TIME} "GET /\"" x="y\" [ " 200 = a= ="b" [x"#);
        for from in 0..line.len() {
            for to in from..line.len() {
                let _ = parse(&line.as_bytes()[from..to]);
            }
        }
    }
}
