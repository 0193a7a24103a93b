//! Names of arguments and cookies: how often each was sent, and with how many values.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{HashMap, HashSet};
use shared_request::NameSet;

/// More names are not kept.
const MAX_NAMES: usize = 2000;
const MAX_NAME_BYTES: usize = 64;
/// Distinct values of one name that are counted at most.
const MAX_VALUES: usize = 1000;

#[derive(Debug, Default)]
pub struct NameStatistics {
    pub requests: u64,
    values: HashSet<u64, foldhash::fast::FixedState>,
    /// Requests until there were too many values.
    compared: u64,
    /// The name is known to be of no use to any page.
    pub is_ignored: bool,
}

impl NameStatistics {
    /// Different values, and whether there were more than are counted.
    pub fn values(&self) -> (usize, bool) {
        (self.values.len(), self.values.len() >= MAX_VALUES)
    }

    /// The share of requests that had a value of their own.
    pub fn unique_share(&self) -> f64 {
        self.values.len() as f64 / self.compared.max(1) as f64
    }
}

/// All names of arguments, or of cookies.
#[derive(Debug, Default)]
pub struct Names {
    known: HashMap<Vec<u8>, NameStatistics, foldhash::fast::FixedState>,
}

impl Names {
    /// Counts the names and values in the form `a=b&c=d`, with this separator.
    pub fn count(&mut self, text: &[u8], separator: u8, ignored: &NameSet) {
        for pair in text.split(|&byte| byte == separator) {
            let pair = pair.trim_ascii();
            let end = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            let (name, value) = pair.split_at_checked(end).unwrap_or((pair, b""));
            // PHP makes an array of `name[]`.
            let end = memchr::memchr(b'[', name).unwrap_or(name.len());
            let name = name.get(..end).unwrap_or(name);
            if name.is_empty() || name.len() > MAX_NAME_BYTES {
                continue;
            }
            if !self.known.contains_key(name) {
                if self.known.len() >= MAX_NAMES {
                    continue;
                }
                let sent = NameStatistics {
                    is_ignored: ignored.has(name),
                    ..NameStatistics::default()
                };
                self.known.insert(name.to_vec(), sent);
            }
            if let Some(sent) = self.known.get_mut(name) {
                sent.requests += 1;
                if sent.values.len() < MAX_VALUES {
                    sent.compared += 1;
                    sent.values.insert(hash_of(value));
                }
            }
        }
    }

    /// By how often they were sent, most often first.
    pub fn all(&self) -> Vec<(String, &NameStatistics)> {
        let name = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
        let mut all: Vec<(String, &NameStatistics)> = self
            .known
            .iter()
            .map(|(bytes, sent)| (name(bytes), sent))
            .collect();
        all.sort_by(|(a, x), (b, y)| (y.requests, a).cmp(&(x.requests, b)));
        all
    }
}

/// Returns equal hashes for equal bytes in every run, so that the same log gets the
/// same advice.
pub fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = foldhash::quality::FixedState::with_seed(0).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_with_their_values() {
        let ignored = NameSet::new([&b"utm_*"[..]]);
        let mut names = Names::default();
        names.count(b"utm_source=a&p=1&p[]=2", b'&', &ignored);
        names.count(b"utm_source=b&p=1", b'&', &ignored);
        names.count(b"&&=x", b'&', &ignored);
        let shown: Vec<(String, u64, usize, bool)> = names
            .all()
            .iter()
            .map(|(name, it)| (name.clone(), it.requests, it.values().0, it.is_ignored))
            .collect();
        assert_eq!(
            shown,
            [
                ("p".to_owned(), 3, 2, false),
                ("utm_source".to_owned(), 2, 2, true)
            ]
        );
    }

    #[test]
    fn strangers_cannot_make_names_without_end() {
        let mut names = Names::default();
        for number in 0..MAX_NAMES + 100 {
            names.count(format!("n{number}=1").as_bytes(), b'&', &NameSet::default());
            names.count(
                format!("same={number}").as_bytes(),
                b'&',
                &NameSet::default(),
            );
        }
        assert_eq!(names.all().len(), MAX_NAMES);
        let all = names.all();
        let (_, same) = all.iter().find(|(name, _)| name == "same").unwrap();
        assert_eq!(same.values(), (MAX_VALUES, true));
    }
}
