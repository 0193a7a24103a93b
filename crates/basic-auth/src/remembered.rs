//! Hashes made to be slow would hold up the whole thread at each request, so a password that
//! was right once is remembered by the thread, as a salted digest.

use std::cell::RefCell;
use std::collections::HashSet;

use sha1::{Digest, Sha1};

use crate::password_hash::{self, Comparison};

/// Passwords remembered as right by a thread.
const MAX_REMEMBERED: usize = 1024;
/// Longest password that is tried: a head's size bounds it, DES looks at 8.
const MAX_PASSWORD_BYTES: usize = 1024;

thread_local! {
    static RIGHT: RefCell<RememberedPasswords> = RefCell::new(RememberedPasswords::new());
}

/// Does `password` fit the hash that the user file gives for `user`?
pub fn compare(user: &[u8], hash: &[u8], password: &[u8]) -> Comparison {
    if password.len() > MAX_PASSWORD_BYTES {
        return Comparison::Wrong;
    }
    if !password_hash::is_slow(hash) {
        return password_hash::compare(hash, password);
    }
    let digest = RIGHT.with_borrow(|right| right.digest(user, hash, password));
    if RIGHT.with_borrow(|right| right.digests.contains(&digest)) {
        return Comparison::Right;
    }
    let comparison = password_hash::compare(hash, password);
    if comparison == Comparison::Right {
        RIGHT.with_borrow_mut(|remembered| remembered.insert(digest));
    }
    comparison
}

/// Digests of passwords that were right, under a salt that only this thread knows.
struct RememberedPasswords {
    salt: [u8; 16],
    digests: HashSet<[u8; 20]>,
}

impl RememberedPasswords {
    fn new() -> RememberedPasswords {
        RememberedPasswords {
            salt: server_base::random::bytes16(),
            digests: Default::default(),
        }
    }

    fn digest(&self, user: &[u8], hash: &[u8], password: &[u8]) -> [u8; 20] {
        let mut digest = Sha1::new().chain_update(self.salt);
        for part in [user, hash, password] {
            // With their lengths, so that no part runs into the next.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }

    fn insert(&mut self, digest: [u8; 20]) {
        if self.digests.len() >= MAX_REMEMBERED {
            self.digests.clear();
        }
        self.digests.insert(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_once_is_remembered_with_user_and_hash() {
        let hash = b"$apr1$abcdefgh$FBwExRW4dCc8aL.OvjpIE1";
        assert_eq!(compare(b"a", hash, b"password"), Comparison::Right);
        let digest = |user: &[u8], password: &[u8]| {
            RIGHT.with_borrow(|right| right.digest(user, hash, password))
        };
        let knows = |digest| RIGHT.with_borrow(|right| right.digests.contains(&digest));
        assert!(knows(digest(b"a", b"password")));
        assert!(!knows(digest(b"b", b"password")));
        assert_eq!(compare(b"a", hash, b"wrong"), Comparison::Wrong);
        assert!(!knows(digest(b"a", b"wrong")));
        for number in 0..=MAX_REMEMBERED {
            RIGHT.with_borrow_mut(|right| right.insert(Sha1::digest(number.to_le_bytes()).into()));
        }
        assert!(RIGHT.with_borrow(|right| right.digests.len()) <= MAX_REMEMBERED);
    }
}
