//! Puts requests into the order in which they began.
//!
//! A line is written when its request ends, and workers write their buffers in turn. Requests are held
//! back for [`HELD_MS`] and given out by their time; a later line counts as of now.
//!
//! A time in whole seconds does not give the order within the second. Such requests are spread over
//! their second as independent visitors would be: each at a moment drawn from all of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Longer than the buffers of access logs are kept and most requests take.
const HELD_MS: u64 = 10_000;
/// Requests that are held back; with more, the earliest go on.
const MAX_HELD: usize = 1 << 17;

/// Requests with the facts known of them, by the time of their beginning.
#[derive(Debug)]
pub struct Timeline<T> {
    held: BinaryHeap<Reverse<HeldValue<T>>>,
    count: u64,
    latest_ms: u64,
    given_ms: u64,
    random: u64,
}

#[derive(Debug)]
struct HeldValue<T> {
    at_ms: u64,
    number: u64,
    value: T,
}

impl<T> PartialEq for HeldValue<T> {
    fn eq(&self, other: &HeldValue<T>) -> bool {
        (self.at_ms, self.number) == (other.at_ms, other.number)
    }
}

impl<T> Eq for HeldValue<T> {}

impl<T> PartialOrd for HeldValue<T> {
    fn partial_cmp(&self, other: &HeldValue<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for HeldValue<T> {
    fn cmp(&self, other: &HeldValue<T>) -> std::cmp::Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}

/// How a request's time was logged.
#[derive(Clone, Copy, Debug)]
pub struct LoggedTime {
    /// When it ended.
    pub at_ms: u64,
    pub is_exact: bool,
    pub took_ms: u32,
}

impl<T> Timeline<T> {
    pub fn new() -> Timeline<T> {
        Timeline {
            held: BinaryHeap::new(),
            count: 0,
            latest_ms: 0,
            given_ms: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    pub fn put(&mut self, logged: LoggedTime, value: T) {
        let end = match logged.is_exact {
            true => logged.at_ms,
            false => logged.at_ms + self.random_below_second(),
        };
        self.latest_ms = self.latest_ms.max(logged.at_ms);
        self.count += 1;
        self.held.push(Reverse(HeldValue {
            at_ms: end.saturating_sub(u64::from(logged.took_ms)),
            number: self.count,
            value,
        }));
    }

    /// The next request whose turn has come.
    pub fn next(&mut self) -> Option<(u64, T)> {
        let Reverse(first) = self.held.peek()?;
        let is_due = first.at_ms + HELD_MS <= self.latest_ms || self.held.len() > MAX_HELD;
        if is_due { self.any() } else { None }
    }

    /// The next request at the end of all logs.
    pub fn any(&mut self) -> Option<(u64, T)> {
        let Reverse(HeldValue { at_ms, value, .. }) = self.held.pop()?;
        self.given_ms = self.given_ms.max(at_ms);
        Some((self.given_ms, value))
    }

    /// SplitMix64: the same log gets the same advice each time.
    fn random_below_second(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(at_ms: u64, took_ms: u32) -> LoggedTime {
        LoggedTime {
            at_ms,
            is_exact: true,
            took_ms,
        }
    }

    #[test]
    fn requests_come_out_in_the_order_of_their_beginnings() {
        let mut timeline = Timeline::new();
        timeline.put(exact(50_000, 0), 'b');
        timeline.put(exact(50_100, 200), 'a');
        assert_eq!(timeline.next(), None);
        timeline.put(exact(70_000, 0), 'd');
        assert_eq!(timeline.next(), Some((49_900, 'a')));
        timeline.put(exact(40_000, 0), 'c');
        assert_eq!(timeline.next(), Some((49_900, 'c')), "late, so of now");
        assert_eq!(timeline.next(), Some((50_000, 'b')));
        assert_eq!(timeline.next(), None);
        assert_eq!(timeline.any(), Some((70_000, 'd')));
    }

    #[test]
    fn requests_of_one_second_are_spread_over_it() {
        let mut timeline = Timeline::new();
        for _ in 0..1000 {
            let logged = LoggedTime {
                at_ms: 60_000,
                is_exact: false,
                took_ms: 0,
            };
            timeline.put(logged, ());
        }
        let times: Vec<u64> = std::iter::from_fn(|| timeline.any())
            .map(|it| it.0)
            .collect();
        assert!(times.iter().all(|it| (60_000..61_000).contains(it)));
        let early = times.iter().filter(|it| **it < 60_500).count();
        assert!((450..550).contains(&early), "{early}");
    }

    #[test]
    fn no_more_are_held_than_the_bound() {
        let mut timeline = Timeline::new();
        for number in 0..MAX_HELD as u64 + 10 {
            timeline.put(exact(1_000_000, 0), number);
        }
        let given = std::iter::from_fn(|| timeline.next()).count();
        assert_eq!(given, 10);
    }
}
