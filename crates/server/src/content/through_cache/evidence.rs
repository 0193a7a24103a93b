//! Reports how a fetch ended to the evidence of its page: how the visitor's own request, or the shared one, ended. A
//! fetch that is dropped without a report counts as failed, so that no visitor waits for it in vain.

use std::sync::Arc;

use bytes::Bytes;
use cache_decision::fields::Fields;
use guest_pages::cookies::{CookieMark, PendingPage, is_of_one_visitor};
use guest_pages::session::{Field, without_links};
use guest_pages::{GuestPage, GuestPages, MAX_BODY_BYTES, outline, session};
use http_cache::{
    ArrivingResponse, CacheKey, FoundResponse, Millis, StoredHead, StoredResponse, Zone,
};
use http_semantics::RequestHead;
use live_state::evidence::SeenPages;
use page_evidence::{OwnEnd, OwnRun, PageName, Renderer, SessionStanding, TrialOrder};
use shared_request::Trait;

use super::asking::WholeAnswer;

/// The link from a fetch to the evidence of its page.
pub struct EvidenceLink {
    seen: Arc<SeenPages>,
    role: Option<Role>,
}

enum Role {
    Own(Box<OwnFetch>),
    Shared(PageName),
}

/// A visitor's own request.
struct OwnFetch {
    run: OwnRun,
    begin_trial: BeginTrial,
    /// The host, and the cookies by which the visitor is a guest.
    site: Vec<u8>,
    marks: Vec<CookieMark>,
    renderer: Option<Renderer>,
    session: Option<OwnSession>,
    /// The whole answer, where it may be compared with those of a trial, and is for a guest without a session.
    answer: Option<WholeAnswer>,
}

/// The session facts of the answer to a visitor's own request, with `cache_guest_sessions`.
#[derive(Default)]
struct OwnSession {
    /// The answer begins a session, or shows that one is under way.
    is_begun: bool,
    status: u16,
    fields: Vec<(Bytes, Bytes)>,
    /// The form of a page that guests share: its body is compared as far as the form allows.
    page: Option<Arc<GuestPage>>,
    body: Vec<u8>,
    /// The body is longer than what is compared.
    is_cut: bool,
}

/// Begins a trial of the visitor's request, whose own answer may be compared.
pub type BeginTrial =
    Box<dyn FnOnce(&Arc<SeenPages>, TrialOrder, Option<WholeAnswer>) + Send + Sync>;

/// The zone and key under which the shared answer is stored.
#[derive(Clone, Copy)]
pub struct StoredPlace<'a> {
    pub zone: &'a Zone,
    pub key: &'a CacheKey,
    /// The request head that was sent to the upstream.
    pub head: &'a RequestHead,
}

impl EvidenceLink {
    /// Creates the link of a visitor's own request, of which a trial can be made.
    pub fn own(
        seen: &Arc<SeenPages>,
        run: OwnRun,
        (site, marks): (&[u8], Vec<CookieMark>),
        begin_trial: BeginTrial,
    ) -> EvidenceLink {
        EvidenceLink {
            seen: seen.clone(),
            role: Some(Role::Own(Box::new(OwnFetch {
                run,
                begin_trial,
                site: site.to_vec(),
                marks,
                renderer: None,
                session: None,
                answer: None,
            }))),
        }
    }

    /// Creates the link of the shared request, which begins.
    pub fn shared(seen: &Arc<SeenPages>, page: PageName, now: u64) -> EvidenceLink {
        seen.evidence.shared_began(page, now);
        EvidenceLink {
            seen: seen.clone(),
            role: Some(Role::Shared(page)),
        }
    }

    /// Is the answer for one visitor alone, and only compared?
    pub fn is_own(&self) -> bool {
        matches!(self.role, Some(Role::Own(_)))
    }

    /// The page whose shared request this is of.
    pub fn shared_page(&self) -> Option<PageName> {
        match &self.role {
            Some(Role::Shared(page)) => Some(*page),
            _ => None,
        }
    }

    pub fn seen(&self) -> &Arc<SeenPages> {
        &self.seen
    }

    /// The fields of an own answer that could be stored, but perhaps for its session. The cookies that it sets are a
    /// guest's from now on, if its visitor was one.
    pub fn read_session(&mut self, (status, fields): (u16, &[Field]), is_uniform: bool) {
        let Some(Role::Own(own)) = &mut self.role else {
            return;
        };
        let page = own.run.page;
        let is_shared = self.seen.evidence.session(page) == SessionStanding::Indifferent;
        // What is tried may be what the page does to a session.
        let is_settled = is_shared && !own.run.is_beside_trial;
        own.give(&self.seen.guests, (status, fields), is_settled);
        own.session = Some(OwnSession {
            is_begun: is_uniform || session::is_of_session(fields),
            status,
            fields: fields.to_vec(),
            page: self.seen.guests.page(page).filter(|_| is_shared),
            body: Vec::new(),
            is_cut: false,
        });
    }

    /// The shared request was answered with a session, of which it is not known that the page does not depend on it.
    pub fn begins_session(mut self) {
        if let Some(Role::Shared(page)) = self.role.take() {
            self.seen.evidence.shared_begins_session(page, clock::now());
            self.seen.announce(page);
        }
    }

    /// The shared answer is of another form than guests' answers were.
    pub fn doubts_session(mut self) {
        if let Some(Role::Shared(page)) = self.role.take() {
            let now = clock::now();
            self.seen.evidence.shared_failed(page, now);
            self.seen.evidence.doubt_session(page, now);
            self.seen.announce(page);
        }
    }

    /// The head of an answer that could be stored. `is_recoded`: its body is read in another charset than it has.
    pub fn read_head(&mut self, arriving: &ArrivingResponse, is_recoded: bool) {
        if let Some(Role::Own(own)) = &mut self.role {
            let head = arriving.head();
            let mut names = head.fields.iter().map(|(name, _)| name);
            own.run.is_coded =
                is_recoded || names.any(|name| name.eq_ignore_ascii_case(b"content-encoding"));
            own.renderer = Some(renderer_of(head));
        }
    }

    /// More of its body.
    pub fn read(&mut self, bytes: &Bytes) {
        if let Some(Role::Own(own)) = &mut self.role
            && let Some(renderer) = &mut own.renderer
        {
            match &mut own.session {
                Some(session) if session.is_kept() && session.has_room(bytes) => {
                    session.body.extend_from_slice(bytes);
                    if session.page.is_some() {
                        return;
                    }
                }
                Some(session) => session.is_cut = true,
                None => {}
            }
            renderer.read(bytes);
        }
    }

    /// The whole answer is there, and could be stored; the shared one is stored.
    pub fn storable(mut self, place: StoredPlace<'_>, stored: Option<&Arc<StoredResponse>>) {
        let now = clock::now();
        match self.role.take() {
            Some(Role::Own(mut own)) => {
                let mut session = own.session.take().unwrap_or_default();
                if own.run.left_out.value(Trait::Session) == 0 && !own.run.is_coded {
                    own.answer = session.take_answer();
                }
                let end = match own.renderer.take() {
                    Some(renderer) if session.is_begun => {
                        OwnEnd::OfSession(session.finish(renderer))
                    }
                    Some(renderer) => OwnEnd::Storable(session.finish(renderer)),
                    None => OwnEnd::Left,
                };
                self.own_ended(*own, end, place, now);
            }
            Some(Role::Shared(page)) => {
                let evidence = &self.seen.evidence;
                let digest = match stored {
                    Some(stored) if evidence.awaits_shared(page) => {
                        digest_of(stored, self.guest_page(page).as_deref())
                    }
                    _ => 0,
                };
                if evidence.shared_ended(page, Some(digest), now)
                    && let Some(stored) = stored
                {
                    // A visitor has seen another answer meanwhile, which may be newer.
                    stored.doubt();
                }
                self.seen.announce(page);
            }
            None => {}
        }
    }

    /// The answer may not be stored, which is evidence about the page.
    pub fn not_storable(mut self, place: StoredPlace<'_>) {
        let now = clock::now();
        match self.role.take() {
            Some(Role::Own(own)) => self.own_ended(*own, OwnEnd::NotStorable, place, now),
            Some(Role::Shared(page)) => {
                self.seen.evidence.shared_ended(page, None, now);
                self.seen.announce(page);
            }
            None => {}
        }
    }

    /// Like `not_storable`, for the answer to a guest, who remains a guest if the page leaves their session as it was.
    pub fn personal(mut self, place: StoredPlace<'_>, answer: (u16, &[Field])) {
        match self.role.take() {
            Some(Role::Own(own)) => {
                own.give(&self.seen.guests, answer, false);
                self.own_ended(*own, OwnEnd::Personal, place, clock::now());
            }
            role => {
                self.role = role;
                self.not_storable(place);
            }
        }
    }

    /// The upstream gave no answer, or failed.
    pub fn failed(mut self) {
        if self.is_own()
            && let Some(Role::Own(own)) = self.role.take()
        {
            let evidence = &self.seen.evidence;
            evidence.own_ended(&own.run, OwnEnd::Failed, None, clock::now());
            self.seen.announce(own.run.page);
        }
        // A failed shared request is reported when this value is dropped.
    }

    /// The form of a page that guests share.
    fn guest_page(&self, page: PageName) -> Option<Arc<GuestPage>> {
        let is_shared = self.seen.evidence.session(page) == SessionStanding::Indifferent;
        self.seen.guests.page(page).filter(|_| is_shared)
    }

    fn own_ended(&self, own: OwnFetch, end: OwnEnd, place: StoredPlace<'_>, now: u64) {
        let copy = match end {
            OwnEnd::Failed | OwnEnd::Left => None,
            OwnEnd::Storable(_) | OwnEnd::OfSession(_) | OwnEnd::NotStorable | OwnEnd::Personal => {
                let page = self.guest_page(own.run.page);
                match copy_of(place, page.as_deref(), now) {
                    Some(copy) => copy.compared_with(end),
                    // Nothing is stored yet, and the page was compared a moment ago.
                    None => page.and_then(|page| page.digest(now)),
                }
            }
        };
        let order = self.seen.evidence.own_ended(&own.run, end, copy, now);
        self.seen.announce(own.run.page);
        if let Some(order) = order {
            (own.begin_trial)(&self.seen, order, own.answer);
        }
    }
}

impl Drop for EvidenceLink {
    fn drop(&mut self) {
        let now = clock::now();
        let page = match self.role.take() {
            Some(Role::Own(own)) => {
                self.seen
                    .evidence
                    .own_ended(&own.run, OwnEnd::Left, None, now);
                own.run.page
            }
            Some(Role::Shared(page)) => {
                self.seen.evidence.shared_failed(page, now);
                page
            }
            None => return,
        };
        self.seen.announce(page);
    }
}

/// The stored response for the key.
struct StoredCopy {
    stored: Arc<StoredResponse>,
    digest: u64,
    is_stale: bool,
}

impl StoredCopy {
    /// Returns the digest that a visitor's own answer is compared with. The visitor will be shown that answer, which may be
    /// newer: if it differs, the server does not show the copy once it is stale. A fresh copy stays: a visitor
    /// whose answer differs for another reason would end it again and again.
    fn compared_with(self, own: OwnEnd) -> Option<u64> {
        let differs = match own {
            OwnEnd::Storable(digest) | OwnEnd::OfSession(digest) => self.digest != digest,
            OwnEnd::Personal | OwnEnd::NotStorable | OwnEnd::Failed | OwnEnd::Left => false,
        };
        if differs {
            self.stored.doubt();
        }
        (!(differs && self.is_stale)).then_some(self.digest)
    }
}

fn copy_of(place: StoredPlace<'_>, page: Option<&GuestPage>, now: u64) -> Option<StoredCopy> {
    let fields = Fields::Shared(place.head);
    let found = place
        .zone
        .find_again(&place.key.as_ref(), &fields, Millis(now));
    let (stored, is_stale) = match &found {
        FoundResponse::Fresh(stored) => (stored, false),
        FoundResponse::NotFresh(found) => (found.stale()?.0, true),
    };
    Some(StoredCopy {
        digest: digest_of(stored, page),
        stored: Arc::clone(stored),
        is_stale,
    })
}

fn digest_of(stored: &StoredResponse, page: Option<&GuestPage>) -> u64 {
    let mut renderer = renderer_of(&stored.head);
    if let Some(page) = page {
        let body = stored.body.chunks().concat();
        page.form().render(&body, &mut renderer);
    } else {
        for chunk in stored.body.chunks() {
            renderer.read(chunk);
        }
    }
    renderer.finish().digest
}

impl OwnFetch {
    /// The cookies that an answer sets are a guest's from now on, if its visitor was one. If guests do not share the
    /// page, the outline of the answer is remembered.
    fn give(&self, guests: &GuestPages, (status, fields): (u16, &[Field]), is_shared: bool) {
        let asked = PendingPage {
            page: self.run.page,
            answer: Some(outline::of(status, fields)),
        };
        let mut given = Vec::new();
        let cookies = session::set_cookies(fields);
        for cookie in cookies.iter().filter(|cookie| !cookie.is_removed) {
            let mark = guests.cookies.mark(cookie.name, cookie.value);
            match is_of_one_visitor(cookie.value) {
                true => given.push(mark),
                false => guests.cookies.note_choice(&self.site, mark),
            }
        }
        if !is_shared {
            guests.cookies.note_answer(&self.marks, asked);
        }
        if !given.is_empty() {
            let asked = (!is_shared).then_some(asked);
            guests.cookies.give(&self.marks, &given, asked);
        }
    }
}

impl OwnSession {
    /// Is the body compared with a form, or with the answers of a trial?
    fn is_kept(&self) -> bool {
        self.page.is_some() || self.is_begun
    }

    fn has_room(&self, bytes: &Bytes) -> bool {
        self.body.len() + bytes.len() <= MAX_BODY_BYTES
    }

    /// Takes the answer, if it is compared with no form yet: its digest is then the renderer's alone.
    fn take_answer(&mut self) -> Option<WholeAnswer> {
        let is_whole = self.is_begun && self.page.is_none() && !self.is_cut;
        is_whole.then(|| {
            let fields = std::mem::take(&mut self.fields);
            WholeAnswer {
                status: self.status,
                body: without_links(&fields, std::mem::take(&mut self.body)),
                fields,
            }
        })
    }

    /// The digest of the answer.
    fn finish(self, mut renderer: Renderer) -> u64 {
        if let Some(page) = &self.page {
            let body = without_links(&self.fields, self.body);
            page.form().render(&body, &mut renderer);
        }
        renderer.finish().digest
    }
}

fn renderer_of(head: &StoredHead) -> Renderer {
    Renderer::new(head.status, head.fields.iter(), false)
}
