//! A page that was made: it is compared with what was known of it, and what it was made of is kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learned::Suspicion;

use super::{Book, CacheRead, LearnedEnd, MadeOf, OLD_CODE_RUNS, PageBefore, PageEnd, Showing};
use crate::StoredPage;
use crate::counts::Comparison;
use crate::pages::{CacheOfPage, Cause, LearnedPage};
use crate::php_report;
use crate::record::{Reason, RunRecord, SeenFile, SentStatement, WhyNot};
use crate::statements::{ReadRun, ReadStatements, StatementReader, not_learned};
use crate::steady::MadePage;
use crate::trials::MIN_AGE;

/// The time of a file reveals a change only where it lay so far back when PHP looked: two changes within
/// one tick of the file system have one time.
const RACY_NANOSECONDS: i64 = 1_000_000_000;

impl Book {
    /// A page was made: compares it with what was known of it, and keeps what it was made of.
    pub fn learn_run(&mut self, end: &PageEnd, run: Option<ReadRun>, now: Instant) -> LearnedEnd {
        let known = self.pages.named(&end.page.name);
        let changed = known.map_or(0, |(_, page)| page.changed);
        let is_guarded = known.is_some_and(|(_, page)| page.is_guarded) && end.page.keep.is_some();
        let same = known.map_or(0, |(_, page)| page.same);
        let counted_at = known.map_or(now, |(_, page)| page.counted_at);
        let age = now.saturating_duration_since(counted_at);
        if let Some(run) = &run {
            self.see_known_files(&run.record.files, now);
        }
        let mut before = self.compare(end, now);
        let differs = is_guarded && before.changed > changed;
        let agrees = is_guarded && before.same > same && end.page.digest.is_some();
        before.counted_at = Some(counted_at).filter(|_| agrees && age < MIN_AGE);
        self.count_under_way_again();
        let has_record = run.is_some();
        let made_of = self.understand(end, run, now);
        if has_record {
            let is_polled = |it: &MadeOf| !it.tables.is_empty() || it.cache.is_some();
            let is_polled = made_of.as_ref().is_ok_and(is_polled);
            self.note_trial(end, (agrees, differs, age), is_polled, now);
        }
        let known = self.pages.named(&end.page.name).map(|(number, _)| number);
        if let Some(number) = known {
            self.remove(number);
        }
        let learned = made_of.and_then(|mut made_of| {
            let not_kept = match end.page.keep {
                Some(_) => self.why_not_kept(&mut made_of, &end.page, now)?,
                None => None,
            };
            let not_kept = not_kept.or_else(|| self.why_unproven(&end.page, &before, now));
            self.keep(end, (made_of, not_kept), &before, now)
        });
        let name = end.page.name.clone();
        match learned {
            Ok(number) => {
                self.counts.learned += 1;
                if let Some(page) = self.pages.get(number) {
                    if let Some(why) = &page.not_kept {
                        self.counts.note_not_learned(why.reason);
                    }
                    if differs {
                        let inputs = (page.tables.clone(), page.cache.is_some());
                        self.differing.suspect(name.clone(), inputs, now);
                    }
                }
                self.notes.remove(&name);
                LearnedEnd::Known(number, self.moves)
            }
            Err(why) => {
                let reason = why.reason;
                self.counts.note_not_learned(reason);
                self.notes.put(name, why, now);
                match reason {
                    Reason::WrittenMeanwhile | Reason::AddressDatabase => LearnedEnd::Gone,
                    _ => LearnedEnd::Free,
                }
            }
        }
    }

    /// How a page that is known may be shown.
    pub fn showing(&self, learned: LearnedEnd) -> Showing {
        let LearnedEnd::Known(number, _) = learned else {
            return Showing::Ordinary;
        };
        match self.pages.get(number) {
            Some(page) if page.not_kept.is_none() && page.server.is_some() => {
                Showing::KeptWhilePolled
            }
            Some(page) if page.not_kept.is_none() => Showing::Kept,
            _ => Showing::Ordinary,
        }
    }

    /// For how much longer a page may be shown while nothing that it was made of changes.
    pub fn kept_for(&self, number: u32, now: Instant) -> Duration {
        let page = self.pages.get(number);
        page.map_or(Duration::ZERO, |page| {
            page.kept_until.saturating_duration_since(now)
        })
    }

    /// The writes of others have to be seen. `Err`: the page cannot be known at all.
    fn why_not_kept(
        &mut self,
        made_of: &mut MadeOf,
        page: &StoredPage,
        now: Instant,
    ) -> Result<Option<WhyNot>, WhyNot> {
        if self.databases.len() > 1 {
            let servers = self.databases.iter().map(|it| &*it.server);
            let servers: Vec<_> = servers.collect();
            let detail = servers.join(" and ");
            return Err(WhyNot::new(Reason::SeveralServers, detail));
        }
        if self.differing.has(&page.name, now) {
            return Ok(Some(WhyNot::new(Reason::Differs, "")));
        }
        if let Some(cache) = &mut made_of.cache
            && let Err(why) = self.follow_cache(cache, now)
        {
            return Ok(Some(why));
        }
        let Some((at, _)) = &made_of.database else {
            return Ok(None);
        };
        let tables = self.interned(made_of.tables.iter().cloned());
        let database = self.databases.get_mut(*at);
        Ok(database.and_then(|database| database.polled.want(&tables, now).err()))
    }

    /// The facts known before about a page that was made again.
    fn compare(&mut self, end: &PageEnd, now: Instant) -> PageBefore {
        let page = &end.page;
        let Some((number, known)) = self.pages.named(&page.name) else {
            return PageBefore::default();
        };
        if known.fetch > end.mark.fetch() {
            // The known page is of a fetch that began later, and may be newer.
            return PageBefore::of(known);
        }
        self.ask_index(number, now);
        self.ask_sqlite(&page.name, &end.begun.sqlite, now);
        let Some(known) = self.pages.get_mut(number) else {
            return PageBefore::default();
        };
        let is_over = now >= known.ends_at;
        let is_same = page.digest.is_none_or(|new| new == known.digest);
        if page.is_own {
            // Its session may have changed, which is not known here. Another comparison says whether it is kept.
            return PageBefore::of(known);
        }
        let comparison = match (&known.suspect, is_same) {
            (None, true) => Comparison::FreshSame,
            (None, false) => Comparison::FreshChanged,
            (Some(_), true) => Comparison::SuspectSame,
            (Some(_), false) => Comparison::SuspectChanged,
        };
        if !is_over {
            match comparison {
                Comparison::FreshSame => known.same += 1,
                Comparison::FreshChanged => known.changed += 1,
                Comparison::SuspectSame | Comparison::SuspectChanged => {}
            }
            self.counts.note_comparison(comparison);
        }
        PageBefore::of(known)
    }

    /// Asks the index whether a page is suspect, without waiting for the next look at all of them.
    pub(super) fn ask_index(&mut self, number: u32, now: Instant) {
        self.ask_cache(number, now);
        let Some(page) = self.pages.get(number) else {
            return;
        };
        let (is_kept, is_outdated, replays) = (page.is_kept, page.is_outdated, self.replays);
        let Some(server) = page.server.clone().filter(|_| !is_outdated) else {
            return;
        };
        let database = self.databases.iter_mut().find(|it| it.server == server);
        let mut is_known = false;
        let suspicion = database.and_then(|database| {
            let index = database.index.as_mut()?;
            is_known = index.has(number);
            let suspicion = index.suspicion(number)?;
            let text = described(&suspicion, &database.texts);
            Some((text, suspicion.is_open && is_kept && replays))
        });
        match suspicion {
            Some((text, is_open)) => {
                self.suspect(number, &Arc::new(Cause { text, at: now }), is_open);
            }
            None if is_known => self.freshen(number),
            // Nothing is known that speaks for it.
            None => {}
        }
    }

    /// What is needed to read the statements of a run; `None` if it has none.
    pub fn statement_reader(
        &mut self,
        (end, record): (&PageEnd, &RunRecord),
        now: Instant,
    ) -> Result<Option<StatementReader>, WhyNot> {
        if end.page.digest.is_none() {
            return Err(WhyNot::new(Reason::NotModified, ""));
        }
        self.check_run(record, now)?;
        self.reader_of(&record.statements)
    }

    /// `Err`: nothing is learned from the run, whatever its statements are.
    fn check_run(&self, record: &RunRecord, now: Instant) -> Result<(), WhyNot> {
        if let Some(obstacle) = &record.obstacle {
            return Err(obstacle.clone());
        }
        if let Some((pid, why)) = self.unheard.first() {
            let detail = format!("process {pid} is not heard: {why}");
            return Err(WhyNot::new(Reason::Incomplete, detail));
        }
        match self.code_changed_at {
            Some(at) if now.saturating_duration_since(at) < OLD_CODE_RUNS => {
                Err(WhyNot::new(Reason::CodeChanged, ""))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn reader_of(
        &mut self,
        statements: &[SentStatement],
    ) -> Result<Option<StatementReader>, WhyNot> {
        let Some(first) = statements.first() else {
            return Ok(None);
        };
        if let Some(other) = statements.iter().find(|it| it.server != first.server) {
            let detail = format!("{} and {}", first.server, other.server);
            return Err(WhyNot::new(Reason::SeveralServers, detail));
        }
        let no_schema = || WhyNot::new(Reason::NoSchema, &*first.server);
        let at = self.database(&first.server).ok_or_else(no_schema)?;
        let database = self.databases.get_mut(at).ok_or_else(no_schema)?;
        let index = database.index.as_ref().filter(|_| !database.is_in_doubt);
        let Some(index) = index else {
            let detail = format!("{}: {}", first.server, database.why_unknown);
            return Err(WhyNot::new(Reason::NoSchema, detail));
        };
        let sessions = &mut database.sessions;
        let again_in = statements.iter().map(|statement| {
            (self.replays)
                .then(|| super::replays::run_in(statement, sessions))
                .flatten()
        });
        Ok(Some(StatementReader {
            database: at,
            shapes: index.shapes().clone(),
            again_in: again_in.collect(),
        }))
    }

    /// Takes what was read. `Err`: the tables are other ones by now, or may be.
    pub(super) fn take_statements(
        &self,
        read: ReadStatements,
        made_of: &mut MadeOf,
    ) -> Result<(), WhyNot> {
        let database = self.databases.get(read.database);
        let is_as_read = database.is_some_and(|database| {
            let mut index = database.index.iter();
            !database.is_in_doubt && index.any(|index| Arc::ptr_eq(index.shapes(), &read.shapes))
        });
        if !is_as_read {
            let detail = database.map_or("", |database| &*database.server);
            return Err(WhyNot::new(Reason::NoSchema, detail));
        }
        made_of.tables = read.tables;
        made_of.database = Some((read.database, read.record));
        Ok(())
    }

    /// The inputs of the page, or the reason for which they are not known.
    fn understand(
        &mut self,
        end: &PageEnd,
        run: Option<ReadRun>,
        now: Instant,
    ) -> Result<MadeOf, WhyNot> {
        // PHP reads less for a 304 than for the page.
        let digest = end.page.digest;
        let digest = digest.ok_or_else(|| WhyNot::new(Reason::NotModified, ""))?;
        let run = run.ok_or_else(|| WhyNot::new(Reason::NoRecord, ""))?;
        let ReadRun { record, read } = run;
        self.check_run(&record, now)?;
        let files = self.see_files(&record.files, end.begun.at, now)?;
        let statements = u32::try_from(record.statements.len()).unwrap_or(u32::MAX);
        let mut made_of = MadeOf {
            digest,
            statements,
            files,
            sqlite: super::databases::seen_by_page(&record.sqlite, &end.begun.sqlite)?,
            cache: record.cache.map(|(server, keys)| CacheRead {
                server,
                keys,
                ends_at: None,
            }),
            ..MadeOf::default()
        };
        if let Some(read) = read? {
            self.take_statements(read, &mut made_of)?;
        }
        Ok(made_of)
    }

    pub(super) fn see_files(
        &mut self,
        seen: &[SeenFile],
        began_at: i64,
        now: Instant,
    ) -> Result<Vec<u32>, WhyNot> {
        let mut numbers = Vec::with_capacity(seen.len());
        for file in seen {
            let shown = || php_report::shown(file.path.as_os_str().as_encoded_bytes());
            let is_racy = file
                .state
                .is_some_and(|state| state.modified > began_at.saturating_sub(RACY_NANOSECONDS));
            let Some((number, has_changed)) = self.files.see(file) else {
                return Err(WhyNot::new(Reason::TooLong, shown()));
            };
            if has_changed {
                self.file_changed(number, now);
            }
            if is_racy {
                return Err(WhyNot::new(Reason::FileChanged, shown()));
            }
            numbers.push(number);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    fn keep(
        &mut self,
        end: &PageEnd,
        (made_of, not_kept): (MadeOf, Option<WhyNot>),
        before: &PageBefore,
        now: Instant,
    ) -> Result<u32, WhyNot> {
        if let Some(oldest) = self.pages.oldest_if_full() {
            self.remove(oldest);
        }
        let digest = made_of.digest;
        let made = MadePage {
            digest,
            is_suspect: before.is_suspect,
            at: now,
        };
        let kept_for = self.steady.made(&end.page.name, &made, end.page.most);
        let kept_for = kept_for.min(end.left_of_day);
        let cache = made_of.cache.as_ref().map(|cache| CacheOfPage {
            server: cache.server.clone(),
            keys: cache.keys.len(),
            ends_at: cache.ends_at,
        });
        let ends_at = cache.as_ref().and_then(|cache| cache.ends_at);
        let ends = [ends_at, end.page.said_until].into_iter().flatten();
        let kept_for = ends.fold(kept_for, |kept_for, end| {
            kept_for.min(end.saturating_duration_since(now))
        });
        let tables = self.interned(made_of.tables.into_iter());
        let database = made_of.database;
        let server = database
            .as_ref()
            .and_then(|(at, _)| Some(self.databases.get(*at)?.server.clone()));
        let number = self.pages.insert(LearnedPage {
            name: end.page.name.clone(),
            address: end.page.address.as_str().into(),
            shape: end.page.shape.as_deref().map(Into::into),
            server,
            made_at: now,
            counted_at: before.counted_at.unwrap_or(now),
            ends_at: now + end.page.most,
            kept_until: now + kept_for,
            digest,
            statements: made_of.statements,
            tables,
            files: made_of.files.into(),
            sqlite: made_of.sqlite,
            cache,
            suspect: None,
            is_outdated: false,
            fetch: end.mark.fetch(),
            is_guarded: end.page.keep.is_some(),
            is_kept: false,
            not_kept: not_kept.map(Box::new),
            same: before.same,
            changed: before.changed,
            asked: end.mark.asked(),
        });
        if let Some(cache) = &made_of.cache
            && !self.insert_into_cache(number, cache, &end.begun.writes.caches)
        {
            self.remove(number);
            return Err(WhyNot::new(Reason::WrittenMeanwhile, &*cache.server));
        }
        let Some((at, record)) = database else {
            return Ok(number);
        };
        let begun = end.begun.writes.databases.get(at).copied().unwrap_or(0);
        let index = self.databases.get_mut(at).and_then(|it| it.index.as_mut());
        let inserted = match index {
            Some(index) => index.insert(number, begun, &record),
            None => return Ok(number),
        };
        match inserted {
            Ok(()) => Ok(number),
            Err(why) => {
                self.remove(number);
                Err(not_learned(why, b""))
            }
        }
    }

    /// Names of tables, each once in memory.
    pub(super) fn interned(&mut self, names: impl Iterator<Item = String>) -> Box<[Arc<str>]> {
        let tables = &mut self.tables;
        let interned = names.map(|name| match tables.get(&name) {
            Some(known) => known.clone(),
            None => {
                let new: Arc<str> = name.as_str().into();
                tables.insert(name, new.clone());
                new
            }
        });
        interned.collect()
    }
}

/// The text of the write, and the statement of the page that it concerns.
fn described(suspicion: &Suspicion, texts: &VecDeque<(u64, String)>) -> String {
    let written = texts.iter().find(|(number, _)| *number == suspicion.write);
    let written = written.map_or(suspicion.cause.word(), |(_, text)| text);
    match &suspicion.statement {
        Some(statement) => format!("{written} (which concerns {statement})"),
        None => written.to_owned(),
    }
}
