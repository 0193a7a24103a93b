//! Conditional requests: is the client's copy good, and may the request go on?
//!
//! Steps are those of RFC 9110 §13.2.2. nginx differs in that it looks at both
//! conditions of a pair where the RFC lets the entity tag decide alone
//! (If-Match over If-Unmodified-Since, If-None-Match over If-Modified-Since).
//! We follow the RFC: a date has seconds, a microcache has less, and the tag
//! knows better. Entity tags compare strongly in If-Match and If-Range, weakly
//! in If-None-Match.

use crate::date;
use crate::request::RequestView;

/// The validators of the response that would be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The ETag field's value, with quotes and `W/`.
    pub etag: Option<&'a [u8]>,
    /// Last-Modified in seconds since 1970.
    pub last_modified: Option<i64>,
}

/// nginx's `if_modified_since`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfModifiedSince {
    /// Not modified if the dates are the same.
    #[default]
    Exact,
    /// Not modified if the response is not younger than the client's date.
    Before,
    /// Always modified: the field is ignored.
    Off,
}

/// The verdict of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answer in full, or with ranges if asked for.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// Evaluates If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since for a response that
/// would have been 200. (They are ignored for other statuses, RFC 9110 §13.2.1.)
pub fn evaluate<'r>(
    head: impl Into<RequestView<'r>>,
    validators: Validators<'_>,
    rule: IfModifiedSince,
) -> Verdict {
    let head = head.into();
    if let Some(list) = head.field("if-match") {
        if !matches_list(list, validators.etag, Comparison::Strong) {
            return Verdict::PreconditionFailed;
        }
    } else if let Some(limit) = head.field("if-unmodified-since")
        && !is_unmodified(limit, validators.last_modified)
    {
        return Verdict::PreconditionFailed;
    }
    let may_read = matches!(head.method(), b"GET" | b"HEAD");
    if let Some(list) = head.field("if-none-match") {
        return match matches_list(list, validators.etag, Comparison::Weak) {
            true if may_read => Verdict::NotModified,
            true => Verdict::PreconditionFailed,
            false => Verdict::Proceed,
        };
    }
    match head.field("if-modified-since") {
        Some(since) if may_read && !is_modified(since, validators.last_modified, rule) => {
            Verdict::NotModified
        }
        _ => Verdict::Proceed,
    }
}

/// Returns whether a Range field may be honoured: there is no If-Range, or it names exactly the
/// response that would be sent (RFC 9110 §13.1.5). Otherwise ignore Range.
pub fn range_applies<'r>(head: impl Into<RequestView<'r>>, validators: Validators<'_>) -> bool {
    match head.into().field("if-range") {
        None => true,
        Some(value) if value.len() >= 2 && value.ends_with(b"\"") => {
            validators.etag == Some(value) && !value.starts_with(b"W/")
        }
        Some(value) => {
            validators.last_modified.is_some() && date::parse(value) == validators.last_modified
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Returns whether `*` or a tag of `list` matches. RFC 9110 §8.8.3.2.
fn matches_list(list: &[u8], etag: Option<&[u8]>, comparison: Comparison) -> bool {
    if list == b"*" {
        return true;
    }
    let Some(own) = etag.map(EntityTag::of) else {
        return false;
    };
    let mut rest = list;
    while let Some((tag, after)) = next_tag(rest) {
        if tag.opaque == own.opaque && (comparison == Comparison::Weak || !(tag.weak || own.weak)) {
            return true;
        }
        rest = after;
    }
    false
}

struct EntityTag<'a> {
    weak: bool,
    /// The tag with its quotes.
    opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    fn of(text: &'a [u8]) -> Self {
        match text.strip_prefix(b"W/") {
            Some(opaque) => EntityTag { weak: true, opaque },
            None => EntityTag {
                weak: false,
                opaque: text,
            },
        }
    }
}

/// Returns the first tag of a list and the rest; `None` at the end or at a text that is not a tag. A
/// comma inside quotes is part of the tag.
fn next_tag(list: &[u8]) -> Option<(EntityTag<'_>, &[u8])> {
    let separators = list
        .iter()
        .take_while(|byte| b" \t,".contains(byte))
        .count();
    let text = list.get(separators..)?;
    let quote = memchr::memchr(b'"', text).filter(|&at| at == 0 || text.starts_with(b"W/\""))?;
    let close = quote + 1 + memchr::memchr(b'"', text.get(quote + 1..)?)?;
    let (tag, rest) = text.split_at_checked(close + 1)?;
    Some((EntityTag::of(tag), rest))
}

/// An unreadable date is as old as can be, as in nginx: better 412 than a write
/// that its author meant to be conditional.
fn is_unmodified(limit: &[u8], last_modified: Option<i64>) -> bool {
    match (date::parse(limit), last_modified) {
        (Some(limit), Some(last_modified)) => last_modified <= limit,
        _ => false,
    }
}

fn is_modified(since: &[u8], last_modified: Option<i64>, rule: IfModifiedSince) -> bool {
    let (Some(since), Some(last_modified)) = (date::parse(since), last_modified) else {
        return true;
    };
    match rule {
        IfModifiedSince::Exact => since != last_modified,
        IfModifiedSince::Before => since < last_modified,
        IfModifiedSince::Off => true,
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{NotModified, PreconditionFailed, Proceed};
    use super::*;
    use crate::request::RequestHead;

    const OWN_DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const LATER: &str = "Tue, 19 Jan 2038 03:14:07 GMT";

    fn request(method: &str, fields: &[(&str, &str)]) -> RequestHead {
        RequestHead::of(method, "/", fields.iter().copied())
    }

    fn own(etag: &str) -> Validators<'_> {
        Validators {
            etag: Some(etag.as_bytes()),
            last_modified: date::parse(OWN_DATE.as_bytes()),
        }
    }

    #[test]
    fn entity_tags_decide() {
        for (method, name, value, expected) in [
            ("GET", "If-None-Match", "\"a\"", NotModified),
            ("GET", "If-None-Match", "\"foo\"", Proceed),
            (
                "GET",
                "If-None-Match",
                "\"foo\", \"bar\", \"a\" , \"baz\"",
                NotModified,
            ),
            ("GET", "If-None-Match", "*", NotModified),
            ("GET", "If-None-Match", "W/\"a\"", NotModified),
            ("GET", "If-None-Match", "\"x,\"a\"", Proceed),
            ("GET", "If-None-Match", "a", Proceed),
            ("GET", "If-None-Match", "\"aa\"", Proceed),
            ("GET", "If-None-Match", "w/\"a\"", Proceed),
            ("GET", "If-None-Match", "", Proceed),
            ("PUT", "If-None-Match", "*", PreconditionFailed),
            ("GET", "If-Match", "\"a\"", Proceed),
            ("GET", "If-Match", "\"foo\"", PreconditionFailed),
            (
                "GET",
                "If-Match",
                "\"foo\", \"bar\", \t\"a\" , \"baz\"",
                Proceed,
            ),
            ("GET", "If-Match", "*", Proceed),
            ("GET", "If-Match", "W/\"a\"", PreconditionFailed),
        ] {
            let request = request(method, &[(name, value)]);
            let verdict = evaluate(&request, own("\"a\""), IfModifiedSince::Exact);
            assert_eq!(verdict, expected, "{name}: {value}");
        }
    }

    #[test]
    fn dates_decide_by_the_rule() {
        use IfModifiedSince::{Before, Exact, Off};
        for (name, value, rule, expected) in [
            ("If-Modified-Since", OWN_DATE, Exact, NotModified),
            ("If-Modified-Since", LATER, Exact, Proceed),
            ("If-Modified-Since", EARLIER, Exact, Proceed),
            ("If-Modified-Since", OWN_DATE, Before, NotModified),
            ("If-Modified-Since", LATER, Before, NotModified),
            ("If-Modified-Since", EARLIER, Before, Proceed),
            ("If-Modified-Since", OWN_DATE, Off, Proceed),
            ("If-Modified-Since", "wrong", Before, Proceed),
            ("If-Unmodified-Since", OWN_DATE, Exact, Proceed),
            ("If-Unmodified-Since", LATER, Exact, Proceed),
            ("If-Unmodified-Since", EARLIER, Exact, PreconditionFailed),
            ("If-Unmodified-Since", "wrong", Exact, PreconditionFailed),
        ] {
            let request = request("GET", &[(name, value)]);
            assert_eq!(
                evaluate(&request, own("\"a\""), rule),
                expected,
                "{name}: {value} {rule:?}"
            );
        }
    }

    #[test]
    fn entity_tags_go_before_dates() {
        for (fields, expected) in [
            (
                [("If-None-Match", "\"a\""), ("If-Modified-Since", EARLIER)],
                NotModified,
            ),
            (
                [("If-None-Match", "\"b\""), ("If-Modified-Since", OWN_DATE)],
                Proceed,
            ),
            (
                [("If-Match", "\"a\""), ("If-Unmodified-Since", EARLIER)],
                Proceed,
            ),
            (
                [("If-Match", "\"b\""), ("If-Unmodified-Since", LATER)],
                PreconditionFailed,
            ),
            (
                [("If-Match", "\"b\""), ("If-None-Match", "\"a\"")],
                PreconditionFailed,
            ),
        ] {
            let request = request("GET", &fields);
            let verdict = evaluate(&request, own("\"a\""), IfModifiedSince::Exact);
            assert_eq!(verdict, expected, "{fields:?}");
        }
    }

    #[test]
    fn without_validators_nothing_matches_but_the_asterisk() {
        let none = Validators::default();
        for (name, value, expected) in [
            ("If-None-Match", "\"a\"", Proceed),
            ("If-None-Match", "*", NotModified),
            ("If-Match", "\"a\"", PreconditionFailed),
            ("If-Modified-Since", OWN_DATE, Proceed),
            ("If-Unmodified-Since", LATER, PreconditionFailed),
        ] {
            let request = request("GET", &[(name, value)]);
            assert_eq!(
                evaluate(&request, none, IfModifiedSince::Before),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn ranges_apply_only_to_exactly_what_the_client_has() {
        for (value, etag, expected) in [
            (None, "\"a\"", true),
            (Some("\"a\""), "\"a\"", true),
            (Some("\"b\""), "\"a\"", false),
            (Some("W/\"a\""), "\"a\"", false),
            (Some("W/\"a\""), "W/\"a\"", false),
            (Some("\""), "\"a\"", false),
            (Some(OWN_DATE), "\"a\"", true),
            (Some(LATER), "\"a\"", false),
            (Some("wrong"), "\"a\"", false),
        ] {
            let fields: Vec<_> = value.map(|value| ("If-Range", value)).into_iter().collect();
            let applies = range_applies(&request("GET", &fields), own(etag));
            assert_eq!(applies, expected, "{value:?} {etag}");
        }
        let request = request("GET", &[("If-Range", "wrong")]);
        assert!(!range_applies(&request, Validators::default()));
    }
}
