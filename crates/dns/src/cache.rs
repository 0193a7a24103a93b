//! Remembered answers, and the names that are being asked for.
//!
//! The resolver's lock guards it. Nothing here waits or reads a clock.
//! Invariant: at most [`MAX_NAMES`] entries, and none is handed out past its time.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::Millis;
use crate::error::Fault;
use crate::message::Service;

/// Names remembered and under way. Names come from requests (`proxy_pass
/// http://$host`), so there has to be an end: this many take a few megabytes.
const MAX_NAMES: usize = 10_000;

/// The key of a lookup: a name in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Addresses(String),
    Services(String),
    /// The name that stands for the address.
    Hosts(String),
}

/// The records of a successful lookup.
#[derive(Clone, Debug)]
pub(crate) enum DnsAnswer {
    Addresses(Arc<[std::net::IpAddr]>),
    Services(Arc<[Service]>),
    Hosts(Arc<[String]>),
}

/// An answer and the end of its time.
#[derive(Clone, Debug)]
pub(crate) struct TimedAnswer {
    pub found: DnsAnswer,
    pub valid_until: Millis,
}

/// The channel on which the task that asks sends its result to all waiting
/// requests.
pub(crate) type Flight = Arc<watch::Sender<Option<Result<TimedAnswer, Fault>>>>;

#[derive(Debug)]
enum Entry {
    Known(TimedAnswer),
    UnderWay(Flight),
}

#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: HashMap<Key, Entry>,
}

/// The result of a lookup in the cache.
#[derive(Debug)]
pub(crate) enum CacheLookup {
    Known(TimedAnswer),
    UnderWay(Flight),
    /// Not known: the caller announces a [`Flight`] and asks.
    Unknown,
    /// No room for another name.
    Full,
}

impl Cache {
    pub fn look(&mut self, key: &Key, now: Millis) -> CacheLookup {
        match self.entries.get(key) {
            Some(Entry::Known(timed)) if now < timed.valid_until => {
                return CacheLookup::Known(timed.clone());
            }
            Some(Entry::UnderWay(flight)) => return CacheLookup::UnderWay(flight.clone()),
            Some(Entry::Known(_)) => return CacheLookup::Unknown,
            None => {}
        }
        if self.has_room(now) {
            CacheLookup::Unknown
        } else {
            CacheLookup::Full
        }
    }

    /// Makes room for a name, if it must by forgetting outdated answers, or else
    /// all answers.
    fn has_room(&mut self, now: Millis) -> bool {
        if self.entries.len() < MAX_NAMES {
            return true;
        }
        let is_current =
            |entry: &Entry| !matches!(entry, Entry::Known(timed) if timed.valid_until <= now);
        self.entries.retain(|_, entry| is_current(entry));
        if self.entries.len() >= MAX_NAMES {
            self.entries
                .retain(|_, entry| matches!(entry, Entry::UnderWay(_)));
        }
        self.entries.len() < MAX_NAMES
    }

    pub fn announce(&mut self, key: Key, flight: Flight) {
        self.entries.insert(key, Entry::UnderWay(flight));
    }

    /// Ends `flight`, and keeps its answer if that is worth it.
    pub fn land(&mut self, key: &Key, flight: &Flight, found: Option<TimedAnswer>) {
        let is_this = matches!(
            self.entries.get(key),
            Some(Entry::UnderWay(current)) if Arc::ptr_eq(current, flight)
        );
        if !is_this {
            return;
        }
        match found {
            Some(timed) => drop(self.entries.insert(key.clone(), Entry::Known(timed))),
            None => drop(self.entries.remove(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key::Addresses(format!("{number}.example"))
    }

    fn fill(cache: &mut Cache, valid_until: Millis) {
        for number in 0..MAX_NAMES {
            let flight: Flight = Arc::new(watch::Sender::new(None));
            cache.announce(key(number), flight.clone());
            let found = DnsAnswer::Addresses([[127, 0, 0, 1].into()].into());
            cache.land(
                &key(number),
                &flight,
                Some(TimedAnswer { found, valid_until }),
            );
        }
    }

    #[test]
    fn an_answer_is_known_until_its_time_is_over() {
        let mut cache = Cache::default();
        fill(&mut cache, 100);
        assert!(matches!(cache.look(&key(7), 99), CacheLookup::Known(_)));
        assert!(matches!(cache.look(&key(7), 100), CacheLookup::Unknown));
    }

    #[test]
    fn a_full_cache_forgets_answers_but_no_questions_under_way() {
        let mut cache = Cache::default();
        fill(&mut cache, 100);
        assert!(matches!(
            cache.look(&key(MAX_NAMES), 0),
            CacheLookup::Unknown
        ));
        assert!(cache.entries.is_empty());
        for number in 0..MAX_NAMES {
            cache.announce(key(number), Arc::new(watch::Sender::new(None)));
        }
        assert!(matches!(cache.look(&key(MAX_NAMES), 0), CacheLookup::Full));
        assert!(matches!(cache.look(&key(0), 0), CacheLookup::UnderWay(_)));
    }
}
