//! The pages of one pool: the inputs that each was made of, and their changes since.
//!
//! Pure: the time is passed in, and nothing here asks a database or a file. The indexes of `learned`
//! hold what statements read, one for each server; a page of files alone is in none.

mod caches;
mod changes;
mod databases;
mod elsewhere;
mod read_back;
mod replays;
mod trials;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learned::{Index, NoisyStatement, PageRecord, Suspicion};

use crate::StoredPage;
use crate::announced::UnansweredWriteTable;
use crate::caches::Caches;
use crate::counts::{Comparison, Counts};
use crate::differing::DifferingPages;
use crate::doubts::Doubts;
use crate::files::{ChangedFile, FileToCheck, Files};
use crate::log_state::LogState;
use crate::mark::{FetchBeginning, PageMark, WriteCounts};
use crate::pages::{CacheOfPage, Cause, LearnedPage, Notes, PageReport, Pages};
use crate::php_report;
use crate::poll::PolledTables;
use crate::record::{CacheKey, Reason, RunRecord, SeenFile, SentStatement, ServerName, WhyNot};
use crate::replay::ReplaySession;
use crate::replay_time::ReplayTime;
use crate::schema_reader::ReadSchema;
use crate::server_identity::OtherServers;
use crate::sessions::Visit;
use crate::sqlite::SqliteSeen;
use crate::statements::{ReadRun, ReadStatements, StatementReader, not_learned};
use crate::steady::{MadePage, SteadyPages};
use crate::trials::{MIN_AGE, Trials};

pub use read_back::{Missing, PageReadBack};
pub use replays::{Confirmation, ReplayRound};

/// Database servers of one pool. Further ones are not learned.
pub const MAX_SERVERS: usize = 4;

/// A script that changed may still run as it was for so long: `realpath_cache_ttl` is 120 seconds, and
/// `opcache.revalidate_freq` 2.
const OLD_CODE_RUNS: Duration = Duration::from_secs(122);

/// The time of a file reveals a change only where it lay so far back when PHP looked: two changes within
/// one tick of the file system have one time.
const RACY_NANOSECONDS: i64 = 1_000_000_000;

/// Processes that are alive and not heard.
const MAX_UNHEARD: usize = 64;

/// Files of a page that are shown.
const MAX_SHOWN_FILES: usize = 20;

/// A page that was stored, and what held when its fetch began.
pub struct PageEnd {
    pub page: StoredPage,
    pub begun: FetchBeginning,
    pub mark: Arc<PageMark>,
    /// The rest of the day in which the fetch began: it is not kept longer.
    pub left_of_day: Duration,
    /// The visit of the visitor whose request it was, if the visitor has copies.
    pub visit: Option<Visit>,
}

/// The decision about a page that was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnedEnd {
    /// It has this number, and is good while the pool has moved so often.
    Known(u32, u64),
    /// It is not learned, and counts as if nothing were.
    Free,
    /// Its inputs have changed since, or it may be for one network.
    Gone,
}

/// For how long a page is shown while it is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Showing {
    /// For its ordinary lifetime.
    Ordinary,
    /// For as long as may be.
    Kept,
    /// Like `Kept`, while the writes of others are seen.
    KeptWhilePolled,
}

struct Database {
    server: ServerName,
    index: Option<Index>,
    /// Its tables may not be what they were: they are asked for again.
    is_in_doubt: bool,
    /// Why they are not known, for people.
    why_unknown: String,
    /// Statements that may have changed them.
    definitions: u64,
    modes: String,
    digest: u64,
    /// The last writes by their numbers, for people.
    texts: VecDeque<(u64, String)>,
    polled: PolledTables,
    /// The servers that other machines name.
    others: OtherServers,
    log: LogState,
    /// Why its log was not followed, as the last notice reports it; empty: it is.
    logged_reason: Arc<str>,
    /// In which statements can be run again, by their numbers from 0 on.
    sessions: Vec<Arc<ReplaySession>>,
}

// Large: what is known of one pool, under one lock; a write may concern each of them.
#[derive(Default)]
pub struct Book {
    databases: Vec<Database>,
    pub caches: Caches,
    pages: Pages,
    notes: Notes,
    files: Files,
    tables: HashMap<String, Arc<str>>,
    counts: Counts,
    code_changed_at: Option<Instant>,
    unheard: Vec<(u32, &'static str)>,
    doubts: Doubts,
    announced: UnansweredWriteTable,
    /// How often something happened that may alter pages.
    moves: u64,
    differing: DifferingPages,
    steady: SteadyPages,
    pub trials: Trials,
    /// For the error log.
    notices: Vec<String>,
    audited: u32,
    /// Statements of suspect pages are run again.
    replays: bool,
    replay_time: ReplayTime,
    /// Suspect pages for which visitors wait.
    awaited: BTreeSet<u32>,
    /// Other machines show pages made of the same data.
    pub has_nodes: bool,
    /// PHP may have read scripts that were reported to another process.
    lacks_scripts: bool,
}

/// The facts known about a page when it was made again.
struct PageBefore {
    /// How often it was the same, and another.
    same: u32,
    changed: u32,
    /// Its data may have changed since: also if the page is not known.
    is_suspect: bool,
    /// The next comparison is with this time: the last one did not count.
    counted_at: Option<Instant>,
}

impl Default for PageBefore {
    fn default() -> PageBefore {
        PageBefore {
            same: 0,
            changed: 0,
            is_suspect: true,
            counted_at: None,
        }
    }
}

impl PageBefore {
    fn of(page: &LearnedPage) -> PageBefore {
        PageBefore {
            same: page.same,
            changed: page.changed,
            is_suspect: page.suspect.is_some(),
            counted_at: None,
        }
    }
}

/// The inputs of a page, before it is kept.
#[derive(Default)]
struct MadeOf {
    /// The digest of the page itself.
    digest: u64,
    database: Option<(usize, PageRecord)>,
    tables: Vec<String>,
    statements: u32,
    files: Vec<u32>,
    sqlite: Box<[SqliteSeen]>,
    cache: Option<CacheRead>,
}

/// What was read of an object cache.
struct CacheRead {
    server: ServerName,
    keys: Vec<CacheKey>,
    /// When the first of the keys ends by itself.
    ends_at: Option<Instant>,
}

impl Book {
    pub fn writes(&self) -> Arc<WriteCounts> {
        let databases = self.databases.iter();
        let databases = databases.map(|it| it.index.as_ref().map_or(0, Index::writes));
        Arc::new(WriteCounts {
            databases: databases.collect(),
            caches: self.caches.writes(),
        })
    }

    pub fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// The counts, with the numbers of the moment.
    pub fn snapshot(&self) -> Counts {
        let suspect = self.pages.iter().filter(|(_, page)| page.suspect.is_some());
        let is_kept = |page: &LearnedPage| page.is_kept && page.suspect.is_none();
        let kept = self.pages.iter().filter(|(_, page)| is_kept(page));
        let logs = self.databases.iter().map(|it| &it.log);
        let followed = logs.filter(|log| **log == LogState::Followed);
        Counts {
            pages: self.pages.len() as u64,
            suspect: suspect.count() as u64,
            kept: kept.count() as u64,
            followed: followed.count() as u64,
            shapes: self.trials.counts(Instant::now()),
            ..self.counts
        }
    }

    /// Is there no page that may be shown by what is known of it?
    pub fn has_nothing_to_show(&self, now: Instant) -> bool {
        let mut pages = self.pages.iter();
        pages.all(|(_, page)| !page.is_fresh(now) && !page.is_open(now))
    }

    /// The statements of pages that writes concern most often.
    pub fn noisiest(&self, most: usize) -> Vec<NoisyStatement> {
        let indexes = self.databases.iter().filter_map(|it| it.index.as_ref());
        let mut all: Vec<NoisyStatement> = indexes.flat_map(|index| index.noisiest(most)).collect();
        all.sort_by_key(|it| std::cmp::Reverse(u64::from(it.writes) * u64::from(it.pages)));
        all.truncate(most);
        all
    }

    /// The servers that pages were made from, whether their tables have to be read, and how many
    /// definitions each has seen.
    pub fn servers(&self) -> Vec<(ServerName, bool, u64)> {
        let databases = self.databases.iter();
        let servers = databases.map(|it| (it.server.clone(), it.is_in_doubt, it.definitions));
        servers.collect()
    }

    /// The modes that a server gives to each session.
    pub fn modes(&self, server: &str) -> String {
        let database = self.databases.iter().find(|it| *it.server == *server);
        database.map_or_else(String::new, |database| database.modes.clone())
    }

    /// Takes the tables of a server, read once it had seen this many definitions. Pages that were made
    /// under another schema are suspect.
    pub fn set_schema(
        &mut self,
        server: &ServerName,
        read: Result<ReadSchema, String>,
        definitions: u64,
        now: Instant,
    ) {
        let database = self.databases.iter_mut().find(|it| it.server == *server);
        let Some(database) = database else {
            return;
        };
        let read = match read {
            Ok(read) => read,
            Err(why) => {
                database.is_in_doubt = true;
                database.why_unknown = why;
                return;
            }
        };
        database.is_in_doubt = database.definitions != definitions;
        if database.index.is_some() && database.digest == read.digest {
            return;
        }
        database.digest = read.digest;
        database.modes = read.modes;
        // The count goes on: fetches under way compare with it.
        let writes = database.index.as_ref().map_or(0, Index::writes);
        let index = Index::after(writes, read.schema);
        if database.index.replace(index).is_some() {
            let is_of_it = |page: &LearnedPage| page.server.as_ref() == Some(server);
            self.suspect_all("the tables have changed", now, is_of_it);
        }
    }

    /// The number of a server; `None`: there are too many.
    pub(crate) fn database(&mut self, server: &ServerName) -> Option<usize> {
        let known = self.databases.iter().position(|it| it.server == *server);
        if known.is_none() && self.databases.len() < MAX_SERVERS {
            // With several, pages are not kept.
            self.moves += 1;
            self.databases.push(Database {
                server: server.clone(),
                index: None,
                is_in_doubt: true,
                why_unknown: String::new(),
                definitions: 0,
                modes: String::new(),
                digest: 0,
                texts: VecDeque::new(),
                polled: PolledTables::default(),
                others: OtherServers::default(),
                log: LogState::Off,
                logged_reason: Arc::default(),
                sessions: Vec::new(),
            });
            return Some(self.databases.len() - 1);
        }
        known
    }

    fn index(&mut self, server: &ServerName) -> Option<&mut Index> {
        let at = self.database(server)?;
        self.databases.get_mut(at)?.index.as_mut()
    }

    /// Marks the pages that are suspect by now.
    pub fn note_suspects(&mut self, now: Instant) {
        let open = self.pages.iter().filter(|(_, page)| !page.is_outdated);
        let open: Vec<u32> = open.map(|(number, _)| number).collect();
        open.into_iter()
            .for_each(|number| self.ask_index(number, now));
    }

    /// `is_open`: its statements can be run again.
    fn suspect(&mut self, number: u32, cause: &Arc<Cause>, is_open: bool) {
        let Some(page) = self.pages.get_mut(number).filter(|it| !it.is_outdated) else {
            return;
        };
        self.counts.matched += u64::from(page.suspect.is_none());
        if page.suspect.is_none() || !is_open {
            page.suspect = Some(cause.clone());
        }
        if !is_open {
            page.is_outdated = true;
            self.counts.removed += u64::from(page.is_kept);
        }
    }

    /// Marks pages that something has altered that no index knows.
    pub fn suspect_all(
        &mut self,
        why: &str,
        now: Instant,
        is_meant: impl Fn(&LearnedPage) -> bool,
    ) {
        self.moves += 1;
        let cause = Arc::new(Cause {
            text: why.to_owned(),
            at: now,
        });
        let meant = self.pages.iter().filter(|(_, page)| is_meant(page));
        let meant: Vec<u32> = meant.map(|(number, _)| number).collect();
        meant
            .into_iter()
            .for_each(|number| self.suspect(number, &cause, false));
    }

    /// A process that runs PHP for the pool is not heard any more.
    pub fn note_unheard(&mut self, pid: u32, why: &'static str) {
        if self.unheard.len() < MAX_UNHEARD && self.unheard.iter().all(|(it, _)| *it != pid) {
            self.unheard.push((pid, why));
        }
    }

    /// Forgets those that have ended.
    pub fn forget_unheard(&mut self, is_alive: impl Fn(u32) -> bool) {
        self.unheard.retain(|(pid, _)| is_alive(*pid));
    }

    /// The scripts among the files of a run: PHP keeps them compiled, and looks at each once.
    pub fn see_code(&mut self, files: &[SeenFile], now: Instant) {
        let scripts = files.iter().filter(|file| Files::is_script(&file.path));
        let changed = scripts.filter_map(|file| self.files.see(file));
        let changed: Vec<u32> = changed
            .filter_map(|(number, has_changed)| has_changed.then_some(number))
            .collect();
        changed
            .into_iter()
            .for_each(|number| self.file_changed(number, now));
    }

    pub fn files_to_check(&self) -> Vec<FileToCheck> {
        self.files.to_check()
    }

    pub fn files_changed(&mut self, changed: &[ChangedFile], now: Instant) {
        for file in changed {
            if self.files.change(file) {
                self.file_changed(file.number, now);
            }
        }
    }

    fn file_changed(&mut self, number: u32, now: Instant) {
        let path = self.files.path(number).unwrap_or(Path::new(""));
        let shown = php_report::shown(path.as_os_str().as_encoded_bytes());
        let why = format!("{shown} has changed");
        if Files::is_script(path) {
            self.code_changed_at = Some(now);
            self.suspect_all(&why, now, |_| true);
        } else {
            self.suspect_all(&why, now, |page| page.files.contains(&number));
        }
    }

    /// Lets pages go that count as unknown by now.
    pub fn forget_ended(&mut self, now: Instant) {
        for number in self.pages.ended(now) {
            self.remove(number);
        }
        self.differing.forget_old(now);
    }

    fn remove(&mut self, number: u32) -> Option<LearnedPage> {
        let page = self.pages.remove(number)?;
        if let Some(server) = &page.server
            && let Some(index) = self.index(server)
        {
            index.remove(number);
        }
        if let Some(cache) = page
            .cache
            .as_ref()
            .and_then(|it| self.caches.of(&it.server))
        {
            cache.remove(number);
        }
        Some(page)
    }

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
            return Ok(Some(WhyNot::new(Reason::Unpolled, why)));
        }
        let Some((at, _)) = &made_of.database else {
            return Ok(None);
        };
        let tables = self.interned(made_of.tables.iter().cloned());
        let database = self.databases.get_mut(*at);
        let wanted = database.map_or(Ok(()), |database| database.polled.want(&tables, now));
        Ok(wanted.err().map(|why| WhyNot::new(Reason::Unpolled, why)))
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
    fn ask_index(&mut self, number: u32, now: Instant) {
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

    fn reader_of(
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
                .then(|| replays::run_in(statement, sessions))
                .flatten()
        });
        Ok(Some(StatementReader {
            database: at,
            shapes: index.shapes().clone(),
            again_in: again_in.collect(),
        }))
    }

    /// Takes what was read. `Err`: the tables are other ones by now, or may be.
    fn take_statements(&self, read: ReadStatements, made_of: &mut MadeOf) -> Result<(), WhyNot> {
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
            sqlite: databases::seen_by_page(&record.sqlite, &end.begun.sqlite)?,
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

    fn see_files(
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
    fn interned(&mut self, names: impl Iterator<Item = String>) -> Box<[Arc<str>]> {
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

    /// Reports a page to people.
    pub fn report(&mut self, name: &[u8], now: Instant) -> Option<PageReport> {
        let number = self.pages.named(name).map(|(number, _)| number);
        if let Some(number) = number {
            self.ask_index(number, now);
        }
        let ago = |at: Instant| now.saturating_duration_since(at);
        let replay_percent = self.replays.then(|| self.replay_time.percent(now));
        match self.pages.named(name).map(|(_, page)| page) {
            Some(page) if now < page.ends_at => Some(PageReport::Learned {
                made_ago: ago(page.made_at),
                suspect: page
                    .suspect
                    .as_ref()
                    .map(|cause| (cause.text.clone(), ago(cause.at))),
                left: page.kept_until.saturating_duration_since(now),
                is_kept: page.is_kept,
                not_kept: page.not_kept.as_deref().cloned(),
                statements: page.statements,
                tables: page.tables.iter().map(ToString::to_string).collect(),
                files: self.shown_files(page),
                log: self.log_of(page),
                databases: shown_databases(page),
                replay_percent: replay_percent.filter(|_| page.is_open(now)),
                same: page.same,
                changed: page.changed,
            }),
            _ => {
                let (why, at) = self.notes.of(name)?;
                Some(PageReport::NotLearned {
                    why: why.clone(),
                    ago: ago(*at),
                })
            }
        }
    }

    fn log_of(&self, page: &LearnedPage) -> LogState {
        let mut databases = self.databases.iter();
        let database = databases.find(|it| Some(&it.server) == page.server.as_ref());
        database.map_or(LogState::Off, |it| it.log.clone())
    }

    /// Files but for scripts, which are those of all pages.
    fn shown_files(&self, page: &LearnedPage) -> Vec<String> {
        let paths = page.files.iter().filter_map(|file| self.files.path(*file));
        let paths = paths.filter(|path| !Files::is_script(path));
        let shown = paths.take(MAX_SHOWN_FILES);
        shown.map(|path| path.display().to_string()).collect()
    }

    /// The address of a page that counts as fresh, each in its turn.
    pub fn page_to_audit(&mut self, now: Instant) -> Option<String> {
        let numbers = self.audited..self.audited.saturating_add(1000);
        let found = numbers.into_iter().find(|number| {
            let page = self.pages.get(*number);
            page.is_some_and(|page| page.is_fresh(now))
        });
        self.audited = match found {
            Some(number) => number + 1,
            None => 0,
        };
        let page = self.pages.get(found?)?;
        self.counts.audits += 1;
        Some(page.address.to_string())
    }
}

fn shown_databases(page: &LearnedPage) -> Vec<String> {
    let paths = page.sqlite.iter().map(|it| it.database.path());
    let cache = page.cache.iter();
    let cache = cache.map(|it| format!("{} keys of the object cache {}", it.keys, it.server));
    paths
        .map(|path| path.display().to_string())
        .chain(cache)
        .collect()
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

#[cfg(test)]
#[path = "book_tests.rs"]
pub(crate) mod tests;
