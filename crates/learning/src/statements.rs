//! The statements of a run are read without the lock of the book, which hits wait for: their shapes have a lock of their own,
//! taken for one statement at a time. What was read is taken while these shapes are still those of the server.

use std::sync::Arc;

use learned::{PageRecord, RunIn, SeenStatement, Shapes};
use parking_lot::Mutex;

use crate::php_report;
use crate::record::{Reason, RunRecord, SentStatement, WhyNot};
use crate::statement_text;

/// A run with what its statements read.
pub struct ReadRun {
    pub record: RunRecord,
    /// `None`: it has no statement.
    pub read: Result<Option<ReadStatements>, WhyNot>,
}

impl ReadRun {
    /// Reads the statements of a run that began at this time, in Unix nanoseconds.
    pub fn of(
        record: RunRecord,
        reader: Result<Option<StatementReader>, WhyNot>,
        began_at: i64,
    ) -> ReadRun {
        let read = reader.and_then(|reader| {
            let read = reader.map(|reader| reader.read(&record.statements, began_at));
            read.transpose()
        });
        ReadRun { record, read }
    }
}

/// What the statements of one run read, on one server.
pub struct ReadStatements {
    /// The number of the server.
    pub database: usize,
    pub shapes: Arc<Mutex<Shapes>>,
    pub record: PageRecord,
    /// The tables that were read, as `database.table`.
    pub tables: Vec<String>,
}

/// What is needed to read the statements of one run.
pub struct StatementReader {
    /// The number of the server.
    pub database: usize,
    pub shapes: Arc<Mutex<Shapes>>,
    /// Whether each can be run again.
    pub again_in: Vec<Option<RunIn>>,
}

impl StatementReader {
    pub fn read(
        self,
        statements: &[SentStatement],
        began_at: i64,
    ) -> Result<ReadStatements, WhyNot> {
        let mut record = PageRecord::new(began_at / 1_000_000_000);
        for (statement, again_in) in statements.iter().zip(self.again_in) {
            let seen = SeenStatement {
                connection: statement.connection,
                text: &statement.text,
                parameters: &statement.parameters,
                session: &statement.session,
                result: statement.result,
                again_in,
            };
            let added = record.add(&mut self.shapes.lock(), &seen);
            added.map_err(|why| not_learned(why, &statement.text))?;
        }
        let tables = record.tables(self.shapes.lock().schema());
        Ok(ReadStatements {
            database: self.database,
            shapes: self.shapes,
            record,
            tables,
        })
    }
}

/// The bytes of a statement that are read to be shown.
const MAX_READ_BYTES: usize = 4096;

/// The reason for which a page is not learned, with the statement.
pub fn not_learned(why: learned::NotLearned, statement: &[u8]) -> WhyNot {
    use learned::NotLearned;
    let reason = match why {
        NotLearned::WrittenMeanwhile => Reason::WrittenMeanwhile,
        NotLearned::TooManyStatements | NotLearned::RecordTooLong => Reason::TooLong,
        NotLearned::TooManyPages => Reason::TooManyPages,
        NotLearned::OwnWrite => Reason::OwnWrite,
        _ => Reason::Statement,
    };
    let begin = statement.get(..MAX_READ_BYTES).unwrap_or(statement);
    let statement = php_report::shown(&statement_text::without_values(begin));
    let detail = match (statement.is_empty(), reason) {
        (true, _) => why.word().to_owned(),
        (false, Reason::OwnWrite) => statement,
        (false, _) => format!("{}: {statement}", why.word()),
    };
    WhyNot::new(reason, detail)
}
