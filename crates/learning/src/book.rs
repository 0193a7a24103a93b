//! The pages of one pool: the inputs that each was made of, and their changes since.
//!
//! Pure: the time is passed in, and nothing here asks a database or a file. The indexes of `learned`
//! hold what statements read, one for each server; a page of files alone is in none.

mod caches;
mod changes;
mod databases;
mod elsewhere;
mod learn;
mod read_back;
mod replays;
mod report;
mod trials;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learned::{Index, NoisyStatement, PageRecord};

use crate::StoredPage;
use crate::announced::UnansweredWriteTable;
use crate::caches::Caches;
use crate::counts::Counts;
use crate::differing::DifferingPages;
use crate::doubts::Doubts;
use crate::files::{ChangedFile, FileToCheck, Files};
use crate::log_state::LogState;
use crate::mark::{FetchBeginning, PageMark, WriteCounts};
use crate::pages::{Cause, LearnedPage, Notes, Pages};
use crate::php_report;
use crate::poll::PolledTables;
use crate::record::{CacheKey, SeenFile, ServerName};
use crate::replay::ReplaySession;
use crate::replay_time::ReplayTime;
use crate::schema_reader::ReadSchema;
use crate::server_identity::OtherServers;
use crate::sessions::Visit;
use crate::sqlite::SqliteSeen;
use crate::steady::SteadyPages;
use crate::trials::Trials;

pub use read_back::{Missing, PageReadBack};
pub use replays::{Confirmation, ReplayRound};

/// Database servers of one pool. Further ones are not learned.
pub const MAX_SERVERS: usize = 4;

/// A script that changed may still run as it was for so long: `realpath_cache_ttl` is 120 seconds, and
/// `opcache.revalidate_freq` 2.
const OLD_CODE_RUNS: Duration = Duration::from_secs(122);

/// Processes that are alive and not heard.
const MAX_UNHEARD: usize = 64;

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
        read: io::Result<ReadSchema>,
        definitions: u64,
        now: Instant,
    ) {
        let database = self.databases.iter_mut().find(|it| it.server == *server);
        let Some(database) = database else {
            return;
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                database.is_in_doubt = true;
                database.why_unknown = error.to_string();
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

#[cfg(test)]
#[path = "book_tests.rs"]
pub(crate) mod tests;
