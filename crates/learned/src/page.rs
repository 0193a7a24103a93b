//! The record of one page, built as its statements come in.

use std::collections::{BTreeSet, HashMap};

use crate::moment::speaks_of_now;
use crate::not_learned::NotLearned;
use crate::read::QueryReading;
use crate::run_again::{RunAgain, RunIn, joined};
use crate::schema::Schema;
use crate::session::Session;
use crate::statement::{Reading, Shapes};
use crate::value::Value;

/// The most statements of one page.
pub const MAX_STATEMENTS: usize = 400;
/// The texts and parameters of all statements of a page.
pub const MAX_RECORD_BYTES: usize = 256 * 1024;
/// The most connections of one page.
const MAX_CONNECTIONS: usize = 16;

/// A statement that a page ran, with its answer.
#[derive(Debug, Clone, Copy)]
pub struct SeenStatement<'a> {
    /// Any number that is the same for statements of the same connection.
    pub connection: u32,
    pub text: &'a [u8],
    pub parameters: &'a [Value],
    /// The state of the session before the statement.
    pub session: &'a Session,
    /// A hash of all that it returned.
    pub result: u64,
    /// The session in which it can be run again, and how it was sent.
    pub again_in: Option<RunIn>,
}

#[derive(Debug)]
pub(crate) struct PageStatement {
    pub(crate) reading: QueryReading,
    pub(crate) result: u64,
    pub(crate) again: Option<RunAgain>,
}

#[derive(Debug, Default)]
struct PageConnection {
    /// The statement before, by its place among those that read tables; `None` if it was another.
    before: Option<usize>,
    /// The database and settings of the first statement that read.
    first: Option<(Option<String>, u64)>,
}

/// The statements of one page. After an error it is of no use any more.
#[derive(Debug)]
pub struct PageRecord {
    now: i64,
    pub(crate) statements: Vec<PageStatement>,
    connections: HashMap<u32, PageConnection>,
    seen: usize,
    bytes: usize,
    pub(crate) changed_settings: bool,
}

impl PageRecord {
    /// `now` are the seconds since 1970.
    pub fn new(now: i64) -> Self {
        Self {
            now,
            statements: Vec::new(),
            connections: HashMap::new(),
            seen: 0,
            bytes: 0,
            changed_settings: false,
        }
    }

    /// Statements that read tables, so far.
    pub fn count(&self) -> usize {
        self.statements.len()
    }

    /// The tables that it read so far, as `database.table`, in order and each once.
    pub fn tables(&self, schema: &Schema) -> Vec<String> {
        let statements = self.statements.iter();
        let numbers: BTreeSet<_> = statements.flat_map(|it| it.reading.tables()).collect();
        let tables = numbers.iter().filter_map(|number| schema.table(*number));
        tables
            .map(|table| format!("{}.{}", table.name.0, table.name.1))
            .collect()
    }

    /// Adds a statement, in the order in which they ran. The error is the reason why the page is not learned.
    pub fn add(
        &mut self,
        shapes: &mut Shapes,
        statement: &SeenStatement<'_>,
    ) -> Result<(), NotLearned> {
        let SeenStatement {
            connection,
            text,
            parameters,
            session,
            result,
            again_in,
        } = *statement;
        let texts = parameters.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            _ => 8,
        });
        self.seen += 1;
        self.bytes += text.len() + texts.sum::<usize>();
        if self.seen > MAX_STATEMENTS {
            return Err(NotLearned::TooManyStatements);
        }
        if self.bytes > MAX_RECORD_BYTES {
            return Err(NotLearned::RecordTooLong);
        }
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&connection)
        {
            return Err(NotLearned::RecordTooLong);
        }
        let reading = shapes.understand(text, parameters, session).reading;
        let before = self.connections.entry(connection).or_default();
        let place = before.before.take();
        match reading {
            Reading::Nothing => Ok(()),
            Reading::NotLearned(reason) => Err(reason),
            Reading::OfWrite => Err(NotLearned::OwnWrite),
            Reading::OfStatementBefore => {
                let before = place.and_then(|place| self.statements.get_mut(place));
                let before = before.ok_or(NotLearned::Connection)?;
                before.result = joined(before.result, result);
                before.again = before
                    .again
                    .take()
                    .and_then(|it| it.followed_by(text, parameters, again_in));
                Ok(())
            }
            Reading::Tables(reading) => {
                if self.has_present_time(text, parameters) {
                    return Err(NotLearned::Clock);
                }
                let before = self.connections.entry(connection).or_default();
                before.before = Some(self.statements.len());
                let settings = (session.database.clone(), session.settings());
                match &before.first {
                    Some(first) => self.changed_settings |= *first != settings,
                    None => before.first = Some(settings),
                }
                self.statements.push(PageStatement {
                    reading,
                    result,
                    again: again_in.and_then(|it| RunAgain::of(text, parameters, it)),
                });
                Ok(())
            }
        }
    }

    fn has_present_time(&self, text: &[u8], parameters: &[Value]) -> bool {
        speaks_of_now(text, self.now)
            || parameters.iter().any(|value| match value {
                Value::Text(text) => speaks_of_now(text, self.now),
                Value::Integer(number) => speaks_of_now(number.to_string().as_bytes(), self.now),
                // A number with a fraction, or what was not seen, may be it.
                Value::Other => true,
                Value::Null => false,
            })
    }
}
