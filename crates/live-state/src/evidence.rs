//! Observations of pages that may be shared, over all configurations; and the requests that wait until more
//! is seen.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use guest_pages::session::Field;
use guest_pages::{GuestPage, GuestPages};
use page_evidence::{Evidence, PageName};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Places at which requests wait. Requests for two pages may share one: each looks for itself when it is
/// woken.
const PLACES: usize = 64;

/// The evidence of all pages.
pub struct SeenPages {
    pub evidence: Evidence,
    pub guests: GuestPages,
    /// What was begun for trials that may follow, by the numbers of their pages: one for each shared request under way.
    ahead: Mutex<HashMap<u64, TrialAhead>>,
    changed: [Notify; PLACES],
}

impl Default for SeenPages {
    fn default() -> SeenPages {
        SeenPages {
            evidence: Evidence::default(),
            guests: GuestPages::default(),
            ahead: Mutex::default(),
            changed: std::array::from_fn(|_| Notify::new()),
        }
    }
}

impl SeenPages {
    fn place(&self, page: PageName) -> &Notify {
        let at = usize::try_from(page.number() % PLACES as u64).unwrap_or_default();
        &self.changed[at]
    }

    /// Do guests without a session share the page?
    pub fn is_shared_by_new(&self, page: &GuestPage) -> bool {
        self.evidence.session(page.name()).is_shared_by_new()
    }

    /// Ends when something was seen of the page after this was called.
    pub fn change(&self, page: PageName) -> Notified<'_> {
        self.place(page).notified()
    }

    /// Wakes those who wait for the page.
    pub fn announce(&self, page: PageName) {
        self.place(page).notify_waiters();
    }

    /// Offers what is begun before the trial of the page to that trial, until the offer is dropped.
    pub fn offer(
        self: &Arc<Self>,
        page: PageName,
        address: Ipv4Addr,
        begun: BegunAhead,
    ) -> SharedOffer {
        let (give, shared) = oneshot::channel();
        let ahead = TrialAhead {
            address,
            shared,
            begun,
        };
        self.ahead.lock().insert(page.number(), ahead);
        SharedOffer {
            seen: self.clone(),
            page,
            give: Some(give),
        }
    }

    /// Takes what was begun for the trial of the page.
    pub fn take_ahead(&self, page: PageName) -> Option<TrialAhead> {
        self.ahead.lock().remove(&page.number())
    }
}

/// An answer to a request that was written for no visitor.
#[derive(Clone, Debug)]
pub struct SharedAnswer {
    pub status: u16,
    pub fields: Vec<Field>,
    pub body: Bytes,
}

/// The requests that were begun before the trial of a page, while the first visitor's own was under way.
#[derive(Debug)]
pub struct TrialAhead {
    /// The address that they come from.
    pub address: Ipv4Addr,
    /// The answer to the shared request.
    pub shared: oneshot::Receiver<SharedAnswer>,
    pub begun: BegunAhead,
}

/// Those of them that are made besides the shared request.
#[derive(Debug, Default)]
pub struct BegunAhead {
    /// The answer to the shared request, made a second time in the same moment, with a session of its own.
    pub second: Option<oneshot::Receiver<SharedAnswer>>,
    /// Those for other pages of the site, by their targets.
    pub others: Vec<(Vec<u8>, oneshot::Receiver<SharedAnswer>)>,
    /// End with this value.
    pub tasks: JoinSet<()>,
}

/// The side of such an offer that the shared request has.
pub struct SharedOffer {
    seen: Arc<SeenPages>,
    page: PageName,
    give: Option<oneshot::Sender<SharedAnswer>>,
}

impl SharedOffer {
    /// Gives the answer to the trial that follows.
    pub fn give(&mut self, answer: SharedAnswer) {
        if let Some(give) = self.give.take() {
            // An error says that no trial waits for it.
            let _ = give.send(answer);
        }
    }
}

impl Drop for SharedOffer {
    fn drop(&mut self) {
        // What no trial has taken ends here, outside the lock.
        let left = self.seen.take_ahead(self.page);
        drop(left);
    }
}
