//! Reads lines by the text of a `log_format`: a value ends where the text behind it begins.

use crate::date;
use crate::entry::{CacheStatus, Entry, Fault};
use crate::line;

/// A `log_format`, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The text before the first value.
    start: Vec<u8>,
    /// Each value with the text behind it.
    values: Vec<(Value, Vec<u8>)>,
}

/// The reason why a text is no format that advice can be given by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormatError(&'static str);

/// The meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Time,
    Request,
    Method,
    Target,
    Status,
    BodyBytes,
    Host,
    UserAgent,
    Cookies,
    CacheStatus,
    RequestTime,
    UpstreamTime,
    Other,
}

impl Value {
    fn of(name: &str) -> Value {
        match name {
            "time_local" | "time_iso8601" | "msec" => Value::Time,
            "request" => Value::Request,
            "request_method" => Value::Method,
            "request_uri" => Value::Target,
            "status" => Value::Status,
            "body_bytes_sent" | "bytes_sent" => Value::BodyBytes,
            "host" | "http_host" | "server_name" => Value::Host,
            "http_user_agent" => Value::UserAgent,
            "http_cookie" => Value::Cookies,
            "upstream_cache_status" => Value::CacheStatus,
            "request_time" => Value::RequestTime,
            "upstream_response_time" => Value::UpstreamTime,
            _ => Value::Other,
        }
    }
}

impl Format {
    /// Reads the text behind the name in a `log_format` directive, without its quotes.
    ///
    /// # Errors
    /// It has no time, no request or no status, or two values with nothing between them.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let mut pieces = text.split('$');
        let start = pieces.next().unwrap_or_default().as_bytes().to_vec();
        let mut values: Vec<(Value, Vec<u8>)> = Vec::new();
        for piece in pieces {
            let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let (name, behind) = match piece.strip_prefix('{') {
                Some(piece) => piece
                    .split_once('}')
                    .ok_or(FormatError("a ${ without its }"))?,
                None => {
                    let end = piece.find(|it| !is_name(it)).unwrap_or(piece.len());
                    piece.split_at(end)
                }
            };
            if values.last().is_some_and(|(_, behind)| behind.is_empty()) {
                return Err(FormatError("two variables with nothing between them"));
            }
            values.push((Value::of(name), behind.as_bytes().to_vec()));
        }
        let has = |value: Value| values.iter().any(|(it, _)| *it == value);
        if !has(Value::Time) {
            return Err(FormatError("no $time_local, $time_iso8601 or $msec"));
        }
        if !has(Value::Request) && !has(Value::Target) {
            return Err(FormatError("no $request and no $request_uri"));
        }
        match has(Value::Status) {
            true => Ok(Format { start, values }),
            false => Err(FormatError("no $status")),
        }
    }

    /// # Errors
    /// The name of the missing value.
    pub fn entry<'l>(&self, line: &'l [u8]) -> Result<Entry<'l>, Fault> {
        let mut rest = line
            .strip_prefix(&self.start[..])
            .ok_or(Fault::OtherFormat)?;
        let mut entry = Entry {
            method: b"GET",
            ..Entry::default()
        };
        let mut time: Option<(u64, bool)> = None;
        let mut has_request = false;
        for (value, behind) in &self.values {
            let end = match &behind[..] {
                [] => rest.len(),
                // A value in quotes may hold the text that follows the quote; `\x22` is no
                // quote.
                text => memchr::memmem::find(rest, text).ok_or(Fault::OtherFormat)?,
            };
            let (text, after) = rest.split_at_checked(end).ok_or(Fault::OtherFormat)?;
            rest = after.get(behind.len()..).unwrap_or_default();
            match value {
                Value::Time => {
                    let known = time.filter(|(_, is_exact)| *is_exact);
                    time = known.or_else(|| date::parse(text)).or(time);
                }
                Value::Request => {
                    let (method, target) = line::request(text).ok_or(Fault::NoRequest)?;
                    (entry.method, entry.target, has_request) = (method, target, true);
                }
                Value::Method => entry.method = text,
                Value::Target => {
                    (entry.target, has_request) = (text, !text.is_empty() && text != b"-");
                }
                Value::Status => entry.status = line::status(text).unwrap_or_default(),
                Value::BodyBytes => entry.body_bytes = date::number(text),
                Value::Host => entry.host = text,
                Value::UserAgent => entry.user_agent = Some(text),
                Value::Cookies => entry.cookies = Some(if text == b"-" { b"" } else { text }),
                Value::CacheStatus => entry.cache_status = CacheStatus::of(text),
                Value::RequestTime => entry.request_ms = line::duration_ms(text),
                Value::UpstreamTime => entry.upstream_ms = line::duration_ms(text),
                Value::Other => {}
            }
        }
        (entry.at_ms, entry.is_exact) = time.ok_or(Fault::NoTime)?;
        match (has_request, entry.status) {
            (false, _) => Err(Fault::NoRequest),
            (_, 0) => Err(Fault::NoStatus),
            _ => Ok(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_format_says() {
        let format = Format::parse(
            r#"{"t":"$msec","h":"${host}","r":"$request","s":$status,"c":"$http_cookie","u":"$upstream_response_time","x":"$upstream_cache_status"}"#,
        )
        .unwrap();
        let line = br#"{"t":"1795432958.123","h":"a.example","r":"GET /x?y=1 HTTP/2.0","s":404,"c":"a=b; c=d","u":"0.020","x":"MISS"}"#;
        let entry = format.entry(line).unwrap();
        assert_eq!((entry.at_ms, entry.is_exact), (1_795_432_958_123, true));
        assert_eq!(
            (entry.host, entry.target, entry.status),
            (&b"a.example"[..], &b"/x?y=1"[..], 404)
        );
        assert_eq!(entry.cookies, Some(&b"a=b; c=d"[..]));
        assert_eq!(entry.cache_status, Some(CacheStatus::Miss));
        assert_eq!(entry.run_ms(), Some(20));
        for (line, fault) in [
            (&b"nothing"[..], Fault::OtherFormat),
            (
                br#"{"t":"-","h":"-","r":"GET / HTTP/1.1","s":200,"c":"-","u":"-","x":"-"}"#,
                Fault::NoTime,
            ),
            (
                br#"{"t":"1795432958.123","h":"-","r":"","s":400,"c":"-","u":"-","x":"-"}"#,
                Fault::NoRequest,
            ),
        ] {
            assert_eq!(format.entry(line), Err(fault));
        }
    }

    #[test]
    fn a_format_without_what_is_needed_says_so() {
        for (text, words) in [
            ("$remote_addr", "no $time_local"),
            ("$msec $status", "no $request"),
            ("$msec $request_uri", "no $status"),
            ("$msec$request $status", "nothing between"),
            ("${msec", "without its }"),
        ] {
            let error = Format::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
