//! A page that guests share is stored without the session that it begins, and with the server's tokens in the place of the
//! application's. Its form is known; where it has changed (somebody has written something), the page is made once or twice
//! more, and compared.

use bytes::Bytes;
use guest_pages::session::without_links;
use guest_pages::{Comparison, GuestPage, MAX_BODY_BYTES, compare, session};
use http_cache::Millis;
use std::sync::Arc;
use upstream_fetch::{FetchSpec, FetchedResponse};

use super::evidence::EvidenceLink;
use super::guests;
use super::storability;
use super::store_plan::{ResponsePrivacy, StorePlan};

/// So many answers are compared at most.
const MOST_ANSWERS: usize = 4;

/// Why a page cannot be shown to guests.
pub enum Unshown {
    /// Its answers differ in more than times, counts and tokens.
    Unlike,
    /// The body is not whole.
    Truncated,
}

/// Is this the answer to the shared request of a page that guests share?
pub fn is_for_guests(store: &StorePlan, link: Option<&EvidenceLink>) -> bool {
    store.privacy == ResponsePrivacy::OfGuests
        && link.is_some_and(|link| link.shared_page().is_some())
}

/// Would the answer to the shared request be stored but for the session that it begins?
pub fn begins_session(store: &mut StorePlan, fetched: &FetchedResponse, now: Millis) -> bool {
    let rules = &store.rules.shared;
    let is_asked = store.sent.is_shared
        && store.privacy == ResponsePrivacy::AsSaid
        && rules.as_ref().is_some_and(|rules| rules.guest_sessions)
        && session::is_of_session(&fetched.fields);
    if !is_asked {
        return false;
    }
    store.privacy = ResponsePrivacy::OfGuests;
    storability::decide(store, fetched, now).is_ok()
}

/// Puts what guests are shown into the place of the answer, whose head is there.
pub async fn put_shown(
    spec: &mut FetchSpec,
    store: &StorePlan,
    fetched: &mut FetchedResponse,
    link: Option<EvidenceLink>,
) -> Result<EvidenceLink, Unshown> {
    let Some((link, page)) = link.and_then(|link| link.shared_page().map(|page| (link, page)))
    else {
        return Err(Unshown::Unlike);
    };
    let body = match read(fetched).await? {
        Whole::Body(body) => body,
        Whole::TooLong => {
            link.doubts_session();
            return Err(Unshown::Truncated);
        }
    };
    let known = link.seen().guests.page(page);
    let shown = known.as_ref().and_then(|known| known.shown(&body));
    let shown = match shown {
        Some(shown) => Some(shown),
        None => match remade(spec, store, &link, &body).await {
            Some(known) => known.shown(&body),
            None => None,
        },
    };
    let Some(shown) = shown else {
        fetched.body.put_back(body.into());
        link.doubts_session();
        return Err(Unshown::Unlike);
    };
    session::without_cookies(&mut fetched.fields);
    fetched.content_length = Some(shown.len() as u64);
    fetched.body.put_back(Bytes::from(shown));
    Ok(link)
}

/// A body that was read.
enum Whole {
    Body(Vec<u8>),
    TooLong,
}

/// Reads the body, and removes the names of the sessions that it begins.
async fn read(fetched: &mut FetchedResponse) -> Result<Whole, Unshown> {
    let mut body = Vec::new();
    while let Some(piece) = fetched.body.next().await.map_err(|_| Unshown::Truncated)? {
        if body.len() + piece.len() > MAX_BODY_BYTES {
            return Ok(Whole::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Whole::Body(without_links(&fetched.fields, body)))
}

/// The page with the form that it has now: it is made a few times more.
async fn remade(
    spec: &mut FetchSpec,
    store: &StorePlan,
    link: &EvidenceLink,
    first: &[u8],
) -> Option<Arc<GuestPage>> {
    let page = link.shared_page()?;
    let known = link.seen().guests.page(page)?;
    let mut bodies = vec![first.to_vec()];
    while bodies.len() < MOST_ANSWERS {
        let mut fetched = upstream_fetch::fetch(spec).await.ok()?;
        if fetched.status >= 400 && !store.allowed().statuses.is_empty() {
            return None;
        }
        match read(&mut fetched).await {
            Ok(Whole::Body(body)) => bodies.push(body),
            _ => return None,
        }
        let all: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        match compare(&all) {
            Comparison::Form(form) => {
                let page_of = guests::with_form(known.known(), form);
                return Some(link.seen().guests.note(page, page_of));
            }
            Comparison::More => {}
            Comparison::Unlike(_) => return None,
        }
    }
    None
}
