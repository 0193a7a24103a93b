//! Cookies and the cache: which tell sessions apart, which are outside of the key, and which marks a
//! visitor who has just written something.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use http_semantics::{RequestHead, cookie};
use shared_request::cookies;
use site::{CacheRules, CookieInKey, WRITER_COOKIE};

/// With `cache_private`: appends the session's cookies to the key, so that it
/// holds the whole identity, and gives the group that its copies count against.
pub fn session_of(head: &RequestHead, rules: &CacheRules, key: &mut Vec<u8>) -> Option<u64> {
    let private = rules.private.as_ref()?;
    let identity_start = key.len();
    for (name, value) in cookies::pairs(head.view()) {
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

/// Has the request cookies that count and that its key does not name? Its key may have them by
/// other parts ([`CookieInKey`]).
#[must_use]
pub fn has_cookie_not_named(head: &RequestHead, rules: &CacheRules) -> bool {
    let is_in_key = |name: &[u8]| {
        let mut parts = rules.cookies_in_key.iter();
        parts.any(
            |part| matches!(part, CookieInKey::Named(named) if named.eq_ignore_ascii_case(name)),
        )
    };
    let is_ignored = |name: &[u8]| {
        cookies::is_named(name, &rules.ignored_cookies) || is_in_key(name) || name == WRITER_COOKIE
    };
    cookies::pairs(head.view())
        .map(|(name, _)| name.trim_ascii_end())
        .any(|name| !name.is_empty() && !is_ignored(name))
}

/// The most by which the readings of two threads may differ.
const BETWEEN_CLOCKS: Duration = Duration::from_secs(1);

/// Is this the browser of a visitor who wrote something a moment ago (`cache_read_your_writes`)?
#[must_use]
pub fn is_writer(head: &RequestHead, lifetime: Duration, now: u64) -> bool {
    let Some(value) = cookie::find(head, WRITER_COOKIE) else {
        return false;
    };
    let until = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    let longest =
        u64::try_from(lifetime.saturating_add(BETWEEN_CLOCKS).as_millis()).unwrap_or(u64::MAX);
    // A value further off than we ever write is not ours.
    until.is_some_and(|until| now < until && until - now <= longest)
}

#[cfg(test)]
mod tests {
    use shared_request::NameSet;
    use site::PrivateRule;

    use super::*;
    use crate::testing::{head, rules};

    #[test]
    fn a_key_holds_all_of_a_session_and_nothing_without_one() {
        let cookies = NameSet::new(["one", "two"].map(str::as_bytes));
        let rules = CacheRules {
            private: Some(PrivateRule {
                cookies,
                copies: 1,
                size_bytes: 1,
            }),
            ..rules()
        };
        let session = |field: &str| {
            let mut key = b"page".to_vec();
            session_of(&head(&[field]), &rules, &mut key).map(|group| (key, group))
        };
        let (key, group) = session("Cookie: one=a; other=x; two=b").expect("a session");
        assert_eq!(key, b"page\0one=a\0two=b");
        assert_eq!(
            session("Cookie: other=y; one=a; two=b").map(|it| it.1),
            Some(group)
        );
        for other in [
            "Cookie: one=a",
            "Cookie: one=b; two=a",
            "Cookie: two=a; one=b",
        ] {
            let (other_key, other_group) = session(other).expect("a session");
            assert!(
                other_key != key && other_group != group,
                "{other} is another's"
            );
        }
        assert_eq!(session("Cookie: other=x"), None);
        assert_eq!(session("Accept: */*"), None);
    }
}
