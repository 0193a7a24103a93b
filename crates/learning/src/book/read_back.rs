//! Pages that are written to disk, and read from there at another time: in doubt until all that they were made of is
//! known to be as it was.

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use super::{Book, MadeOf, OLD_CODE_RUNS};
use crate::pages::{Cause, LearnedPage, PageName};
use crate::record::{FileState, RunRecord, SeenFile, SentStatement, ServerName};
use crate::steady::MadePage;

/// A page that was kept for less than this is not written when it is made again: it would be each time.
const LIVED_SHORT: Duration = Duration::from_secs(60);

/// PHP has its socket for longer before it is heard only if another process has heard it before.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// A page as it is written.
pub struct PageToWrite {
    pub digest: u64,
    pub address: Box<str>,
    /// From now on.
    pub lasts: Duration,
    /// The digest of the server; 0: the page asked none.
    pub server: u64,
    /// How many texts of statements decide about it.
    pub texts: usize,
}

/// A page as it was read.
pub struct PageReadBack {
    pub name: PageName,
    pub fetch: u64,
    pub digest: u64,
    pub address: String,
    pub age: Duration,
    pub left: Duration,
    pub server: u64,
    /// When its first fetch began, in Unix nanoseconds.
    pub began: i64,
    pub scripts: Vec<SeenFile>,
    /// Whether a visitor has asked for it, as its mark has it.
    pub asked: Arc<AtomicBool>,
}

/// The facts that have to be known before a page can be read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The tables of its server.
    Schema,
    /// When these were written last.
    Poll,
    /// It cannot be read back.
    Refused,
}

impl Book {
    /// Notes whether PHP may have read scripts that were reported to another process, because the socket is old.
    pub fn expect_scripts_of(&mut self, socket: &Metadata) {
        let age = socket
            .modified()
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        self.lacks_scripts |= age.is_some_and(|age| age > BEGINS_WITHIN);
    }

    /// Was the page of this name kept for a short time only?
    pub fn ended_early(&mut self, name: &[u8], now: Instant) -> bool {
        let Some((number, _)) = self.pages.named(name) else {
            return false;
        };
        self.ask_index(number, now);
        self.pages.get(number).is_some_and(|page| {
            let lived = now.saturating_duration_since(page.made_at);
            page.is_kept && page.suspect.is_some() && lived < LIVED_SHORT
        })
    }

    /// `None`: it cannot be known at another time whether the page is still good.
    pub fn page_to_write(&self, (number, fetch): (u32, u64)) -> Option<PageToWrite> {
        let page = self
            .pages
            .get(number)
            .filter(|page| page.fetch == fetch && page.is_guarded && page.not_kept.is_none())?;
        let can_be_known = page.sqlite.is_empty() && !self.lacks_scripts && self.unheard.is_empty();
        let (server, texts) = match &page.server {
            None => (0, 0),
            Some(server) => {
                let database = self.databases.iter().find(|it| it.server == *server)?;
                let texts = database.index.as_ref()?.texts_of_page(number)?;
                (database.digest, texts)
            }
        };
        can_be_known.then(|| PageToWrite {
            digest: page.digest,
            address: page.address.clone(),
            lasts: page.kept_until.saturating_duration_since(page.made_at),
            server,
            texts,
        })
    }

    /// All scripts that are known.
    pub fn scripts(&self) -> Vec<(&Path, Option<FileState>)> {
        self.files.scripts()
    }

    /// Takes a page back whose files and scripts were found as they were. It is suspect until its statements were run.
    pub fn read_back(
        &mut self,
        page: &PageReadBack,
        run: &RunRecord,
        now: Instant,
    ) -> Result<u32, Missing> {
        self.may_be_read_back(page, run, now)
            .ok_or(Missing::Refused)?;
        let mut made_of = MadeOf {
            statements: u32::try_from(run.statements.len()).unwrap_or(u32::MAX),
            ..MadeOf::default()
        };
        if let Some(first) = run.statements.first() {
            self.knows_server(&first.server, page.server)?;
        }
        self.read_statements(&run.statements, page.began, &mut made_of)
            .ok_or(Missing::Refused)?;
        let tables = self.interned(made_of.tables.iter().cloned());
        if let Some((at, _)) = &made_of.database
            && let Some(database) = self.databases.get_mut(*at)
        {
            // Before a statement is run: what is written after it shows in a later poll.
            let polled = database.polled.want(&tables, now);
            polled.map_err(|_| Missing::Poll)?;
        }
        // They were not written a moment ago: that was looked at when the page was made.
        let mut see = |files| {
            self.see_files(files, i64::MAX, now)
                .map_err(|_| Missing::Refused)
        };
        see(&page.scripts)?;
        made_of.files = see(&run.files)?;
        self.enter(page, made_of, tables, now)
            .ok_or(Missing::Refused)
    }

    /// Reads them under the lock of the book: pages come from disk one after the other, in the first moments alone.
    fn read_statements(
        &mut self,
        statements: &[SentStatement],
        began_at: i64,
        made_of: &mut MadeOf,
    ) -> Option<()> {
        match self.reader_of(statements).ok()? {
            Some(reader) => {
                let read = reader.read(statements, began_at).ok()?;
                self.take_statements(read, made_of).ok()
            }
            None => Some(()),
        }
    }

    fn may_be_read_back(&self, page: &PageReadBack, run: &RunRecord, now: Instant) -> Option<()> {
        let known = self.pages.named(&page.name);
        let is_newer = known.is_some_and(|(_, known)| known.fetch > page.fetch);
        let runs_old_code = self
            .code_changed_at
            .is_some_and(|at| now.saturating_duration_since(at) < OLD_CODE_RUNS);
        let mut files = run.files.iter().chain(&page.scripts);
        let may_be = run.obstacle.is_none()
            && run.sqlite.is_empty()
            && self.replays
            && !self.lacks_scripts
            && self.unheard.is_empty()
            && self.databases.len() <= 1
            && !is_newer
            && !runs_old_code
            && !self.differing.has(&page.name, now)
            && !files.any(|file| self.files.is_other(file));
        may_be.then_some(())
    }

    /// Is it the server of the page, with the tables that it had?
    fn knows_server(&mut self, server: &ServerName, digest: u64) -> Result<(), Missing> {
        let is_another = self
            .databases
            .first()
            .is_some_and(|it| it.server != *server);
        if is_another {
            return Err(Missing::Refused);
        }
        let at = self.database(server).ok_or(Missing::Refused)?;
        let database = self.databases.get(at).ok_or(Missing::Refused)?;
        if database.index.is_none() || database.is_in_doubt {
            return Err(Missing::Schema);
        }
        match database.digest == digest {
            true => Ok(()),
            false => Err(Missing::Refused),
        }
    }

    fn enter(
        &mut self,
        page: &PageReadBack,
        made_of: MadeOf,
        tables: Box<[Arc<str>]>,
        now: Instant,
    ) -> Option<u32> {
        if let Some(number) = self.pages.named(&page.name).map(|(number, _)| number) {
            self.remove(number);
        }
        if let Some(oldest) = self.pages.oldest_if_full() {
            self.remove(oldest);
        }
        let database = made_of.database;
        let server = database
            .as_ref()
            .and_then(|(at, _)| self.databases.get(*at));
        let server = server.map(|it| it.server.clone());
        let cause = server.is_some().then(|| Cause {
            text: "it was read from disk".to_owned(),
            at: now,
        });
        let made_at = now.checked_sub(page.age).unwrap_or(now);
        let made = MadePage {
            digest: page.digest,
            is_suspect: false,
            at: made_at,
        };
        self.steady.made(&page.name, &made, page.left);
        let number = self.pages.insert(LearnedPage {
            name: page.name.clone(),
            address: page.address.as_str().into(),
            shape: None,
            server,
            made_at,
            counted_at: now,
            ends_at: now + page.left,
            kept_until: now + page.left,
            digest: page.digest,
            statements: made_of.statements,
            tables,
            files: made_of.files.into(),
            sqlite: Box::default(),
            cache: None,
            suspect: cause.map(Arc::new),
            is_outdated: false,
            fetch: page.fetch,
            is_guarded: true,
            is_kept: true,
            not_kept: None,
            same: 0,
            changed: 0,
            asked: page.asked.clone(),
        });
        let is_in = match database {
            None => true,
            Some((at, record)) => {
                let index = self.databases.get_mut(at).and_then(|it| it.index.as_mut());
                index.is_some_and(|index| {
                    let is_in = index.read_back(number, &record).is_ok();
                    is_in && index.texts_of_page(number).is_some()
                })
            }
        };
        if !is_in {
            self.remove(number);
        }
        is_in.then_some(number)
    }

    /// A server was asked for its tables and their writes while a page waits for it. Returns how many definitions it had seen, and
    /// what is asked for.
    pub fn to_ask(
        &self,
        server: &ServerName,
        now: Instant,
    ) -> Option<(u64, Vec<Arc<str>>, Duration)> {
        let database = self.databases.iter().find(|it| it.server == *server)?;
        let polled = &database.polled;
        Some((database.definitions, polled.wanted(), polled.window(now)))
    }
}

#[cfg(test)]
#[path = "../read_back_tests.rs"]
mod tests;
