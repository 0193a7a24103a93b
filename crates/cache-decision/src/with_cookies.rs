//! Pages that are made with a visitor's cookies, and stored for those whom the application names by
//! LiteSpeed's protocol ([`crate::litespeed`]): converts its response fields to those of HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http_cache::{CacheKey, ONE_COOKIE, Reason, Sharing, VarySpec};
use http_semantics::same_name;

use crate::litespeed::{
    CONTROL, LitespeedFields, MOBILE_VALUE, VARY_COOKIES, VisitorId, drop_cookies_for_all, items,
};

type Field = (Bytes, Bytes);

/// `Cache-Control` for browsers and caches of a page that was made with a visitor's cookies.
pub const CONTROL_WITH_COOKIES: &str = "private, no-cache";

/// A request that may be answered by a page made with a visitor's cookies.
pub struct WithCookies {
    /// The sharing rule in the note.
    pub sharing: Sharing,
    /// The key of the note.
    pub note: CacheKey,
    /// The identities by which private copies are purged.
    pub ids: Vec<VisitorId>,
    /// The group for the bound of one visitor's copies.
    pub group: Option<u64>,
}

/// The facts of a request that are needed when its response is there.
#[derive(Clone, Default)]
pub struct RequestMemory {
    /// It had cookies.
    pub cookies: Option<Arc<WithCookies>>,
    /// Cookies that other responses for the key have named.
    pub learned: Vec<String>,
    /// The visitor's class that was sent to the application.
    pub vary_value: Option<&'static str>,
}

/// Returns who may share a response. One that sets a cookie of the visitor's own is not kept.
pub fn sharing_said(fields: &[Field]) -> Option<Sharing> {
    let mut others = fields.to_vec();
    drop_cookies_for_all(&mut others);
    let sets_own = others
        .iter()
        .any(|(name, _)| same_name(name, b"set-cookie"));
    LitespeedFields::of(fields).sharing().filter(|_| !sets_own)
}

/// The fields of a response that speaks to LiteSpeed's cache, as the rules of HTTP would have them:
/// to decide whether it may be stored. `None`: it does not speak to it.
///
/// # Errors
/// It may not be stored.
pub fn as_standard(was: &RequestMemory, fields: &[Field]) -> Result<Option<Vec<Field>>, Reason> {
    let said = LitespeedFields::of(fields);
    let Some(control) = said.control else {
        return match was.cookies {
            // The application does not say that it is like that for others.
            Some(_) => Err(Reason::CookieOutsideKey),
            None => Ok(None),
        };
    };
    let expected = was.cookies.as_ref().map(|with| with.sharing);
    let is_for_visitor = expected == Some(Sharing::OneVisitor);
    if said.sharing().is_some() && said.is_private != is_for_visitor {
        return Err(Reason::Private);
    }
    let is_mobile = was.vary_value == Some(MOBILE_VALUE);
    let is_other = |value: &String| !(value.is_empty() || is_mobile && value == MOBILE_VALUE);
    if said.vary_value.as_ref().is_some_and(is_other) {
        // It varies on a value that the server does not know.
        return Err(Reason::VaryStar);
    }
    let mut standard: Vec<Field> = fields
        .iter()
        .filter(|(name, _)| !is_overruled(name))
        .cloned()
        .collect();
    if !control.no_cache && !control.no_store {
        drop_cookies_for_all(&mut standard);
    }
    let words = fields.iter().filter(|(name, _)| same_name(name, CONTROL));
    let words = words.flat_map(|(_, value)| items(value));
    let words: Vec<&[u8]> = words
        .filter(|word| !(is_for_visitor && word.eq_ignore_ascii_case(b"private")))
        .collect();
    let control = Bytes::from(words.join(&b","[..]));
    standard.push((Bytes::from_static(b"Cache-Control"), control));
    if expected == Some(Sharing::Group) && !said.is_vary_off {
        let own = said.vary_cookies.iter().map(String::as_str);
        let names = own
            .chain([VARY_COOKIES])
            .map(|name| [ONE_COOKIE, name].concat());
        // Cookies named by one response count for responses that name none.
        let names: Vec<String> = names.chain(was.learned.iter().cloned()).collect();
        standard.push((Bytes::from_static(b"Vary"), Bytes::from(names.join(","))));
    }
    Ok(Some(standard))
}

/// Fields that do not count beside `X-LiteSpeed-Cache-Control`.
fn is_overruled(name: &[u8]) -> bool {
    [
        "cache-control",
        "cdn-cache-control",
        "expires",
        "x-accel-expires",
    ]
    .iter()
    .any(|field| same_name(name, field.as_bytes()))
}

/// The cookies that responses have been known to vary on.
pub fn learned_cookies(spec: Option<&VarySpec>) -> Vec<String> {
    let names = spec.into_iter().flat_map(VarySpec::names);
    names
        .filter(|name| name.starts_with(ONE_COOKIE))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request whose response is for those of `sharing`.
    fn request(sharing: Option<Sharing>) -> RequestMemory {
        let with = |sharing| WithCookies {
            sharing,
            note: CacheKey::new(b"note".to_vec()),
            ids: Vec::new(),
            group: None,
        };
        RequestMemory {
            cookies: sharing.map(|sharing| Arc::new(with(sharing))),
            learned: vec!["cookie=learned".to_owned()],
            vary_value: None,
        }
    }

    fn standard(sharing: Option<Sharing>, control: &'static str) -> Result<Vec<Field>, Reason> {
        let name = Bytes::from_static(CONTROL);
        let fields = [(name, Bytes::from_static(control.as_bytes()))];
        as_standard(&request(sharing), &fields).map(Option::unwrap_or_default)
    }

    #[test]
    fn a_response_for_others_than_was_noted_is_not_stored() {
        use Sharing::{Group, OneVisitor};
        for (expected, control, is_stored) in [
            (Some(OneVisitor), "private,max-age=60", true),
            (Some(OneVisitor), "public,max-age=60", false),
            (Some(Group), "public,max-age=60", true),
            (Some(Group), "private,max-age=60", false),
            (None, "public,max-age=60", true),
            (None, "private,max-age=60", false),
        ] {
            let standard = standard(expected, control);
            assert_eq!(standard.is_ok(), is_stored, "{expected:?} {control}");
            assert!(is_stored || standard == Err(Reason::Private));
        }
    }

    #[test]
    fn pages_of_a_group_vary_on_its_cookies_and_on_those_of_other_responses() {
        let vary = |sharing, control| {
            let fields = standard(sharing, control).expect("stored");
            let vary = fields.into_iter().find(|(name, _)| name == "Vary");
            vary.map(|(_, value)| value)
        };
        assert_eq!(
            vary(Some(Sharing::Group), "public,max-age=60").as_deref(),
            Some(&b"cookie=_lscache_vary*,cookie=learned"[..])
        );
        assert_eq!(
            vary(Some(Sharing::Group), "public,max-age=60,no-vary"),
            None
        );
        assert_eq!(vary(None, "public,max-age=60"), None);
    }
}
