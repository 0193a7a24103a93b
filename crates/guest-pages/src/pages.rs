//! The pages that guests share without a session, and all that is known of guests.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use page_evidence::{Halves, PageName};
use parking_lot::Mutex;

use crate::cookies::GuestCookies;
use crate::form::PageForm;
use crate::policies::SitePolicies;
use crate::tokens::{ServerTokens, TokenPage};

/// Pages in half the table.
const MAX_PAGES: usize = 4096;
/// For so many milliseconds the answers of which a form was learned are compared with others.
const DIGEST_MILLIS: u64 = 30_000;

/// So many shared pages make others familiar whose addresses look alike.
const FAMILIAR: u8 = 4;
/// Sites of which pages are remembered that show what is in a session, and how many of each.
const MAX_SITES: usize = 256;
pub const MAX_WITNESSES: usize = 12;
/// How words of an address begin that is likely to show what is in a session, lower case.
const STATE_WORDS: [&[u8]; 19] = [
    b"cart",
    b"basket",
    b"bag",
    b"trolley",
    b"checkout",
    b"order",
    b"wish",
    b"compare",
    b"favo",
    b"account",
    b"profile",
    b"user",
    b"member",
    b"login",
    b"signin",
    b"setting",
    b"preference",
    b"language",
    b"currency",
];

/// A page that guests share.
#[derive(Debug)]
pub struct GuestPage {
    name: PageName,
    page: Arc<TokenPage>,
    /// The server's tokens, by the numbers of its form; then those in cookies.
    tokens: Vec<Vec<u8>>,
    learned: LearnedForm,
}

/// The answers that a form was learned from.
#[derive(Clone, Copy, Debug)]
pub struct LearnedForm {
    /// Stands for them, as far as they are compared.
    pub digest: u64,
    /// When, in milliseconds.
    pub at: u64,
}

impl GuestPage {
    #[must_use]
    pub fn name(&self) -> PageName {
        self.name
    }

    #[must_use]
    pub fn known(&self) -> &Arc<TokenPage> {
        &self.page
    }

    #[must_use]
    pub fn form(&self) -> &PageForm {
        &self.page.form
    }

    /// The digest of the answers of which the form was learned, for a while: then they may have changed.
    #[must_use]
    pub fn digest(&self, now: u64) -> Option<u64> {
        let LearnedForm { digest, at } = self.learned;
        (now.saturating_sub(at) < DIGEST_MILLIS).then_some(digest)
    }

    /// Puts the server's tokens in the place of those that are found by the text around them: an answer as another session's
    /// might be.
    #[must_use]
    pub fn with_other_tokens(&self, answer: &[u8]) -> Vec<u8> {
        let mut answer = answer.to_vec();
        let found = self.page.form.tokens_of(&answer);
        for (token, other) in found.into_iter().zip(&self.tokens) {
            if let Some(token) = token.filter(|token| token.len() == other.len()) {
                replace_all(&mut answer, &token, other);
            }
        }
        answer
    }

    /// The cookies that guests are given with it, for its scripts: names and the server's tokens.
    pub fn cookies(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let tokens = self.tokens.iter().skip(self.form().tokens().len());
        let names = self.page.cookies.iter().map(Vec::as_slice);
        names.zip(tokens.map(Vec::as_slice))
    }

    /// Returns an answer as guests are shown it; `None`: it is of another form.
    #[must_use]
    pub fn shown(&self, answer: &[u8]) -> Option<Vec<u8>> {
        self.page.form.with_tokens(answer, &self.tokens)
    }
}

/// Does a word of the address say that the page shows something of its visitor?
fn is_of_state(target: &[u8]) -> bool {
    let lower = target.to_ascii_lowercase();
    let mut words = lower.split(|byte| !byte.is_ascii_alphabetic());
    words.any(|word| STATE_WORDS.iter().any(|it| word.starts_with(it)))
}

/// Writes `other`, which is as long, for each `token`.
fn replace_all(text: &mut [u8], token: &[u8], other: &[u8]) {
    let places: Vec<usize> = memchr::memmem::find_iter(text, token).collect();
    for at in places {
        if let Some(place) = text.get_mut(at..at + token.len()) {
            place.copy_from_slice(other);
        }
    }
}

/// On which pages a visit to a page that is not shared shows, and on which it does not, by their looks.
#[derive(Clone, Debug, Default)]
pub struct SessionTraces {
    shown: Vec<u64>,
    not_shown: Vec<u64>,
}

impl SessionTraces {
    pub fn note(&mut self, look: u64, is_shown: bool) {
        match is_shown {
            true => self.shown.push(look),
            false => self.not_shown.push(look),
        }
    }

    /// Does a page show it?
    #[must_use]
    pub fn are_somewhere(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Was no page compared that does not show it?
    #[must_use]
    pub fn are_everywhere(&self) -> bool {
        self.not_shown.is_empty()
    }
}

/// The tables of guests and their pages, over all configurations.
#[derive(Debug, Default)]
pub struct GuestPages {
    pub cookies: GuestCookies,
    pub tokens: ServerTokens,
    pub policies: SitePolicies,
    secret: RandomState,
    pages: Mutex<Halves<Arc<GuestPage>>>,
    /// The pages by address.
    addresses: Mutex<Halves<Arc<GuestPage>>>,
    /// Why pages are not shared.
    refusals: Mutex<Halves<&'static str>>,
    /// How many pages are shared whose addresses look like this.
    familiar: Mutex<Halves<u8>>,
    /// Values of arguments that pages show, by host, path and name: two of each.
    shown_arguments: Mutex<Halves<[u64; 2]>>,
    /// Which pages show that a guest has seen a page that is not shared.
    traces: Mutex<Halves<SessionTraces>>,
    /// Looks of pages that have shown what is in a session.
    showing: Mutex<Halves<()>>,
    /// The latest page of each look, by host.
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
        let page = addresses.get(self.address(host, target))?;
        (page.page.host == host && page.page.target == target).then(|| page.clone())
    }

    /// Notes the form of a page. Its tokens are found from now on. `is_page`: it is one, and neither an error nor a
    /// redirect.
    pub fn note(
        &self,
        name: PageName,
        page: TokenPage,
        learned: LearnedForm,
        is_page: bool,
    ) -> Arc<GuestPage> {
        let address = self.address(&page.host, &page.target);
        let page = Arc::new(page);
        let known = Arc::new(GuestPage {
            name,
            tokens: self.tokens.for_page(name.number(), &page),
            learned,
            page,
        });
        let mut pages = self.pages.lock();
        let is_new = pages.get(name.number()).is_none();
        pages.put(name.number(), known.clone(), MAX_PAGES);
        drop(pages);
        self.addresses.lock().put(address, known.clone(), MAX_PAGES);
        let mut familiar = self.familiar.lock();
        let count = familiar.entry(self.look(&known.page.host, &known.page.target), MAX_PAGES);
        *count = count.saturating_add(u8::from(is_new));
        drop(familiar);
        self.add_witness(&known, is_page);
        known
    }

    /// Are some pages shared whose addresses differ from this one in nothing but numbers?
    #[must_use]
    pub fn is_familiar(&self, host: &[u8], target: &[u8]) -> bool {
        let familiar = self.familiar.lock();
        familiar
            .get(self.look(host, target))
            .is_some_and(|count| *count >= FAMILIAR)
    }

    /// A page is another one without this argument (`name=value`).
    pub fn note_shown(&self, host: &[u8], path: &[u8], argument: &[u8]) {
        let (number, value) = self.argument(host, path, argument);
        let mut shown = self.shown_arguments.lock();
        let values = shown.entry(number, MAX_PAGES);
        if !values.contains(&value) {
            values.rotate_right(1);
            values[0] = value;
        }
    }

    /// Whether pages show this argument, as two of its values have shown. A value that shows nothing then means the same
    /// as no value.
    #[must_use]
    pub fn is_shown(&self, host: &[u8], path: &[u8], argument: &[u8]) -> bool {
        let (number, _) = self.argument(host, path, argument);
        let shown = self.shown_arguments.lock();
        let values = shown.get(number);
        values.is_some_and(|values| values.iter().all(|it| *it != 0))
    }

    /// Is it such an argument, or has this value of it been shown?
    #[must_use]
    pub fn is_familiar_argument(&self, host: &[u8], path: &[u8], argument: &[u8]) -> bool {
        let (number, value) = self.argument(host, path, argument);
        let shown = self.shown_arguments.lock();
        let values = shown.get(number);
        values.is_some_and(|values| values.contains(&value) || values.iter().all(|it| *it != 0))
    }

    /// Numbers that stand for the name of an argument, and for its value.
    fn argument(&self, host: &[u8], path: &[u8], argument: &[u8]) -> (u64, u64) {
        let mut parts = argument.splitn(2, |&byte| byte == b'=');
        let name = parts.next().unwrap_or_default();
        let number = self.secret.hash_one((host, path, name));
        (number, self.secret.hash_one(parts.next()).max(1))
    }

    /// Notes on which pages it shows that a guest has seen a page.
    pub fn note_traces(&self, name: PageName, traces: SessionTraces) {
        self.traces.lock().put(name.number(), traces, MAX_PAGES);
    }

    /// Does no page show that a guest has seen this one, as far as was seen?
    #[must_use]
    pub fn leaves_no_trace(&self, name: PageName) -> bool {
        let traces = self.traces.lock();
        let found = traces.get(name.number());
        found.is_none_or(|traces| traces.shown.is_empty())
    }

    /// Was it compared that pages with this look do not show it?
    #[must_use]
    pub fn leaves_no_trace_at(&self, name: PageName, look: u64) -> bool {
        let traces = self.traces.lock();
        let found = traces.get(name.number());
        found.is_some_and(|traces| traces.not_shown.contains(&look))
    }

    /// A page with this look has shown what was in a session.
    pub fn note_shows_session(&self, look: u64) {
        self.showing.lock().put(look, (), MAX_PAGES);
    }

    /// Stands for an address.
    #[must_use]
    pub fn address(&self, host: &[u8], target: &[u8]) -> u64 {
        self.secret.hash_one((host, target))
    }

    /// Stands for addresses that differ in numbers alone.
    #[must_use]
    pub fn look(&self, host: &[u8], target: &[u8]) -> u64 {
        let words: Vec<&[u8]> = target
            .split(u8::is_ascii_digit)
            .filter(|it| !it.is_empty())
            .collect();
        self.secret.hash_one((host, words))
    }

    fn add_witness(&self, known: &Arc<GuestPage>, is_page: bool) {
        let look_of = |page: &TokenPage| self.look(&page.host, &page.target);
        let mut witnesses = self.witnesses.lock();
        let of_host = witnesses.entry(self.secret.hash_one(&known.page.host), MAX_SITES);
        let look = look_of(&known.page);
        if !is_page {
            of_host.retain(|it| it.page.target != known.page.target);
            return;
        }
        of_host.retain(|it| look_of(&it.page) != look);
        let showing = self.showing.lock();
        let is_telling =
            |page: &TokenPage| is_of_state(&page.target) || showing.get(look_of(page)).is_some();
        // Those that are likely to show something stand first, the oldest of them in front: whoever invents addresses
        // pushes none of them out.
        of_host
            .make_contiguous()
            .sort_by_key(|it| !is_telling(&it.page));
        let tell = of_host.iter().take_while(|it| is_telling(&it.page)).count();
        of_host.insert(tell, known.clone());
        of_host.truncate(MAX_WITNESSES);
    }

    /// Pages of a host that may show what is in a session: first those that are likely to, then the latest.
    #[must_use]
    pub fn witnesses(&self, host: &[u8]) -> Vec<Arc<GuestPage>> {
        let mut witnesses = self.witnesses.lock();
        let of_host = witnesses.touch(self.secret.hash_one(host), MAX_SITES);
        of_host
            .map(|it| it.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Pages of the host of which the page at `target` did not say whether they leave a session as it was.
    #[must_use]
    pub fn unproven_by(&self, host: &[u8], target: &[u8]) -> Vec<PageName> {
        let pages = self.pages.lock();
        let is_one = |it: &&Arc<GuestPage>| {
            it.page.host == host && it.page.unseen.iter().any(|unseen| unseen == target)
        };
        pages.values().filter(is_one).map(|it| it.name).collect()
    }

    /// Notes why guests do not share a page.
    pub fn note_refusal(&self, name: PageName, why: &'static str) {
        self.refusals.lock().put(name.number(), why, MAX_PAGES);
    }

    /// Why guests do not share a page, as the last trial found.
    #[must_use]
    pub fn refusal(&self, name: PageName) -> Option<&'static str> {
        self.refusals.lock().get(name.number()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AskedSite, Comparison, Guests, compare};

    fn note(pages: &GuestPages, target: &str, is_page: bool) {
        note_at(pages, "shop", target, is_page);
    }

    fn note_at(pages: &GuestPages, host: &str, target: &str, is_page: bool) {
        let site = AskedSite {
            host: host.as_bytes(),
            now: 1_700_000_000,
        };
        let answers: [&[u8]; 2] = [b"<p>a</p>"; 2];
        let Comparison::Form(form) = compare(&answers, Guests::Alike, site) else {
            panic!("two pages that are the same");
        };
        let page = TokenPage {
            host: host.as_bytes().to_vec(),
            target: target.as_bytes().to_vec(),
            form: Arc::new(form),
            cookies: Vec::new(),
            unseen: Vec::new(),
        };
        let name = PageName::new(b"zone\0shop", format!("http://{host}{target}\0").as_bytes());
        pages.note(name, page, LearnedForm { digest: 1, at: 0 }, is_page);
    }

    fn has(pages: &GuestPages, target: &str) -> bool {
        let witnesses = pages.witnesses(b"shop");
        assert!(witnesses.len() <= MAX_WITNESSES);
        witnesses
            .iter()
            .any(|it| it.known().target == target.as_bytes())
    }

    fn word(number: usize) -> String {
        ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'][number % 10].to_string()
            + &"z".repeat(number / 10)
    }

    /// Pages that are not there, and pages of ten other kinds, pushed the cart out; what was put into it was lost.
    #[test]
    fn no_other_pages_push_out_those_that_show_what_is_a_visitors() {
        let pages = GuestPages::default();
        note(&pages, "/index.php?page=My-Cart", true);
        note(&pages, "/seen", true);
        pages.note_shows_session(pages.look(b"shop", b"/seen"));
        for number in 0..100 {
            note(&pages, &format!("/x{}", word(number)), true);
            note(&pages, &format!("/cart/{}", word(number)), true);
            note(&pages, &format!("/gone/{}", word(number)), false);
        }
        assert!(has(&pages, "/index.php?page=My-Cart"));
        assert!(has(&pages, "/seen"));
        assert!(!has(&pages, &format!("/gone/{}", word(99))));
        // It is an error from now on.
        note(&pages, "/seen", false);
        assert!(!has(&pages, "/seen"));
    }

    /// Each trial of the site asks for them.
    #[test]
    fn invented_hosts_push_out_no_witnesses_of_a_site_that_is_in_use() {
        let pages = GuestPages::default();
        note(&pages, "/cart", true);
        for number in 0..2 * MAX_SITES {
            note_at(&pages, &format!("invented{number}"), "/", true);
            assert!(number % 100 > 0 || has(&pages, "/cart"));
        }
        assert!(has(&pages, "/cart"));
    }

    #[test]
    fn a_kind_of_page_that_was_not_compared_may_show_a_visit() {
        let pages = GuestPages::default();
        let name = PageName::new(b"zone\0shop", b"http://shop/order\0");
        let [cart, front] = [&b"/cart"[..], b"/"].map(|target| pages.look(b"shop", target));
        assert!(!pages.leaves_no_trace_at(name, cart));
        let mut traces = SessionTraces::default();
        traces.note(front, false);
        pages.note_traces(name, traces);
        assert!(pages.leaves_no_trace_at(name, front));
        assert!(!pages.leaves_no_trace_at(name, cart));
    }
}
