//! The request target, read: its form, the authority of an absolute-form one, the decoded
//! and normalised path (which locations match), the query and the raw text
//! (`$request_uri`).
//!
//! Normalising is nginx's: percent-decoding, `.` and `..` segments resolved (also when
//! encoded), slashes merged if asked, `#` and the rest cut. A target that needs none of
//! it, nearly every one, borrows.

use byte_scan as scan;
use std::borrow::Cow;

use crate::host::{Host, parse_host};
use crate::request::RequestView;

/// The four forms of RFC 9112 §3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    Origin,
    /// `http://authority/path?query`
    Absolute,
    /// `host:port`, for CONNECT.
    Authority,
    /// `*`, for OPTIONS. nginx answers 400.
    Asterisk,
}

/// Why a request has no target URI. The response is 400 for either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A request target that does not decode (bad `%`, above the root, ...).
    #[error("client sent invalid request")]
    InvalidTarget,
    /// A Host field value or target authority that is not a host.
    #[error("client sent invalid host header")]
    InvalidHost,
}

/// A request target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Its form.
    pub form: TargetForm,
    /// Host and port of an absolute or authority form, valid but as sent.
    pub authority: Option<&'a [u8]>,
    /// Decoded and normalised; begins with `/` in origin and absolute form,
    /// is empty in authority form and `*` in asterisk form.
    pub path: Cow<'a, [u8]>,
    /// The part after `?`, as sent, without fragment.
    pub query: Option<&'a [u8]>,
    /// Path and query as sent, without scheme and authority.
    pub raw: &'a [u8],
}

impl<'a> Target<'a> {
    /// Reads the target of a request. `merge_slashes` is nginx's directive.
    ///
    /// # Errors
    /// [`TargetError::InvalidTarget`] for a bad or NUL escape, a path above the root or an unknown form;
    /// [`TargetError::InvalidHost`] for a malformed authority.
    #[inline]
    pub fn parse(target: &'a [u8], merge_slashes: bool) -> Result<Self, TargetError> {
        match target {
            [b'/', ..] => Target::of_path(TargetForm::Origin, None, target, merge_slashes),
            b"*" => Ok(Target {
                form: TargetForm::Asterisk,
                authority: None,
                path: Cow::Borrowed(target),
                query: None,
                raw: target,
            }),
            _ => match split_scheme(target) {
                Some(rest) => Target::absolute(rest, merge_slashes),
                None => Target::authority(target),
            },
        }
    }

    fn absolute(rest: &'a [u8], merge_slashes: bool) -> Result<Self, TargetError> {
        let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
        let (authority, raw) = rest.split_at(end);
        if parse_host(authority).is_none() {
            return Err(TargetError::InvalidHost);
        }
        let form = TargetForm::Absolute;
        match raw {
            [] => Target::of_path(form, Some(authority), b"/", merge_slashes),
            // An empty path is `/`, but `$request_uri` stays as sent.
            [b'?', query @ ..] => Ok(Target {
                form,
                authority: Some(authority),
                path: Cow::Borrowed(b"/"),
                query: Some(without_fragment(query)),
                raw,
            }),
            _ => Target::of_path(form, Some(authority), raw, merge_slashes),
        }
    }

    /// The target of CONNECT: a host and, unlike elsewhere, a port.
    fn authority(target: &'a [u8]) -> Result<Self, TargetError> {
        match parse_host(target) {
            Some(host) if host.port.is_some() => Ok(Target {
                form: TargetForm::Authority,
                authority: Some(target),
                path: Cow::Borrowed(b""),
                query: None,
                raw: target,
            }),
            _ => Err(TargetError::InvalidTarget),
        }
    }

    #[inline]
    fn of_path(
        form: TargetForm,
        authority: Option<&'a [u8]>,
        raw: &'a [u8],
        merge_slashes: bool,
    ) -> Result<Self, TargetError> {
        let (path, query) = match split_plain(raw) {
            Some((path, query)) => (Cow::Borrowed(path), query),
            None => {
                let (path, query) =
                    normalise(raw, merge_slashes).ok_or(TargetError::InvalidTarget)?;
                (Cow::Owned(path), query)
            }
        };
        Ok(Target {
            form,
            authority,
            path,
            query,
            raw,
        })
    }
}

/// The host a request is for: the target's authority if it has one, otherwise
/// the Host field (RFC 9112 §3.2.2). The Host field is validated either way.
/// `None` only for requests before HTTP/1.1 without Host.
///
/// # Errors
/// [`TargetError::InvalidHost`].
pub fn request_host<'a>(
    head: impl Into<RequestView<'a>>,
    target: &Target<'a>,
) -> Result<Option<Host<'a>>, TargetError> {
    let parse = |bytes| parse_host(bytes).ok_or(TargetError::InvalidHost);
    let field = head.into().field("host").map(parse).transpose()?;
    match target.authority {
        Some(authority) => parse(authority).map(Some),
        None => Ok(field),
    }
}

/// Returns the part after `scheme://`, if `target` begins so.
fn split_scheme(target: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', target)?;
    let (scheme, rest) = target.split_at(colon);
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    rest.strip_prefix(b"://").filter(|_| is_scheme)
}

/// Path and query of a target that the server itself was given (`try_files`,
/// `error_page`, `X-Accel-Redirect` and the like), cut at the first `?` and as
/// they are; `None` if there is no `?`.
pub fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mark = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(mark);
    (path, query.get(1..))
}

#[inline]
fn without_fragment(query: &[u8]) -> &[u8] {
    match find_fragment(query, 0) {
        Some(at) => query.get(..at).unwrap_or_default(),
        None => query,
    }
}

#[inline(always)]
fn find_fragment(raw: &[u8], from: usize) -> Option<usize> {
    scan::find_far(raw, from, |byte| byte == b'#', scan::equal::<b'#'>)
}

/// Path and query of a target whose path needs no decoding and has no dot segments; `None` when
/// `normalise` must look.
#[inline(always)]
fn split_plain(raw: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let mut after_slash = 0;
    let special = scan::find(raw, 0, |word| {
        scan::equal::<b'?'>(word)
            | scan::equal::<b'%'>(word)
            | scan::equal::<b'#'>(word)
            | scan::dotted(word, &mut after_slash)
    });
    let Some(mark) = special else {
        return Some((raw, None));
    };
    let (path, [b'?', ..]) = raw.split_at_checked(mark)? else {
        return None;
    };
    let end = find_fragment(raw, mark + 1).unwrap_or(raw.len());
    Some((path, raw.get(mark + 1..end)))
}

/// The state of the path's writing end within a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment {
    /// In a segment like any other.
    Usual,
    /// After a slash.
    Start,
    /// After `/.`
    Dot,
    /// After `/..`
    DotDot,
}

/// Decodes and resolves path and query; `None` if nginx answers 400.
///
/// An encoded `/` or `.` counts like a plain one (so `%2e%2e` climbs), an
/// encoded `%`, `#` or `?` is an ordinary byte.
fn normalise(raw: &[u8], merge_slashes: bool) -> Option<(Vec<u8>, Option<&[u8]>)> {
    let mut path = Vec::with_capacity(raw.len());
    let mut segment = Segment::Usual;
    let mut rest = raw;
    let mut query = None;
    while let [byte, after @ ..] = rest {
        rest = after;
        let byte = match byte {
            b'?' => {
                query = Some(without_fragment(after));
                break;
            }
            b'#' => break,
            b'%' => {
                let [high, low, after @ ..] = after else {
                    return None;
                };
                rest = after;
                match hex_pair(*high, *low)? {
                    0 => return None,
                    ordinary @ (b'%' | b'#' | b'?') => {
                        path.push(ordinary);
                        segment = Segment::Usual;
                        continue;
                    }
                    decoded => decoded,
                }
            }
            &plain => plain,
        };
        segment = step(&mut path, segment, byte, merge_slashes)?;
    }
    match segment {
        Segment::Dot => path.truncate(path.len().saturating_sub(1)),
        Segment::DotDot => climb(&mut path)?,
        Segment::Usual | Segment::Start => {}
    }
    Some((path, query))
}

fn step(path: &mut Vec<u8>, segment: Segment, byte: u8, merge_slashes: bool) -> Option<Segment> {
    match (segment, byte) {
        (Segment::Start, b'/') => {
            if !merge_slashes {
                path.push(byte);
            }
            return Some(Segment::Start);
        }
        (Segment::Dot, b'/') => {
            path.pop();
            return Some(Segment::Start);
        }
        (Segment::DotDot, b'/') => {
            climb(path)?;
            return Some(Segment::Start);
        }
        _ => path.push(byte),
    }
    Some(match (segment, byte) {
        (_, b'/') => Segment::Start,
        (Segment::Start, b'.') => Segment::Dot,
        (Segment::Dot, b'.') => Segment::DotDot,
        _ => Segment::Usual,
    })
}

/// Takes `segment/..` off the end; `None` above the root.
fn climb(path: &mut Vec<u8>) -> Option<()> {
    let parent_end = path.len().checked_sub(3)?;
    let slash = memchr::memrchr(b'/', path.get(..parent_end)?)?;
    path.truncate(slash + 1);
    Some(())
}

/// The byte that two hexadecimal digits name.
pub fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_begins_behind_the_first_question_mark() {
        for (target, path, query) in [
            ("/a?b=c?d", "/a", Some("b=c?d")),
            ("/a?", "/a", Some("")),
            ("/a", "/a", None),
            ("?b", "", Some("b")),
            ("", "", None),
        ] {
            let wanted = (path.as_bytes(), query.map(str::as_bytes));
            assert_eq!(split_query(target.as_bytes()), wanted, "{target}");
        }
    }

    fn path_and_query(target: &str, merge_slashes: bool) -> Option<(String, Option<String>)> {
        let target = Target::parse(target.as_bytes(), merge_slashes).ok()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(&target.path), target.query.map(text)))
    }

    #[test]
    fn targets_are_normalised_as_nginx_does() {
        for (target, path, query) in [
            ("/", "/", None),
            ("/a/b?x=1&y", "/a/b", Some("x=1&y")),
            ("/a?", "/a", Some("")),
            ("/a?x#y", "/a", Some("x")),
            ("/a#y?x", "/a", None),
            ("/foo/bar/.?args", "/foo/bar/", Some("args")),
            ("/foo/bar/.#frag", "/foo/bar/", None),
            ("/foo/bar/..?args", "/foo/", Some("args")),
            ("/foo/bar/..#frag", "/foo/", None),
            ("/foo/bar/.", "/foo/bar/", None),
            ("/foo/bar/..", "/foo/", None),
            ("/foo/..", "/", None),
            ("http://localhost", "/", None),
            ("http://localhost/", "/", None),
            ("http://localhost?args", "/", Some("args")),
            ("http://localhost?args#frag", "/", Some("args")),
            ("http://localhost:8080?args#frag", "/", Some("args")),
            ("HTTP://A/b//c", "/b/c", None),
            ("/%02", "/\u{2}", None),
            (
                "/a%2fb%2e%2e/%2e%2e/%3f%23%25?x=%zz#frag",
                "/a/?#%",
                Some("x=%zz"),
            ),
            ("//a///b/./c/../d", "/a/b/d", None),
            ("/.well-known/x", "/.well-known/x", None),
            ("/a/..b/...", "/a/..b/...", None),
            ("/a%2e./b", "/a../b", None),
            ("/a/%2e./b", "/b", None),
            ("/%2525", "/%25", None),
            ("/a\u{e9}+b", "/a\u{e9}+b", None),
            ("/a?b?c/../d", "/a", Some("b?c/../d")),
        ] {
            let expected = (path.to_owned(), query.map(str::to_owned));
            assert_eq!(path_and_query(target, true), Some(expected), "{target}");
        }
    }

    #[test]
    fn slashes_stay_when_merging_is_off() {
        for (target, path) in [
            ("/foo//../bar", "/foo/bar"),
            ("/foo///../bar", "/foo//bar"),
            ("//", "//"),
            ("/a//b", "/a//b"),
        ] {
            assert_eq!(path_and_query(target, false).unwrap().0, path, "{target}");
        }
    }

    #[test]
    fn bad_targets_are_refused() {
        #[rustfmt::skip]
        let cases = [
            "/foo/bar%", "/foo/bar%1", "/a%2", "/%zz", "/%0", "/%00", "/a%00b", "/..", "/../a", "/a/../..",
            "/%2e%2e", "/a/..%2f..", "//../..", "http:///", "http://", "http://a b/", "http://u@a/", "http://a..b/",
            "mailto:x", "localhost", "x", "http:/a", "://a/", "1x://a/", "http://a#b/", "a:1:2", "**", "",
        ];
        for target in cases {
            assert_eq!(path_and_query(target, true), None, "{target}");
        }
    }

    #[test]
    fn a_plain_target_is_not_copied() {
        let target = Target::parse(b"/news/1.html?page=2", true).unwrap();
        assert!(matches!(target.path, Cow::Borrowed(b"/news/1.html")));
        assert_eq!(target.query, Some(&b"page=2"[..]));
    }

    #[test]
    fn absolute_and_authority_forms_keep_their_authority() {
        let target = Target::parse(b"http://A.b:80?x#y", true).unwrap();
        assert_eq!(target.form, TargetForm::Absolute);
        assert_eq!(target.authority, Some(&b"A.b:80"[..]));
        assert_eq!(target.raw, b"?x#y");
        let target = Target::parse(b"localhost:8080", true).unwrap();
        assert_eq!(target.form, TargetForm::Authority);
        assert_eq!(target.authority, Some(&b"localhost:8080"[..]));
        assert_eq!(
            Target::parse(b"*", true).unwrap().form,
            TargetForm::Asterisk
        );
    }
}
