//! A page that guests share is stored without the session that it begins, and with the server's tokens in the place of the
//! application's. Its form is known; where it has changed (somebody has written something), the page is made once or twice
//! more, and compared.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use guest_pages::session::without_links;
use guest_pages::{
    Comparison, GuestPage, Guests, LearnedForm, MAX_BODY_BYTES, PageForm, compare, outline, session,
};
use http_cache::{Millis, Storable};
use live_state::evidence::{SharedAnswer, SharedOffer};
use page_evidence::Renderer;
use tokio::time::{Instant, timeout_at};
use upstream_fetch::{FetchSpec, FetchedResponse, TruncatedBody};

use super::evidence::EvidenceLink;
use super::guests;
use super::storability;
use super::store_plan::{ResponsePrivacy, StorePlan};

/// So many answers are compared at most.
const MAX_ANSWERS: usize = 4;

/// Why a page cannot be shown to guests.
pub enum Unshown {
    /// Its answers differ in more than times, counts and tokens.
    Unlike,
    /// The body is not whole.
    Truncated,
}

/// Is this the answer to the shared request of a page that guests share?
pub fn is_for_guests(store: &StorePlan, link: Option<&EvidenceLink>) -> bool {
    store.privacy.is_of_guests() && link.is_some_and(|link| link.shared_page().is_some())
}

/// Are guests shown the page whose shared request this is of, without the session that it begins?
pub fn is_shown_to_guests(link: &EvidenceLink) -> bool {
    let page = link.shared_page();
    page.is_some_and(|page| link.seen().guests.page(page).is_some())
}

/// The answer to the shared request, where it would be stored but for the session that it begins.
pub fn begins_session(
    store: &mut StorePlan,
    fetched: &FetchedResponse,
    now: Millis,
) -> Option<Storable> {
    let rules = &store.rules.shared;
    let is_asked = store.sent.is_shared
        && store.privacy == ResponsePrivacy::AsSaid
        && rules
            .as_ref()
            .is_some_and(|rules| rules.guest_sessions.are_shared());
    if !is_asked {
        return None;
    }
    store.privacy = ResponsePrivacy::OfGuests { is_uniform: false };
    storability::decide(store, fetched, now).ok()
}

/// Waits for the end of the trial for which visitors wait, so that they are shown this answer, which was made for the
/// shared request as any other. False if guests do not share the page.
pub async fn is_shared_after_trial(
    fetched: &mut FetchedResponse,
    (link, offer): (Option<&EvidenceLink>, Option<SharedOffer>),
    at_most: Duration,
) -> bool {
    let Some((link, page)) = link.and_then(|link| link.shared_page().map(|page| (link, page)))
    else {
        return false;
    };
    let seen = link.seen();
    if !seen.evidence.awaits_session_trial(page) {
        return false;
    }
    // PHP is done with it.
    let Ok(Some(body)) = fetched.body.whole(MAX_BODY_BYTES).await else {
        return false;
    };
    let body = Bytes::from(body);
    fetched.body.put_back(body.clone());
    // The trial takes it while this waits.
    let _offer = offer.map(|mut offer| {
        offer.give(SharedAnswer {
            status: fetched.status,
            fields: fetched.fields.clone(),
            body: body.clone(),
        });
        offer
    });
    let end = Instant::now() + at_most;
    loop {
        let mut change = pin!(seen.change(page));
        change.as_mut().enable();
        if seen.evidence.session(page).is_shared_by_new() {
            // One of another form says nothing against the trial's: it is older.
            let known = seen.guests.page(page);
            let body = without_links(&fetched.fields, body.to_vec());
            return known.is_some_and(|known| known.shown(&body).is_some());
        }
        if !seen.evidence.awaits_session_trial(page) || timeout_at(end, change).await.is_err() {
            return false;
        }
    }
}

/// Puts what guests are shown into the place of the answer, whose head is there.
pub async fn put_shown(
    spec: &mut FetchSpec,
    fetched: &mut FetchedResponse,
    link: Option<EvidenceLink>,
) -> Result<EvidenceLink, Unshown> {
    let Some((link, page)) = link.and_then(|link| link.shared_page().map(|page| (link, page)))
    else {
        return Err(Unshown::Unlike);
    };
    let Some(body) = read(fetched)
        .await
        .map_err(|TruncatedBody| Unshown::Truncated)?
    else {
        link.doubts_session();
        return Err(Unshown::Truncated);
    };
    let known = link.seen().guests.page(page);
    let shown_as = |known: Arc<GuestPage>| Some((known.shown(&body)?, known));
    let shown = match known.and_then(shown_as) {
        Some(shown) => Some(shown),
        None => {
            let remade = remade(spec, (fetched.status, &fetched.fields), &link, &body);
            remade.await.and_then(shown_as)
        }
    };
    let Some((shown, known)) = shown else {
        fetched.body.put_back(body.into());
        link.doubts_session();
        return Err(Unshown::Unlike);
    };
    session::with_own_cookies(&mut fetched.fields, known.cookies());
    fetched.content_length = Some(shown.len() as u64);
    fetched.body.put_back(Bytes::from(shown));
    Ok(link)
}

/// The cookies that the shared request was given are those of new guests.
pub fn note_defaults(link: &EvidenceLink, site: &[u8], fields: &[session::Field]) {
    let known = &link.seen().guests.cookies;
    let cookies = session::set_cookies(fields);
    for cookie in cookies.iter().filter(|cookie| !cookie.is_removed) {
        known.note_default(site, known.mark(cookie.name, cookie.value), clock::now());
    }
}

/// Reads the body, and removes the names of the sessions that it begins. `None`: it is too long.
async fn read(fetched: &mut FetchedResponse) -> Result<Option<Vec<u8>>, TruncatedBody> {
    let body = fetched.body.whole(MAX_BODY_BYTES).await?;
    Ok(body.map(|body| without_links(&fetched.fields, body)))
}

/// The page with the form that it has now: it is made a few times more. What was a token before is one still, though all
/// these answers may have the same: it may be bound to a browser.
async fn remade(
    spec: &mut FetchSpec,
    (status, fields): (u16, &[session::Field]),
    link: &EvidenceLink,
    first: &[u8],
) -> Option<Arc<GuestPage>> {
    let page = link.shared_page()?;
    let known = link.seen().guests.page(page)?;
    let other = known.with_other_tokens(first);
    let host = &known.known().host;
    let mut bodies = vec![first.to_vec()];
    while bodies.len() < MAX_ANSWERS {
        let mut fetched = upstream_fetch::fetch(spec).await.ok()?;
        match read(&mut fetched).await {
            Ok(Some(body)) if fetched.status == status => bodies.push(body),
            _ => return None,
        }
        let mut all: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        let mut form = match compare(&all, Guests::Alike, guests::asked_site(host)) {
            Comparison::Form(form) => form,
            Comparison::More => continue,
            Comparison::Unlike(_) => return None,
        };
        if form.find(&other).is_none() {
            all.push(&other);
            form = match compare(&all, Guests::LastUnlike, guests::asked_site(host)) {
                Comparison::Form(wider) => wider,
                Comparison::More => continue,
                // A token is at a place that is none any more.
                Comparison::Unlike(_) => return None,
            };
        }
        let digest = digest_of(&form, (status, fields), first);
        let learned = LearnedForm {
            digest,
            at: clock::now(),
        };
        let page_of = guests::with_form(known.known(), form);
        let is_page = outline::is_html_page(status, fields);
        return Some(link.seen().guests.note(page, page_of, learned, is_page));
    }
    None
}

fn digest_of(form: &PageForm, (status, fields): (u16, &[session::Field]), body: &[u8]) -> u64 {
    let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
    let mut renderer = Renderer::new(status, fields, false);
    form.render(body, &mut renderer);
    renderer.finish().digest
}
