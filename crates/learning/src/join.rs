//! Records of the library and ends of fetches meet by the number of the fetch, whichever comes first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::book::PageEnd;
use crate::record::{Reason, RunRecord};
use crate::sessions::Visit;

/// Fetches of which one half is missing. Beyond it the oldest are forgotten.
const MAX_WAITING: usize = 4096;

/// Bytes of all records that wait, about.
const MAX_BYTES: usize = 32 << 20;

/// A record leaves PHP before the end of the answer does. It is not waited for any longer once all messages of the processes
/// are read that were there at the end, or after this time.
const RECORD_WITHIN: Duration = Duration::from_secs(5);

/// A page may be sent to slow clients while it is stored.
const END_WITHIN: Duration = Duration::from_secs(30);

/// The end of a fetch.
pub enum End {
    Stored(u64, Box<PageEnd>),
    /// Its page is not stored.
    Dropped(u64, Option<Visit>),
}

enum Half {
    Record(RunRecord, usize),
    End(PageEnd),
    /// Its record says nothing but what it did to the visitor's session.
    Dropped(Option<Visit>),
}

/// A page with its record, if one came.
pub type JoinedPage = (PageEnd, Option<RunRecord>);

#[derive(Default)]
pub struct Join {
    waiting: BTreeMap<u64, (Half, Instant)>,
    bytes: usize,
}

impl Join {
    pub fn record(
        &mut self,
        fetch: u64,
        (record, bytes): (RunRecord, usize),
        now: Instant,
    ) -> Option<JoinedPage> {
        match self.remove(fetch) {
            Some(Half::End(end)) => return Some((end, Some(record))),
            Some(Half::Dropped(visit)) => {
                settle(visit.as_ref(), Some(&record));
                return None;
            }
            Some(Half::Record(..)) | None => {}
        }
        self.insert(fetch, Half::Record(record, bytes), now);
        None
    }

    pub fn end(&mut self, end: End, now: Instant) -> Option<JoinedPage> {
        match end {
            End::Stored(fetch, end) => match self.remove(fetch) {
                Some(Half::Record(record, _)) => return Some((*end, Some(record))),
                _ => self.insert(fetch, Half::End(*end), now),
            },
            End::Dropped(fetch, visit) => match self.remove(fetch) {
                Some(Half::Record(record, _)) => settle(visit.as_ref(), Some(&record)),
                _ => self.insert(fetch, Half::Dropped(visit), now),
            },
        }
        None
    }

    fn insert(&mut self, fetch: u64, half: Half, now: Instant) {
        if let Half::Record(_, bytes) = &half {
            self.bytes += bytes;
        }
        self.waiting.insert(fetch, (half, now));
        while self.waiting.len() > MAX_WAITING || self.bytes > MAX_BYTES {
            let Some(oldest) = self.waiting.keys().next().copied() else {
                return;
            };
            if let Some(Half::End(end)) = self.remove(oldest) {
                end.mark.forget();
            }
        }
    }

    fn remove(&mut self, fetch: u64) -> Option<Half> {
        let (half, _) = self.waiting.remove(&fetch)?;
        if let Half::Record(_, bytes) = &half {
            self.bytes = self.bytes.saturating_sub(*bytes);
        }
        Some(half)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Pages whose record has not come in time.
    pub fn sweep(&mut self, now: Instant) -> Vec<JoinedPage> {
        self.take_late(|half, since| {
            let within = match half {
                Half::Record(..) => END_WITHIN,
                Half::End(_) | Half::Dropped(_) => RECORD_WITHIN,
            };
            now.saturating_duration_since(since) >= within
        })
    }

    /// Pages whose record will not come: all messages are read that were there at this time.
    pub fn heard(&mut self, until: Instant) -> Vec<JoinedPage> {
        self.take_late(|half, since| matches!(half, Half::End(_)) && since < until)
    }

    fn take_late(&mut self, is_late: impl Fn(&Half, Instant) -> bool) -> Vec<JoinedPage> {
        let is_late = |(half, since): &(Half, Instant)| is_late(half, *since);
        let late = self.waiting.iter().filter(|(_, waiting)| is_late(waiting));
        let late: Vec<u64> = late.map(|(fetch, _)| *fetch).collect();
        let late = late
            .into_iter()
            .filter_map(|fetch| match self.remove(fetch) {
                Some(Half::End(end)) => Some((end, None)),
                _ => None,
            });
        late.collect()
    }
}

/// It is known what a request did to the sessions of its visitor, if it has a whole record.
pub fn settle(visit: Option<&Visit>, record: Option<&RunRecord>) {
    let obstacle = record.map(|it| it.obstacle.as_ref().map(|why| why.reason));
    let is_whole =
        obstacle.is_some_and(|why| !matches!(why, Some(Reason::Incomplete | Reason::TooLong)));
    if let Some(visit) = visit.filter(|_| is_whole) {
        visit.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::book::tests::stored_page;
    use crate::mark::{FetchBeginning, PageMark};

    fn end(name: &str) -> Box<PageEnd> {
        Box::new(PageEnd {
            page: stored_page(name.as_bytes()),
            begun: FetchBeginning {
                ..FetchBeginning::default()
            },
            mark: Arc::new(PageMark::alone(1)),
            left_of_day: Duration::ZERO,
            visit: None,
        })
    }

    fn record() -> (RunRecord, usize) {
        (RunRecord::default(), 1000)
    }

    #[test]
    fn both_halves_meet_in_either_order() {
        let now = Instant::now();
        let mut join = Join::default();
        assert!(join.record(1, record(), now).is_none());
        assert!(join.end(End::Stored(1, end("a")), now).is_some());
        assert!(join.end(End::Stored(2, end("b")), now).is_none());
        let (page, record) = join.record(2, record(), now).unwrap();
        assert_eq!(&page.page.name[..], b"b");
        assert!(record.is_some());
        assert_eq!((join.waiting.len(), join.bytes), (0, 0));
    }

    #[test]
    fn a_page_without_a_record_is_told_after_a_while_and_once() {
        let now = Instant::now();
        let mut join = Join::default();
        join.end(End::Stored(1, end("a")), now);
        assert!(join.sweep(now).is_empty());
        let late = join.sweep(now + RECORD_WITHIN);
        assert_eq!(late.len(), 1);
        assert!(late[0].1.is_none());
        assert!(join.sweep(now + RECORD_WITHIN).is_empty());
    }

    #[test]
    fn a_page_without_a_record_is_told_once_all_messages_since_its_end_are_read() {
        let now = Instant::now();
        let mut join = Join::default();
        join.end(End::Stored(1, end("a")), now);
        join.record(2, record(), now);
        join.end(End::Dropped(3, None), now);
        assert!(join.heard(now).is_empty());
        let late = join.heard(now + Duration::from_millis(1));
        assert_eq!(late.len(), 1);
        assert!(late[0].1.is_none());
        assert_eq!(join.waiting.len(), 2);
    }

    #[test]
    fn records_of_fetches_that_nobody_ends_are_bounded_by_number_and_bytes() {
        let now = Instant::now();
        let mut join = Join::default();
        for fetch in 0..3 * MAX_WAITING as u64 {
            join.record(fetch, record(), now);
        }
        assert!(join.waiting.len() <= MAX_WAITING);
        for fetch in 0..100 {
            join.record(fetch, (RunRecord::default(), 1 << 20), now);
        }
        assert!(join.bytes <= MAX_BYTES);
        join.sweep(now + END_WITHIN);
        assert_eq!((join.waiting.len(), join.bytes), (0, 0));
    }

    #[test]
    fn the_record_of_a_dropped_fetch_is_not_kept() {
        let now = Instant::now();
        let mut join = Join::default();
        join.end(End::Dropped(1, None), now);
        assert!(join.record(1, record(), now).is_none());
        assert!(join.waiting.is_empty());
        join.record(2, record(), now);
        join.end(End::Dropped(2, None), now);
        assert!(join.waiting.is_empty());
    }
}
