//! The time that the statements of one pool's pages take when they are run again, of which explain shows how much of the
//! pool's budget is used.

use std::time::{Duration, Instant};

/// The most that replays take of the time, in percent, but for those that visitors wait for.
pub const MAX_PERCENT: u32 = 25;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct ReplayTime {
    /// When the minute began that is counted now.
    since: Option<Instant>,
    now: Duration,
    before: Duration,
}

impl ReplayTime {
    pub fn add(&mut self, ran: Duration, now: Instant) {
        self.count_minutes(now);
        self.now += ran;
    }

    /// The share of the last whole minute and of the one that runs, whichever is larger.
    pub fn percent(&mut self, now: Instant) -> u32 {
        self.count_minutes(now);
        let share = self.now.max(self.before).as_millis() * 100 / MINUTE.as_millis();
        u32::try_from(share).unwrap_or(u32::MAX)
    }

    fn count_minutes(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let passed = now.saturating_duration_since(since);
        if passed >= MINUTE {
            let is_next = passed < 2 * MINUTE;
            self.before = if is_next { self.now } else { Duration::ZERO };
            (self.since, self.now) = (Some(now), Duration::ZERO);
        }
    }
}

/// How long no round is begun after one that took so long.
pub fn pause_after(ran: Duration) -> Duration {
    ran * (100 - MAX_PERCENT) / MAX_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_that_of_the_last_minute_and_ends_with_the_replays() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut time = ReplayTime::default();
        assert_eq!(time.percent(at(0)), 0);
        time.add(Duration::from_secs(6), at(1));
        time.add(Duration::from_secs(3), at(30));
        assert_eq!(time.percent(at(59)), 15);
        time.add(Duration::from_secs(3), at(61));
        assert_eq!(time.percent(at(62)), 15, "the whole minute before");
        assert_eq!(time.percent(at(125)), 5);
        assert_eq!(time.percent(at(500)), 0);
    }

    #[test]
    fn pauses_keep_replays_within_their_budget() {
        let ran = Duration::from_millis(100);
        let whole = ran + pause_after(ran);
        assert_eq!(ran * 100 / MAX_PERCENT, whole);
    }
}
