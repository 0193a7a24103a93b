//! What comes first among things of which there are more than can be kept: the "space saving" way of
//! Metwally, Agrawal and El Abbadi (2005). As many are kept as there is room for; a newcomer takes the
//! room of the least one and inherits its weight, so that what is truly frequent stays.
//!
//! Two halves of an hour are kept, so that what was yesterday does not count for ever.

use std::hash::{DefaultHasher, Hasher};

use serde::{Deserialize, Serialize};

/// Names that are kept in each half.
const ROOM: usize = 128;
/// Bytes of a name that are kept.
const MAX_NAME_BYTES: usize = 200;
/// How long a half lasts.
const HALF_MS: u64 = 1_800_000;
/// Names that are handed out.
const SHOWN: usize = 20;

/// The first among names, by weight.
#[derive(Debug, Default)]
pub struct Top {
    now: Half,
    before: Half,
    began_at: u64,
}

/// The names of half an hour. Their hashes stand side by side: a name is looked for in these.
#[derive(Debug, Default)]
struct Half {
    hashes: Vec<u64>,
    kept: Vec<Kept>,
}

/// A name, and what it weighs.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    name: Box<[u8]>,
    count: u64,
    weight: u64,
}

/// A page, or a page and a reason, as it is handed out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopEntry {
    pub name: String,
    pub count: u64,
    /// What the list is sorted by: milliseconds, for cost.
    pub weight: u64,
}

/// The pages that stand out, of the last half hour to hour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pages {
    /// By the time that requests waited for an upstream, in milliseconds.
    pub costly: Vec<TopEntry>,
    /// By hits; one hit in sixteen is looked at, and counts for sixteen.
    pub wanted: Vec<TopEntry>,
    /// By requests that were not stored, or did not ask the cache; the reason stands behind the page.
    pub not_stored: Vec<TopEntry>,
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

    /// Adds what this one knows to `sum`, at `now`.
    fn merge_into(&self, sum: &mut Vec<Kept>, now: u64) {
        let is_over = |ms: u64| now.saturating_sub(self.began_at) >= ms;
        let recent = self.now.kept.iter().filter(|_| !is_over(2 * HALF_MS));
        let before = self.before.kept.iter().filter(|_| !is_over(HALF_MS));
        for kept in recent.chain(before) {
            match sum.iter_mut().find(|it| it.name == kept.name) {
                Some(known) => {
                    known.count += kept.count;
                    known.weight += kept.weight;
                }
                None => sum.push(kept.clone()),
            }
        }
    }
}

/// The first of several together.
#[must_use]
pub fn first_of<'t>(all: impl IntoIterator<Item = &'t Top>, now: u64) -> Vec<TopEntry> {
    let mut sum = Vec::new();
    all.into_iter()
        .for_each(|top| top.merge_into(&mut sum, now));
    sum.sort_by(|one, other| {
        other
            .weight
            .cmp(&one.weight)
            .then_with(|| one.name.cmp(&other.name))
    });
    let first = sum.into_iter().take(SHOWN);
    first
        .map(|kept| TopEntry {
            name: String::from_utf8_lossy(&kept.name).into_owned(),
            count: kept.count,
            weight: kept.weight,
        })
        .collect()
}

impl Half {
    fn add(&mut self, name: &[u8], weight: u64) {
        let hash = hash(name);
        if let Some(known) = self.known(hash, name) {
            known.count += 1;
            known.weight += weight;
            return;
        }
        let mut new = Kept {
            name: name.into(),
            count: 1,
            weight,
        };
        if self.kept.len() < ROOM {
            self.hashes.push(hash);
            self.kept.push(new);
            return;
        }
        let places = self.hashes.iter_mut().zip(&mut self.kept);
        if let Some((its_hash, least)) = places.min_by_key(|(_, kept)| kept.weight) {
            new.weight += least.weight;
            (*its_hash, *least) = (hash, new);
        }
    }

    fn known(&mut self, hash: u64, name: &[u8]) -> Option<&mut Kept> {
        // Two names with one hash are so rare that the second counts as a newcomer each time.
        let at = self.hashes.iter().position(|&its| its == hash)?;
        self.kept.get_mut(at).filter(|kept| *kept.name == *name)
    }
}

/// Whoever chooses the names gains nothing by two with one hash: they would miss in a list.
fn hash(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(name);
    hasher.finish()
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
        assert!(top.now.kept.len() <= ROOM);
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
