//! A bound on lines that any client can cause as often as it likes: a burst, then a number of lines
//! per second. Lines left out are counted, and the next line has their number, so that a flood is
//! seen but does not fill the disk. The time is passed in.

use parking_lot::Mutex;

/// Lines that may come at once.
const BURST: u64 = 100;
/// Lines a second after that: 1.4 GB in a day where each is of the longest kind, 50 MB of
/// usual ones.
const LINES_PER_SECOND: u64 = 1;
const MILLIS_PER_LINE: u64 = 1000 / LINES_PER_SECOND;

/// Between two lines about a state that lasts.
const MILLIS_PER_STATE_LINE: u64 = 60_000;

/// The number of lines that may still be written.
pub struct LineBudget {
    burst: u64,
    millis_per_line: u64,
    state: Mutex<BudgetState>,
}

impl Default for LineBudget {
    fn default() -> LineBudget {
        LineBudget {
            burst: BURST,
            millis_per_line: MILLIS_PER_LINE,
            state: Mutex::default(),
        }
    }
}

#[derive(Default)]
struct BudgetState {
    /// When the budget is whole again, in milliseconds.
    whole_at: u64,
    left_out: u64,
}

impl LineBudget {
    /// For a state that lasts: one line, and another a minute later if it still does.
    pub fn of_state() -> LineBudget {
        LineBudget {
            burst: 1,
            millis_per_line: MILLIS_PER_STATE_LINE,
            state: Mutex::default(),
        }
    }

    /// Takes a line out of the budget at `now` (milliseconds). If it may be written, returns how
    /// many were left out since the last one.
    pub fn take(&self, now: u64) -> Option<u64> {
        let mut state = self.state.lock();
        let whole_at = state.whole_at.max(now) + self.millis_per_line;
        // A clock that was set back begins anew instead of forbidding lines for long. Threads
        // may come a little out of order, which is no such thing.
        let is_clock_set_back = whole_at > now + 2 * self.burst * self.millis_per_line;
        if whole_at > now + self.burst * self.millis_per_line && !is_clock_set_back {
            state.left_out += 1;
            return None;
        }
        state.whole_at = if is_clock_set_back {
            now + self.millis_per_line
        } else {
            whole_at
        };
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 784_111_777_000;

    #[test]
    fn a_flood_writes_a_burst_and_then_so_many_a_second() {
        let budget = LineBudget::default();
        let written = (0..10_000).filter(|_| budget.take(NOW).is_some()).count();
        assert_eq!(written as u64, BURST);
        // Ten more seconds at a thousand requests a second.
        let written = (0..=10_000)
            .filter(|at| budget.take(NOW + at).is_some())
            .count() as u64;
        let expected = 10 * LINES_PER_SECOND;
        assert!((expected..=expected + 1).contains(&written), "{written}");
    }

    #[test]
    fn a_state_that_lasts_is_told_once_a_minute() {
        let budget = LineBudget::of_state();
        let lines =
            |from: u64, to: u64| (from..to).filter(|at| budget.take(NOW + at * 1000).is_some());
        assert_eq!(lines(0, 60).count(), 1);
        assert_eq!(lines(60, 180).count(), 2);
    }

    #[test]
    fn what_was_left_out_is_told_once() {
        let budget = LineBudget::default();
        for _ in 0..BURST {
            assert_eq!(budget.take(NOW), Some(0));
        }
        assert_eq!(budget.take(NOW), None);
        assert_eq!(budget.take(NOW), None);
        assert_eq!(budget.take(NOW + 1000), Some(2));
        assert_eq!(budget.take(NOW + 2000), Some(0));
    }

    #[test]
    fn threads_out_of_order_get_no_second_burst() {
        let budget = LineBudget::default();
        let written = (0..10_000)
            .filter(|at| budget.take(NOW - at % 7).is_some())
            .count() as u64;
        assert!(written <= BURST, "{written}");
    }

    #[test]
    fn a_clock_set_back_does_not_silence_the_log() {
        let budget = LineBudget::default();
        assert_eq!(budget.take(NOW), Some(0));
        assert_eq!(budget.take(NOW - 3_600_000), Some(0));
        assert_eq!(budget.take(NOW - 3_600_000), Some(0));
    }
}
