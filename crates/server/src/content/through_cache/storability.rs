//! May a response be stored? What its request and its fields say, put before the rules of
//! `http_cache`.

use std::borrow::Cow;

use bytes::Bytes;
use cache_decision::fields::Fields;
use cache_decision::with_cookies::as_standard;
use guest_pages::policies::{self, SitePolicies};
use guest_pages::session;
use http_cache::{Millis, Reason, RequestFacts, ResponseFacts, Storable};

use site::{CacheRules, GuestSessions};

use super::learned;
use super::store_plan::{ResponsePrivacy, StorePlan};
use crate::content::pass::response::accel_redirect;
use crate::exchange::request::Request;
use crate::exchange::variable;
use upstream_fetch::FetchedResponse;

/// Returns the facts of the request that decide whether its response is stored.
pub fn request_facts<'a>(
    store: &'a StorePlan,
    fields: &'a Fields<'a>,
    no_store_condition: bool,
) -> RequestFacts<'a> {
    RequestFacts {
        method: store.sent.method,
        fields,
        no_store_condition,
        uses: store.uses,
    }
}

/// Returns the length of a body: for a slice the length of its range, whether or not there is a
/// Content-Length.
pub fn slice_length(store: &StorePlan, fetched: &FetchedResponse) -> Result<Option<u64>, Reason> {
    let declared = fetched.content_length;
    let Some(slice) = store.form.slice.filter(|_| fetched.status == 206) else {
        return Ok(declared);
    };
    match slice.length(&fetched.fields) {
        Some(length) if declared.is_none_or(|declared| declared == length) => Ok(Some(length)),
        _ => Err(Reason::Partial),
    }
}

/// Decides about a response whose head is there.
pub fn decide(
    store: &mut StorePlan,
    fetched: &FetchedResponse,
    now: Millis,
) -> Result<Storable, Reason> {
    if accel_redirect(&fetched.fields, &store.pass.exchange).is_some() {
        return Err(Reason::AccelRedirect);
    }
    if learned::is_for_an_address(store, now) {
        return Err(Reason::AddressDatabase);
    }
    if store.privacy == ResponsePrivacy::AsSaidAlthoughIgnored
        && is_for_one_visitor(&fetched.fields)
    {
        return Err(Reason::CookieOutsideKey);
    }
    let condition = match &store.request {
        Some(request) => no_store_condition(request, &store.rules),
        None => false,
    };
    let said = match store.rules.speaks_litespeed() {
        true => as_standard(&store.expected, &fetched.fields)?,
        false => None,
    };
    let mut policy = Cow::Borrowed(&store.policy);
    if said.is_some() && policy.ignore.cache_control {
        policy.to_mut().ignore.cache_control = false;
    }
    let mut fields = match said {
        Some(fields) => Cow::Owned(fields),
        None if store.privacy == ResponsePrivacy::OfSession => {
            Cow::Owned(sharing_within_a_session(&fetched.fields))
        }
        None if store.privacy.is_of_guests() => {
            Cow::Owned(session::without_session(&fetched.fields))
        }
        None => Cow::Borrowed(&fetched.fields[..]),
    };
    store.name_what_was_sent(&mut fields);
    let judge = |fields: &[(Bytes, Bytes)]| {
        let facts = ResponseFacts {
            status: fetched.status,
            fields,
            declared_length: fetched.content_length,
        };
        http_cache::decide(
            &request_facts(store, &store.fields(), condition),
            &facts,
            &policy,
            // Fields are dated by the wall clock, here and elsewhere.
            Millis(clock::wall(now.0)),
        )
    };
    let mut judged = judge(&fields);
    if judged.is_err()
        && let Some(learned) = store.sent.learned.as_ref().filter(|it| it.is_own_copy())
        && let Some(limiter) = session::limiter(&fetched.fields)
    {
        // PHP says so for each session, whatever the page; what it was made of says more.
        judged = judge(&session::without_limiter(&fields, Some(limiter)));
        learned.need_inputs();
    }
    note_policy(store, fetched, now);
    if judged.is_ok() || !says_what_all_pages_say(store, fetched, now) {
        return judged;
    }
    let judged = judge(&policies::without_caching(&fields));
    if judged.is_ok() {
        store.privacy = ResponsePrivacy::OfGuests { is_uniform: true };
    }
    judged
}

/// Records the caching fields of a page that was shown to a guest.
fn note_policy(store: &StorePlan, fetched: &FetchedResponse, now: Millis) {
    if let Some((policies, site)) = site_policies(store, fetched)
        && media_type(&fetched.fields).is_some_and(http_cache::is_html)
    {
        let page = store.key.as_ref().hash();
        policies.note(site, page, &fetched.fields, now.0);
    }
}

/// Does a page have the same caching fields as all pages of the site? A feed is judged by the pages.
fn says_what_all_pages_say(store: &StorePlan, fetched: &FetchedResponse, now: Millis) -> bool {
    let is_document = |value| http_cache::is_html(value) || is_xml(value);
    let site = site_policies(store, fetched);
    site.is_some_and(|(policies, site)| {
        media_type(&fetched.fields).is_some_and(is_document)
            && policies.is_said_of_all(site, &fetched.fields, now.0)
    })
}

/// Returns the site policies and the site's name, if `cache_guest_sessions uniform` is set.
fn site_policies<'s>(
    store: &'s StorePlan,
    fetched: &FetchedResponse,
) -> Option<(&'s SitePolicies, &'s [u8])> {
    let rules = store.rules.shared.as_ref()?;
    let counts = store.privacy.is_of_guests()
        && rules.guest_sessions == GuestSessions::Uniform
        && fetched.status == 200;
    let (seen, site) = (store.links.guests.as_ref()?, store.sent.site.as_ref()?);
    counts.then(|| (&seen.guests.policies, site.bytes()))
}

fn media_type(fields: &[(Bytes, Bytes)]) -> Option<&[u8]> {
    let mut types = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
    types.next().map(|(_, value)| &value[..])
}

fn is_xml(content_type: &[u8]) -> bool {
    let media_type = content_type.split(|&byte| byte == b';').next();
    let suffix = media_type
        .unwrap_or_default()
        .trim_ascii()
        .last_chunk::<3>();
    suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"xml"))
}

/// Does `*_no_cache` say that the response to a request is not to be stored?
/// The request is seen as the cache sees it.
pub fn no_store_condition(request: &Request, rules: &CacheRules) -> bool {
    variable::is_any_true(request, &rules.no_cache)
}

/// Does Cache-Control say that the response is for one visitor?
fn is_for_one_visitor(fields: &[(Bytes, Bytes)]) -> bool {
    let values = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"))
        .map(|(_, value)| &value[..]);
    let said = http_cache::CacheControl::parse(values);
    said.private || said.no_store
}

/// A copy for one session may be kept although it is `private`.
fn sharing_within_a_session(fields: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    fields
        .iter()
        .map(|(name, value)| {
            if !name.eq_ignore_ascii_case(b"cache-control") {
                return (name.clone(), value.clone());
            }
            let kept: Vec<&[u8]> = value
                .split(|&byte| byte == b',')
                .map(<[u8]>::trim_ascii)
                .filter(|directive| !directive.eq_ignore_ascii_case(b"private"))
                .collect();
            (name.clone(), Bytes::from(kept.join(&b", "[..])))
        })
        .filter(|(name, value)| !(name.eq_ignore_ascii_case(b"cache-control") && value.is_empty()))
        .collect()
}
