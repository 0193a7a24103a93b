//! `valid_referers`
//! (<https://nginx.org/en/docs/http/ngx_http_referer_module.html>).

use site::{Builtin as B, Pattern, ValidReferers};

use crate::exchange::request::Request;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::route::pattern;
use crate::route::pattern::GivenUp;

pub const VARIABLES: Variables = &[(
    B::InvalidReferer,
    Of(|request, out| {
        if is_referer_invalid(request) {
            out.push(b'1');
        }
        true
    }),
)];

/// Longest host in a Referer that is looked at; nginx's bound.
const MAX_REFERER_HOST_BYTES: usize = 256;

/// Is the Referer none of those that `valid_referers` names?
fn is_referer_invalid(request: &Request) -> bool {
    let is_valid = match &request.settings().valid_referers {
        Some(valid) => is_referer_valid(
            valid,
            request.received.head().field("referer"),
            |pattern, text| pattern::is_match(request, pattern, text),
        ),
        None => Ok(true),
    };
    !is_valid.unwrap_or_else(|GivenUp| pattern::refuse(request))
}

fn is_referer_valid(
    valid: &ValidReferers,
    referer: Option<&[u8]>,
    is_match: impl Fn(&Pattern, &[u8]) -> Result<bool, GivenUp>,
) -> Result<bool, GivenUp> {
    let Some(referer) = referer else {
        return Ok(valid.none);
    };
    let Some(rest) = without_scheme(referer) else {
        return Ok(valid.blocked);
    };
    let host_end = rest.iter().position(|&byte| byte == b'/' || byte == b':');
    let (host, after) = rest.split_at(host_end.unwrap_or(rest.len()));
    if host.len() > MAX_REFERER_HOST_BYTES {
        return Ok(false);
    }
    if let Some(path_prefix) = named_referer(valid, &host.to_ascii_lowercase()) {
        let path_start = memchr::memchr(b'/', after).unwrap_or(after.len());
        let path = after.get(path_start..).unwrap_or_default();
        return Ok(path.starts_with(path_prefix));
    }
    for pattern in &valid.host_patterns {
        if is_match(pattern, &host.to_ascii_lowercase())? {
            return Ok(true);
        }
    }
    for pattern in &valid.patterns {
        if is_match(pattern, rest)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the part after the scheme; `None` for a value without a scheme ("blocked" by a
/// firewall).
fn without_scheme(referer: &[u8]) -> Option<&[u8]> {
    // nginx's bound for the length of a Referer.
    if referer.len() < b"http://i.ru".len() {
        return None;
    }
    [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| {
            let (start, rest) = referer.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        })
}

/// The path prefix that goes with the name `host` matches: exact names first,
/// then the longest `*.` name, then the longest `.*` name.
fn named_referer<'a>(valid: &'a ValidReferers, host: &[u8]) -> Option<&'a [u8]> {
    let names = &valid.names;
    let exact = names
        .iter()
        .find(|(name, _)| is_exact(name) && name.eq_ignore_ascii_case(host));
    let longest = |matches: &dyn Fn(&[u8]) -> bool| {
        names
            .iter()
            .filter(|(name, _)| matches(name))
            .max_by_key(|(name, _)| name.len())
    };
    exact
        .or_else(|| longest(&|name| matches_leading(name, host)))
        .or_else(|| longest(&|name| matches_trailing(name, host)))
        .map(|(_, path)| &path[..])
}

fn is_exact(name: &[u8]) -> bool {
    !name.starts_with(b"*.") && !name.starts_with(b".") && !name.ends_with(b".*")
}

/// `*.example.org` holds names below it, `.example.org` that name as well.
fn matches_leading(name: &[u8], host: &[u8]) -> bool {
    match name.strip_prefix(b"*") {
        Some(suffix) => host.len() > suffix.len() && ends_with_ignore_case(host, suffix),
        None => match name.strip_prefix(b".") {
            Some(bare) => host.eq_ignore_ascii_case(bare) || ends_with_ignore_case(host, name),
            None => false,
        },
    }
}

fn matches_trailing(name: &[u8], host: &[u8]) -> bool {
    let Some(prefix) = name.strip_suffix(b"*") else {
        return false;
    };
    prefix.ends_with(b".")
        && host
            .split_at_checked(prefix.len())
            .is_some_and(|(start, rest)| start.eq_ignore_ascii_case(prefix) && !rest.is_empty())
}

fn ends_with_ignore_case(host: &[u8], suffix: &[u8]) -> bool {
    host.len()
        .checked_sub(suffix.len())
        .and_then(|start| host.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referers_are_told_apart_as_by_nginx() {
        let name = |name: &str, path: &str| (name.as_bytes().into(), path.as_bytes().into());
        let valid = ValidReferers {
            none: true,
            blocked: true,
            names: vec![
                name("www.example.org", ""),
                name("example.com", "/path"),
                name("*.example.net", ""),
                name(".both.example", ""),
                name("tail.*", ""),
            ],
            patterns: Vec::new(),
            host_patterns: Vec::new(),
        };
        let strict = ValidReferers {
            none: false,
            blocked: false,
            ..valid.clone()
        };
        for (referer, lenient, wanted) in [
            (None, true, false),
            (Some("secret"), true, false),
            (Some("ftp://www.example.org/"), true, false),
            (Some("http://a"), true, false),
            (Some("http://www.example.org"), true, true),
            (Some("HTTPS://WWW.Example.org/x"), true, true),
            (Some("http://www.example.org:8080/x"), true, true),
            (Some("http://example.com/path/x"), true, true),
            (Some("http://example.com:80/path"), true, true),
            (Some("http://example.com/other"), false, false),
            (Some("http://example.com"), false, false),
            (Some("http://example.net/"), false, false),
            (Some("http://a.example.net/"), true, true),
            (Some("http://both.example/"), true, true),
            (Some("http://a.both.example/"), true, true),
            (Some("http://tail.de/"), true, true),
            (Some("http://other.de/x"), false, false),
        ] {
            let bytes = referer.map(str::as_bytes);
            let is_valid = |valid| is_referer_valid(valid, bytes, |_, _| Err(GivenUp)).ok();
            assert_eq!(is_valid(&valid), Some(lenient), "{referer:?}");
            assert_eq!(is_valid(&strict), Some(wanted), "{referer:?}");
        }
    }
}
