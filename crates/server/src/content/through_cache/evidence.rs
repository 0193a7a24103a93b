//! What a fetch tells of its page, where answers are shared on evidence: how the visitor's own request, or the
//! shared one, ended. What is not told is told as failed when the fetch is dropped, so that no visitor waits
//! for it in vain.

use std::sync::Arc;

use bytes::Bytes;
use cache_decision::fields::Fields;
use http_cache::{
    ArrivingResponse, CacheKey, FoundResponse, Millis, PurgeMode, PurgeTarget, StoredHead,
    StoredResponse, Zone,
};
use http_semantics::RequestHead;
use live_state::evidence::SeenPages;
use page_evidence::{OwnEnd, OwnRun, PageName, Renderer, TrialOrder};

/// What a fetch tells of its page.
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
    renderer: Option<Renderer>,
}

/// Begins a trial of the visitor's request.
pub type BeginTrial = Box<dyn FnOnce(&Arc<SeenPages>, TrialOrder) + Send + Sync>;

/// Where the answer that others are shown is stored.
#[derive(Clone, Copy)]
pub struct StoredPlace<'a> {
    pub zone: &'a Zone,
    pub key: &'a CacheKey,
    /// What the upstream was sent.
    pub head: &'a RequestHead,
}

impl EvidenceLink {
    /// Of a visitor's own request, of which a trial can be made.
    pub fn own(seen: &Arc<SeenPages>, run: OwnRun, begin_trial: BeginTrial) -> EvidenceLink {
        EvidenceLink {
            seen: seen.clone(),
            role: Some(Role::Own(Box::new(OwnFetch {
                run,
                begin_trial,
                renderer: None,
            }))),
        }
    }

    /// Of the shared request, which begins.
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

    /// The head of an answer that could be stored.
    pub fn read_head(&mut self, arriving: &ArrivingResponse) {
        if let Some(Role::Own(own)) = &mut self.role {
            own.renderer = Some(renderer_of(arriving.head()));
        }
    }

    /// More of its body.
    pub fn read(&mut self, bytes: &Bytes) {
        if let Some(Role::Own(own)) = &mut self.role
            && let Some(renderer) = &mut own.renderer
        {
            renderer.read(bytes);
        }
    }

    /// The whole answer is there, and could be stored; the shared one is stored.
    pub fn storable(mut self, place: StoredPlace<'_>, stored: Option<&Arc<StoredResponse>>) {
        let now = clock::now();
        match self.role.take() {
            Some(Role::Own(mut own)) => {
                let end = match own.renderer.take() {
                    Some(renderer) => OwnEnd::Storable(renderer.finish().digest),
                    None => OwnEnd::Left,
                };
                self.own_ended(*own, end, place, now);
            }
            Some(Role::Shared(page)) => {
                let evidence = &self.seen.evidence;
                let digest = match stored {
                    Some(stored) if evidence.awaits_shared(page) => digest_of(stored),
                    _ => 0,
                };
                evidence.shared_ended(page, Some(digest), now);
                self.seen.announce(page);
            }
            None => {}
        }
    }

    /// The answer may not be stored, and that says something of the page.
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

    /// The upstream gave no answer, or failed.
    pub fn failed(mut self) {
        if self.is_own()
            && let Some(Role::Own(own)) = self.role.take()
        {
            let evidence = &self.seen.evidence;
            evidence.own_ended(&own.run, OwnEnd::Failed, None, clock::now());
            self.seen.announce(own.run.page);
        }
        // How the shared request failed is told when this is dropped.
    }

    fn own_ended(&self, own: OwnFetch, end: OwnEnd, place: StoredPlace<'_>, now: u64) {
        let copy = match end {
            OwnEnd::Failed | OwnEnd::Left => None,
            OwnEnd::Storable(_) | OwnEnd::NotStorable => copy_of(place, now),
        };
        let copy = match (copy, end) {
            // The visitor has seen what may be newer: nobody is shown what was stale before. A fresh copy stays: a
            // visitor whose answer differs for another reason would end it again and again.
            (Some(copy), OwnEnd::Storable(digest)) if copy.is_stale && copy.digest != digest => {
                let target = PurgeTarget::Key(place.key.as_ref());
                place.zone.purge(target, PurgeMode::Hard, Millis(now));
                None
            }
            (copy, _) => copy.map(|copy| copy.digest),
        };
        let order = self.seen.evidence.own_ended(&own.run, end, copy, now);
        self.seen.announce(own.run.page);
        if let Some(order) = order {
            (own.begin_trial)(&self.seen, order);
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

/// What is stored for the key.
struct StoredCopy {
    digest: u64,
    is_stale: bool,
}

fn copy_of(place: StoredPlace<'_>, now: u64) -> Option<StoredCopy> {
    let fields = Fields::Shared(place.head);
    let found = place
        .zone
        .find_again(&place.key.as_ref(), &fields, Millis(now));
    let (stored, is_stale) = match &found {
        FoundResponse::Fresh(stored) => (stored, false),
        FoundResponse::NotFresh(found) => (found.stale()?.0, true),
    };
    Some(StoredCopy {
        digest: digest_of(stored),
        is_stale,
    })
}

fn digest_of(stored: &StoredResponse) -> u64 {
    let mut renderer = renderer_of(&stored.head);
    for chunk in stored.body.chunks() {
        renderer.read(chunk);
    }
    renderer.finish().digest
}

fn renderer_of(head: &StoredHead) -> Renderer {
    Renderer::new(head.status, head.fields.iter(), false)
}
