//! What becomes of a page that was made: its record is read, the book takes it, and its mark says whether it may be shown.
//!
//! A page of hundreds of statements takes milliseconds to read. It is read by a thread of its own, so that the pool's thread
//! hears its workers meanwhile, and runs statements again for which visitors wait.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::book::{Book, LearnedEnd, PageEnd, Showing};
use crate::client_addresses::AddressUse;
use crate::record::{Reason, RunRecord, SentStatement, WhyNot};
use crate::sqlite::SqliteSeen;
use crate::statements::ReadRun;
use crate::{LearnedPool, StoredPage, Withdrawal, join, sessions, unix_seconds};

/// Pages that wait to be read. Beyond it, the pool's thread reads one itself.
pub const MAX_WAITING: usize = 16;

/// A page that was made, with all that is known of its run.
pub struct MadePage {
    end: PageEnd,
    record: Option<RunRecord>,
    /// If its visitor's address shaped it.
    withdrawal: Withdrawal,
}

/// Begins to learn pages. The thread ends with the pool.
pub fn begin(pool: &Arc<LearnedPool>, mut pages: mpsc::Receiver<MadePage>) -> io::Result<()> {
    let weak = Arc::downgrade(pool);
    let run = move || {
        while let Some(page) = pages.blocking_recv() {
            match weak.upgrade() {
                Some(pool) => pool.learn_settled(page),
                None => return,
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("pages-{}", pool.name()))
        .stack_size(learned::STACK_BYTES)
        .spawn(run)?;
    Ok(())
}

impl LearnedPool {
    /// Learns a page that was made, from the record of its run.
    pub(crate) fn learn(self: &Arc<Self>, end: PageEnd, mut record: Option<RunRecord>) {
        let mut lookups = None;
        if let Some(record) = &mut record {
            self.note_sessions(&end, record);
            if record.address_database().is_none() {
                lookups = self.lookups_of(&end.page, record);
            }
        }
        join::settle(end.visit.as_ref(), record.as_ref());
        match (lookups, record) {
            (Some(lookups), Some(record)) if record.obstacle.is_none() => {
                self.learn_looked_up(end, record, lookups);
            }
            (Some(_), record) => self.hand_over(end, record, Withdrawal::UntilAsked),
            (None, record) => self.hand_over(end, record, Withdrawal::ForLong),
        }
    }

    /// Has a page read by the other thread, or reads it if that one does not keep up.
    fn hand_over(&self, end: PageEnd, record: Option<RunRecord>, withdrawal: Withdrawal) {
        if let Some(record) = &record {
            self.know_sqlite(&record.sqlite);
        }
        let page = MadePage {
            end,
            record,
            withdrawal,
        };
        if let Err(refused) = self.made.try_send(page) {
            self.learn_settled(refused.into_inner());
        }
    }

    /// The lookups by which it is found out whether the page is for others as well. If that cannot be, the record says so.
    fn lookups_of(&self, page: &StoredPage, record: &mut RunRecord) -> Option<Vec<SentStatement>> {
        let found = AddressUse::of(record, &page.clients)?;
        let why = match &found.lookups {
            _ if !self.replays.load(Ordering::Acquire) => "statements are not run again",
            None => "it cannot be asked for any address",
            Some(lookups) if self.address_lookups.note(&page.key, lookups) => {
                return Some(lookups.clone());
            }
            Some(_) => "there are too many such statements",
        };
        found.note_in(record, why);
        None
    }

    /// The page is not shown until the database has answered.
    fn learn_looked_up(
        self: &Arc<Self>,
        end: PageEnd,
        mut record: RunRecord,
        lookups: Vec<SentStatement>,
    ) {
        end.mark.wait();
        let asked = self.address_lookups.ask(lookups.clone());
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            let results = asked.await;
            let Some(pool) = pool.upgrade() else {
                return end.mark.give_up();
            };
            let why = match &results {
                None => Some("the database did not answer"),
                Some(results) if results.iter().any(|it| it.rows > 0) => {
                    Some("the database has addresses")
                }
                Some(_) => None,
            };
            match why {
                // They came before the database was asked.
                None => end.mark.show_to_waiting(),
                Some(why) => {
                    if let Some(found) = AddressUse::of(&record, &end.page.clients) {
                        found.note_in(&mut record, why);
                    }
                }
            }
            // On disk there would be nothing but the lookups of this visitor.
            record.report = None;
            let lookups = lookups.into_iter().zip(results.unwrap_or_default());
            let lookups = lookups.map(|(lookup, result)| SentStatement {
                result: result.hash,
                ..lookup
            });
            record.statements.extend(lookups);
            pool.hand_over(end, Some(record), Withdrawal::UntilAsked);
        });
    }

    fn learn_settled(&self, page: MadePage) {
        let MadePage {
            end,
            mut record,
            withdrawal,
        } = page;
        // What the object cache held is not written beside a page on disk.
        let mut report = record.as_mut().and_then(|record| record.report.take());
        report = report.filter(|_| record.as_ref().is_some_and(|it| it.cache.is_none()));
        let address_database = record.as_ref().and_then(RunRecord::address_database);
        let address_database = address_database.map(str::to_owned);
        let run = record.map(|record| self.read_statements(&end, record));
        // It may have been written since the fetch began.
        let sqlite = self.look_at_sqlite();
        let taken = self.change(|book| {
            let now = Instant::now();
            if book.ended_early(&end.page.name, now) {
                report = None;
            }
            book.ask_sqlite(&end.page.name, &sqlite, now);
            let learned = book.learn_run(&end, run, now);
            TakenPage::of(book, learned, end.mark.fetch(), now)
        });
        match address_database {
            Some(found) => {
                // First: visitors who wait for it find that it is not shared.
                (end.page.withdraw)(&found, withdrawal);
                end.mark.give_up();
            }
            // Of a page that looks an address up, no write may be overlooked.
            None if withdrawal == Withdrawal::UntilAsked && taken.learned == LearnedEnd::Free => {
                end.mark.give_up();
            }
            None => self.conclude(end, report, taken),
        }
        if withdrawal == Withdrawal::UntilAsked {
            // Visitors wait until it is in the book, or will not be.
            self.replayed.notify_waiters();
        }
    }

    /// Reads the statements of a run without the lock of the book, which hits wait for.
    fn read_statements(&self, end: &PageEnd, record: RunRecord) -> ReadRun {
        let reader = self.change(|book| book.statement_reader((end, &record), Instant::now()));
        ReadRun::of(record, reader, end.begun.at)
    }

    /// A page that opened a session is for its visitor alone, and not kept unless nothing was written there. One that was made
    /// for no visitor's session, and has begun one, is as good for all guests; whether they get it without a session is
    /// decided before it is stored.
    fn note_sessions(&self, end: &PageEnd, record: &mut RunRecord) {
        if !end.page.has_session && sessions::began_with(record) {
            return;
        }
        let visit = end.visit.as_ref().filter(|_| end.page.is_own);
        let obstacle = sessions::obstacle(&self.sessions, visit, record, unix_seconds());
        let why = obstacle.map(|session| {
            let reason = match end.page.is_own {
                true => Reason::OwnSession,
                false => Reason::OwnFile,
            };
            // The name of the file is the visitor's secret.
            let folder = session.path.parent().unwrap_or(Path::new(""));
            WhyNot::new(reason, folder.display().to_string())
        });
        if record.obstacle.is_none() {
            record.obstacle = why;
        }
    }

    /// Without the lock of the book, which hits wait for.
    fn conclude(&self, end: PageEnd, report: Option<Box<[u8]>>, taken: TakenPage) {
        let (number, moves) = match taken.learned {
            LearnedEnd::Free => return end.mark.let_free(),
            LearnedEnd::Gone => return end.mark.give_up(),
            LearnedEnd::Known(number, moves) => (number, moves),
        };
        self.marks.wake();
        if let Some(sqlite) = taken.sqlite {
            end.mark.guard_sqlite(sqlite);
        }
        let is_ordinary = taken.showing == Showing::Ordinary;
        if taken.has_cache && !is_ordinary {
            end.mark.guard_cache();
        }
        end.mark.know(number, moves, taken.showing);
        let fetch = end.mark.fetch();
        let made_of = || self.made_of((number, fetch), end.begun.at, report.as_deref()?);
        let keep = end.page.keep.filter(|_| !is_ordinary);
        if let Some(kept_for) = keep.and_then(|keep| keep(taken.kept_for, &made_of)) {
            let until = Instant::now() + kept_for;
            self.change(|book| book.note_kept(number, fetch, until));
        }
    }
}

/// What the book knows of a page that it has just taken; once its lock is free, another page may have the number.
struct TakenPage {
    learned: LearnedEnd,
    showing: Showing,
    sqlite: Option<Arc<[SqliteSeen]>>,
    has_cache: bool,
    kept_for: Duration,
}

impl TakenPage {
    fn of(book: &Book, learned: LearnedEnd, fetch: u64, now: Instant) -> TakenPage {
        let number = match learned {
            LearnedEnd::Known(number, _) => Some(number),
            LearnedEnd::Free | LearnedEnd::Gone => None,
        };
        TakenPage {
            learned,
            showing: book.showing(learned),
            sqlite: number.and_then(|number| book.sqlite_of(number, fetch)),
            has_cache: number.is_some_and(|number| book.has_cache(number)),
            kept_for: number.map_or(Duration::ZERO, |number| book.kept_for(number, now)),
        }
    }
}
