//! Answers that were made for one request each and not stored. While they take little time they
//! are not reported; once they keep an upstream busy, a line names the reason that most of them
//! have. The time is passed in.

use parking_lot::Mutex;

/// The length of a window in which answers are counted.
const WINDOW_MILLIS: u64 = 10_000;
/// The least time that all answers of a window together must have taken: one worker had nothing
/// else to do.
const BUSY_MILLIS: u64 = WINDOW_MILLIS;
/// Fewer are no flood, only slow.
const MIN_ANSWERS: u64 = 50;
/// Between two lines.
const PAUSE_MILLIS: u64 = 60_000;

/// The counts since the window began.
#[derive(Default)]
pub struct NotStored(Mutex<FloodState>);

#[derive(Default)]
struct FloodState {
    began_at: u64,
    answers: u64,
    took_millis: u64,
    /// The number of answers for each reason; the words for reasons are few.
    reasons: Vec<(&'static str, u64)>,
    logged_at: Option<u64>,
}

/// A line is due about these.
#[derive(Debug, PartialEq, Eq)]
pub struct Flood {
    pub answers: u64,
    pub seconds: u64,
    pub took_seconds: u64,
    /// The reason of most of them, and of how many.
    pub reason: &'static str,
    pub of_reason: u64,
}

impl NotStored {
    /// An answer that took `took` milliseconds was not stored at `now`.
    pub fn count(&self, reason: &'static str, took: u64, now: u64) -> Option<Flood> {
        let mut state = self.0.lock();
        // Also where the clock was set back.
        if now < state.began_at || now - state.began_at >= WINDOW_MILLIS {
            let logged_at = state.logged_at.filter(|logged_at| *logged_at <= now);
            *state = FloodState {
                began_at: now,
                logged_at,
                ..FloodState::default()
            };
        }
        state.answers += 1;
        state.took_millis += took;
        match state.reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => state.reasons.push((reason, 1)),
        }
        // Another thread may have logged it a moment later than this answer's time.
        let is_logged = state
            .logged_at
            .is_some_and(|at| now.saturating_sub(at) < PAUSE_MILLIS);
        if is_logged || state.answers < MIN_ANSWERS || state.took_millis < BUSY_MILLIS {
            return None;
        }
        state.logged_at = Some(now);
        let most = state.reasons.iter().max_by_key(|(_, count)| *count);
        let (reason, of_reason) = most.copied().unwrap_or_default();
        Some(Flood {
            answers: state.answers,
            seconds: (now - state.began_at).div_ceil(1000),
            took_seconds: state.took_millis / 1000,
            reason,
            of_reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_once_a_minute_with_its_reason() {
        let counted = NotStored::default();
        let mut logged = Vec::new();
        // For two minutes fifty a second, 30 ms each, by threads of which one is a moment late.
        for number in 0..6000u64 {
            let now = 1_000_000 + number * 20 - number % 2 * 30;
            let reason = if number % 10 == 0 {
                "set-cookie"
            } else {
                "no-cache"
            };
            logged.extend(counted.count(reason, 30, now).map(|flood| (now, flood)));
        }
        assert_eq!(logged.len(), 2, "{logged:?}");
        let (first, flood) = &logged[0];
        assert!(*first < 1_010_000);
        assert_eq!(flood.reason, "no-cache");
        assert!(flood.of_reason * 10 >= flood.answers * 8);
        assert!(logged[1].0 - first >= PAUSE_MILLIS);
    }

    #[test]
    fn what_keeps_nobody_busy_is_not_told() {
        let counted = NotStored::default();
        for number in 0..10_000u64 {
            // Many that take no time, and few that take long.
            assert_eq!(counted.count("no-cache", 0, 1_000_000 + number), None);
            if number % 1000 == 0 {
                assert_eq!(counted.count("private", 500, 1_000_000 + number), None);
            }
        }
    }
}
