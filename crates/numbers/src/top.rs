//! The most frequent names, of more than can be kept, by the "space saving" algorithm of Metwally,
//! Agrawal and El Abbadi (2005): a new name takes the room of the least frequent one and inherits its
//! weight, so that truly frequent names stay.
//!
//! Two halves of an hour are kept, so that old counts are forgotten.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

/// Names that are kept in each half.
const ROOM: usize = 128;
/// Bytes of a name that are kept.
const MAX_NAME_BYTES: usize = 200;
/// How long a half lasts.
const HALF_MS: u64 = 1_800_000;
/// Children of a place in the heap: with 8, a name passes three places on its way to the end.
const CHILDREN: usize = 8;
/// Hashes that are compared at a time.
const AT_A_TIME: usize = 16;
/// Names that are handed out.
const SHOWN: usize = 20;

/// The first among names, by weight.
#[derive(Debug, Default)]
pub struct Top {
    now: Half,
    before: Half,
    began_at: u64,
}

/// The names of half an hour. Both lists have the order of a heap: the lightest is the first, and
/// nothing weighs less than its parent, which stands at an eighth of its place. The hashes stand side
/// by side: a name is looked for in these.
#[derive(Debug, Default)]
struct Half {
    hashes: Vec<u32>,
    kept: Vec<KeptName>,
}

/// A name, and its weight.
#[derive(Debug, PartialEq)]
struct KeptName {
    name: Vec<u8>,
    count: u64,
    weight: u64,
}

/// A page, or a page and a reason, as it is handed out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopEntry {
    pub name: String,
    pub count: u64,
    /// The weight by which the list is sorted: milliseconds, for cost.
    pub weight: u64,
}

/// The pages that stand out, of the last half hour to hour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pages {
    /// By the time that requests waited for an upstream, in milliseconds.
    pub costly: Vec<TopEntry>,
    /// By hits; of many, some are looked at, and count for the others. `count` is those.
    pub wanted: Vec<TopEntry>,
    /// By requests that were not stored, or did not ask the cache; the reason stands behind the page.
    pub not_stored: Vec<TopEntry>,
    /// Statements of learned pages that writes concern, by the pages that became suspect. `count` are
    /// the writes.
    #[serde(default)]
    pub noisy: Vec<TopEntry>,
    /// The clients that use PHP, by milliseconds in the last minute; `count` is those of the last
    /// hour.
    #[serde(default)]
    pub clients: Vec<TopEntry>,
    /// The same by class, network, program and kind of page, with the limits in force.
    #[serde(default)]
    pub uses: Vec<TopEntry>,
}

impl Top {
    /// Counts `name` once more, at `now` (milliseconds).
    pub fn add(&mut self, name: &[u8], weight: u64, now: u64) {
        if now.saturating_sub(self.began_at) >= HALF_MS {
            let is_recent = now.saturating_sub(self.began_at) < 2 * HALF_MS;
            let last = std::mem::take(&mut self.now);
            self.before = if is_recent { last } else { Half::default() };
            self.began_at = now;
        }
        let name = name.get(..MAX_NAME_BYTES).unwrap_or(name);
        self.now.add(name, weight);
    }

    /// Returns the names of the halves that still count at `now`.
    fn kept(&self, now: u64) -> impl Iterator<Item = &KeptName> {
        let is_over = |ms: u64| now.saturating_sub(self.began_at) >= ms;
        let (is_now_over, is_before_over) = (is_over(2 * HALF_MS), is_over(HALF_MS));
        let recent = self.now.kept.iter().filter(move |_| !is_now_over);
        let before = self.before.kept.iter().filter(move |_| !is_before_over);
        recent.chain(before)
    }
}

/// The first of several together.
#[must_use]
pub fn first_of<'t>(all: impl IntoIterator<Item = &'t Top>, now: u64) -> Vec<TopEntry> {
    // Room for those of one thread; more is made where several have others.
    let mut sums: HashMap<&[u8], (u64, u64), _> =
        HashMap::with_capacity_and_hasher(2 * ROOM, FixedState::default());
    for kept in all.into_iter().flat_map(|top| top.kept(now)) {
        let (weight, count) = sums.entry(&kept.name).or_default();
        *weight += kept.weight;
        *count += kept.count;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    let order = |&(name, (weight, _)): &(_, (u64, _))| (Reverse(weight), name);
    if sums.len() > SHOWN {
        sums.select_nth_unstable_by_key(SHOWN, order);
        sums.truncate(SHOWN);
    }
    sums.sort_unstable_by_key(order);
    sums.into_iter()
        .map(|(name, (weight, count))| TopEntry {
            name: match std::str::from_utf8(name) {
                Ok(name) => name.to_owned(),
                Err(_) => String::from_utf8_lossy(name).into_owned(),
            },
            count,
            weight,
        })
        .collect()
}

impl Half {
    fn add(&mut self, name: &[u8], weight: u64) {
        let hash = hash(name);
        if let Some(at) = self.find(hash, name) {
            self.kept[at].count += 1;
            self.kept[at].weight += weight;
            self.sink(at);
        } else if self.kept.len() < ROOM {
            self.hashes.push(hash);
            self.kept.push(KeptName {
                name: name.to_vec(),
                count: 1,
                weight,
            });
            self.rise(self.kept.len() - 1);
        } else if let (Some(its_hash), Some(least)) =
            (self.hashes.first_mut(), self.kept.first_mut())
        {
            *its_hash = hash;
            least.name.clear();
            least.name.extend_from_slice(name);
            least.count = 1;
            least.weight += weight;
            self.sink(0);
        }
    }

    fn find(&self, hash: u32, name: &[u8]) -> Option<usize> {
        // Several at a time: without a way out in between, the compiler compares them at once.
        let is_here = |hashes: &[u32]| hashes.iter().fold(false, |is, &its| is | (its == hash));
        let mut chunks = self.hashes.chunks(AT_A_TIME);
        let chunk = chunks.position(is_here)?;
        // Two names with one hash are so rare that the second counts as a newcomer each time.
        let rest = &self.hashes[chunk * AT_A_TIME..];
        let at = chunk * AT_A_TIME + rest.iter().position(|&its| its == hash)?;
        self.kept.get(at).filter(|kept| kept.name == name)?;
        Some(at)
    }

    /// Moves a name that became heavier behind the lighter ones.
    fn sink(&mut self, mut at: usize) {
        loop {
            let first = CHILDREN * at + 1;
            let children = first..(first + CHILDREN).min(self.kept.len());
            let Some(lighter) = children.min_by_key(|&child| self.kept[child].weight) else {
                return;
            };
            if self.kept[at].weight <= self.kept[lighter].weight {
                return;
            }
            self.swap(at, lighter);
            at = lighter;
        }
    }

    /// Moves a new name before the heavier ones.
    fn rise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.kept[parent].weight <= self.kept[at].weight {
                return;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.hashes.swap(one, other);
        self.kept.swap(one, other);
    }
}

/// A client that chooses two names with one hash gains nothing: at worst one is missing in a list.
fn hash(name: &[u8]) -> u32 {
    FixedState::default().hash_one(name) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frequent_stays_whatever_else_comes() {
        let mut top = Top::default();
        for round in 0..10_000_u64 {
            top.add(format!("/only-once/{round}").as_bytes(), 1, 0);
            if round % 10 == 0 {
                top.add(b"/often", 5, 0);
            }
        }
        let first = first_of([&top], 0);
        assert_eq!(first[0].name, "/often");
        assert!(first[0].weight >= 5000, "{:?}", first[0]);
        assert_eq!(first.len(), SHOWN);
        assert_eq!(top.now.kept.len(), ROOM);
        assert_eq!(top.now.hashes.len(), ROOM);
    }

    #[test]
    fn a_newcomer_takes_the_room_of_the_lightest() {
        let (mut top, mut random) = (Top::default(), 1_u64);
        for round in 0..20_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (name, weight) = ((random >> 33) % 300, (random >> 50) % 7);
            let least = top.now.kept.iter().map(|kept| kept.weight).min();
            let known = top.now.kept.len();
            let is_known = top.now.find(hash(&name.to_le_bytes()), &name.to_le_bytes());
            let sum = |top: &Top| top.now.kept.iter().map(|kept| kept.weight).sum::<u64>();
            let before = sum(&top);
            top.add(&name.to_le_bytes(), weight, 0);
            assert_eq!(sum(&top), before + weight, "{round}");
            let kept = &top.now.kept;
            for (at, one) in kept.iter().enumerate() {
                assert_eq!(top.now.hashes[at], hash(&one.name), "{round}");
                assert!(
                    kept[at.saturating_sub(1) / CHILDREN].weight <= one.weight,
                    "{round}"
                );
            }
            if is_known.is_none() && known == ROOM {
                let new = kept.iter().find(|kept| kept.name == name.to_le_bytes());
                assert_eq!(
                    new.map(|new| (new.count, new.weight)),
                    least.map(|it| (1, it + weight))
                );
            }
        }
    }

    #[test]
    fn several_threads_are_one_list_and_old_halves_go() {
        let (mut one, mut other) = (Top::default(), Top::default());
        one.add(b"/a", 3, HALF_MS);
        other.add(b"/a", 4, HALF_MS);
        other.add(b"/b", 5, HALF_MS);
        let names = |now| -> Vec<(String, u64, u64)> {
            let first = first_of([&one, &other], now).into_iter();
            first.map(|it| (it.name, it.count, it.weight)).collect()
        };
        let both = [("/a".to_owned(), 2, 7), ("/b".to_owned(), 1, 5)];
        assert_eq!(names(HALF_MS), both);
        assert_eq!(names(3 * HALF_MS - 1), both);
        assert_eq!(names(3 * HALF_MS), []);
        other.add(b"/c", 1, 2 * HALF_MS);
        let first = first_of([&other], 2 * HALF_MS);
        assert_eq!(first.len(), 3, "{first:?}");
        other.add(b"/d", 1, 4 * HALF_MS);
        assert_eq!(first_of([&other], 4 * HALF_MS).len(), 1);
    }

    #[test]
    fn a_name_is_cut_off_and_may_be_any_bytes() {
        let mut top = Top::default();
        top.add(&[b'a'; 5000], 1, 0);
        top.add(b"\xff\x00", 2, 0);
        let first = first_of([&top], 0);
        assert_eq!(
            (first[0].name.as_str(), first[1].name.len()),
            ("\u{fffd}\0", MAX_NAME_BYTES)
        );
    }
}
