//! The object caches (Redis, Valkey, memcached) that pages were made of: which page read which key, and when a key was last written.
//!
//! ```text
//! page ─► keys (by their hashes) ─► pages of a key      a write of a key makes its pages suspect for good
//!                │
//!                └─► lifetimes: asked of the server once, and again after each write of the key
//! ```
//!
//! Writes come from the library, before and after the command, and from the server itself ([`crate::tracker`]). Pure: the
//! time is passed in. A key counts by its bytes alone, in whatever database it lies: the server does not say which one it
//! means. What a key holds is not kept. A hash that two keys have widens what a write concerns.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use crate::record::{CacheKey, CacheWrite, ServerName, WhyNot};

/// Object caches of one pool. Pages of further ones are not learned; with more than one, pages are not kept.
pub const MAX_CACHES: usize = 4;

/// Keys whose lifetimes are known, and bytes of their names.
const MAX_KEYS: usize = 100_000;
const MAX_KEYS_BYTES: usize = 16 << 20;

/// The last writes of keys are kept by so many bits of their hashes.
const SLOT_BITS: u32 = 18;

/// How long a key lives, as the server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    Unlimited,
    Until(Instant),
}

struct KnownKey {
    key: CacheKey,
    lifetime: Option<Lifetime>,
    /// The server is being asked, and the key was not written since.
    is_asked: bool,
}

impl KnownKey {
    fn forget(&mut self) {
        (self.lifetime, self.is_asked) = (None, false);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Its writes are seen.
    Followed,
    /// Why they are not, for people.
    NotFollowed(Arc<str>),
}

pub struct Cache {
    pub server: ServerName,
    pub state: CacheState,
    hasher: RandomState,
    /// Counts writes.
    writes: u64,
    /// The last write that may concern any key.
    everything: u64,
    /// The last write of a key, by a part of its hash.
    slots: Box<[u64]>,
    pages_of_keys: HashMap<u64, Vec<u32>>,
    keys_of_pages: HashMap<u32, Box<[u64]>>,
    lifetimes: HashMap<u64, Vec<KnownKey>>,
    known_keys: usize,
    known_bytes: usize,
    to_ask: HashSet<CacheKey>,
}

impl Cache {
    fn new(server: ServerName) -> Cache {
        Cache {
            server,
            state: CacheState::NotFollowed("it is followed from now on".into()),
            hasher: RandomState::new(),
            writes: 0,
            everything: 0,
            slots: vec![0; 1 << SLOT_BITS].into(),
            pages_of_keys: HashMap::new(),
            keys_of_pages: HashMap::new(),
            lifetimes: HashMap::new(),
            known_keys: 0,
            known_bytes: 0,
            to_ask: HashSet::new(),
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn slot(&mut self, hash: u64) -> Option<&mut u64> {
        let slot = usize::try_from(hash >> (64 - SLOT_BITS)).ok()?;
        self.slots.get_mut(slot)
    }

    /// Is a page made of it, or was one a while ago?
    fn is_read(&self, hash: u64) -> bool {
        self.pages_of_keys.contains_key(&hash) || self.lifetimes.contains_key(&hash)
    }

    /// Takes a write. Returns the pages that it concerns, and whether one was ever made of what was written.
    pub fn written(&mut self, write: &CacheWrite) -> (Vec<u32>, bool) {
        self.writes += 1;
        let number = self.writes;
        let CacheWrite::Keys(keys) = write else {
            self.everything = number;
            self.forget_lifetimes();
            return (self.keys_of_pages.keys().copied().collect(), true);
        };
        let (mut pages, mut is_read) = (Vec::new(), false);
        for key in keys.iter() {
            let hash = self.hash(key);
            if let Some(slot) = self.slot(hash) {
                *slot = number;
            }
            is_read |= self.is_read(hash);
            pages.extend(self.pages_of_keys.get(&hash).into_iter().flatten());
            for known in self.lifetimes.get_mut(&hash).into_iter().flatten() {
                known.forget();
                self.to_ask.insert(known.key.clone());
            }
        }
        pages.sort_unstable();
        pages.dedup();
        (pages, is_read)
    }

    fn forget_lifetimes(&mut self) {
        for known in self.lifetimes.values_mut().flatten() {
            known.forget();
            self.to_ask.insert(known.key.clone());
        }
    }

    /// Was one of these keys written after this write?
    fn was_written_since(&mut self, begun: u64, hashes: &[u64]) -> bool {
        let is_later = |number: Option<&mut u64>| number.is_none_or(|number| *number > begun);
        self.everything > begun || hashes.iter().any(|hash| is_later(self.slot(*hash)))
    }

    /// Learns a page whose fetch began after the write `begun`. `false`: a key was written since.
    #[must_use]
    pub fn insert(&mut self, page: u32, begun: u64, keys: &[CacheKey]) -> bool {
        let mut hashes: Vec<u64> = keys.iter().map(|it| self.hash(&it.key)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        if self.was_written_since(begun, &hashes) {
            return false;
        }
        for hash in &hashes {
            self.pages_of_keys.entry(*hash).or_default().push(page);
        }
        self.keys_of_pages.insert(page, hashes.into());
        true
    }

    pub fn remove(&mut self, page: u32) {
        for hash in self.keys_of_pages.remove(&page).into_iter().flatten() {
            if let Some(pages) = self.pages_of_keys.get_mut(&hash) {
                pages.retain(|it| *it != page);
                if pages.is_empty() {
                    self.pages_of_keys.remove(&hash);
                }
            }
        }
    }

    /// When the first of these keys ends by itself; `None`: none does. `Err`: it is not known, and asked for from now on.
    pub fn first_end(
        &mut self,
        keys: &[CacheKey],
        now: Instant,
    ) -> Result<Option<Instant>, WhyNot> {
        let (mut first, mut unknown) = (None, None);
        for key in keys {
            match self.lifetime(key, now) {
                Some(Lifetime::Unlimited) => {}
                Some(Lifetime::Until(end)) => first = Some(first.map_or(end, |it| end.min(it))),
                None => unknown = unknown.or(Some(key)),
            }
        }
        match (&self.state, unknown) {
            (CacheState::NotFollowed(why), _) => {
                Err(WhyNot::unpolled(format!("{}: {why}", self.server)))
            }
            (CacheState::Followed, Some(key)) => {
                let shown = crate::php_report::shown(&key.key);
                let detail = format!("{shown}: its lifetime is asked for from now on");
                Err(WhyNot::unpolled(detail))
            }
            (CacheState::Followed, None) => Ok(first),
        }
    }

    fn lifetime(&mut self, key: &CacheKey, now: Instant) -> Option<Lifetime> {
        let hash = self.hash(&key.key);
        let known = self.lifetimes.entry(hash).or_default();
        match known.iter_mut().find(|it| it.key == *key) {
            Some(it) => match it.lifetime {
                Some(Lifetime::Until(end)) if end <= now => it.lifetime = None,
                Some(lifetime) => return Some(lifetime),
                None => {}
            },
            None if self.known_keys >= MAX_KEYS || self.known_bytes >= MAX_KEYS_BYTES => {
                self.forget_unread();
                return None;
            }
            None => {
                self.known_keys += 1;
                self.known_bytes += key.key.len();
                known.push(KnownKey {
                    key: key.clone(),
                    lifetime: None,
                    is_asked: false,
                });
            }
        }
        self.to_ask.insert(key.clone());
        None
    }

    /// Was the server asked for this key, or is it to be?
    pub fn knows(&self, key: &CacheKey) -> bool {
        let known = self.lifetimes.get(&self.hash(&key.key));
        known.is_some_and(|known| known.iter().any(|it| it.key == *key))
    }

    /// Makes room: keys that no page is made of now are asked for again when one is.
    pub fn forget_unread(&mut self) {
        let pages_of_keys = &self.pages_of_keys;
        self.lifetimes
            .retain(|hash, _| pages_of_keys.contains_key(hash));
        self.known_keys = self.lifetimes.values().map(Vec::len).sum();
        let keys = self.lifetimes.values().flatten();
        self.known_bytes = keys.map(|it| it.key.key.len()).sum();
        let lifetimes = &self.lifetimes;
        let hasher = &self.hasher;
        self.to_ask
            .retain(|it| lifetimes.contains_key(&hasher.hash_one(&*it.key)));
    }

    /// Takes up to `most` keys whose lifetimes the server is asked for.
    pub fn take_to_ask(&mut self, most: usize) -> Vec<CacheKey> {
        let keys: Vec<CacheKey> = self.to_ask.iter().take(most).cloned().collect();
        for key in &keys {
            self.to_ask.remove(key);
            if let Some(known) = self.known(key) {
                known.is_asked = true;
            }
        }
        keys
    }

    /// Takes an answer, unless the key was written after the question: the answer may be of before.
    pub fn set_lifetime(&mut self, key: &CacheKey, lifetime: Lifetime) {
        if let Some(known) = self.known(key).filter(|it| it.is_asked) {
            (known.lifetime, known.is_asked) = (Some(lifetime), false);
        }
    }

    fn known(&mut self, key: &CacheKey) -> Option<&mut KnownKey> {
        let hash = self.hash(&key.key);
        let mut known = self.lifetimes.get_mut(&hash)?.iter_mut();
        known.find(|it| it.key == *key)
    }
}

#[derive(Default)]
pub struct Caches(Vec<Cache>);

impl Caches {
    /// `None`: there are too many.
    pub fn of(&mut self, server: &ServerName) -> Option<&mut Cache> {
        let known = self.0.iter().position(|it| it.server == *server);
        let at = match known {
            Some(at) => at,
            None if self.0.len() < MAX_CACHES => {
                self.0.push(Cache::new(server.clone()));
                self.0.len() - 1
            }
            None => return None,
        };
        self.0.get_mut(at)
    }

    pub fn has(&self, server: &ServerName) -> bool {
        self.0.iter().any(|it| it.server == *server)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn servers(&self) -> Vec<ServerName> {
        self.0.iter().map(|it| it.server.clone()).collect()
    }

    /// How many writes each has seen, in the order in which they were met.
    pub fn writes(&self) -> Box<[u64]> {
        self.0.iter().map(|it| it.writes).collect()
    }

    /// How many writes this one had seen then. One that was not met yet had seen none.
    pub fn begun(&self, server: &ServerName, then: &[u64]) -> u64 {
        let at = self.0.iter().position(|it| it.server == *server);
        at.and_then(|at| then.get(at)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(name: &str) -> CacheKey {
        CacheKey {
            database: 0,
            key: name.as_bytes().into(),
        }
    }

    fn write(names: &[&str]) -> CacheWrite {
        let keys = names.iter().map(|name| name.as_bytes().into());
        CacheWrite::Keys(keys.collect())
    }

    fn cache() -> Cache {
        let mut cache = Cache::new("127.0.0.1:6379".into());
        cache.state = CacheState::Followed;
        cache
    }

    #[test]
    fn a_write_concerns_the_pages_of_its_key_and_one_of_anything_all() {
        let mut cache = cache();
        assert!(cache.insert(1, 0, &[key("a"), key("b")]));
        assert!(cache.insert(2, 0, &[key("b")]));
        assert!(cache.insert(3, 0, &[]));
        assert_eq!(cache.written(&write(&["a"])), (vec![1], true));
        assert_eq!(cache.written(&write(&["a", "b"])), (vec![1, 2], true));
        assert_eq!(cache.written(&write(&["c"])), (vec![], false));
        let (mut all, _) = cache.written(&CacheWrite::Everything);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
        cache.remove(1);
        assert_eq!(cache.written(&write(&["a"])), (vec![], false));
        assert_eq!(cache.written(&write(&["b"])), (vec![2], true));
        cache.remove(2);
        assert!(cache.pages_of_keys.is_empty());
    }

    #[test]
    fn a_page_of_which_a_key_was_written_meanwhile_is_not_learned() {
        let mut cache = cache();
        cache.written(&write(&["a"]));
        let begun = cache.writes;
        assert!(cache.insert(1, begun, &[key("a")]));
        cache.written(&write(&["a"]));
        assert!(!cache.insert(2, begun, &[key("a")]));
        assert!(cache.insert(3, begun, &[key("b")]));
        cache.written(&CacheWrite::Everything);
        assert!(!cache.insert(4, begun, &[key("b")]));
        assert!(cache.insert(5, cache.writes, &[key("b")]));
    }

    #[test]
    fn a_lifetime_is_known_until_its_key_is_written_or_ends() {
        let (mut cache, now) = (cache(), Instant::now());
        let (end, later) = (now + Duration::from_secs(5), now + Duration::from_secs(9));
        let keys = [key("a"), key("b"), key("c")];
        assert!(cache.first_end(&keys, now).is_err());
        assert_eq!(cache.take_to_ask(9).len(), 3);
        assert!(cache.take_to_ask(9).is_empty());
        cache.set_lifetime(&keys[0], Lifetime::Unlimited);
        cache.set_lifetime(&keys[1], Lifetime::Until(later));
        assert!(cache.first_end(&keys, now).is_err(), "one is missing");
        cache.set_lifetime(&keys[2], Lifetime::Until(end));
        assert_eq!(cache.first_end(&keys, now), Ok(Some(end)));
        assert_eq!(cache.first_end(&keys[..1], now), Ok(None));
        assert!(cache.first_end(&keys, end).is_err(), "it has ended");
        cache.take_to_ask(9);
        cache.set_lifetime(&keys[2], Lifetime::Unlimited);
        assert_eq!(cache.first_end(&keys, now), Ok(Some(later)));
        cache.written(&write(&["a"]));
        assert!(cache.first_end(&keys, now).is_err());
        assert_eq!(cache.take_to_ask(9), [key("a")]);
        // It is written once more before the answer comes.
        cache.written(&write(&["a"]));
        cache.set_lifetime(&keys[0], Lifetime::Unlimited);
        assert!(cache.first_end(&keys, now).is_err());
        assert_eq!(cache.take_to_ask(9), [key("a")]);
        cache.set_lifetime(&keys[0], Lifetime::Unlimited);
        assert_eq!(cache.first_end(&keys, now), Ok(Some(later)));
        // The same key in another database is another one.
        let other = CacheKey {
            database: 1,
            key: b"b"[..].into(),
        };
        assert!(cache.first_end(&[other], now).is_err());
        cache.written(&CacheWrite::Everything);
        assert!(cache.first_end(&keys[1..2], now).is_err());
        cache.take_to_ask(9);
        cache.set_lifetime(&keys[1], Lifetime::Unlimited);
        cache.state = CacheState::NotFollowed("why".into());
        assert_eq!(
            cache.first_end(&keys[1..2], now),
            Err(WhyNot::unpolled("127.0.0.1:6379: why"))
        );
    }
}
