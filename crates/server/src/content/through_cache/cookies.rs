//! Cookies and the cache: which tell sessions apart, and whether a request has some that its
//! key does not hold.

use std::hash::{BuildHasher, Hasher};

use shared_request::cookies;
use site::{CacheRules, CookieInKey};

use crate::exchange::request::{Request, WRITER_COOKIE};
use crate::exchange::variable;

/// With `cache_private`: appends the session's cookies to the key, so that it
/// holds the whole identity, and gives the group that its copies count against.
pub fn session_of(request: &Request, rules: &CacheRules, key: &mut Vec<u8>) -> Option<u64> {
    let private = rules.private.as_ref()?;
    let identity_start = key.len();
    for (name, value) in cookies::pairs(request.head.view()) {
        if cookies::is_named(name, &private.cookies) {
            // NUL cannot stand in a field, so no key without a session looks like this.
            key.push(0);
            key.extend_from_slice(name);
            key.push(b'=');
            key.extend_from_slice(value);
        }
    }
    let identity = &key[identity_start..];
    if identity.is_empty() {
        return None;
    }
    let mut hasher = foldhash::fast::FixedState::with_seed(0).build_hasher();
    hasher.write(identity);
    Some(hasher.finish())
}

/// Has the request cookies that count and that its key does not hold?
pub fn has_cookie_outside_key(request: &mut Request, rules: &CacheRules) -> bool {
    let in_key = &rules.cookies_in_key;
    let is_ignored = |name: &[u8]| {
        let named = in_key.iter().filter_map(|part| match part {
            CookieInKey::Named(named) => Some(named),
            _ => None,
        });
        cookies::is_named(name, &rules.ignored_cookies)
            || named.clone().any(|named| named.eq_ignore_ascii_case(name))
            || name == WRITER_COOKIE
    };
    let has_none = cookies::pairs(request.head.view())
        .map(|(name, _)| name.trim_ascii_end())
        .all(|name| name.is_empty() || is_ignored(name));
    if has_none {
        return false;
    }
    !in_key.iter().any(|part| match part {
        CookieInKey::All => true,
        CookieInKey::Named(_) => false,
        CookieInKey::Slot(slot) => {
            let value = request.extras.slots.get(slot.0);
            value.is_some_and(|value| value.as_ref().is_some_and(|value| !value.is_empty()))
        }
        CookieInKey::Map(id) => {
            let value = variable::evaluate_map(request, *id);
            let configuration = request.configuration.clone();
            let default = &configuration.site.http.maps[id.0].default;
            !value.is_empty() && value != variable::evaluate(request, default)
        }
    })
}
