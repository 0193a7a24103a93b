//! An event that happens often and is worth a line now and then: counted, logged when it
//! first happens and once a minute while it goes on. The time is passed in.

use parking_lot::Mutex;

/// Between two lines.
const PAUSE_MILLIS: u64 = 60_000;

/// How often it happened since the last line.
#[derive(Default)]
pub struct NowAndThen(Mutex<PauseState>);

#[derive(Default)]
struct PauseState {
    count: u64,
    logged_at: Option<u64>,
}

impl NowAndThen {
    /// It happened at `now` (milliseconds): how often since the last line, if it is time for
    /// another.
    pub fn count(&self, now: u64) -> Option<u64> {
        let mut state = self.0.lock();
        state.count += 1;
        // A clock that was set back does not forbid lines for long.
        let is_time = |logged_at: u64| now < logged_at || now - logged_at >= PAUSE_MILLIS;
        if !state.logged_at.is_none_or(is_time) {
            return None;
        }
        state.logged_at = Some(now);
        Some(std::mem::take(&mut state.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_first_and_once_a_minute_while_it_goes_on() {
        let lines = NowAndThen::default();
        assert_eq!(lines.count(1_000_000), Some(1));
        for at in 1..1000 {
            assert_eq!(lines.count(1_000_000 + at), None);
        }
        assert_eq!(lines.count(1_060_000), Some(1000));
        assert_eq!(lines.count(1_060_001), None);
        assert_eq!(lines.count(5_000), Some(2), "the clock was set back");
    }
}
