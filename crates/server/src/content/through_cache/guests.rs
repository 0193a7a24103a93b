//! Guests (`cache_guest_sessions`): whose cookies are those of one, which pages they share, and from when on they are
//! somebody.

use std::sync::Arc;

use cache_decision::{Audience, FetchRole, Plan};
use guest_pages::cookies::{CookieMark, CookieStanding, PendingPage};
use guest_pages::{TokenPage, is_own_cookie};
use live_state::evidence::SeenPages;
use page_evidence::SessionStanding;
use shared_request::{arguments, cookies};
use site::{Pass, SharedRules};

use super::standing;
use crate::exchange::guest_visit::{CleanTarget, GuestVisit};
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::{Method, Request};

pub fn seen(request: &Request) -> &Arc<SeenPages> {
    &request.configuration.live.alive_zones.seen_pages
}

/// Are the cookies of a visitor, who would be somebody by them, those of a guest?
#[cold]
pub fn recognise(request: &Request, rules: &SharedRules) -> Option<Box<GuestVisit>> {
    let live = &request.configuration.live;
    // A write by way of another node would not be known here.
    if live.nodes.is_some() || live.alive_zones.seen_pages.guests.cookies.is_empty() {
        return None;
    }
    let known = &live.alive_zones.seen_pages.guests.cookies;
    let unknown = cookies::unknown(request.received.head().view(), &rules.request)?;
    let (site, now) = (request.received.host(), request.now());
    let mut marks = Vec::with_capacity(unknown.len());
    let (mut target, mut args) = (
        request.received.target().to_vec(),
        request.route.args.clone(),
    );
    let mut is_cleaned = false;
    let learned = live.groups.learned();
    let sessions = learned.map(|pools| pools.learning().sessions());
    if let Some(sessions) = sessions
        && unknown
            .iter()
            .any(|(_, value)| sessions.is_somebodys(value))
    {
        // The application has written something there that it does not write for guests, whether or not a page shows it.
        let marks = unknown.iter().map(|(name, value)| known.mark(name, value));
        known.forget(&marks.collect::<Vec<_>>());
        return None;
    }
    for (name, value) in unknown {
        let mark = known.mark(name, value);
        match known.standing(site, mark, now) {
            CookieStanding::Constant => {}
            CookieStanding::Guest(_) => {
                marks.push(mark);
                let argument = [name, b"=", value].concat();
                is_cleaned |= remove_argument(&mut target, &argument);
                remove_argument(&mut args, &argument);
            }
            CookieStanding::Choice => marks.push(mark),
            CookieStanding::Unknown => return None,
        }
    }
    let clean = is_cleaned.then_some(CleanTarget { target, args });
    Some(Box::new(GuestVisit {
        marks,
        page: None,
        clean,
    }))
}

/// Removes an argument from a target or from arguments; false where it is not there.
fn remove_argument(text: &mut Vec<u8>, argument: &[u8]) -> bool {
    let ends = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b'&' | b';'));
    let begins = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b'?' | b'&' | b';'));
    let is_whole = |at: &usize| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        begins(before) && ends(text.get(at + argument.len()))
    };
    let Some(at) = memchr::memmem::find_iter(text, argument).find(is_whole) else {
        return false;
    };
    let end = at + argument.len();
    match text.get(end) {
        Some(_) => drop(text.drain(at..=end)),
        // With what joined it to the arguments before, or to the path.
        None => text.truncate(at.saturating_sub(1)),
    }
    true
}

/// Returns the target of a request, less the name of its session.
pub fn asked_target(request: &Request) -> &[u8] {
    let clean = request
        .cache
        .guest
        .as_ref()
        .and_then(|guest| guest.clean.as_ref());
    clean.map_or(request.received.target(), |clean| &clean.target)
}

/// The path of a target.
pub fn path_of(target: &[u8]) -> &[u8] {
    http_semantics::split_query(target).0
}

/// The arguments of a target, of which there may be several, each with the target without it.
pub fn less_one_argument(target: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    const MOST: usize = 8;
    let args = target.get(path_of(target).len() + 1..).unwrap_or_default();
    let args = args
        .split(|byte| matches!(byte, b'&' | b';'))
        .filter(|it| !it.is_empty());
    args.take(MOST)
        .map(|argument| {
            let mut less = target.to_vec();
            remove_argument(&mut less, argument);
            (argument.to_vec(), less)
        })
        .collect()
}

/// Has the visitor asked for nothing but pages that leave a session as it was?
pub fn is_settled(request: &Request) -> bool {
    let Some(guest) = &request.cache.guest else {
        return true;
    };
    let seen = seen(request);
    let known = &seen.guests.cookies;
    let site = request.received.host();
    let now = request.now();
    let look = seen
        .guests
        .look(&named_host(request), asked_target(request));
    let leaves = |asked: &PendingPage| seen.evidence.leaves_session(asked.page, asked.answer, now);
    let is_shared = |page| seen.evidence.session(page) == SessionStanding::Indifferent;
    let is_settled = |asked: &PendingPage| {
        leaves(asked)
            && (is_shared(asked.page) && seen.guests.leaves_no_trace(asked.page)
                || seen.guests.leaves_no_trace_at(asked.page, look))
    };
    // A kind of page that is asked for later may show a page that is not shared.
    let is_done = |asked: &PendingPage| {
        leaves(asked) && is_shared(asked.page) && seen.guests.leaves_no_trace(asked.page)
    };
    let mut has_waited = false;
    for mark in &guest.marks {
        match known.standing(site, *mark, now) {
            CookieStanding::Guest(pending) => {
                if !pending.iter().all(is_settled) {
                    return false;
                }
                has_waited |= !pending.is_empty();
            }
            CookieStanding::Constant => {}
            CookieStanding::Choice | CookieStanding::Unknown => return false,
        }
    }
    if has_waited {
        known.settle(&guest.marks, &is_done);
    }
    true
}

/// A guest is about to be shown a page from memory, which the application does not see in the guest's session.
pub fn note_shown(request: &Request) {
    if let Some(guest) = &request.cache.guest {
        let guests = &seen(request).guests;
        let address = guests.address(&named_host(request), asked_target(request));
        guests.cookies.note_shown(&guest.marks, address);
    }
}

/// Was the guest, by whose session the request comes, shown the page of this target from memory?
pub fn was_shown(request: &Request, host: &[u8], target: &[u8]) -> bool {
    let guests = &seen(request).guests;
    let address = guests.address(host, target);
    guests.cookies.was_shown(&marks_of(request), address)
}

/// Stand for all cookies of a request.
fn marks_of(request: &Request) -> Vec<CookieMark> {
    let known = &seen(request).guests.cookies;
    let pairs = cookies::pairs(request.received.head().view());
    pairs.map(|(name, value)| known.mark(name, value)).collect()
}

/// May the response be shared although it begins a session?
pub fn may_share(request: &Request, plan: &Plan<'_>) -> bool {
    let Some(rules) = &plan.rules.shared else {
        return false;
    };
    if !rules.guest_sessions.are_shared() || !matches!(plan.audience, Audience::Class(_, None)) {
        return false;
    }
    match plan.role {
        FetchRole::Own(_) | FetchRole::Trial => true,
        FetchRole::Shared => {
            let page = plan.shared.as_ref().map(|page| page.name);
            let name = || standing::name_of(request, plan.zone, plan.key.as_ref().bytes());
            let page = page.unwrap_or_else(name);
            seen(request).evidence.session(page).is_shared_by_new()
        }
    }
}

/// A request reaches an upstream that is not known to leave a session as it was: who has its cookies is somebody.
pub fn note_asked(request: &Request) {
    let seen = seen(request);
    let known = &seen.guests.cookies;
    if known.is_empty() || request.is_own_visit() {
        return;
    }
    let is_read = matches!(request.route.method, Method::Get | Method::Head);
    match &request.cache.guest {
        Some(guest) if is_read && guest.page.is_some() => note_page(seen, guest, request.now()),
        _ => known.forget(&marks_of(request)),
    }
}

/// Has the visitor no session, or one of a guest's?
pub fn is_by_guest(request: &Request, pass: &Pass) -> bool {
    let rules = pass
        .cache
        .as_ref()
        .and_then(|rules| rules.shared.as_deref());
    let Some(rules) =
        rules.filter(|rules| rules.guest_sessions.are_shared() && !request.is_own_visit())
    else {
        return false;
    };
    has_only(request, rules, |standing| {
        !matches!(standing, CookieStanding::Unknown)
    })
}

/// Has the visitor no cookie but those that all guests of the site are given?
pub fn is_without_session(request: &Request, rules: &SharedRules) -> bool {
    has_only(request, rules, |standing| {
        *standing == CookieStanding::Constant
    })
}

/// Has the visitor no unknown cookie but such ones?
fn has_only(request: &Request, rules: &SharedRules, is_such: fn(&CookieStanding) -> bool) -> bool {
    let known = &seen(request).guests.cookies;
    let (site, now) = (request.received.host(), request.now());
    let is_common =
        |name: &[u8], value: &[u8]| is_such(&known.standing(site, known.mark(name, value), now));
    cookies::are_without_session(request.received.head().view(), &rules.request, &is_common)
}

/// A guest asks the upstream for a page.
fn note_page(seen: &SeenPages, guest: &GuestVisit, now: u64) {
    if let Some(page) = guest.page
        && !seen.evidence.leaves_session(page, None, now)
    {
        seen.guests.cookies.note_pending(&guest.marks, page);
    }
}

/// The host and port by which a client asks.
pub fn named_host(request: &Request) -> Vec<u8> {
    let mut host = request.received.host().to_vec();
    if let Some(port) = request.received.host_port() {
        host.extend_from_slice(format!(":{port}").as_bytes());
    }
    host
}

/// Returns the site at a host, as answers of now are compared.
pub fn asked_site(host: &[u8]) -> guest_pages::AskedSite<'_> {
    guest_pages::AskedSite {
        host,
        now: clock::wall_now() / 1000,
    }
}

/// Returns the address at which the page of a request, whose form is known, is asked for once more.
pub fn token_page(
    request: &Request,
    rules: &SharedRules,
    (form, cookies, unseen): (guest_pages::PageForm, Vec<Vec<u8>>, Vec<Vec<u8>>),
) -> TokenPage {
    let mut target = Vec::new();
    let removed = &rules.request.removed_arguments;
    arguments::put_target(asked_target(request), removed, &mut target);
    TokenPage {
        host: named_host(request),
        target,
        form: Arc::new(form),
        cookies,
        unseen,
    }
}

/// Removes the cookies that the server has set in the place of the application's, for scripts: their tokens are known to
/// all. An application that compares a field with a cookie would take one for its own.
#[inline]
pub fn remove_own_cookies(received: &mut ReceivedRequest) {
    if received.head().view().may_have(b"cookie") && has_own_cookie(received) {
        without_own_cookies(received);
    }
}

fn has_own_cookie(received: &ReceivedRequest) -> bool {
    let mut pairs = cookies::pairs(received.head().view());
    pairs.any(|(_, value)| is_own_cookie(value))
}

#[cold]
fn without_own_cookies(received: &mut ReceivedRequest) {
    let pairs = cookies::pairs(received.head().view());
    let others = pairs.filter(|(_, value)| !is_own_cookie(value));
    let others: Vec<Vec<u8>> = others
        .map(|(name, value)| [name, b"=", value].concat())
        .collect();
    received.set_cookies(&others.join(&b"; "[..]));
}

/// Does the target of the request have a token of the server's?
pub fn sends_token(request: &Request) -> bool {
    let tokens = &seen(request).guests.tokens;
    !tokens.is_empty() && !tokens.find(request.received.target()).is_empty()
}

/// Returns the page with another form.
pub fn with_form(page: &TokenPage, form: guest_pages::PageForm) -> TokenPage {
    TokenPage {
        host: page.host.clone(),
        target: page.target.clone(),
        form: Arc::new(form),
        cookies: page.cookies.clone(),
        unseen: page.unseen.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_session_leaves_a_target() {
        for (target, wanted) in [
            ("/a?SID=1&b=2", Some("/a?b=2")),
            ("/a?b=2&SID=1", Some("/a?b=2")),
            ("/a?b=2;SID=1;c", Some("/a?b=2;c")),
            ("/a?SID=1", Some("/a")),
            ("SID=1", Some("")),
            ("/a?XSID=1", None),
            ("/a?SID=12", None),
        ] {
            let mut text = target.as_bytes().to_vec();
            let is_removed = remove_argument(&mut text, b"SID=1");
            assert_eq!(
                is_removed.then_some(&text[..]),
                wanted.map(str::as_bytes),
                "{target}"
            );
        }
    }
}
