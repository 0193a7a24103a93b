//! Changes of the data that pages were made of: writes of the pool's processes, by their announcements and
//! answers, and those of other programs, by polls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use learned::{Effect, TableChange};

use super::{Book, Database};
use crate::announced::{SEEN_WITHIN, WriteNumber};
use crate::doubts::AskedServer;
use crate::log_state::LogState;
use crate::php_report;
use crate::poll::{PollAnswer, PollResult};
use crate::record::{CacheWrite, SentWrite, ServerName};

/// Lines that wait to be written into the error log.
const MAX_NOTICES: usize = 16;

/// Texts of writes that are kept for each server.
const MAX_TEXTS: usize = 256;

impl Book {
    /// These are about to be written: what they may alter is suspect from now on.
    /// Returns whether they may alter anything.
    pub fn announced(
        &mut self,
        number: WriteNumber,
        writes: &Arc<[SentWrite]>,
        now: Instant,
    ) -> bool {
        // Without a server that is known, pages that are being fetched may be the first ones of it.
        let is_write = writes
            .iter()
            .fold(writes.is_empty(), |any, write| self.count(write) | any);
        if is_write {
            self.moves += 1;
            self.announced.add(number, writes.clone(), now);
        }
        is_write
    }

    /// The server has answered: others see what was written.
    pub fn answered(&mut self, number: WriteNumber, writes: &[SentWrite]) {
        self.announced.remove(number);
        self.moves += u64::from(writes.is_empty());
        writes.iter().for_each(|write| self.written(write));
    }

    /// Returns the writes of a command that are counted. A server that no page was made from may be one of those that pages
    /// were made from, by another address: there, anything may be written.
    pub fn of_known_servers(&self, writes: &[SentWrite]) -> Arc<[SentWrite]> {
        let databases = self.databases.iter().map(|it| it.server.clone());
        let (databases, caches): (Vec<_>, _) = (databases.collect(), self.caches.servers());
        let meant = writes.iter().flat_map(|write| {
            let servers = match write.cache {
                Some(_) => &caches,
                None => &databases,
            };
            if servers.contains(&write.server) {
                return vec![write.clone()];
            }
            let as_of = |server: &ServerName| SentWrite {
                server: server.clone(),
                is_complete: false,
                cache: write.cache.as_ref().map(|_| CacheWrite::Everything),
                ..write.clone()
            };
            servers.iter().map(as_of).collect()
        });
        meant.collect()
    }

    /// Counts a write: pages that it may alter are suspect from now on.
    pub fn written(&mut self, write: &SentWrite) {
        self.counts.writes += 1;
        self.moves += u64::from(self.count(write));
    }

    /// Notes that a process reports its writes again. It may have written anything meanwhile: also what pages read that are
    /// being fetched.
    pub fn note_heard_again(&mut self, pid: u32, now: Instant) {
        let why = "a worker was not heard for a while";
        self.lacks_scripts = true;
        self.unheard.retain(|(unheard, _)| *unheard != pid);
        self.suspect_all(why, now, |_| true);
        for database in &mut self.databases {
            database.written(Effect::Everything, why.to_owned());
        }
    }

    /// How often something happened that may alter pages.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Writes that others may see at any moment.
    pub fn count_under_way(&self) -> usize {
        self.announced.count() + self.doubts.count()
    }

    /// Have all of them been so for long?
    pub fn has_slow_writes_only(&self, now: Instant) -> bool {
        self.announced.are_slow(now) && self.doubts.are_older_than(SEEN_WITHIN, now)
    }

    /// Takes the writes of a process that ended before it reported their outcome. The server may still do them, so
    /// they count until it has let go of their connections.
    pub fn left_in_doubt(&mut self, process: u64, writes: Vec<SentWrite>, now: Instant) {
        self.announced.remove_all_of(process);
        writes.iter().for_each(|write| self.written(write));
        // Who follows an object cache hears of what it does later.
        let statements = writes.into_iter().filter(|it| it.cache.is_none());
        self.doubts.add(statements.collect(), now);
    }

    /// The servers that have to be asked which connections they have.
    pub fn servers_in_doubt(&self) -> Vec<ServerName> {
        self.doubts.servers()
    }

    /// Takes the connections that a server has listed, when it was asked after `asked`.
    pub fn connections_listed(&mut self, asked: u64, listed: &AskedServer<'_>, now: Instant) {
        let over = self.doubts.end(asked, listed, now);
        for write in &over {
            self.moves += u64::from(self.count(write));
        }
    }

    /// The number of the last doubt.
    pub fn last_doubt(&self) -> u64 {
        self.doubts.last()
    }

    /// Counts writes that others may see at any moment once more for each page that is learned: they are in no page that was
    /// found good before, so that nothing moves.
    pub(super) fn count_under_way_again(&mut self) {
        let (doubts, announced) = (
            std::mem::take(&mut self.doubts),
            std::mem::take(&mut self.announced),
        );
        for write in doubts.writes().chain(announced.writes()) {
            self.count(write);
        }
        (self.doubts, self.announced) = (doubts, announced);
    }

    /// Whether it writes anything.
    fn count(&mut self, write: &SentWrite) -> bool {
        if let Some(cache) = &write.cache {
            self.count_cache(&write.server, cache, php_report::shown(&write.text));
            return true;
        }
        let Some(at) = self.database(&write.server) else {
            return true;
        };
        let Some(database) = self.databases.get_mut(at) else {
            return true;
        };
        let effect = database.effect(write);
        let is_write = effect != Effect::Nothing;
        if effect == Effect::Everything && php_report::is_definition(&write.text) {
            database.doubt_definitions();
        }
        if is_write {
            database.written(effect, php_report::shown(&write.text));
        }
        is_write
    }

    /// A server was asked what other programs have written.
    pub fn polled(
        &mut self,
        server: &ServerName,
        answer: PollAnswer,
        (asked, began): (&[Arc<str>], Instant),
    ) {
        let database = self.databases.iter_mut().find(|it| it.server == *server);
        let Some(database) = database else {
            return;
        };
        let seen = database.polled.compare(answer, asked, began);
        let decided = self.differing.polled(seen.tables(), began);
        self.trials.polled(&decided.explained, &decided.unexplained);
        let (effect, why) = match seen {
            PollResult::Tables(tables) if tables.is_empty() => return,
            PollResult::Tables(tables) => (
                database.effect_on(&tables),
                format!("a write to {}", tables.join(", ")),
            ),
            PollResult::Everything(why) => {
                // Nothing was compared: they may be others than those that were read.
                database.doubt_definitions();
                (Effect::Everything, why.to_owned())
            }
            PollResult::Definitions => {
                database.doubt_definitions();
                let why = "tables, views or triggers have changed".to_owned();
                (Effect::Everything, why)
            }
        };
        database.written(effect, why);
        self.moves += 1;
    }

    /// The binary log is followed from now on. What was written before it was is in none of its events.
    pub fn log_begun(&mut self, server: &ServerName) {
        self.note_log(server, LogState::Followed);
        self.moves += u64::from(self.count(&SentWrite::unknown(server)));
    }

    /// Counts writes of the log once more: others see them now.
    pub fn log_counted(&mut self, number: WriteNumber, writes: &[SentWrite]) {
        self.announced.remove(number);
        self.counts.logged += writes.len() as u64;
        for write in writes {
            self.moves += u64::from(self.count(write));
        }
    }

    /// Whether the log of a server is followed.
    pub fn note_log(&mut self, server: &ServerName, state: LogState) {
        let mut databases = self.databases.iter_mut();
        let Some(database) = databases.find(|it| it.server == *server) else {
            return;
        };
        let reason = match &state {
            LogState::Off => None,
            LogState::Followed => Some(Arc::default()),
            LogState::NotFollowed(why) => Some(why.clone()),
        };
        database.log = state;
        let Some(why) = reason.filter(|why| *why != database.logged_reason) else {
            return;
        };
        let notice = match &*why {
            "" => format!("the binary log of {server} is followed again"),
            why => format!("the binary log of {server} is not followed: {why}"),
        };
        database.logged_reason = why;
        self.note(notice);
    }

    /// Says something in the error log.
    pub fn note(&mut self, notice: String) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(notice);
        }
    }

    /// Takes the messages for the error log.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// A server did not tell what other programs have written.
    pub fn poll_failed(&mut self, server: &ServerName, why: String) {
        let mut databases = self.databases.iter_mut();
        if let Some(database) = databases.find(|it| it.server == *server) {
            database.polled.fail(why);
        }
    }

    /// Whom to poll, for what, and since when a table counts as recently written.
    pub fn to_poll(&self, now: Instant) -> Vec<(ServerName, Vec<Arc<str>>, Duration)> {
        let databases = self.databases.iter();
        let polls = databases.map(|database| {
            let polled = &database.polled;
            (database.server.clone(), polled.wanted(), polled.window(now))
        });
        polls.collect()
    }

    /// The page is shown until then, if nothing changes.
    pub fn note_kept(&mut self, number: u32, fetch: u64, until: Instant) {
        let page = self.pages.get_mut(number);
        if let Some(page) = page.filter(|page| page.fetch == fetch) {
            (page.is_kept, page.kept_until) = (true, until);
        }
    }
}

impl Database {
    /// Returns the effect that a statement may have.
    pub(super) fn effect(&mut self, write: &SentWrite) -> Effect {
        if let Some((database, name)) = &write.rows_of {
            return self.effect_on_rows(database, name);
        }
        match &mut self.index {
            Some(index) if write.is_complete => {
                let mut shapes = index.shapes().lock();
                let meaning = shapes.understand(&write.text, &write.parameters, &write.session);
                meaning.effect
            }
            _ => Effect::Everything,
        }
    }

    /// Its tables are read again, and no reading that is under way counts.
    pub(super) fn doubt_definitions(&mut self) {
        self.is_in_doubt = true;
        self.definitions += 1;
    }

    pub(super) fn written(&mut self, effect: Effect, text: String) {
        let Some(index) = &mut self.index else {
            return;
        };
        let number = index.written(effect);
        if self.texts.len() >= MAX_TEXTS {
            self.texts.pop_front();
        }
        self.texts.push_back((number, text));
    }

    /// Any row of a table, and of those that its foreign keys and triggers write along: the log does not have the former.
    pub(super) fn effect_on_rows(&mut self, database: &str, name: &str) -> Effect {
        let Some(index) = &mut self.index else {
            return Effect::Everything;
        };
        Effect::of_rows(index.schema(), database, name)
    }

    /// Any row of these tables.
    fn effect_on(&mut self, tables: &[Arc<str>]) -> Effect {
        let Some(index) = &mut self.index else {
            return Effect::Everything;
        };
        let schema = index.schema();
        let changes = tables.iter().map(|table| {
            let (database, name) = table.split_once('.')?;
            let table = schema.find(database, name)?;
            Some(TableChange { table, rows: None })
        });
        let changes: Option<Vec<_>> = changes.collect();
        changes.map_or(Effect::Everything, Effect::Tables)
    }
}
