//! A bound on the requests that trials make: a bucket of tokens. They come with time, and with visitors' own
//! answers that differ from the shared one.

/// Tokens that a bucket holds: a few trials of a page that depends on much.
const MOST: u32 = 64;
/// Tokens for trials of pages that begin a session, of which a site has many: some twenty of them.
const MAX_OF_SESSIONS: u32 = 256;
/// One token comes in this time.
const TOKEN_MILLIS: u64 = 2_000;

/// The requests that trials may still make.
#[derive(Debug)]
pub struct Budget {
    /// Fewer than none if trials took more than was set aside for them.
    tokens: i64,
    most: u32,
    counted_at: u64,
}

impl Budget {
    /// A full bucket at `now`, in milliseconds, for trials of what visitors say.
    #[must_use]
    pub fn of_traits(now: u64) -> Budget {
        Budget::full(MOST, now)
    }

    /// The same for trials of sessions.
    #[must_use]
    pub fn of_sessions(now: u64) -> Budget {
        Budget::full(MAX_OF_SESSIONS, now)
    }

    fn full(most: u32, now: u64) -> Budget {
        Budget {
            tokens: i64::from(most),
            most,
            counted_at: now,
        }
    }

    /// Takes `requests` tokens, if they are there.
    pub fn take(&mut self, requests: u32, now: u64) -> bool {
        let came = now.saturating_sub(self.counted_at) / TOKEN_MILLIS;
        self.counted_at += came * TOKEN_MILLIS;
        self.put(i64::try_from(came).unwrap_or(i64::MAX));
        let requests = i64::from(requests);
        let is_there = self.tokens >= requests;
        self.tokens -= if is_there { requests } else { 0 };
        is_there
    }

    /// Puts tokens into the bucket: those that were not needed, and those that visitors' answers are worth.
    pub fn give_back(&mut self, requests: u32) {
        self.put(i64::from(requests));
    }

    /// Takes tokens for requests that were made, whether they are there or not.
    pub fn owe(&mut self, requests: u32) {
        self.tokens = self.tokens.saturating_sub(i64::from(requests));
    }

    fn put(&mut self, tokens: i64) {
        self.tokens = self.tokens.saturating_add(tokens).min(i64::from(self.most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_with_time_and_are_bounded() {
        let mut budget = Budget::of_traits(0);
        assert!(budget.take(32, 0) && budget.take(32, 0));
        assert!(!budget.take(1, TOKEN_MILLIS - 1));
        assert!(budget.take(1, TOKEN_MILLIS));
        assert!(!budget.take(1, TOKEN_MILLIS));
        budget.give_back(100);
        assert!(budget.take(MOST, TOKEN_MILLIS));
        assert!(!budget.take(MOST + 1, u64::MAX));
        assert!(budget.take(MOST, u64::MAX));
        let mut budget = Budget::of_traits(0);
        assert!(budget.take(MOST, 0));
        budget.owe(2);
        assert!(!budget.take(1, 2 * TOKEN_MILLIS) && budget.take(1, 3 * TOKEN_MILLIS));
    }
}
