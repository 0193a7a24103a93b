//! Fields, cookies and arguments of a request, by the names that variables give them.

use http_semantics::is_spelt;
use shared_request::cookies;

use crate::exchange::request::Request;
use crate::exchange::value::put;
use crate::exchange::view::View;

/// Appends a request field by the name a variable gives it: lower case, `_` for `-`.
/// Several fields of the name are joined by `, ` (`; ` for Cookie). False if there is
/// none.
pub fn put_field(request: &Request, name: &[u8], out: &mut Vec<u8>) -> bool {
    if let View::Cache(rules) = &request.cache.view
        && !rules.ignored_cookies.is_empty()
        && name == b"cookie"
    {
        return cookies::put_others(request.received.head().view(), &rules.ignored_cookies, out);
    }
    if !request.received.head().view().may_have_spelt(name) {
        return false;
    }
    let mut fields = request.received.head().fields();
    let Some((_, first)) = fields.find(|(field, _)| is_spelt(name, field)) else {
        return false;
    };
    out.extend_from_slice(first);
    // Requests that repeat these are refused; nginx has read the first then.
    if matches!(name, b"host" | b"content_length") {
        return true;
    }
    let separator = if name == b"cookie" { b"; " } else { b", " };
    for (_, value) in fields.filter(|(field, _)| is_spelt(name, field)) {
        out.extend_from_slice(separator);
        out.extend_from_slice(value);
    }
    true
}

/// Returns the value of the first argument called `name` (no case), as sent. An argument
/// without a name does not count.
pub fn argument<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if name.is_empty() {
        return None;
    }
    args.split(|&byte| byte == b'&').find_map(|pair| {
        let (key, value) = pair.split_at_checked(name.len())?;
        if !key.eq_ignore_ascii_case(name) {
            return None;
        }
        value.strip_prefix(b"=")
    })
}

/// Appends the cookie called `name`; false if none counts.
pub fn put_cookie(request: &Request, name: &[u8], out: &mut Vec<u8>) -> bool {
    if let View::Cache(rules) = &request.cache.view
        && cookies::is_named(name, &rules.ignored_cookies)
    {
        return false;
    }
    put(
        http_semantics::cookie::find(request.received.head(), name),
        out,
    )
}
