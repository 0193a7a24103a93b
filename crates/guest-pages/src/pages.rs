//! The pages that guests share without a session, and all that is known of guests.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use page_evidence::{Halves, PageName};
use parking_lot::Mutex;

use crate::cookies::GuestCookies;
use crate::form::PageForm;
use crate::tokens::{ServerTokens, TokenPage};

/// Pages in half the table.
const MAX_PAGES: usize = 8192;

/// Sites of which pages are remembered that show what is in a session, and how many of each.
const MAX_SITES: usize = 256;
const MOST_WITNESSES: usize = 8;

/// A page that guests share.
#[derive(Debug)]
pub struct GuestPage {
    page: Arc<TokenPage>,
    /// The server's tokens, by the numbers of its form.
    tokens: Vec<Vec<u8>>,
}

impl GuestPage {
    #[must_use]
    pub fn known(&self) -> &Arc<TokenPage> {
        &self.page
    }

    #[must_use]
    pub fn form(&self) -> &PageForm {
        &self.page.form
    }

    /// What guests are shown of an answer; `None`: it is of another form.
    #[must_use]
    pub fn shown(&self, answer: &[u8]) -> Option<Vec<u8>> {
        self.page.form.with_tokens(answer, &self.tokens)
    }
}

/// What is known of guests, over all configurations.
#[derive(Debug, Default)]
pub struct GuestPages {
    pub cookies: GuestCookies,
    pub tokens: ServerTokens,
    secret: RandomState,
    pages: Mutex<Halves<Arc<GuestPage>>>,
    /// The same by address.
    addresses: Mutex<Halves<Arc<GuestPage>>>,
    /// The latest pages without arguments, by host.
    witnesses: Mutex<Halves<VecDeque<Arc<GuestPage>>>>,
}

impl GuestPages {
    /// A page that guests share, if its form is known.
    #[must_use]
    pub fn page(&self, name: PageName) -> Option<Arc<GuestPage>> {
        self.pages.lock().get(name.number()).cloned()
    }

    /// The page at this address: host with port as the client names it, path and arguments.
    #[must_use]
    pub fn at(&self, host: &[u8], target: &[u8]) -> Option<Arc<GuestPage>> {
        let addresses = self.addresses.lock();
        let page = addresses.get(self.secret.hash_one((host, target)))?;
        (page.page.host == host && page.page.target == target).then(|| page.clone())
    }

    /// Notes the form of a page. Its tokens are found from now on.
    pub fn note(&self, name: PageName, page: TokenPage) -> Arc<GuestPage> {
        let address = self.secret.hash_one((&page.host[..], &page.target[..]));
        let page = Arc::new(page);
        let known = Arc::new(GuestPage {
            tokens: self.tokens.for_page(name.number(), &page),
            page,
        });
        self.pages
            .lock()
            .put(name.number(), known.clone(), MAX_PAGES);
        self.addresses.lock().put(address, known.clone(), MAX_PAGES);
        if !known.page.target.contains(&b'?') {
            self.add_witness(&known);
        }
        known
    }

    fn add_witness(&self, known: &Arc<GuestPage>) {
        let mut witnesses = self.witnesses.lock();
        let of_host = witnesses.entry(self.secret.hash_one(&known.page.host), MAX_SITES);
        of_host.retain(|it| it.page.target != known.page.target);
        of_host.truncate(MOST_WITNESSES - 1);
        of_host.push_front(known.clone());
    }

    /// Pages of a host that may show what is in a session, the latest first.
    #[must_use]
    pub fn witnesses(&self, host: &[u8]) -> Vec<Arc<GuestPage>> {
        let witnesses = self.witnesses.lock();
        let of_host = witnesses.get(self.secret.hash_one(host));
        of_host
            .map(|it| it.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// How many pages and tokens are known.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pages.lock().len()
    }
}
