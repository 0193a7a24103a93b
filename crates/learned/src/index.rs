//! All learned pages of a site, and which of them a write makes suspect.
//!
//! ```text
//! page ─► statements (each kept once) ─► shape, values, result
//!                │ stamp                    │ stamps
//! write ─► row ──┴─ by a value (postings) ──┴─ by nothing: the whole shape
//! ```
//!
//! A write leaves stamps, on the statements that it finds by a value, or on the shapes whose statements it
//! cannot find by one; it does not go to the pages, of which one write may concern all. A page is suspect
//! if one of its statements has a stamp that is younger than the page, which is looked at when the page
//! is asked for. A statement that was run again and returned the same is as good as one that was read then.

mod by_value;
mod described;
mod kept_once;

use std::collections::{HashMap, VecDeque};
use std::hash::RandomState;
use std::sync::Arc;

use hashbrown::HashTable;

use parking_lot::Mutex;

use self::by_value::find;
use self::described::describe;
use crate::arguments::Arguments;
use crate::condition::Operand;
use crate::not_learned::NotLearned;
use crate::page::PageRecord;
use crate::postings::Postings;
use crate::read::{ReadShape, may_alter_shape};
use crate::row::{Effect, Row, TableChange};
use crate::run_again::RunAgain;
use crate::schema::{ColumnUse, Schema};
use crate::statement::Shapes;

pub const MAX_PAGES: usize = 1_000_000;
/// Writes that a page under way is compared with. After more, it is not learned.
pub const MAX_RECENT_WRITES: usize = 1_024;
/// Writes that are kept for a shape, until its pages have been looked at.
const MAX_STAMPS: usize = 16;
/// Statements of a page that are run again. With more, it is cheaper to make it anew.
const MAX_TO_RUN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SuspicionCause {
    /// A written row meets the conditions of a statement.
    Row,
    /// Too little is known of the written rows: the write may concern all statements of this kind.
    Shape,
    /// It was run again and returned something else, or could not be run.
    RunAgain,
    /// A statement ran that may write anything.
    Everything,
    /// More was written than is kept.
    Overflow,
    /// The page was read back, and this statement was not run since.
    ReadBack,
}

impl SuspicionCause {
    /// The word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Shape => "shape",
            Self::RunAgain => "run-again",
            Self::Everything => "everything",
            Self::Overflow => "overflow",
            Self::ReadBack => "read back, and not compared yet",
        }
    }
}

/// Why a page may be old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspicion {
    /// The number of the write, as [`Index::written`] returned it.
    pub write: u64,
    pub cause: SuspicionCause,
    /// With its values, cut to a length for people.
    pub statement: Option<String>,
    /// The page changed the settings of its session in its middle: its statements cannot be run again.
    pub must_purge: bool,
    /// It is decided by running its suspect statements again: [`Index::to_run`] has them.
    pub is_open: bool,
}

/// A statement that is to be run again, as of the pages that have it.
#[derive(Debug, Clone)]
pub struct StatementToRun {
    number: u32,
    /// The hash of what it returned to the pages that have it.
    pub result: u64,
    pub again: Arc<RunAgain>,
}

/// A statement that writes concern often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoisyStatement {
    pub statement: String,
    /// Up to 65,535.
    pub writes: u16,
    pub pages: u32,
}

/// One of a kind: with the same shape, values and result.
#[derive(Debug)]
struct KnownStatement {
    shape: u16,
    writes: u16,
    pages: u32,
    /// The last write that was found to concern it.
    stamp: u64,
    result: u64,
    arguments: Arguments,
    again: Option<Arc<RunAgain>>,
    /// It was run after this write, and returned the same.
    verified: u64,
    /// It was run after this write, and returned something else.
    differed: u64,
}

#[derive(Debug)]
struct IndexedShape {
    shape: Arc<ReadShape>,
    statements: u32,
    /// For each of its uses of a table, the columns by which its statements are found.
    places: Vec<Vec<Place>>,
    /// Writes that may concern any of its statements, the oldest first.
    stamps: VecDeque<(u64, Arc<Effect>)>,
    /// The youngest stamp that was let go.
    lost: u64,
    writes: u16,
}

#[derive(Debug)]
struct Place {
    number: u32,
    column: ColumnUse,
    operands: Vec<Operand>,
}

#[derive(Debug)]
struct LearnedPage {
    statements: Box<[u32]>,
    /// The write up to which it was found fresh.
    since: u64,
    changed_settings: bool,
    /// It was made before this index was: nothing stands for a statement but that it was run again here.
    is_read_back: bool,
}

/// The learned pages of one site. They hold for one schema: when it changes, begin anew.
// Large: tables of one index, which a page enters and leaves together.
pub struct Index {
    schema: Arc<Schema>,
    /// Locked by themselves: statements are analysed while pages are looked up.
    shapes: Arc<Mutex<Shapes>>,
    indexed: Vec<Option<IndexedShape>>,
    /// By the address of the shape, which stays where it is while it is indexed.
    numbers: HashMap<usize, u16>,
    /// By the number of the table: shapes with their use of it.
    by_table: Vec<Vec<(u16, u16)>>,
    places: u32,
    statements: Vec<KnownStatement>,
    free: Vec<u32>,
    by_content: HashTable<u32>,
    hasher: RandomState,
    text_bytes: usize,
    postings: Postings,
    pages: HashMap<u32, LearnedPage>,
    writes: u64,
    everything: u64,
    recent: VecDeque<(u64, Arc<Effect>)>,
    lost: u64,
}

impl Index {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            by_table: vec![Vec::new(); schema.count()],
            shapes: Arc::new(Mutex::new(Shapes::new(schema.clone()))),
            schema,
            indexed: Vec::new(),
            numbers: HashMap::new(),
            places: 0,
            statements: Vec::new(),
            free: Vec::new(),
            by_content: HashTable::new(),
            hasher: RandomState::new(),
            text_bytes: 0,
            postings: Postings::default(),
            pages: HashMap::new(),
            writes: 0,
            everything: 0,
            recent: VecDeque::new(),
            lost: 0,
        }
    }

    /// Begins anew for another schema, and goes on with the count of an index that had seen so many writes. A page whose
    /// fetch began before is not learned: it may have read other tables.
    pub fn after(writes: u64, schema: Arc<Schema>) -> Self {
        let begun = writes.saturating_add(1);
        Self {
            writes: begun,
            everything: begun,
            ..Self::new(schema)
        }
    }

    /// The shapes of statements, which belong to this index alone.
    pub fn shapes(&self) -> &Arc<Mutex<Shapes>> {
        &self.shapes
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Learned pages.
    pub fn count(&self) -> usize {
        self.pages.len()
    }

    /// Whether nothing is left of pages that are gone.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
            && self.postings.is_empty()
            && self.by_content.is_empty()
            && self.numbers.is_empty()
            && self.free.len() == self.statements.len()
            && self.text_bytes == 0
            && self.by_table.iter().all(Vec::is_empty)
    }

    pub fn has(&self, page: u32) -> bool {
        self.pages.contains_key(&page)
    }

    /// The number of the last write; a fetch takes it when it begins.
    pub const fn writes(&self) -> u64 {
        self.writes
    }

    /// Learns a page whose fetch began after the write `begun`. An older record of it is let go in any
    /// case.
    pub fn insert(&mut self, page: u32, begun: u64, record: &PageRecord) -> Result<(), NotLearned> {
        self.remove(page);
        if self.pages.len() >= MAX_PAGES {
            return Err(NotLearned::TooManyPages);
        }
        if self.was_written_since(begun, record) {
            return Err(NotLearned::WrittenMeanwhile);
        }
        self.put(page, record, false)
    }

    /// Takes a page back that was made at another time. It may be old until each of its statements was run again.
    pub fn read_back(&mut self, page: u32, record: &PageRecord) -> Result<(), NotLearned> {
        self.remove(page);
        if self.pages.len() >= MAX_PAGES {
            return Err(NotLearned::TooManyPages);
        }
        // A statement that was run again has the number of a write; 0 means that it was not run.
        self.writes = self.writes.max(1);
        self.put(page, record, true)
    }

    fn put(
        &mut self,
        page: u32,
        record: &PageRecord,
        is_read_back: bool,
    ) -> Result<(), NotLearned> {
        let mut statements = Vec::with_capacity(record.statements.len());
        for statement in &record.statements {
            match self.known(statement) {
                Some(number) => statements.push(number),
                None => {
                    self.let_go(&statements);
                    return Err(NotLearned::TooManyShapes);
                }
            }
        }
        let learned = LearnedPage {
            statements: statements.into_boxed_slice(),
            since: self.writes,
            changed_settings: record.changed_settings,
            is_read_back,
        };
        self.pages.insert(page, learned);
        Ok(())
    }

    pub fn remove(&mut self, page: u32) {
        if let Some(page) = self.pages.remove(&page) {
            self.let_go(&page.statements);
        }
    }

    fn was_written_since(&self, begun: u64, record: &PageRecord) -> bool {
        if begun < self.everything || begun < self.lost {
            return true;
        }
        let writes = self.recent.iter().rev();
        let mut writes = writes.take_while(|(number, _)| *number > begun);
        writes.any(|(_, effect)| {
            let mut statements = record.statements.iter();
            statements.any(|it| may_alter_shape(&it.reading.shape, &it.reading.arguments, effect))
        })
    }

    /// Takes what was written, when others can see it: at the server's OK, and for the statements of a
    /// transaction once more when it is committed. Returns the number of the write.
    pub fn written(&mut self, effect: Effect) -> u64 {
        if effect == Effect::Nothing {
            return self.writes;
        }
        self.writes += 1;
        let effect = Arc::new(effect);
        match &*effect {
            Effect::Nothing => {}
            Effect::Everything => {
                self.everything = self.writes;
                return self.writes;
            }
            Effect::Tables(changes) => {
                for change in changes {
                    self.mark(change, &effect);
                }
            }
        }
        if self.recent.len() >= MAX_RECENT_WRITES
            && let Some((number, _)) = self.recent.pop_front()
        {
            self.lost = number;
        }
        self.recent.push_back((self.writes, effect));
        self.writes
    }

    fn mark(&mut self, change: &TableChange, effect: &Arc<Effect>) {
        let Some(users) = self.by_table.get(change.table.0 as usize) else {
            return;
        };
        let mut found = Vec::new();
        for (number, use_number) in users {
            let Some(Some(indexed)) = self.indexed.get_mut(usize::from(*number)) else {
                continue;
            };
            let table_use = &indexed.shape.uses[usize::from(*use_number)];
            let places = &indexed.places[usize::from(*use_number)];
            found.clear();
            let statements = &self.statements;
            let mut see = |it: u32, row: &Row| {
                let of_shape = statements
                    .get(it as usize)
                    .filter(|statement| statement.shape == *number);
                if of_shape.is_some_and(|it| table_use.may_have(row, &it.arguments)) {
                    found.push(it);
                }
            };
            let is_by_value = match &change.rows {
                None => false,
                Some(rows) => rows
                    .iter()
                    .all(|change| find(&self.postings, table_use, places, change, &mut see)),
            };
            if !is_by_value {
                indexed.stamp(self.writes, effect);
                continue;
            }
            for statement in &found {
                let statement = &mut self.statements[*statement as usize];
                if statement.stamp != self.writes {
                    statement.stamp = self.writes;
                    statement.writes = statement.writes.saturating_add(1);
                }
            }
        }
    }

    /// Why the page may be old. `None`: it is as it would be made now, or it is not learned.
    pub fn suspicion(&mut self, page: u32) -> Option<Suspicion> {
        let learned = self.pages.get(&page)?;
        let suspicion = self.suspicion_of(learned);
        if suspicion.is_none()
            && let Some(learned) = self.pages.get_mut(&page)
        {
            learned.since = self.writes;
            learned.is_read_back = false;
        }
        suspicion
    }

    /// All pages that may be old. It looks at every page.
    pub fn suspects(&mut self) -> Vec<(u32, Suspicion)> {
        let mut pages: Vec<_> = self.pages.keys().copied().collect();
        pages.sort_unstable();
        let pages = pages.into_iter();
        pages
            .filter_map(|page| Some((page, self.suspicion(page)?)))
            .collect()
    }

    fn suspicion_of(&self, page: &LearnedPage) -> Option<Suspicion> {
        let suspicion = |write, cause, statement: Option<&KnownStatement>| Suspicion {
            write,
            cause,
            statement: statement.map(|it| self.describe(it)),
            must_purge: page.changed_settings,
            is_open: false,
        };
        if self.everything > page.since {
            return Some(suspicion(self.everything, SuspicionCause::Everything, None));
        }
        let (mut first, mut count) = (None, 0);
        let mut is_open = !page.changed_settings;
        for (_, statement) in self.statements_of(page) {
            let Some((write, cause)) = self.doubt_of(page, statement) else {
                continue;
            };
            count += 1;
            is_open &= statement.again.is_some()
                && cause != SuspicionCause::RunAgain
                && count <= MAX_TO_RUN;
            first.get_or_insert((write, cause, statement));
            if !is_open {
                break;
            }
        }
        let (write, cause, statement) = first?;
        Some(Suspicion {
            is_open,
            ..suspicion(write, cause, Some(statement))
        })
    }

    fn statements_of(&self, page: &LearnedPage) -> impl Iterator<Item = (u32, &KnownStatement)> {
        let numbers = page.statements.iter();
        numbers.filter_map(|number| Some((*number, self.statements.get(*number as usize)?)))
    }

    /// Why a statement may return something else than the page has read, and since which write.
    fn doubt_of(
        &self,
        page: &LearnedPage,
        statement: &KnownStatement,
    ) -> Option<(u64, SuspicionCause)> {
        if !page.is_read_back {
            return self.doubt(statement, page.since);
        }
        let was_run = statement.verified > 0 && statement.verified >= self.everything;
        let doubt = self.doubt(statement, statement.verified);
        doubt.or((!was_run).then_some((page.since, SuspicionCause::ReadBack)))
    }

    /// Why a statement may return something else than after the write `since`, and which write that is.
    fn doubt(&self, statement: &KnownStatement, since: u64) -> Option<(u64, SuspicionCause)> {
        let since = since.max(statement.verified);
        if statement.differed > since {
            return Some((statement.differed, SuspicionCause::RunAgain));
        }
        if statement.stamp > since {
            return Some((statement.stamp, SuspicionCause::Row));
        }
        let indexed = self.indexed.get(usize::from(statement.shape))?.as_ref()?;
        if indexed.lost > since {
            return Some((indexed.lost, SuspicionCause::Overflow));
        }
        let stamps = indexed.stamps.iter().rev();
        let mut stamps = stamps.take_while(|(write, _)| *write > since);
        let (write, _) = stamps
            .find(|(_, effect)| may_alter_shape(&indexed.shape, &statement.arguments, effect))?;
        Some((*write, SuspicionCause::Shape))
    }

    /// The statements of a page that decide whether it is old, if they can be run again.
    pub fn to_run(&self, page: u32) -> Vec<StatementToRun> {
        let Some(learned) = self.pages.get(&page) else {
            return Vec::new();
        };
        let suspect = self
            .statements_of(learned)
            .filter(|(_, statement)| self.doubt_of(learned, statement).is_some());
        let suspect = suspect.filter_map(|(number, statement)| {
            Some(StatementToRun {
                number,
                result: statement.result,
                again: statement.again.clone()?,
            })
        });
        suspect.collect()
    }

    /// How many texts are run to decide whether a page may be read back. `None`: it cannot be decided so.
    pub fn texts_of_page(&self, page: u32) -> Option<usize> {
        let learned = self.pages.get(&page)?;
        let is_open = !learned.changed_settings && learned.statements.len() <= MAX_TO_RUN;
        let statements = self.statements_of(learned).filter(|_| is_open);
        let texts = statements.map(|(_, statement)| Some(statement.again.as_ref()?.texts.len()));
        is_open.then(|| texts.sum())?
    }

    /// Whether a write may alter what this statement returns.
    pub fn concerns(&self, statement: &StatementToRun, effect: &Effect) -> bool {
        let known = self.statements.get(statement.number as usize);
        let Some(known) = known.filter(|known| known.is(statement)) else {
            return true;
        };
        match (self.indexed.get(usize::from(known.shape)), effect) {
            (Some(Some(indexed)), Effect::Tables(_)) => {
                may_alter_shape(&indexed.shape, &known.arguments, effect)
            }
            (_, effect) => *effect != Effect::Nothing,
        }
    }

    /// A statement was run again. It began to read after the write `as_of` was counted and could be seen, and no write
    /// that concerns it was under way when this was called.
    pub fn ran(&mut self, statement: &StatementToRun, as_of: u64, is_equal: bool) {
        let known = self.statements.get_mut(statement.number as usize);
        let Some(known) = known.filter(|known| known.is(statement)) else {
            return;
        };
        let mark = match is_equal {
            true => &mut known.verified,
            false => &mut known.differed,
        };
        *mark = as_of.max(*mark);
    }

    /// The statements that most writes concerned, for the most pages.
    pub fn noisiest(&self, most: usize) -> Vec<NoisyStatement> {
        let mut noisy: Vec<_> = self
            .statements
            .iter()
            .filter(|statement| statement.pages > 0)
            .filter_map(|statement| {
                let indexed = self.indexed.get(usize::from(statement.shape))?.as_ref()?;
                let writes = statement.writes.max(indexed.writes);
                (writes > 0).then_some((
                    u64::from(writes) * u64::from(statement.pages),
                    writes,
                    statement,
                ))
            })
            .collect();
        noisy.sort_by_key(|(noise, _, _)| std::cmp::Reverse(*noise));
        noisy.truncate(most);
        let noisy = noisy.into_iter();
        noisy
            .map(|(_, writes, statement)| NoisyStatement {
                statement: self.describe(statement),
                writes,
                pages: statement.pages,
            })
            .collect()
    }

    fn describe(&self, statement: &KnownStatement) -> String {
        match self.indexed.get(usize::from(statement.shape)) {
            Some(Some(indexed)) => describe(&indexed.shape.text, &statement.arguments),
            _ => String::new(),
        }
    }
}

impl StatementToRun {
    /// Whether both are one statement.
    pub fn is(&self, other: &StatementToRun) -> bool {
        Arc::ptr_eq(&self.again, &other.again)
    }
}

impl KnownStatement {
    fn is(&self, statement: &StatementToRun) -> bool {
        let again = self.again.as_ref();
        again.is_some_and(|again| Arc::ptr_eq(again, &statement.again))
    }
}

impl IndexedShape {
    fn stamp(&mut self, write: u64, effect: &Arc<Effect>) {
        if self.stamps.back().is_some_and(|(last, _)| *last == write) {
            return;
        }
        if self.stamps.len() >= MAX_STAMPS
            && let Some((lost, _)) = self.stamps.pop_front()
        {
            self.lost = lost;
        }
        self.stamps.push_back((write, Arc::clone(effect)));
        self.writes = self.writes.saturating_add(1);
    }
}
