//! Pages that were made of an object cache: who reads which key, and what was written there.

use std::sync::Arc;
use std::time::Instant;

use super::{Book, CacheRead};
use crate::caches::{Cache, CacheState, Lifetime, MAX_CACHES};
use crate::pages::Cause;
use crate::record::{CacheKey, CacheWrite, ServerName, WhyNot};

impl Book {
    /// `None`: there are too many. With several, no page of one is kept, also if it was before.
    fn cache(&mut self, server: &ServerName) -> Option<&mut Cache> {
        self.moves += u64::from(!self.caches.has(server));
        self.caches.of(server)
    }

    /// Counts a write: pages of its keys are suspect from now on. Returns whether one was ever made of them.
    pub(super) fn count_cache(
        &mut self,
        server: &ServerName,
        write: &CacheWrite,
        text: String,
    ) -> bool {
        self.suspect_readers(server, write, text).1
    }

    /// The pages of what was written, and whether one was ever made of it.
    fn suspect_readers(
        &mut self,
        server: &ServerName,
        write: &CacheWrite,
        text: String,
    ) -> (Vec<u32>, bool) {
        let Some(cache) = self.cache(server) else {
            return (Vec::new(), true);
        };
        let (pages, is_read) = cache.written(write);
        if !pages.is_empty() {
            let at = Instant::now();
            let cause = Arc::new(Cause { text, at });
            pages
                .iter()
                .for_each(|number| self.suspect(*number, &cause, false));
        }
        (pages, is_read)
    }

    /// The server itself has named what was changed there, by whatever program.
    pub fn cache_changed(&mut self, server: &ServerName, write: &CacheWrite) {
        let text = match write {
            CacheWrite::Everything => format!("all of {server} was written"),
            CacheWrite::Keys(keys) => {
                let first = keys.first().map_or(&b""[..], |key| key);
                format!(
                    "{} was written or has ended",
                    crate::php_report::shown(first)
                )
            }
        };
        self.note_foreign_write(server, write, text);
    }

    /// Another program may have written this: that explains why pages of it were others.
    fn note_foreign_write(&mut self, server: &ServerName, write: &CacheWrite, text: String) {
        let (pages, is_read) = self.suspect_readers(server, write, text);
        self.moves += u64::from(is_read);
        let pages = pages.iter().filter_map(|number| self.pages.get(*number));
        let explained = self.differing.cache_written(pages.map(|page| &page.name));
        self.trials.polled(&explained, &[]);
    }

    /// The server has answered a question that was put then: all writes before it are known.
    pub fn cache_asked(&mut self, began: Instant) {
        let unexplained = self.differing.cache_asked(began);
        self.trials.polled(&[], &unexplained);
    }

    /// It is followed from now on, or not any more. What was written before it was is known of none.
    pub fn note_cache(&mut self, server: &ServerName, state: CacheState) {
        let Some(cache) = self.cache(server) else {
            return;
        };
        let is_followed = state == CacheState::Followed;
        cache.state = state;
        if is_followed {
            let text = format!("{server} is followed from now on");
            self.note_foreign_write(server, &CacheWrite::Everything, text);
            self.moves += 1;
        }
    }

    /// Keys whose lifetimes the server is asked for.
    pub fn keys_to_ask(&mut self, server: &ServerName, most: usize) -> Vec<CacheKey> {
        let cache = self.caches.of(server);
        cache.map_or_else(Vec::new, |cache| cache.take_to_ask(most))
    }

    /// Forgets the lifetimes of keys that no page is made of.
    pub fn forget_unread_keys(&mut self, server: &ServerName) {
        if let Some(cache) = self.caches.of(server) {
            cache.forget_unread();
        }
    }

    pub fn knows_key(&mut self, server: &ServerName, key: &CacheKey) -> bool {
        let cache = self.caches.of(server);
        cache.is_some_and(|cache| cache.knows(key))
    }

    pub fn set_lifetimes(&mut self, server: &ServerName, lifetimes: &[(CacheKey, Lifetime)]) {
        if let Some(cache) = self.caches.of(server) {
            lifetimes
                .iter()
                .for_each(|(key, lifetime)| cache.set_lifetime(key, *lifetime));
        }
    }

    pub fn has_cache(&self, number: u32) -> bool {
        let page = self.pages.get(number);
        page.is_some_and(|page| page.cache.is_some())
    }

    /// Whether what a page read there is followed, and until when it lives. `Err`: why not, for people.
    pub(super) fn follow_cache(
        &mut self,
        read: &mut CacheRead,
        now: Instant,
    ) -> Result<(), WhyNot> {
        let cache = self.cache(&read.server);
        let too_many = || WhyNot::unpolled(format!("more object caches than {MAX_CACHES}"));
        let cache = cache.ok_or_else(too_many)?;
        read.ends_at = cache.first_end(&read.keys, now)?;
        if self.caches.count() > 1 {
            return Err(WhyNot::unpolled("PHP uses several object caches"));
        }
        match self.has_nodes {
            true => Err(WhyNot::unpolled(
                "writes to the object cache are not shared with other machines",
            )),
            false => Ok(()),
        }
    }

    /// `false`: what it read was written since its fetch began.
    pub(super) fn insert_into_cache(
        &mut self,
        number: u32,
        read: &CacheRead,
        then: &[u64],
    ) -> bool {
        let begun = self.caches.begun(&read.server, then);
        let cache = self.caches.of(&read.server);
        cache.is_some_and(|cache| cache.insert(number, begun, &read.keys))
    }

    /// Suspects a page one of whose keys has ended.
    pub(super) fn ask_cache(&mut self, number: u32, now: Instant) {
        let page = self.pages.get(number);
        let ends_at = page.and_then(|page| page.cache.as_ref()?.ends_at);
        if ends_at.is_some_and(|end| end <= now) {
            let text = "a key of the object cache has ended".to_owned();
            self.suspect(number, &Arc::new(Cause { text, at: now }), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::announced::WriteNumber;
    use crate::book::tests::{end, state, write};
    use crate::book::{Confirmation, LearnedEnd, PageEnd, Showing};
    use crate::record::{Reason, RunRecord, SentWrite};

    const CACHE: &str = "127.0.0.1:6379";
    const NUMBER: WriteNumber = (1, 1);

    fn server() -> ServerName {
        CACHE.into()
    }

    fn key(name: &str) -> CacheKey {
        CacheKey {
            database: 0,
            key: name.as_bytes().into(),
        }
    }

    fn reads(names: &[&str]) -> RunRecord {
        RunRecord {
            cache: Some((server(), names.iter().map(|name| key(name)).collect())),
            ..RunRecord::default()
        }
    }

    fn keys(names: &[&str]) -> CacheWrite {
        CacheWrite::Keys(names.iter().map(|name| name.as_bytes().into()).collect())
    }

    fn sets(name: &str) -> SentWrite {
        SentWrite {
            server: server(),
            cache: Some(keys(&[name])),
            ..write(&format!("SET {name}"))
        }
    }

    /// A page that is kept if it can be.
    fn kept(book: &Book, digest: u64) -> PageEnd {
        let mut end = end(book, digest);
        end.page.keep = Some(Box::new(|time, _| Some(time)));
        end
    }

    /// A book that follows the cache, and knows how long these keys live.
    fn following(lifetimes: &[(&str, Lifetime)]) -> Book {
        let mut book = Book::default();
        book.note_cache(&server(), CacheState::Followed);
        let names: Vec<_> = lifetimes.iter().map(|(name, _)| key(name)).collect();
        let cache = book.caches.of(&server()).unwrap();
        let _ = cache.first_end(&names, Instant::now());
        cache.take_to_ask(names.len());
        let known = lifetimes.iter().map(|(name, it)| (key(name), *it));
        book.set_lifetimes(&server(), &known.collect::<Vec<_>>());
        book
    }

    fn learned(book: &mut Book, end: &PageEnd, record: RunRecord, now: Instant) -> Showing {
        let learned = book.learn(end, Some(record), now);
        book.showing(learned)
    }

    type Change<'a> = &'a dyn Fn(&mut Book);

    #[test]
    fn a_page_is_suspect_once_one_of_its_keys_is_written_by_whomever() {
        let now = Instant::now();
        let changes: [(&str, Change<'_>); 4] = [
            ("announced", &|book| {
                book.announced(NUMBER, &[sets("b")].into(), Instant::now());
            }),
            ("another program", &|book| {
                book.cache_changed(&server(), &keys(&["x", "b"]));
            }),
            ("flushed", &|book| {
                book.cache_changed(&server(), &CacheWrite::Everything);
            }),
            ("not followed for a while", &|book| {
                book.note_cache(&server(), CacheState::NotFollowed("why".into()));
                book.note_cache(&server(), CacheState::Followed);
            }),
        ];
        for (name, change) in changes {
            let unlimited = Lifetime::Unlimited;
            let mut book = following(&[("a", unlimited), ("b", unlimited)]);
            let end = kept(&book, 1);
            assert_eq!(
                learned(&mut book, &end, reads(&["a", "b"]), now),
                Showing::Kept
            );
            book.announced((1, 2), &[sets("c")].into(), now);
            book.cache_changed(&server(), &keys(&["c"]));
            assert_eq!(state(&mut book, now), None, "{name}");
            let moves = book.moves();
            change(&mut book);
            assert!(state(&mut book, now).is_some(), "{name}");
            assert!(book.moves() > moves, "{name}: hits ask");
        }
    }

    #[test]
    fn a_page_that_was_another_while_the_cache_was_not_followed_is_explained_by_that() {
        let now = Instant::now();
        let mut book = following(&[("a", Lifetime::Unlimited)]);
        for (is_lost, differs) in [(true, false), (false, true)] {
            for digest in [1, 2] {
                let end = kept(&book, digest);
                learned(&mut book, &end, reads(&["a"]), now);
            }
            if is_lost {
                book.note_cache(&server(), CacheState::NotFollowed("why".into()));
                book.note_cache(&server(), CacheState::Followed);
            }
            book.cache_asked(now);
            let name = kept(&book, 1).page.name;
            assert_eq!(book.differing.has(&name, now), differs);
            let end = kept(&book, 1);
            learned(&mut book, &end, reads(&["a"]), now);
        }
    }

    #[test]
    fn a_page_that_was_made_while_a_key_was_written_is_not_shown() {
        let now = Instant::now();
        let end_of = |book: &mut Book, end: &PageEnd| book.learn(end, Some(reads(&["a"])), now);
        let mut book = following(&[("a", Lifetime::Unlimited)]);
        let end = kept(&book, 1);
        book.cache_changed(&server(), &keys(&["a"]));
        assert_eq!(end_of(&mut book, &end), LearnedEnd::Gone);
        // It may be written at any moment.
        book.announced(NUMBER, &[sets("a")].into(), now);
        let end = kept(&book, 1);
        assert_eq!(end_of(&mut book, &end), LearnedEnd::Gone);
        book.answered(NUMBER, &[sets("a")]);
        assert_eq!(end_of(&mut book, &end), LearnedEnd::Gone);
        let end = kept(&book, 1);
        assert!(matches!(end_of(&mut book, &end), LearnedEnd::Known(..)));
    }

    #[test]
    fn a_page_is_kept_no_longer_than_its_first_key_and_not_without_knowing_that() {
        let now = Instant::now();
        let end_of_key = now + Duration::from_secs(7);
        let known = [
            ("a", Lifetime::Unlimited),
            ("b", Lifetime::Until(end_of_key)),
        ];
        let mut book = following(&known);
        let page = kept(&book, 1);
        assert_eq!(
            learned(&mut book, &page, reads(&["a", "b"]), now),
            Showing::Kept
        );
        let (number, _) = book.pages.named(&page.page.name).unwrap();
        assert_eq!(book.kept_for(number, now), Duration::from_secs(7));
        assert_eq!(state(&mut book, now), None);
        assert!(state(&mut book, end_of_key).is_some());
        let page = kept(&book, 1);
        let unknown = learned(&mut book, &page, reads(&["a", "c"]), now);
        assert_eq!(unknown, Showing::Ordinary);
        book.keys_to_ask(&server(), 9);
        book.set_lifetimes(&server(), &[(key("c"), Lifetime::Unlimited)]);
        let page = kept(&book, 1);
        assert_eq!(
            learned(&mut book, &page, reads(&["a", "c"]), now),
            Showing::Kept
        );
        book.has_nodes = true;
        let page = kept(&book, 1);
        let on_nodes = learned(&mut book, &page, reads(&["a", "c"]), now);
        assert_eq!(on_nodes, Showing::Ordinary);
    }

    #[test]
    fn pages_of_a_cache_that_is_not_followed_and_of_two_are_not_kept() {
        let now = Instant::now();
        let mut book = following(&[("a", Lifetime::Unlimited)]);
        book.note_cache(&server(), CacheState::NotFollowed("why".into()));
        let page = kept(&book, 1);
        assert_eq!(
            learned(&mut book, &page, reads(&["a"]), now),
            Showing::Ordinary
        );
        let mut book = following(&[("a", Lifetime::Unlimited)]);
        let page = kept(&book, 1);
        assert_eq!(learned(&mut book, &page, reads(&["a"]), now), Showing::Kept);
        let (number, known) = book.pages.named(&page.page.name).unwrap();
        let (fetch, moves) = (known.fetch, book.moves());
        assert_eq!(book.confirm(number, fetch, now), Confirmation::Good(moves));
        book.note_cache(&"127.0.0.1:6380".into(), CacheState::Followed);
        assert!(book.moves() > moves, "hits ask");
        assert_eq!(book.confirm(number, fetch, now), Confirmation::Outdated);
        let page = kept(&book, 1);
        assert_eq!(
            learned(&mut book, &page, reads(&["a"]), now),
            Showing::Ordinary
        );
        // One that writes is not known at all.
        let obstacle = Some(WhyNot::new(Reason::OwnWrite, "SET a"));
        let fills = RunRecord {
            obstacle,
            ..reads(&["a"])
        };
        let page = kept(&book, 1);
        assert_eq!(book.learn(&page, Some(fills), now), LearnedEnd::Free);
    }

    #[test]
    fn a_command_by_another_address_concerns_all_that_is_known() {
        let now = Instant::now();
        let mut book = following(&[("a", Lifetime::Unlimited)]);
        let page = kept(&book, 1);
        learned(&mut book, &page, reads(&["a"]), now);
        let elsewhere = SentWrite {
            server: "10.0.0.1:6379".into(),
            ..sets("z")
        };
        let counted = book.of_known_servers(&[elsewhere]);
        assert_eq!(counted.len(), 1);
        book.announced(NUMBER, &counted, now);
        assert!(state(&mut book, now).is_some());
    }
}
