//! Other programs' writes: asks a server for the state of its tables each second, and compares the state with the one
//! before. Pure, but for [`Poller`].
//!
//! `update_time` has whole seconds and is the time of the transaction's start, shown from COMMIT on. So a
//! table counts as written if its time differs, is NULL, or lies within the last minute: two
//! transactions may have begun in one second. The last two do not count while InnoDB has given no
//! number to a transaction, which is known of InnoDB alone.
//!
//! Some statements replace rows and leave the time as it is. TRUNCATE changes the number of rows. ALTER TABLE
//! exchanges, truncates and imports partitions and tablespaces, and RENAME TABLE exchanges whole tables: the other
//! table may have the same times and sizes. The server counts both statements when they begin. So each table counts as
//! written for a minute after the count has moved.

mod postgres;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::{self, DatabaseAccount, TextRow};
use crate::digest::Digest;
use crate::postgres::parts;
use crate::record::WhyNot;

/// How long a poll holds: what it did not see is shown no later.
pub const HOLDS: Duration = Duration::from_secs(2);

/// [`HOLDS`] in milliseconds.
pub fn holds() -> u64 {
    u64::try_from(HOLDS.as_millis()).unwrap_or(0)
}

/// A transaction that is committed within this time of its first statement is seen.
const TRANSACTION: Duration = Duration::from_secs(60);

/// Tables of one server that are polled. A page that reads more is not kept.
pub const MAX_TABLES: usize = 500;

/// Tables in one question: each is looked up by its name.
const TABLES_AT_ONCE: usize = 64;

/// Engines whose tables have the time of their last write. (Aria writes its pages later: its time is that of the
/// file, up to half a minute old.)
const POLLED_ENGINES: [&str; 3] = ["InnoDB", "MyISAM", postgres::ENGINE];

/// In UTC, so that no time comes twice. MySQL keeps its statistics of tables for a day by default; MariaDB takes this
/// setting for a comment.
const SESSION: &str = "SET time_zone = '+00:00' /*!80000 , information_schema_stats_expiry = 0 */";

/// Asked before the tables: a transaction that ends in between is seen the next time as well.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN
    ('Innodb_max_trx_id', 'Uptime', 'Com_alter_table', 'Com_rename_table')";

/// Counts of the statements that may replace the rows of a table and leave its times.
const ALTERATIONS: [&str; 2] = ["Com_alter_table", "Com_rename_table"];

/// A node of a cluster is written through others. Pages may be made of whether the server takes writes. The others
/// tell it from other servers.
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN
    ('wsrep_on', 'read_only', 'server_uid', 'server_uuid', 'hostname', 'port', 'datadir')";

/// Variables that identify a server, in this order.
const IDENTITY: [&str; 5] = ["server_uid", "server_uuid", "hostname", "port", "datadir"];

/// A table as a server described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableState {
    engine: String,
    updated: Option<Vec<u8>>,
    created: Option<Vec<u8>>,
    /// How many rows and bytes it has, about.
    size: Option<Vec<u8>>,
    /// Written or created within the last minute.
    is_recent: bool,
}

/// The answer of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PollAnswer {
    /// The number of the next transaction; `None`: the server does not say.
    gate: Option<u64>,
    uptime: u64,
    /// How many statements may have replaced the rows of tables.
    alterations: u64,
    /// What was committed may not be in the states of the tables yet.
    holds_counts_back: bool,
    /// How the server identifies itself, the same to all who ask.
    identity: String,
    is_read_only: bool,
    /// Digests of views, triggers and routines, by their database.
    definitions: BTreeMap<String, u64>,
    /// By name. One that is not shown has none.
    tables: BTreeMap<Arc<str>, TableState>,
}

#[cfg(test)]
impl PollAnswer {
    /// An answer about one table: the number of transactions, the time of its last write, whether that was a moment ago.
    pub fn of_one(name: &str, (gate, updated, is_recent): (u64, &str, bool)) -> PollAnswer {
        let state = TableState {
            engine: "InnoDB".to_owned(),
            updated: Some(updated.as_bytes().to_vec()),
            created: None,
            size: None,
            is_recent,
        };
        PollAnswer {
            gate: Some(gate),
            uptime: 1000,
            alterations: 0,
            holds_counts_back: false,
            identity: "one".to_owned(),
            is_read_only: false,
            definitions: BTreeMap::new(),
            tables: BTreeMap::from([(name.into(), state)]),
        }
    }

    pub fn after_restart(self) -> PollAnswer {
        PollAnswer { uptime: 1, ..self }
    }
}

/// The difference between two polls.
#[derive(Debug, PartialEq, Eq)]
pub enum PollResult {
    /// Why.
    Everything(&'static str),
    /// These tables; none: nothing.
    Tables(Vec<Arc<str>>),
    /// Everything, and there may be other tables, views or triggers.
    Definitions,
}

struct LastPoll {
    answer: PollAnswer,
    asked: BTreeSet<Arc<str>>,
    at: Instant,
    /// When the count of alterations was first seen as it is, unless that is long ago.
    altered_at: Option<Instant>,
}

impl PollResult {
    /// `None`: any.
    pub fn tables(&self) -> Option<&[Arc<str>]> {
        match self {
            PollResult::Tables(tables) => Some(tables),
            PollResult::Everything(_) | PollResult::Definitions => None,
        }
    }
}

/// The tables of one server that pages read, and the last answer about them.
#[derive(Default)]
pub struct PolledTables {
    wanted: BTreeSet<Arc<str>>,
    last: Option<LastPoll>,
    why_not: String,
}

impl PolledTables {
    /// Polls these too from now on. `Err`: why it is not known when one of them was last written.
    pub fn want(&mut self, tables: &[Arc<str>], now: Instant) -> Result<(), WhyNot> {
        let is_current = self
            .last
            .as_ref()
            .is_some_and(|last| now.saturating_duration_since(last.at) < HOLDS);
        let mut why_not = (!is_current).then(|| self.why_not.clone());
        for table in tables {
            let is_plain = |part: &str| !part.contains(['\'', '\\', '.']);
            let is_name = table
                .split_once('.')
                .is_some_and(|(database, name)| is_plain(database) && is_plain(name));
            if !is_name {
                return Err(WhyNot::unpolled(format!("{table}: its name")));
            }
            if !self.wanted.contains(table) && self.wanted.len() >= MAX_TABLES {
                let detail = format!("{table}: more tables than {MAX_TABLES}");
                return Err(WhyNot::unpolled(detail));
            }
            self.wanted.insert(table.clone());
            let asked = self.last.as_ref().filter(|last| last.asked.contains(table));
            let why = match asked.map(|last| last.answer.tables.get(table)) {
                None => format!("{table}: it is asked for from now on"),
                Some(None) => format!("{table}: it is not shown to the account"),
                Some(Some(state)) if state.is_polled_engine() => continue,
                Some(Some(state)) => format!("{table}: {}", state.engine),
            };
            why_not.get_or_insert(why);
        }
        why_not.map_or(Ok(()), |detail| Err(WhyNot::unpolled(detail)))
    }

    /// How the server identified itself a moment ago.
    pub fn identity(&self, now: Instant) -> Option<&str> {
        let last = self.last.as_ref();
        let last = last.filter(|last| now.saturating_duration_since(last.at) < HOLDS);
        last.map(|last| &*last.answer.identity)
    }

    /// The server did not answer.
    pub fn fail(&mut self, why: String) {
        self.why_not = why;
    }

    pub fn wanted(&self) -> Vec<Arc<str>> {
        self.wanted.iter().cloned().collect()
    }

    /// Since when a table counts as recently written: for a minute, and for the time since the last poll.
    pub fn window(&self, now: Instant) -> Duration {
        let last = self.last.as_ref();
        let gap = last.map(|last| now.saturating_duration_since(last.at));
        TRANSACTION + gap.unwrap_or_default()
    }

    /// Compares the answer with the one before. `began`: before the server was asked.
    pub fn compare(
        &mut self,
        answer: PollAnswer,
        asked: &[Arc<str>],
        began: Instant,
    ) -> PollResult {
        let mut new = LastPoll {
            answer,
            asked: asked.iter().cloned().collect(),
            at: began,
            altered_at: None,
        };
        new.altered_at = self.last.as_ref().and_then(|last| new.altered_since(last));
        let polled = match &self.last {
            Some(last) => new.since(last),
            None => PollResult::Everything("it is asked for the first time"),
        };
        self.last = Some(new);
        polled
    }
}

impl LastPoll {
    fn databases(&self) -> BTreeSet<&str> {
        let names = self.asked.iter().filter_map(|table| table.split_once('.'));
        names.map(|(database, _)| database).collect()
    }

    /// A statement was counted when it began: it may end within the next minute.
    fn altered_since(&self, before: &LastPoll) -> Option<Instant> {
        if self.answer.alterations != before.answer.alterations {
            return Some(self.at);
        }
        let is_recent = |at: &Instant| self.at.saturating_duration_since(*at) <= TRANSACTION;
        before.altered_at.filter(is_recent)
    }

    fn since(&self, before: &LastPoll) -> PollResult {
        let (answer, last) = (&self.answer, &before.answer);
        if answer.uptime < last.uptime {
            return PollResult::Everything("the database was started again");
        }
        if answer.identity != last.identity {
            return PollResult::Everything("another database server answers");
        }
        if answer.is_read_only != last.is_read_only {
            return PollResult::Everything("read_only was set");
        }
        if self.at.saturating_duration_since(before.at) > TRANSACTION {
            return PollResult::Everything("it was not asked for a minute");
        }
        let has_gone =
            |table: &Arc<str>| self.asked.contains(table) && !answer.tables.contains_key(table);
        let is_other = |(table, state): (&Arc<str>, &TableState)| {
            let before = last.tables.get(table);
            before.is_some_and(|it| it.created != state.created || it.engine != state.engine)
        };
        let databases = before.databases();
        let was_defined = |database: &&str| {
            // Since its tables were read, for one that is asked for the first time.
            !databases.contains(database)
                || answer.definitions.get(*database) != last.definitions.get(*database)
        };
        if self.databases().iter().any(was_defined)
            || last.tables.keys().any(has_gone)
            || answer.tables.iter().any(is_other)
        {
            return PollResult::Definitions;
        }
        let stands_still = answer.gate.is_some() && answer.gate == last.gate;
        let written = self.asked.iter().filter(|table| {
            let states = answer.tables.get(*table).zip(last.tables.get(*table));
            // Without an earlier one, it is not known what it was when the page was made.
            self.altered_at.is_some()
                || answer.holds_counts_back && !stands_still
                || states.is_none_or(|(state, before)| state.was_written(before, stands_still))
        });
        PollResult::Tables(written.cloned().collect())
    }
}

impl TableState {
    fn is_polled_engine(&self) -> bool {
        POLLED_ENGINES.contains(&&*self.engine)
    }

    fn was_written(&self, before: &TableState, stands_still: bool) -> bool {
        let is_quiet = stands_still && self.engine == "InnoDB";
        self.updated != before.updated
            || self.size != before.size
            || !self.is_polled_engine()
            || !is_quiet && (self.is_recent || self.updated.is_none())
    }
}

/// Asks one server again and again, and keeps what spares questions: nothing of MySQL, whose tables of other engines
/// are written without a transaction.
#[derive(Default)]
pub struct Poller {
    postgres: postgres::KeptPoll,
}

impl Poller {
    /// Asks the server for these tables.
    ///
    /// # Errors
    /// The error of the system or the server, and that nothing can be seen there.
    pub async fn ask(
        &mut self,
        account: &DatabaseAccount,
        tables: &[Arc<str>],
        window: Duration,
    ) -> io::Result<PollAnswer> {
        if parts(&account.server).is_some() {
            return self.postgres.ask(account, tables).await;
        }
        let questions = questions(tables, window);
        let questions: Vec<&str> = questions.iter().map(String::as_str).collect();
        let answers = client::ask(account, &questions).await?;
        read(&answers).ok_or_else(other_columns)?
    }
}

fn other_columns() -> io::Error {
    io::Error::other("the answer has other columns than were asked for")
}

/// The questions, in this order: the status, variables, definitions, tables.
fn questions(tables: &[Arc<str>], window: Duration) -> Vec<String> {
    let names = || tables.iter().filter_map(|table| table.split_once('.'));
    let databases: BTreeSet<&str> = names().map(|(database, _)| database).collect();
    let databases: Vec<_> = databases.iter().map(|it| format!("'{it}'")).collect();
    let within = match databases.is_empty() {
        true => "('')".to_owned(),
        false => format!("({})", databases.join(", ")),
    };
    let mut all = vec![SESSION.to_owned(), STATUS.to_owned(), VARIABLES.to_owned()];
    all.push(format!(
        "SELECT table_schema, table_name, view_definition, '', '' FROM information_schema.views
         WHERE table_schema IN {within}"
    ));
    all.push(format!(
        "SELECT event_object_schema, event_object_table, trigger_name, CONCAT(action_timing, event_manipulation),
           action_statement FROM information_schema.triggers WHERE event_object_schema IN {within}"
    ));
    all.push(format!(
        "SELECT routine_schema, routine_name, routine_type, routine_definition, last_altered
         FROM information_schema.routines WHERE routine_schema IN {within}"
    ));
    let names: Vec<_> = names().collect();
    for some in names.chunks(TABLES_AT_ONCE) {
        let mut question = String::new();
        for (database, name) in some {
            if !question.is_empty() {
                question.push_str(" UNION ALL ");
            }
            let _ = write!(
                question,
                "SELECT table_schema, table_name, engine, update_time, create_time,
                   CONCAT_WS(' ', table_rows, data_length, index_length),
                   GREATEST(IFNULL(update_time, create_time), IFNULL(create_time, update_time))
                     >= NOW() - INTERVAL {} SECOND FROM information_schema.tables
                 WHERE table_schema = '{database}' AND table_name = '{name}'",
                window.as_secs() + 1
            );
        }
        all.push(question);
    }
    all
}

fn read(answers: &[Vec<TextRow>]) -> Option<io::Result<PollAnswer>> {
    let [_, status, variables, views, triggers, routines, tables @ ..] = answers else {
        return None;
    };
    let is_on = |name: &str| {
        variables.iter().any(|row| match &row[..] {
            [Some(it), Some(value)] => it == name.as_bytes() && value != b"OFF",
            _ => false,
        })
    };
    if is_on("wsrep_on") {
        let message = "a node of a cluster, which others write";
        return Some(Err(io::Error::other(message)));
    }
    let number = |name: &str| -> Option<u64> {
        let mut rows = status.iter();
        let row = rows.find(
            |row| matches!(&row[..], [Some(it), _] if it.eq_ignore_ascii_case(name.as_bytes())),
        );
        str::from_utf8(row?.get(1)?.as_deref()?).ok()?.parse().ok()
    };
    let mut definitions: BTreeMap<String, Digest> = BTreeMap::new();
    for row in [views, triggers, routines].into_iter().flatten() {
        let database = row.first()?.clone().unwrap_or_default();
        let digest = definitions.entry(String::from_utf8(database).ok()?);
        let digest = digest.or_default();
        for field in row {
            digest.read(&[u8::from(field.is_some())]);
            digest.read(field.as_deref().unwrap_or_default());
            digest.read(&[0]);
        }
    }
    let definitions = definitions.into_iter();
    let tables = tables.iter().flatten().map(table);
    Some(Ok(PollAnswer {
        gate: number("Innodb_max_trx_id"),
        uptime: number("Uptime")?,
        alterations: ALTERATIONS.iter().filter_map(|name| number(name)).sum(),
        holds_counts_back: false,
        identity: identity(variables),
        is_read_only: is_on("read_only"),
        definitions: definitions
            .map(|(database, digest)| (database, digest.finish()))
            .collect(),
        tables: tables.collect::<Option<_>>()?,
    }))
}

/// Servers that have nothing of this to say count as one.
fn identity(variables: &[TextRow]) -> String {
    let value = |name: &&str| {
        let mut rows = variables.iter();
        rows.find_map(|row| match &row[..] {
            [Some(it), Some(value)] if it == name.as_bytes() => {
                Some(String::from_utf8_lossy(value))
            }
            _ => None,
        })
    };
    let values = IDENTITY.iter().map(|name| value(name).unwrap_or_default());
    values.collect::<Vec<_>>().join(" ")
}

fn table(row: &TextRow) -> Option<(Arc<str>, TableState)> {
    let [database, name, engine, updated, created, size, is_recent] = &row[..] else {
        return None;
    };
    let text = |field: &Option<Vec<u8>>| String::from_utf8(field.clone().unwrap_or_default()).ok();
    let is_so = |field: &Option<Vec<u8>>| field.as_deref() == Some(b"1");
    let name = format!("{}.{}", text(database)?, text(name)?);
    let state = TableState {
        engine: text(engine)?,
        updated: updated.clone(),
        created: created.clone(),
        size: size.clone(),
        is_recent: is_so(is_recent),
    };
    Some((name.into(), state))
}

#[cfg(test)]
#[path = "poll_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "poll_mariadb_tests.rs"]
mod mariadb_tests;
