//! Observations of pages that may be shared, over all configurations; and the requests that wait until more
//! is seen.

use guest_pages::GuestPages;
use page_evidence::{Evidence, PageName};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Places at which requests wait. Requests for two pages may share one: each looks for itself when it is
/// woken.
const PLACES: usize = 64;

/// The evidence of all pages.
pub struct SeenPages {
    pub evidence: Evidence,
    pub guests: GuestPages,
    changed: [Notify; PLACES],
}

impl Default for SeenPages {
    fn default() -> SeenPages {
        SeenPages {
            evidence: Evidence::default(),
            guests: GuestPages::default(),
            changed: std::array::from_fn(|_| Notify::new()),
        }
    }
}

impl SeenPages {
    fn place(&self, page: PageName) -> &Notify {
        let at = usize::try_from(page.number() % PLACES as u64).unwrap_or_default();
        &self.changed[at]
    }

    /// Ends when something was seen of the page after this was called.
    pub fn change(&self, page: PageName) -> Notified<'_> {
        self.place(page).notified()
    }

    /// Wakes those who wait for the page.
    pub fn announce(&self, page: PageName) {
        self.place(page).notify_waiters();
    }
}
