//! The budget for the fragments of a page: one budget for a page, whatever the language (ESI, SSI) and
//! the depth of its parts. The outermost request makes it, and the requests that are made within share it
//! ([`Request::internal`](super::request::Request::internal)).
//!
//! ```text
//! page ─┬─ fragment ─┬─ fragment        includes, fetches, bytes, time: the operator's (fragments_max_*)
//!       │            └─ fragment        lines in the error log, turns, fetches at once: constants here
//!       └─ fragment
//! ```
//!
//! A fetch has its turn while an upstream works for it, and at no other time: never while it waits for
//! another part of the page to be sent. So turns come back whichever parts include each other.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use site::FragmentLimits;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Fragments that are served from memory before others have their turn on this thread: some 50
/// microseconds.
pub const MAX_FRAGMENTS_PER_TURN: u32 = 16;
/// Tags and pieces of text likewise: a tag that asks for a fragment in vain takes most, almost one
/// microsecond.
const MAX_TOKENS_PER_TURN: u32 = 64;
/// Fetches under way for one page if the capacity of its servers is not known: enough for a page's parts.
const MAX_FETCHES_AT_ONCE: usize = 16;
/// Lines in the error log about one page and its parts, beside one for each bound that it has met.
pub const MAX_LINES: u32 = 20;

/// The bounds of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Includes,
    Fetches,
    Bytes,
    Time,
    /// It was asked for by this server itself, for a fragment.
    Loop,
}

impl Bound {
    const COUNT: usize = 5;
}

/// The budget that the fragments of a page share.
pub struct PageBudget {
    limits: FragmentLimits,
    max_includes: u32,
    /// The directive that sets `max_includes`.
    includes_directive: &'static str,
    spent: Mutex<SpentBudget>,
    fetch_has_ended: Notify,
}

#[derive(Default)]
struct SpentBudget {
    includes: u32,
    fetches: u32,
    bytes: u64,
    waited: Duration,
    waiting_since: Option<Instant>,
    fetches_under_way: usize,
    lines: u32,
    /// For each bound: it was met, and logged.
    is_logged: [bool; Bound::COUNT],
    fragments_of_turn: u32,
    tokens_of_turn: u32,
}

/// Whether a line goes to the error log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLine {
    Written,
    /// The last line, which mentions that no more follow.
    Last,
    LeftOut,
}

impl PageBudget {
    /// Creates a budget. `includes`: the maximal number, and the directive that sets it.
    pub fn new(limits: FragmentLimits, includes: (u32, &'static str)) -> PageBudget {
        PageBudget {
            limits,
            max_includes: includes.0,
            includes_directive: includes.1,
            spent: Mutex::default(),
            fetch_has_ended: Notify::new(),
        }
    }

    /// Another fragment begins.
    ///
    /// # Errors
    /// The bound that it would pass.
    pub fn take_include(&self) -> Result<(), Bound> {
        if self.is_out_of_time() {
            return Err(Bound::Time);
        }
        let mut spent = self.spent.lock();
        if spent.includes >= self.max_includes {
            return Err(Bound::Includes);
        }
        spent.includes += 1;
        Ok(())
    }

    /// Returns how many fragments have begun.
    #[cfg(test)]
    pub fn includes(&self) -> u32 {
        self.spent.lock().includes
    }

    /// May an upstream be asked once more?
    pub fn has_fetch_left(&self) -> bool {
        self.spent.lock().fetches < self.limits.fetches
    }

    /// An upstream is asked.
    ///
    /// # Errors
    /// The bound that it would pass.
    pub fn take_fetch(&self) -> Result<(), Bound> {
        let mut spent = self.spent.lock();
        if spent.fetches >= self.limits.fetches {
            return Err(Bound::Fetches);
        }
        spent.fetches += 1;
        Ok(())
    }

    /// Counts `bytes` more bytes of the page.
    ///
    /// # Errors
    /// The bound that they would pass; they are not counted.
    pub fn take_bytes(&self, bytes: u64) -> Result<(), Bound> {
        let mut spent = self.spent.lock();
        match spent.bytes.checked_add(bytes) {
            Some(all) if all <= self.limits.bytes => {
                spent.bytes = all;
                Ok(())
            }
            _ => Err(Bound::Bytes),
        }
    }

    /// The page is waited for from here on.
    pub fn begin_wait(&self) {
        self.spent.lock().waiting_since = Some(Instant::now());
    }

    /// It has given something.
    pub fn end_wait(&self) {
        let mut spent = self.spent.lock();
        if let Some(since) = spent.waiting_since.take() {
            spent.waited += since.elapsed();
        }
    }

    /// Returns the time until which the page waits for its fragments, if it waits from here on.
    pub fn deadline(&self) -> Instant {
        let spent = self.spent.lock();
        let since = spent.waiting_since.unwrap_or_else(Instant::now);
        since + self.limits.time.saturating_sub(spent.waited)
    }

    pub fn is_out_of_time(&self) -> bool {
        Instant::now() >= self.deadline()
    }

    /// Waits until another fetch may be under way for this page: at most `at_once`.
    pub async fn take_turn_to_fetch(self: &Arc<Self>, at_once: Option<usize>) -> FetchTurn {
        let at_once = at_once
            .unwrap_or(MAX_FETCHES_AT_ONCE)
            .clamp(1, MAX_FETCHES_AT_ONCE);
        loop {
            let ended = self.fetch_has_ended.notified();
            {
                let mut spent = self.spent.lock();
                if spent.fetches_under_way < at_once {
                    spent.fetches_under_way += 1;
                    return FetchTurn(self.clone());
                }
            }
            ended.await;
        }
    }

    /// Lets others have their turn, once enough was done in this one; a fragment is about to be
    /// served.
    pub async fn before_fragment(&self) {
        let is_over = {
            let mut spent = self.spent.lock();
            spent.fragments_of_turn += 1;
            spent.fragments_of_turn > MAX_FRAGMENTS_PER_TURN
        };
        if is_over {
            self.end_turn().await;
            self.spent.lock().fragments_of_turn = 1;
        }
    }

    /// Gives up the thread from time to time, before a tag is run or a piece of text let through.
    pub async fn before_token(&self) {
        let is_over = {
            let mut spent = self.spent.lock();
            spent.tokens_of_turn += 1;
            spent.tokens_of_turn > MAX_TOKENS_PER_TURN
        };
        if is_over {
            self.end_turn().await;
        }
    }

    async fn end_turn(&self) {
        {
            let mut spent = self.spent.lock();
            spent.fragments_of_turn = 0;
            spent.tokens_of_turn = 0;
        }
        tokio::task::yield_now().await;
    }

    /// May a line about the page be written?
    pub fn take_line(&self) -> LogLine {
        let lines = &mut self.spent.lock().lines;
        *lines = lines.saturating_add(1);
        match (*lines).cmp(&MAX_LINES) {
            std::cmp::Ordering::Less => LogLine::Written,
            std::cmp::Ordering::Equal => LogLine::Last,
            std::cmp::Ordering::Greater => LogLine::LeftOut,
        }
    }

    /// The message about a bound that the page has met, the first time.
    pub fn take_message(&self, bound: Bound) -> Option<String> {
        let is_logged = &mut self.spent.lock().is_logged[bound as usize];
        if std::mem::replace(is_logged, true) {
            return None;
        }
        let limits = &self.limits;
        Some(match bound {
            Bound::Includes => format!(
                "the page includes more than {} allows ({}): it goes on without the others",
                self.includes_directive, self.max_includes
            ),
            Bound::Fetches => format!(
                "the fragments of the page need more requests to upstreams than fragments_max_fetches allows ({})",
                limits.fetches
            ),
            Bound::Bytes => format!(
                "the fragments of the page are longer than fragments_max_bytes allows ({} bytes)",
                limits.bytes
            ),
            Bound::Time => format!(
                "the page has waited for its fragments for longer than fragments_max_time allows ({:?})",
                limits.time
            ),
            Bound::Loop => {
                "the page was asked for by this server itself, for a fragment (CDN-Loop): \
                            upstreams are not asked for its own fragments"
                    .to_owned()
            }
        })
    }

    /// Was this bound met?
    pub fn is_met(&self, bound: Bound) -> bool {
        self.spent.lock().is_logged[bound as usize]
    }
}

/// A fetch for a page is under way, until this is dropped.
pub struct FetchTurn(Arc<PageBudget>);

impl Drop for FetchTurn {
    fn drop(&mut self) {
        self.0.spent.lock().fetches_under_way -= 1;
        // Not all who wait may go where another has: how many may be under way depends on whom
        // they ask.
        self.0.fetch_has_ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> PageBudget {
        let limits = FragmentLimits {
            bytes: 100,
            fetches: 2,
            time: Duration::from_secs(10),
        };
        PageBudget::new(limits, (3, "esi_max_includes"))
    }

    #[test]
    fn each_bound_is_met_after_what_it_allows_and_told_once() {
        let budget = budget();
        for _ in 0..3 {
            assert_eq!(budget.take_include(), Ok(()));
        }
        assert_eq!(budget.take_include(), Err(Bound::Includes));
        assert_eq!((budget.take_fetch(), budget.take_fetch()), (Ok(()), Ok(())));
        assert_eq!(budget.take_fetch(), Err(Bound::Fetches));
        assert_eq!(budget.take_bytes(90), Ok(()));
        assert_eq!(budget.take_bytes(11), Err(Bound::Bytes));
        assert_eq!(budget.take_bytes(10), Ok(()));
        assert_eq!(budget.take_bytes(u64::MAX), Err(Bound::Bytes));
        for bound in [
            Bound::Includes,
            Bound::Fetches,
            Bound::Bytes,
            Bound::Time,
            Bound::Loop,
        ] {
            assert!(budget.take_message(bound).is_some());
            assert_eq!(budget.take_message(bound), None);
        }
        let lines: Vec<LogLine> = (0..MAX_LINES + 2).map(|_| budget.take_line()).collect();
        assert_eq!(
            lines
                .iter()
                .filter(|line| **line == LogLine::Written)
                .count(),
            19
        );
        assert_eq!(
            lines[19..],
            [LogLine::Last, LogLine::LeftOut, LogLine::LeftOut]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_the_client_takes_to_read_is_not_counted() {
        let budget = budget();
        for _ in 0..3 {
            budget.begin_wait();
            tokio::time::advance(Duration::from_secs(3)).await;
            budget.end_wait();
            tokio::time::advance(Duration::from_secs(100)).await;
        }
        assert!(!budget.is_out_of_time());
        budget.begin_wait();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(budget.is_out_of_time());
        assert_eq!(budget.take_include(), Err(Bound::Time));
    }

    #[tokio::test]
    async fn as_many_fetches_are_under_way_as_may_be() {
        let budget = Arc::new(budget());
        let first = budget.take_turn_to_fetch(Some(2)).await;
        let _second = budget.take_turn_to_fetch(Some(2)).await;
        let waits = budget.clone();
        let third = tokio::spawn(async move { waits.take_turn_to_fetch(Some(2)).await });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        drop(first);
        third.await.expect("its turn");
    }

    #[tokio::test]
    async fn another_task_runs_after_as_many_fragments_as_a_turn_has() {
        let budget = Arc::new(budget());
        let served = Arc::new(Mutex::new(0));
        let (page, counted) = (budget.clone(), served.clone());
        let other = tokio::spawn(async move { *counted.lock() });
        for _ in 0..=MAX_FRAGMENTS_PER_TURN {
            page.before_fragment().await;
            *served.lock() += 1;
        }
        assert_eq!(other.await.expect("it ran"), MAX_FRAGMENTS_PER_TURN);
    }
}
