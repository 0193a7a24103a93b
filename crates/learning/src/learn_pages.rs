//! What becomes of a page that was made: its record is read, the book takes it, and its mark says whether it may be shown.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::book::{LearnedEnd, PageEnd, Showing};
use crate::client_addresses::AddressUse;
use crate::record::{Reason, RunRecord, SentStatement, WhyNot};
use crate::statements::ReadRun;
use crate::{LearnedPool, StoredPage, Withdrawal, join, sessions, unix_seconds};

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
            (Some(_), record) => self.learn_settled(end, record, Withdrawal::UntilAsked),
            (None, record) => self.learn_settled(end, record, Withdrawal::ForLong),
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
            pool.learn_settled(end, Some(record), Withdrawal::UntilAsked);
            pool.replayed.notify_waiters();
        });
    }

    fn learn_settled(&self, end: PageEnd, mut record: Option<RunRecord>, withdrawal: Withdrawal) {
        // What the object cache held is not written beside a page on disk.
        let mut report = record.as_mut().and_then(|record| record.report.take());
        report = report.filter(|_| record.as_ref().is_some_and(|it| it.cache.is_none()));
        let address_database = record.as_ref().and_then(RunRecord::address_database);
        let address_database = address_database.map(str::to_owned);
        if let Some(record) = &record {
            self.know_sqlite(&record.sqlite);
        }
        let run = record.map(|record| self.read_statements(&end, record));
        // It may have been written since the fetch began.
        let sqlite = self.look_at_sqlite();
        let (learned, showing) = self.change(|book| {
            if book.ended_early(&end.page.name, Instant::now()) {
                report = None;
            }
            book.ask_sqlite(&end.page.name, &sqlite, Instant::now());
            let learned = book.learn_run(&end, run, Instant::now());
            (learned, book.showing(learned))
        });
        match address_database {
            Some(found) => {
                // First: visitors who wait for it find that it is not shared.
                (end.page.withdraw)(&found, withdrawal);
                end.mark.give_up();
            }
            // Of a page that looks an address up, no write may be overlooked.
            None if withdrawal == Withdrawal::UntilAsked && learned == LearnedEnd::Free => {
                end.mark.give_up();
            }
            None => self.conclude(end, report, learned, showing),
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
    fn conclude(
        &self,
        end: PageEnd,
        report: Option<Box<[u8]>>,
        learned: LearnedEnd,
        showing: Showing,
    ) {
        match learned {
            LearnedEnd::Free => end.mark.let_free(),
            LearnedEnd::Gone => end.mark.give_up(),
            LearnedEnd::Known(number, moves) => {
                self.marks.wake();
                let sqlite = self.book.lock().sqlite_of(number, end.mark.fetch());
                if let Some(sqlite) = sqlite {
                    end.mark.guard_sqlite(sqlite);
                }
                if showing != Showing::Ordinary && self.book.lock().has_cache(number) {
                    end.mark.guard_cache();
                }
                end.mark.know(number, moves, showing);
                let fetch = end.mark.fetch();
                let made_of = || self.made_of((number, fetch), end.begun.at, report.as_deref()?);
                let keep = end.page.keep.filter(|_| showing != Showing::Ordinary);
                let kept_for = self.book.lock().kept_for(number, Instant::now());
                if let Some(kept_for) = keep.and_then(|keep| keep(kept_for, &made_of)) {
                    let until = Instant::now() + kept_for;
                    self.change(|book| book.note_kept(number, fetch, until));
                }
            }
        }
    }
}
