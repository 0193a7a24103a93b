//! LiteSpeed's cache protocol (`cache_litespeed`): the application says by fields of its response who
//! may share a page, with whose cookies it was made
//! (<https://docs.litespeedtech.com/lscache/devguide/controls/>).
//!
//! ```text
//! request ─ no cookie that counts ──────► as with cache_shared: one page for everybody
//!    └ cookies ─ nothing is noted ──────► sent as it came, not stored; what the response says is noted
//!         ├ noted: public ──────────────► written anew with all cookies; shared by those for whom
//!         │                               `_lscache_vary*` and the cookies of X-LiteSpeed-Vary are the same
//!         └ noted: private ─────────────► written anew with all cookies; a copy for this visitor
//! ```
//!
//! What is stored was made of the URL, the visitor's class and cookies, nothing else. A page without
//! cookies is never shared with those who have some, nor the other way round. The key of a private copy
//! holds all cookies and the client's address: to whom it is shown, the application would have sent
//! the same. Labels for purges of private copies are made of the visitor's long cookies ([`VisitorId`]).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use http_cache::{
    CacheControl, CacheKey, KeyRef, Millis, NoStore, ONE_COOKIE, Sharing, VarySpec, Zone,
};
use http_semantics::same_name;
use shared_request::{Class, NameSet, cookies};
use site::SharedRules;

use super::policy::Plan;
use super::shared;
use super::store_plan::StorePlan;
use crate::base::clock;
use crate::exchange::request::Request;
use crate::exchange::sharing_note::SharingNote;
use crate::exchange::variable;

type Field = (Bytes, Bytes);

const CONTROL: &[u8] = b"x-litespeed-cache-control";
const VARY: &[u8] = b"x-litespeed-vary";
const LSC_COOKIE: &[u8] = b"lsc-cookie";
/// What a page is told apart by if it does not say `no-vary`.
const VARY_COOKIES: &str = "_lscache_vary*";
/// What the application is told of a visitor with a telephone, and may name in `X-LiteSpeed-Vary`.
pub const MOBILE_VALUE: &str = "ismobile";

/// How long it is remembered who may share a page.
const NOTE_TIME: Duration = Duration::from_secs(3600);
/// A cookie is taken for a visitor's own if its value is as long: sessions are, choices are not.
const LEAST_ID_BYTES: usize = 16;
/// Long ones that all visitors of a group, or of a WordPress, have.
const COMMON_COOKIES: [&[u8]; 2] = [b"_lscache_vary*", b"wordpress_test_cookie"];
/// A visitor with more of them has no private copies: each is a label of each.
const MOST_IDS: usize = 16;

/// A request that may be answered by what was made with a visitor's cookies.
pub struct WithCookies {
    /// As noted.
    pub sharing: Sharing,
    /// Under which it is noted.
    pub note: CacheKey,
    /// By which private copies are purged.
    pub ids: Vec<VisitorId>,
    /// For the bound of one visitor's copies.
    pub group: Option<u64>,
}

/// The hash of a cookie that a visitor alone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VisitorId([u8; 16]);

/// What a response says to LiteSpeed's cache.
#[derive(Debug, Default)]
struct Said {
    /// `None`: nothing of storing.
    control: Option<CacheControl>,
    is_private: bool,
    is_vary_off: bool,
    runs_esi: bool,
    /// Names of cookies, in lower case.
    vary_cookies: Vec<String>,
    /// `value=` of `X-LiteSpeed-Vary`.
    vary_value: Option<String>,
}

/// Makes the key of a request with cookies, or says in one word why it goes past the cache.
pub fn put_key(
    request: &mut Request,
    rules: &SharedRules,
    zone: &Arc<Zone>,
    key: &mut Vec<u8>,
) -> Result<(Class, Arc<WithCookies>), &'static str> {
    const COOKIE: &str = "cookie";
    key.clear();
    let class = shared::put_visitors_key(request, rules, key).map_err(|why| why.word())?;
    if let Some(own) = &rules.key {
        key.push(0);
        variable::append(request, own, key);
    }
    let note = note_key(request, key);
    let noted = zone.sharing(&note.as_ref(), Millis(request.now));
    let with = match noted {
        Some(Sharing::Group) => WithCookies {
            sharing: Sharing::Group,
            note,
            ids: Vec::new(),
            group: None,
        },
        Some(Sharing::OneVisitor) if is_known(&visitor_ids(request)) => {
            let digest = shared::put_visitor(request, rules, key);
            WithCookies {
                sharing: Sharing::OneVisitor,
                note,
                ids: visitor_ids(request),
                group: digest.first_chunk().copied().map(u64::from_be_bytes),
            }
        }
        Some(Sharing::OneVisitor) | None => {
            request.extras.sharing_note = Some(Box::new(SharingNote {
                zone: zone.clone(),
                key: note,
            }));
            return Err(COOKIE);
        }
    };
    Ok((class, Arc::new(with)))
}

/// Where it is noted who may share a page: for a URL and a group of visitors.
fn note_key(request: &Request, key: &[u8]) -> CacheKey {
    let mut note = key.to_vec();
    each_cookie(request, VARY_COOKIES, &mut |cookie| {
        note.push(0);
        note.extend_from_slice(cookie);
    });
    CacheKey::new(note)
}

fn each_cookie(request: &Request, pattern: &str, visit: &mut dyn FnMut(&[u8])) {
    let wanted = NameSet::new([pattern.as_bytes()]);
    for (name, value) in cookies::pairs(request.head.view()) {
        if cookies::is_named(name, &wanted) {
            visit(&[name, b"=", value].concat());
        }
    }
}

/// Is there something by which a private copy could be purged?
fn is_known(ids: &[VisitorId]) -> bool {
    (1..=MOST_IDS).contains(&ids.len())
}

/// By what the private copies of a request's visitor are known to purges.
pub fn visitor_ids(request: &Request) -> Vec<VisitorId> {
    let common = NameSet::new(COMMON_COOKIES);
    let own = cookies::pairs(request.head.view())
        .filter(|(name, value)| value.len() >= LEAST_ID_BYTES && !cookies::is_named(name, &common));
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

impl Said {
    fn of(fields: &[Field]) -> Said {
        let mut said = Said::default();
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

    /// Who may share the response; `None`: it is not to be kept.
    fn sharing(&self) -> Option<Sharing> {
        let control = self.control?;
        (!control.no_cache && !control.no_store).then_some(match self.is_private {
            true => Sharing::OneVisitor,
            false => Sharing::Group,
        })
    }
}

fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
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

/// Notes what a response says that was fetched for one client alone.
pub fn note_of_direct(request: &mut Request, fields: &[Field]) {
    let note = request.extras.given();
    let Some(note) = note.and_then(|extra| extra.sharing_note.take()) else {
        return;
    };
    // One that sets a cookie is not like those to come.
    let sets_cookie = fields
        .iter()
        .any(|(name, _)| same_name(name, b"set-cookie"));
    let sharing = Said::of(fields).sharing();
    if sharing.is_some() && !sets_cookie {
        put_note(&note.zone, &note.key.as_ref(), sharing);
    }
}

fn put_note(zone: &Zone, key: &KeyRef<'_>, sharing: Option<Sharing>) {
    let until = Millis(clock::now()).plus(NOTE_TIME);
    zone.note_sharing(key, sharing, until);
}

/// Notes what a response says that was fetched for the cache.
pub fn note(store: &StorePlan, fields: &[Field]) {
    if let Some(with) = &store.cookies {
        put_note(&store.zone, &with.note.as_ref(), Said::of(fields).sharing());
    }
}

/// Is a response that may not be stored right for its visitor, though it was made of the request
/// that the server has written? It is where the application would have it stored, but for others
/// than was thought.
pub fn stands(plan: &Plan<'_>, why: NoStore) -> bool {
    why == NoStore::Private
        && plan.cookies.as_ref().is_some_and(|with| {
            let now = Millis(clock::now());
            plan.zone.sharing(&with.note.as_ref(), now).is_some()
        })
}

/// The fields of a response that speaks to LiteSpeed's cache, as the rules of HTTP would have them:
/// to decide whether it may be stored. `None`: it does not speak to it.
///
/// # Errors
/// It may not be stored.
pub fn as_standard(store: &StorePlan, fields: &[Field]) -> Result<Option<Vec<Field>>, NoStore> {
    let said = Said::of(fields);
    let Some(control) = said.control else {
        return match store.cookies {
            // Nobody says that it is like that for others.
            Some(_) => Err(NoStore::CookieOutsideKey),
            None => Ok(None),
        };
    };
    let expected = store.cookies.as_ref().map(|with| with.sharing);
    let is_for_visitor = expected == Some(Sharing::OneVisitor);
    if said.sharing().is_some() && said.is_private != is_for_visitor {
        return Err(NoStore::Private);
    }
    let is_mobile = store.vary_value == Some(MOBILE_VALUE);
    let is_other = |value: &String| !value.is_empty() && !(is_mobile && value == MOBILE_VALUE);
    if said.vary_value.as_ref().is_some_and(is_other) {
        // It is for requests that nobody can tell from others.
        return Err(NoStore::VaryStar);
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
        // What one response has named counts for those that say nothing of it.
        let names: Vec<String> = names.chain(store.learned_cookies.iter().cloned()).collect();
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

/// Takes off what `LSC-Cookie` says as well: it is for each visitor of the page. Other cookies stay,
/// so that the response is not stored.
fn drop_cookies_for_all(fields: &mut Vec<Field>) {
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

/// What browsers and caches behind are told of a page that was made with a visitor's cookies.
pub const CONTROL_WITH_COOKIES: &str = "private, no-cache";

/// What the application is told with each request: [`http_cache`] speaks LiteSpeed's protocol.
pub fn announcement(request: &Request) -> &'static [u8] {
    match request.settings().esi.is_on() {
        true => b"on,esi",
        false => b"on",
    }
}

/// Is it a field by which a server in front speaks to the application or the application to it? A
/// client has no business with it. As CGI sees names: `X_LSCACHE` and `X-LSCACHE` are one.
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
            ("max-age=60", Some(Group), false, false),
            ("no-cache,esi=on", None, true, false),
            ("no-store,public", None, false, false),
            ("esi=on", None, true, false),
            ("", None, false, false),
        ] {
            let said = Said::of(&fields(&[("X-LiteSpeed-Cache-Control", control)]));
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
        let said = Said::of(&fields(&[
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
