//! Is a database server that another machine has named by its address and its identity the one that pages here were made
//! from?
//!
//! It counts as the same until it is certain that it is another one. A server may get another identity when it is started
//! again in a new container, and machines notice that at different times. So an identity is another server's only once it has
//! been heard of for a while beside one's own.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Longer than a machine goes on to send the previous identity of a server, which is two polls.
const BESIDE: Duration = Duration::from_secs(10);

/// Other servers that are known to be so; further ones count as the same.
const MAX_OTHERS: usize = 64;

/// The identities of servers that other machines named.
#[derive(Default)]
pub struct OtherServers {
    /// One's own, beside which they were heard of.
    own: String,
    /// When each was heard of first.
    heard: HashMap<String, Instant>,
}

impl OtherServers {
    /// Returns whether `identity` is that of another server. `own` is the present identity of one's own server, if known.
    pub fn is_other(&mut self, identity: &str, own: Option<&str>, now: Instant) -> bool {
        let Some(own) = own.filter(|own| *own != identity && !identity.is_empty()) else {
            return false;
        };
        if self.own != own {
            self.heard.clear();
            own.clone_into(&mut self.own);
        }
        let first = match self.heard.get(identity) {
            Some(first) => *first,
            None if self.heard.len() < MAX_OTHERS => {
                self.heard.insert(identity.to_owned(), now);
                now
            }
            None => now,
        };
        now.saturating_duration_since(first) >= BESIDE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_another_one_once_it_was_heard_of_for_a_while_beside_the_own_one() {
        let (mut others, now) = (OtherServers::default(), Instant::now());
        assert!(!others.is_other("b", Some("a"), now));
        assert!(!others.is_other("b", Some("a"), now + BESIDE / 2));
        let later = now + BESIDE;
        assert!(others.is_other("b", Some("a"), later));
        for (identity, own) in [("a", Some("a")), ("", Some("a")), ("b", None)] {
            assert!(!others.is_other(identity, own, later), "{identity} {own:?}");
        }
        // The own server is another one now, or has another identity.
        assert!(!others.is_other("a", Some("b"), later));
        assert!(!others.is_other("b", Some("b"), later + BESIDE));
        assert!(others.is_other("a", Some("b"), later + BESIDE));
    }

    #[test]
    fn servers_beyond_the_bound_count_as_the_own_one() {
        let (mut others, now) = (OtherServers::default(), Instant::now());
        for number in 0..=MAX_OTHERS {
            others.is_other(&number.to_string(), Some("a"), now);
        }
        let is_other =
            |number: usize| others.is_other(&number.to_string(), Some("a"), now + BESIDE);
        let found: Vec<bool> = [0, MAX_OTHERS - 1, MAX_OTHERS].map(is_other).into();
        assert_eq!(found, [true, true, false]);
    }
}
