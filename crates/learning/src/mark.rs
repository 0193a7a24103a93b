//! Whether a stored page may be shown (`cache_learn on`): what a hit reads of what is known of it.
//!
//! ```text
//! fetch begins ─► Pending ─┬─ learned ─────────────► Known   shown while nothing that it read has changed
//!                          ├─ not to be learned ───► Free    shown for its ordinary lifetime
//!                          └─ written meanwhile ───► Gone    never shown
//! read from disk ─► ReadBack ─┬─ all is the same ──► Known
//!    or the database is asked  └─ otherwise ────────► Gone
//! ```
//!
//! Each change that is counted moves the pool's number ([`Marks`]), with the book's lock held. A page that
//! was found unchanged at this number is shown without a look into the book. A page of which nothing is
//! known yet is shown at this very number alone, by which its fetch has begun. If it may be for its visitor alone
//! ([`PageMark::hold`]), it is shown to no one before PHP has reported it, or it is known that no report will come.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::LearnedPool;
use crate::book::{Confirmation, Showing};
use crate::failpoint;
use crate::sqlite::SqliteSeen;

/// A page is compared with the writes since its fetch ended, not since it began.
fn is_late() -> bool {
    static IS_LATE: LazyLock<bool> = LazyLock::new(|| failpoint::is("late"));
    *IS_LATE
}

/// A visitor waits no longer for statements that are run again.
const DECIDED_WITHIN: Duration = Duration::from_millis(20);

/// A visitor waits no longer for PHP's report of a page that was just made. It usually comes within a millisecond.
const REPORTED_WITHIN: Duration = Duration::from_secs(1);

/// A number that the pool never has.
const NEVER: u64 = u64::MAX;

const PENDING: u8 = 0;
const KNOWN: u8 = 1;
const FREE: u8 = 2;
const GONE: u8 = 3;
/// Other programs write nothing that it was made of, or it is shown for its ordinary lifetime.
const KNOWN_UNPOLLED: u8 = 4;
/// It was read from disk, or the database is asked first; and it was never found good since.
const READ_BACK: u8 = 5;

/// It is not in the book.
const NO_NUMBER: u32 = u32::MAX;

/// The state of a pool that hits read.
pub struct Marks {
    /// How often something happened that may alter pages.
    moves: AtomicU64,
    /// Writes that are announced, or in doubt.
    under_way: AtomicU64,
    /// Until then, by [`clock`], all messages of its processes are counted.
    heard_until: AtomicU64,
    /// Until then, the writes of other programs are.
    polled_until: AtomicU64,
    /// Until then, the writes of other programs to the object cache are.
    tracked_until: AtomicU64,
    /// Fetches that are under way.
    fetches: AtomicU64,
    /// Is there a page that may be shown by what is known of it, or a fetch? Otherwise the pool's thread sleeps.
    is_awake: watch::Sender<bool>,
}

impl Marks {
    pub fn new() -> Marks {
        Marks {
            moves: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            heard_until: AtomicU64::new(0),
            polled_until: AtomicU64::new(0),
            tracked_until: AtomicU64::new(0),
            fetches: AtomicU64::new(0),
            is_awake: watch::Sender::new(false),
        }
    }

    pub fn begin_fetch(&self) {
        self.fetches.fetch_add(1, SeqCst);
        self.wake();
    }

    pub fn end_fetch(&self) {
        self.fetches.fetch_sub(1, SeqCst);
    }

    /// There may be something to look after.
    pub fn wake(&self) {
        self.is_awake
            .send_if_modified(|is_awake| !std::mem::replace(is_awake, true));
    }

    /// There is nothing to look after, unless a fetch has begun meanwhile.
    pub fn rest(&self) {
        self.is_awake.send_if_modified(|is_awake| {
            *is_awake = self.fetches.load(SeqCst) > 0;
            false
        });
    }

    pub fn is_awake(&self) -> bool {
        *self.is_awake.borrow()
    }

    pub async fn until_awake(&self) {
        let mut is_awake = self.is_awake.subscribe();
        // It ends with what it would end with: the pool.
        let _ = is_awake.wait_for(|is_awake| *is_awake).await;
    }

    /// Call with the book's lock held, once it knows what has changed.
    pub fn set(&self, moves: u64, under_way: u64) {
        self.under_way.store(under_way, Release);
        self.moves.store(moves, Release);
    }

    pub fn note_heard(&self, until: u64) {
        self.heard_until.store(until, Release);
    }

    pub fn note_polled(&self, until: u64) {
        self.polled_until.store(until, Release);
    }

    pub fn note_tracked(&self, until: u64) {
        self.tracked_until.store(until, Release);
    }

    fn is_tracked(&self, now: u64) -> bool {
        now < self.tracked_until.load(Acquire)
    }

    pub fn is_polled(&self, now: u64) -> bool {
        now < self.polled_until.load(Acquire)
    }
}

/// How many writes each database server and each object cache has seen.
#[derive(Default)]
pub struct WriteCounts {
    pub databases: Box<[u64]>,
    pub caches: Box<[u64]>,
}

/// The state at the moment when a fetch was sent.
#[derive(Clone, Default)]
pub struct FetchBeginning {
    pub writes: Arc<WriteCounts>,
    /// Unix nanoseconds.
    pub at: i64,
    /// The SQLite databases that the pool's pages were made of.
    pub sqlite: Arc<[SqliteSeen]>,
}

/// Whether a page may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageVerdict {
    Good,
    /// The pool, or another program's writes, are not seen at the moment.
    Unknown,
    /// PHP has not reported it yet, and it may be for one visitor.
    Pending,
    /// Not before it is known whether it has changed.
    Open,
    Outdated,
}

/// One page, from its fetch on.
pub struct PageMark {
    pool: Weak<LearnedPool>,
    marks: Arc<Marks>,
    fetch: u64,
    begun: Mutex<FetchBeginning>,
    state: AtomicU8,
    /// The page is not shown while it is pending.
    is_held: AtomicBool,
    /// The page is pending no longer.
    reported: Notify,
    /// Those who wait for its report may be shown it, whatever becomes of it.
    is_for_waiting: AtomicBool,
    /// The number of the pool's moves at which the page was good.
    seen: AtomicU64,
    /// Its number in the book.
    number: AtomicU32,
    /// The SQLite databases that the page is made of, or may be.
    sqlite: Mutex<Arc<[SqliteSeen]>>,
    has_sqlite: AtomicBool,
    /// It is kept, and made of an object cache.
    has_cache: AtomicBool,
    /// A visitor has asked for the page since its statements were run again last.
    asked: Arc<AtomicBool>,
}

impl std::fmt::Debug for PageMark {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "PageMark({})", self.fetch)
    }
}

impl PageMark {
    pub(crate) fn new(pool: &Arc<LearnedPool>, fetch: u64) -> PageMark {
        let mark = PageMark {
            pool: Arc::downgrade(pool),
            marks: pool.marks.clone(),
            fetch,
            begun: Mutex::default(),
            state: AtomicU8::new(PENDING),
            is_held: AtomicBool::new(false),
            reported: Notify::new(),
            is_for_waiting: AtomicBool::new(false),
            seen: AtomicU64::new(NEVER),
            number: AtomicU32::new(0),
            sqlite: Mutex::default(),
            has_sqlite: AtomicBool::new(false),
            has_cache: AtomicBool::new(false),
            asked: Arc::new(AtomicBool::new(true)),
        };
        mark.begin();
        mark
    }

    /// The mark of a page that is read from disk.
    pub(crate) fn of_disk(pool: &Arc<LearnedPool>, fetch: u64) -> PageMark {
        let mark = PageMark::new(pool, fetch);
        mark.guard_sqlite(Arc::default());
        mark.wait();
        mark
    }

    /// It is in the book from now on, by this number.
    pub(crate) fn enter(&self, number: u32) {
        self.number.store(number, Release);
    }

    /// One of no pool.
    #[cfg(test)]
    pub(crate) fn alone(fetch: u64) -> PageMark {
        PageMark {
            pool: Weak::new(),
            marks: Arc::new(Marks::new()),
            fetch,
            begun: Mutex::default(),
            state: AtomicU8::new(PENDING),
            is_held: AtomicBool::new(false),
            reported: Notify::new(),
            is_for_waiting: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            number: AtomicU32::new(0),
            sqlite: Mutex::default(),
            has_sqlite: AtomicBool::new(false),
            has_cache: AtomicBool::new(false),
            asked: Arc::new(AtomicBool::new(true)),
        }
    }

    /// The request is about to be sent: what changed before is in the page.
    pub fn begin(&self) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        // Read first: a write that is announced after that moves it.
        let moves = self.marks.moves.load(Acquire);
        let is_quiet = self.marks.under_way.load(Acquire) == 0 || pool.has_slow_writes_only();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanoseconds = now.unwrap_or_default().as_nanos();
        let sqlite = pool.look_at_sqlite();
        self.guard_sqlite(sqlite.clone());
        *self.begun.lock() = FetchBeginning {
            writes: pool.writes.lock().clone(),
            at: i64::try_from(nanoseconds).unwrap_or(i64::MAX),
            sqlite,
        };
        self.seen
            .store(if is_quiet { moves } else { NEVER }, Release);
    }

    /// Shows the page from now on while these databases are as they were.
    pub(crate) fn guard_sqlite(&self, sqlite: Arc<[SqliteSeen]>) {
        self.has_sqlite.store(!sqlite.is_empty(), Release);
        *self.sqlite.lock() = sqlite;
    }

    /// Shows the page from now on while the writes to the object cache are seen.
    pub(crate) fn guard_cache(&self) {
        self.has_cache.store(true, Release);
    }

    /// The state when the fetch began; asked once it is over.
    pub(crate) fn begun(&self) -> FetchBeginning {
        if is_late() {
            self.begin();
        }
        self.begun.lock().clone()
    }

    /// Whether a visitor has asked for the page, as the book reads and forgets it.
    pub(crate) fn asked(&self) -> Arc<AtomicBool> {
        self.asked.clone()
    }

    pub(crate) fn fetch(&self) -> u64 {
        self.fetch
    }

    /// The page has this number in the book, and was good when the pool had moved so often.
    pub(crate) fn know(&self, number: u32, moves: u64, showing: Showing) {
        self.number.store(number, Release);
        self.seen.store(moves, Release);
        let state = match showing {
            Showing::KeptWhilePolled => KNOWN,
            Showing::Kept | Showing::Ordinary => KNOWN_UNPOLLED,
        };
        self.leave_pending(state);
    }

    /// It is not shown before more is known of it.
    pub(crate) fn wait(&self) {
        self.number.store(NO_NUMBER, Release);
        self.leave_pending(READ_BACK);
    }

    /// Is nothing known of what the page was made of?
    pub fn is_free(&self) -> bool {
        self.state.load(Acquire) == FREE
    }

    pub(crate) fn let_free(&self) {
        self.leave_pending(FREE);
    }

    pub(crate) fn give_up(&self) {
        self.leave_pending(GONE);
    }

    /// Nothing will be known of it, whatever PHP reports. If it is held, it is not shown at all.
    pub(crate) fn forget(&self) {
        let is_pending = self.is_held()
            && self
                .state
                .compare_exchange(PENDING, GONE, AcqRel, Acquire)
                .is_ok();
        if is_pending {
            self.reported.notify_waiters();
        }
    }

    fn leave_pending(&self, state: u8) {
        self.state.store(state, Release);
        self.reported.notify_waiters();
    }

    /// Holds the page back from all visitors until PHP has reported it: it may be made for one of them. Call it before the
    /// request is sent.
    pub fn hold(&self) {
        self.is_held.store(true, Release);
    }

    /// The page is the same for everybody who waits for its report by now.
    pub(crate) fn show_to_waiting(&self) {
        self.is_for_waiting.store(true, Release);
    }

    pub fn is_held(&self) -> bool {
        self.is_held.load(Acquire)
    }

    /// May the page be shown to a request that came at `now`, by [`clock`]?
    pub fn verdict(&self, now: u64) -> PageVerdict {
        // Most pages are asked for often: the value is written once, and read by all.
        if !self.asked.load(Relaxed) {
            self.asked.store(true, Relaxed);
        }
        self.look(now)
    }

    /// Returns the same as [`PageMark::verdict`] where no visitor asks: statements are not run again for that.
    pub fn look(&self, now: u64) -> PageVerdict {
        let verdict = self.verdict_by_book(now);
        let is_learned = match self.state.load(Acquire) {
            FREE => false,
            PENDING => !is_late(),
            _ => true,
        };
        match verdict {
            // A request after a write does not wait for a page from before it.
            PageVerdict::Good | PageVerdict::Pending
                if is_learned && self.has_sqlite.load(Acquire) && !self.is_sqlite_same() =>
            {
                PageVerdict::Outdated
            }
            verdict => verdict,
        }
    }

    /// Looks at the databases themselves: writers do not report their writes.
    fn is_sqlite_same(&self) -> bool {
        let sqlite = self.sqlite.lock().clone();
        let changed = sqlite.iter().find(|it| !it.is_same(&it.database.look()));
        let Some(changed) = changed else {
            return true;
        };
        if self.state.load(Acquire) != PENDING {
            self.give_up();
            if let Some(pool) = self.pool.upgrade() {
                let number = self.number.load(Acquire);
                pool.sqlite_changed(number, self.fetch, changed.database.path());
            }
        }
        false
    }

    fn verdict_by_book(&self, now: u64) -> PageVerdict {
        let state = self.state.load(Acquire);
        match state {
            FREE => PageVerdict::Good,
            PENDING if is_late() => PageVerdict::Good,
            GONE => PageVerdict::Outdated,
            READ_BACK => self.ask_first(now),
            // Nothing is known of it yet, and no visitor is shown it before.
            PENDING if self.is_held() => match self.verdict_by_sources(state, now) {
                PageVerdict::Good => PageVerdict::Pending,
                _ => PageVerdict::Outdated,
            },
            _ => self.verdict_by_sources(state, now),
        }
    }

    /// The verdict of what is heard, polled and tracked.
    fn verdict_by_sources(&self, state: u8, now: u64) -> PageVerdict {
        if now >= self.marks.heard_until.load(Acquire) {
            return PageVerdict::Unknown;
        }
        let is_seen = self.seen.load(Acquire) == self.marks.moves.load(Acquire);
        match state {
            KNOWN if !self.marks.is_polled(now) => PageVerdict::Unknown,
            _ if self.has_cache.load(Acquire) && !self.marks.is_tracked(now) => {
                PageVerdict::Unknown
            }
            _ if is_seen => PageVerdict::Good,
            KNOWN | KNOWN_UNPOLLED => self.ask(),
            _ => PageVerdict::Outdated,
        }
    }

    /// Waits for PHP's report of a page, or for replays that decide whether the page may be shown. Returns `false`
    /// if it may not, or is not known within [`REPORTED_WITHIN`] and [`DECIDED_WITHIN`]. If the page was pending, `true`
    /// means that the requests which have waited may be shown it.
    pub async fn decided(&self) -> bool {
        if self.is_held() && self.look(clock::now()) == PageVerdict::Good {
            // PHP has reported it since the lookup.
            return true;
        }
        match self.state.load(Acquire) {
            PENDING if self.is_held() => {
                let known = async {
                    self.until_reported().await;
                    if self.state.load(Acquire) == READ_BACK {
                        self.replayed().await;
                    }
                    let state = self.state.load(Acquire);
                    self.is_for_waiting.load(Acquire)
                        || matches!(state, FREE | KNOWN | KNOWN_UNPOLLED)
                };
                let known = timeout(REPORTED_WITHIN, known).await;
                known.unwrap_or_else(|_| {
                    // Others need not wait for it as well.
                    self.forget();
                    false
                })
            }
            _ => timeout(DECIDED_WITHIN, self.replayed())
                .await
                .unwrap_or(false),
        }
    }

    async fn until_reported(&self) {
        loop {
            // Made before looking: it hears of each change from here on.
            let reported = self.reported.notified();
            if self.state.load(Acquire) != PENDING {
                return;
            }
            reported.await;
        }
    }

    async fn replayed(&self) -> bool {
        let state = self.state.load(Acquire);
        let pool = self.pool.upgrade();
        let pool = pool.filter(|_| matches!(state, KNOWN | KNOWN_UNPOLLED | READ_BACK));
        let Some(pool) = pool else {
            return false;
        };
        let has_waited = self.entered(&pool).await;
        let number = self.number.load(Acquire);
        pool.decided((number, self.fetch), has_waited).await
    }

    /// Waits until the page is in the book, or will not be. `true`: it was not at first.
    async fn entered(&self, pool: &LearnedPool) -> bool {
        let mut has_waited = false;
        loop {
            let replayed = pool.replayed.notified();
            let is_coming = self.number.load(Acquire) == NO_NUMBER;
            if !is_coming || self.state.load(Acquire) != READ_BACK {
                return has_waited;
            }
            replayed.await;
            has_waited = true;
        }
    }

    /// Is the page good that was read from disk? Until it was once, it stands in for no fetch that fails.
    fn ask_first(&self, now: u64) -> PageVerdict {
        let number = self.number.load(Acquire);
        let pool = self.pool.upgrade();
        let pool =
            pool.filter(|_| number != NO_NUMBER && now < self.marks.heard_until.load(Acquire));
        let Some(pool) = pool else {
            return PageVerdict::Open;
        };
        let showing = pool.showing(number);
        match pool.confirm(number, self.fetch) {
            Confirmation::Outdated => {
                self.give_up();
                PageVerdict::Outdated
            }
            Confirmation::Good(moves) if showing == Showing::Kept || self.marks.is_polled(now) => {
                self.know(number, moves, showing);
                PageVerdict::Good
            }
            Confirmation::Good(_) | Confirmation::Open => PageVerdict::Open,
        }
    }

    fn ask(&self) -> PageVerdict {
        let pool = self.pool.upgrade();
        let number = self.number.load(Acquire);
        let confirmation = pool.map(|pool| pool.confirm(number, self.fetch));
        match confirmation.unwrap_or(Confirmation::Outdated) {
            Confirmation::Open => PageVerdict::Open,
            Confirmation::Good(moves) => {
                self.seen.store(moves, Release);
                PageVerdict::Good
            }
            Confirmation::Outdated => {
                self.give_up();
                PageVerdict::Outdated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{SqliteDatabase, SqliteLook, SqliteState};

    #[test]
    fn page_of_a_database_is_shown_only_while_its_writers_and_other_programs_are_seen() {
        let now = 1_000;
        for (heard_until, polled_until, showing, expected) in [
            (1_001, 1_001, Showing::KeptWhilePolled, PageVerdict::Good),
            (1_001, 1_000, Showing::KeptWhilePolled, PageVerdict::Unknown),
            (1_000, 1_001, Showing::KeptWhilePolled, PageVerdict::Unknown),
            (1_001, 1_000, Showing::Kept, PageVerdict::Good),
            (1_000, 1_001, Showing::Kept, PageVerdict::Unknown),
            (1_001, 1_000, Showing::Ordinary, PageVerdict::Good),
        ] {
            let mark = PageMark::alone(1);
            mark.marks.note_heard(heard_until);
            mark.marks.note_polled(polled_until);
            mark.know(1, 0, showing);
            let case = (heard_until, polled_until, showing);
            assert_eq!(mark.verdict(now), expected, "{case:?}");
            mark.marks.set(1, 0);
            assert_ne!(mark.verdict(now), PageVerdict::Good, "moved: {case:?}");
        }
    }

    fn held() -> PageMark {
        let mark = PageMark::alone(1);
        mark.marks.note_heard(1_001);
        mark.hold();
        mark
    }

    #[test]
    fn page_of_one_visitor_is_pending_until_it_is_reported_and_nothing_was_written() {
        let mark = held();
        assert_eq!(mark.verdict(1_000), PageVerdict::Pending);
        assert_eq!(mark.verdict(1_001), PageVerdict::Outdated, "not heard");
        mark.marks.set(1, 0);
        assert_eq!(mark.verdict(1_000), PageVerdict::Outdated, "written");
        mark.know(1, 1, Showing::Kept);
        assert_eq!(mark.verdict(1_000), PageVerdict::Good);
    }

    #[test]
    fn page_that_is_pending_is_outdated_once_its_database_of_sqlite_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(SqliteDatabase::new(folder.path().join("a")));
        let begun = |look| SqliteSeen {
            database: Arc::clone(&database),
            look,
        };
        let mark = held();
        mark.guard_sqlite([begun(database.look())].into());
        assert_eq!(mark.verdict(1_000), PageVerdict::Pending);
        let before = SqliteLook {
            state: Ok(SqliteState::alone(2, 1, false)),
            is_settled: true,
        };
        mark.guard_sqlite([begun(before)].into());
        assert_eq!(mark.verdict(1_000), PageVerdict::Outdated);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_shown_a_page_that_is_the_same_for_all_although_it_is_not_kept() {
        let mark = held();
        let ending = async {
            mark.wait();
            mark.show_to_waiting();
            mark.give_up();
        };
        assert_eq!(tokio::join!(mark.decided(), ending), (true, ()));
        assert_eq!(mark.verdict(1_000), PageVerdict::Outdated);
    }

    #[tokio::test(start_paused = true)]
    async fn visitors_wait_for_a_report_and_a_page_without_one_is_not_shown() {
        type Ending = fn(&PageMark);
        let endings: [(&str, Ending, bool); 4] = [
            ("free", |mark| mark.let_free(), true),
            ("known", |mark| mark.know(1, 0, Showing::Kept), true),
            ("withdrawn", |mark| mark.give_up(), false),
            ("none", |_| (), false),
        ];
        for (name, ending, is_shown) in endings {
            let mark = held();
            let (decided, ()) = tokio::join!(mark.decided(), async { ending(&mark) });
            assert_eq!(decided, is_shown, "{name}");
            let verdict = mark.verdict(1_000);
            assert_eq!(verdict == PageVerdict::Good, is_shown, "{name}");
            assert_ne!(verdict, PageVerdict::Pending, "{name}");
        }
    }

    #[test]
    fn page_of_an_object_cache_is_shown_only_while_its_writes_are_seen() {
        let mark = PageMark::alone(1);
        mark.marks.note_heard(1_001);
        mark.know(1, 0, Showing::Kept);
        assert_eq!(mark.verdict(1_000), PageVerdict::Good);
        mark.guard_cache();
        assert_eq!(mark.verdict(1_000), PageVerdict::Unknown);
        mark.marks.note_tracked(1_001);
        assert_eq!(mark.verdict(1_000), PageVerdict::Good);
        mark.marks.note_heard(2_000);
        assert_eq!(mark.verdict(1_001), PageVerdict::Unknown);
    }
}
