//! LiteSpeed's cache protocol (`cache_litespeed`): the fields that the application receives, and the
//! fields of its response (<https://docs.litespeedtech.com/lscache/devguide/controls/>).
//!
//! This module has the words of the protocol. Their meaning for storing is in `with_cookies`.

use std::borrow::Cow;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use http_cache::{CacheControl, Sharing};
use http_semantics::{RequestView, same_name};
use shared_request::{NameSet, cookies};

type Field = (Bytes, Bytes);

pub const CONTROL: &[u8] = b"x-litespeed-cache-control";
const VARY: &[u8] = b"x-litespeed-vary";
const LSC_COOKIE: &[u8] = b"lsc-cookie";
/// The cookies that tell a page's variants apart if it does not set `no-vary`.
pub const VARY_COOKIES: &str = "_lscache_vary*";
/// The value sent to the application for a visitor with a telephone, which it may name in
/// `X-LiteSpeed-Vary`.
pub const MOBILE_VALUE: &str = "ismobile";

/// A cookie is taken for a visitor's own if its value is as long: sessions are, choices are not.
const MIN_ID_BYTES: usize = 16;
/// Long ones that all visitors of a group, or of a WordPress, have.
const COMMON_COOKIES: [&[u8]; 2] = [b"_lscache_vary*", b"wordpress_test_cookie"];
/// A response's fields for LiteSpeed's cache.
// Large: words of LiteSpeed's fields, of which any may be there.
#[derive(Debug, Default)]
pub struct LitespeedFields {
    /// `None`: nothing of storing.
    pub control: Option<CacheControl>,
    pub is_private: bool,
    /// `no-vary`
    pub is_vary_off: bool,
    runs_esi: bool,
    /// Names of cookies, in lower case.
    pub vary_cookies: Vec<String>,
    /// `value=` of `X-LiteSpeed-Vary`.
    pub vary_value: Option<String>,
}

/// The hash of a cookie that a visitor alone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VisitorId([u8; 16]);

impl LitespeedFields {
    pub fn of(fields: &[Field]) -> LitespeedFields {
        let mut said = LitespeedFields::default();
        let values = |name: &'static [u8]| {
            let fields = fields.iter().filter(|(field, _)| same_name(field, name));
            fields.map(|(_, value)| &value[..])
        };
        for item in values(CONTROL).flat_map(items) {
            said.is_vary_off |= item.eq_ignore_ascii_case(b"no-vary");
            said.runs_esi |= item.eq_ignore_ascii_case(b"esi=on");
        }
        let control = CacheControl::parse(values(CONTROL));
        let says_something = control.public
            || control.private
            || control.no_cache
            || control.no_store
            || control.max_age.is_some()
            || control.s_maxage.is_some();
        said.is_private = control.private;
        said.control = says_something.then_some(control);
        for item in values(VARY).flat_map(items) {
            let text = String::from_utf8_lossy(item).to_ascii_lowercase();
            match text.split_once('=') {
                Some(("value", value)) => said.vary_value = Some(value.to_owned()),
                Some(("cookie", name)) => said.vary_cookies.push(name.trim().to_owned()),
                _ => said.vary_cookies.push(text),
            }
        }
        said
    }

    /// Returns who may share the response; `None`: it is not to be kept.
    pub fn sharing(&self) -> Option<Sharing> {
        let control = self.control?;
        (!control.no_cache && !control.no_store).then_some(match self.is_private {
            true => Sharing::OneVisitor,
            false => Sharing::Group,
        })
    }
}

/// The members of a list.
pub fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let items = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    items.filter(|item| !item.is_empty())
}

/// `esi=on`, in the standard's words.
pub fn put_surrogate_control(fields: &mut Vec<Field>) {
    let asks = |(name, value): &Field| {
        same_name(name, CONTROL) && items(value).any(|item| item.eq_ignore_ascii_case(b"esi=on"))
    };
    if fields.iter().any(asks) {
        fields.push((
            Bytes::from_static(b"Surrogate-Control"),
            Bytes::from_static(b"content=\"ESI/1.0\""),
        ));
    }
}

/// Removes cookies that `LSC-Cookie` sets as well: they are for each visitor of the page. Other
/// cookies stay, so that the response is not stored.
pub fn drop_cookies_for_all(fields: &mut Vec<Field>) {
    let for_all: Vec<Bytes> = fields
        .iter()
        .filter(|(name, _)| same_name(name, LSC_COOKIE))
        .map(|(_, value)| value.clone())
        .collect();
    fields.retain(|(name, value)| !(same_name(name, b"set-cookie") && for_all.contains(value)));
}

/// Makes the fields of a response that is stored those that visitors get: `LSC-Cookie` becomes
/// `Set-Cookie`.
pub fn put_stored_fields(fields: &mut Vec<Field>) {
    let is_for_all = |(name, _): &Field| same_name(name, LSC_COOKIE);
    if !fields.iter().any(is_for_all) {
        return;
    }
    drop_cookies_for_all(fields);
    for (name, _) in fields.iter_mut().filter(|field| is_for_all(field)) {
        *name = Bytes::from_static(b"Set-Cookie");
    }
}

/// Returns the identities by which private copies of a request's visitor are purged.
pub fn visitor_ids(head: RequestView<'_>) -> Vec<VisitorId> {
    let common = NameSet::new(COMMON_COOKIES);
    let own = cookies::pairs(head)
        .filter(|(name, value)| value.len() >= MIN_ID_BYTES && !cookies::is_named(name, &common));
    let mut ids: Vec<VisitorId> = own
        .filter_map(|(name, value)| {
            let hash = digest(&SHA256, &[name, b"=", value].concat());
            hash.as_ref().first_chunk().copied().map(VisitorId)
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

impl VisitorId {
    /// The label of the visitor's private copies that carry `tag`; all carry `*`. No tag that an
    /// application names begins with NUL.
    pub fn label(self, tag: &[u8]) -> Vec<u8> {
        let mut label = Vec::with_capacity(self.0.len() + tag.len() + 1);
        label.push(0);
        label.extend_from_slice(&self.0);
        label.extend_from_slice(tag);
        label
    }
}

/// The value sent to the application with each request: [`http_cache`] speaks LiteSpeed's protocol.
pub fn announcement(runs_esi: bool) -> &'static [u8] {
    match runs_esi {
        true => b"on,esi",
        false => b"on",
    }
}

/// Is it a field by which a server in front speaks to the application or the application to it? A
/// client has no business with it. CGI sees `X_LSCACHE` and `X-LSCACHE` as one name.
pub fn is_of_protocol(name: &[u8]) -> bool {
    let begins = |start: &[u8]| {
        let begin = name.get(..start.len()).unwrap_or_default();
        let is_same = |(own, wanted): (&u8, &u8)| {
            own.eq_ignore_ascii_case(wanted) || (*own == b'_' && *wanted == b'-')
        };
        begin.len() == start.len() && begin.iter().zip(start).all(is_same)
    };
    begins(b"x-lscache") || begins(b"x-litespeed-")
}

/// One tag of `X-LiteSpeed-Tag`, given to `add` as it is purged: for a response to one visitor only
/// those with `public:` in front are for all purges.
pub fn each_label(tag: &[u8], ids: &[VisitorId], add: &mut dyn FnMut(Cow<'_, [u8]>)) {
    match tag.strip_prefix(b"public:") {
        Some(public) => add(Cow::Borrowed(public)),
        None if ids.is_empty() => add(Cow::Borrowed(tag)),
        None => ids.iter().for_each(|id| add(Cow::Owned(id.label(tag)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::head;

    fn fields(lines: &[(&'static str, &'static str)]) -> Vec<Field> {
        let field = |(name, value): &(&'static str, &'static str)| {
            let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
            (bytes(name), bytes(value))
        };
        lines.iter().map(field).collect()
    }

    #[test]
    fn a_response_says_who_may_share_it() {
        use Sharing::{Group, OneVisitor};
        for (control, sharing, esi, vary_off) in [
            ("public,max-age=604800", Some(Group), false, false),
            ("s-maxage=60", Some(Group), false, false),
            (
                "public,no-vary,max-age=86400,esi=on",
                Some(Group),
                true,
                true,
            ),
            (
                "private,no-vary,max-age=1800",
                Some(OneVisitor),
                false,
                true,
            ),
            (
                "shared,private,max-age=1800",
                Some(OneVisitor),
                false,
                false,
            ),
            ("Private, Max-Age=1", Some(OneVisitor), false, false),
            ("private", Some(OneVisitor), false, false),
            ("max-age=60", Some(Group), false, false),
            ("no-cache,esi=on", None, true, false),
            ("no-store,public", None, false, false),
            ("esi=on", None, true, false),
            ("", None, false, false),
        ] {
            let said = LitespeedFields::of(&fields(&[("X-LiteSpeed-Cache-Control", control)]));
            assert_eq!(said.sharing(), sharing, "{control}");
            assert_eq!(
                (said.runs_esi, said.is_vary_off),
                (esi, vary_off),
                "{control}"
            );
        }
    }

    #[test]
    fn cookies_that_tell_copies_apart_are_named() {
        let said = LitespeedFields::of(&fields(&[
            ("X-LiteSpeed-Vary", "cookie=Currency, cookie=lang"),
            ("x-litespeed-vary", "region,value=ismobile"),
        ]));
        assert_eq!(said.vary_cookies, ["currency", "lang", "region"]);
        assert_eq!(said.vary_value.as_deref(), Some("ismobile"));
    }

    #[test]
    fn fragments_are_asked_for_in_the_standards_words() {
        let mut asks = fields(&[("X-LiteSpeed-Cache-Control", "public,max-age=1,esi=on")]);
        put_surrogate_control(&mut asks);
        assert!(asks.contains(&fields(&[("Surrogate-Control", "content=\"ESI/1.0\"")])[0]));
        let mut plain = fields(&[("X-LiteSpeed-Cache-Control", "public,max-age=1,esi=off")]);
        put_surrogate_control(&mut plain);
        assert_eq!(plain.len(), 1);
    }

    #[test]
    fn only_cookies_for_all_are_taken_for_such() {
        let mut both = fields(&[
            ("Set-Cookie", "test=1; path=/"),
            ("lsc-cookie", "test=1; path=/"),
            ("Set-Cookie", "session=2"),
        ]);
        put_stored_fields(&mut both);
        let expected = [
            ("Set-Cookie", "test=1; path=/"),
            ("Set-Cookie", "session=2"),
        ];
        assert_eq!(both, fields(&expected));
    }

    #[test]
    fn fields_of_the_protocol_are_known_as_php_sees_them() {
        for (name, expected) in [
            ("X-LSCACHE", true),
            ("x_lscache", true),
            ("X-LSCache-Vary-Value", true),
            ("X-LiteSpeed-Purge", true),
            ("X_LiteSpeed-Tag", true),
            ("X-LSC", false),
            ("X-Litespeed", false),
            ("Cookie", false),
        ] {
            assert_eq!(is_of_protocol(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_visitor_is_the_same_whatever_the_order_of_the_cookies() {
        let ids = |cookies: &str| visitor_ids(head(&[&format!("Cookie: {cookies}")]).view());
        let many: Vec<String> = (0..8).map(|n| format!("c{n}=0123456789abcde{n}")).collect();
        let forth = ids(&many.join("; "));
        let back: Vec<String> = many.iter().rev().cloned().collect();
        assert_eq!(forth.len(), 8);
        assert_eq!(ids(&back.join("; ")), forth);
        assert_eq!(ids(&[many.join("; "), back.join("; ")].join("; ")), forth);
        assert_eq!(
            ids("short=0123456789abcde; wordpress_test_cookie=0123456789abcdef"),
            []
        );
    }

    #[test]
    fn private_tags_are_one_visitors() {
        let ids = [VisitorId([1; 16]), VisitorId([2; 16])];
        let labels = |tag: &str, ids: &[VisitorId]| {
            let mut labels = Vec::new();
            each_label(tag.as_bytes(), ids, &mut |label| {
                labels.push(label.into_owned())
            });
            labels
        };
        assert_eq!(labels("a", &[]), [b"a"]);
        assert_eq!(labels("public:a", &ids), [b"a"]);
        let private = labels("a", &ids);
        assert_eq!(private.len(), 2);
        assert!(private.iter().all(|label| label.first() == Some(&0)));
        assert_ne!(private[0], private[1]);
    }
}
