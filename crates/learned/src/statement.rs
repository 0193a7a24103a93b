//! A statement is understood: what it reads, what it writes.

use std::collections::HashMap;
use std::sync::Arc;

use sqlparser::ast::Statement;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::read::{QueryReading, ReadShape, is_harmless, read_shape};
use crate::schema::Schema;
use crate::session::Session;
use crate::tokens::{Token, shape, tokens};
use crate::value::Value;
use crate::write::{TableChange, WriteContext};

/// Of one site. More are not parsed: the program makes its statements from something endless.
pub const MOST_SHAPES: usize = 2_000;

/// Why what a statement returns is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotLearned {
    Syntax,
    TooLong,
    SeveralStatements,
    /// A comment whose text the server executes.
    ExecutableComment,
    /// The session's characters or quotes.
    SessionMode,
    UnknownTable,
    UnknownFunction,
    UserVariable,
    SystemVariable,
    Clock,
    Chance,
    /// What belongs to the connection: found rows, the last number.
    Connection,
    Lock,
    TooManyShapes,
}

impl NotLearned {
    /// The word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::TooLong => "too-long",
            Self::SeveralStatements => "several-statements",
            Self::ExecutableComment => "executable-comment",
            Self::SessionMode => "session-mode",
            Self::UnknownTable => "unknown-table",
            Self::UnknownFunction => "unknown-function",
            Self::UserVariable => "user-variable",
            Self::SystemVariable => "system-variable",
            Self::Clock => "clock",
            Self::Chance => "chance",
            Self::Connection => "connection",
            Self::Lock => "lock",
            Self::TooManyShapes => "too-many-shapes",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    Tables(Vec<TableChange>),
    /// Any table, or the definition of one.
    Everything,
}

#[derive(Debug, Clone)]
pub enum Reading {
    /// The statement returns nothing that depends on data.
    Nothing,
    Tables(QueryReading),
    NotLearned(NotLearned),
}

#[derive(Debug, Clone)]
pub struct StatementMeaning {
    pub reading: Reading,
    pub effect: Effect,
}

impl StatementMeaning {
    const fn neither() -> Self {
        Self {
            reading: Reading::Nothing,
            effect: Effect::Nothing,
        }
    }

    /// It may return anything, and do anything.
    const fn everything(reason: NotLearned) -> Self {
        Self {
            reading: Reading::NotLearned(reason),
            effect: Effect::Everything,
        }
    }

    const fn harmless(reason: NotLearned) -> Self {
        Self {
            reading: Reading::NotLearned(reason),
            effect: Effect::Nothing,
        }
    }

    const fn write(effect: Effect) -> Self {
        Self {
            reading: Reading::Nothing,
            effect,
        }
    }
}

enum ParsedShape {
    Query(Arc<ReadShape>),
    Write(Box<Statement>),
    /// It writes nothing for sure.
    Harmless(NotLearned),
    NotLearned(NotLearned),
}

/// The shapes of a site, each parsed once. They hold for one schema: when it changes, begin anew.
pub struct Shapes {
    schema: Arc<Schema>,
    parsed: HashMap<(Option<String>, String), ParsedShape>,
}

impl Shapes {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            schema,
            parsed: HashMap::new(),
        }
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub fn count(&self) -> usize {
        self.parsed.len()
    }

    /// What a statement reads and writes. `parameters` are those of a prepared one.
    pub fn understand(
        &mut self,
        text: &[u8],
        parameters: &[Value],
        session: &Session,
    ) -> StatementMeaning {
        if session.has_foreign_characters
            || session.has_ansi_quotes
            || session.has_no_backslash_escapes
        {
            return StatementMeaning::everything(NotLearned::SessionMode);
        }
        let Ok(text) = str::from_utf8(text) else {
            return StatementMeaning::everything(NotLearned::SessionMode);
        };
        if is_mode_of_the_session(text) {
            return StatementMeaning::neither();
        }
        let tokens = match tokens(text, parameters) {
            Ok(tokens) => tokens,
            // SET names variables of either kind, and changes nothing but the session.
            Err(NotLearned::UserVariable | NotLearned::SystemVariable)
                if is_set_of_the_session(text) =>
            {
                return StatementMeaning::neither();
            }
            Err(reason) => return StatementMeaning::everything(reason),
        };
        let word = |keyword: &str| tokens.first().is_some_and(|token| token.is_word(keyword));
        let second = |keywords: &[&str]| {
            let others = tokens
                .iter()
                .skip(1)
                .filter(|token| !token.is_word("full") && !token.is_word("extended"));
            others
                .take(1)
                .any(|token| keywords.iter().any(|keyword| token.is_word(keyword)))
        };
        match () {
            () if word("select") || word("insert") || word("replace") || word("update") => {}
            () if word("delete")
                || word("truncate")
                || tokens.first() == Some(&Token::Sign('(')) => {}
            () if word("set") && is_set_of_the_session(text) => return StatementMeaning::neither(),
            () if word("begin") || word("commit") || word("rollback") || word("savepoint") => {
                return StatementMeaning::neither();
            }
            () if word("use") || (word("start") && second(&["transaction"])) => {
                return StatementMeaning::neither();
            }
            // They depend on definitions alone, whose changes count as changes of everything.
            () if word("show")
                && second(&["tables", "columns", "fields", "index", "indexes", "keys"]) =>
            {
                return StatementMeaning::neither();
            }
            () if word("show") => return StatementMeaning::harmless(NotLearned::SystemVariable),
            () if word("lock") || word("unlock") => {
                return StatementMeaning::harmless(NotLearned::Lock);
            }
            () => return StatementMeaning::everything(NotLearned::Syntax),
        }
        let (text, arguments) = shape(tokens);
        let key = (session.database.clone(), text);
        if !self.parsed.contains_key(&key) {
            if self.parsed.len() >= MOST_SHAPES {
                return StatementMeaning::everything(NotLearned::TooManyShapes);
            }
            let parsed = parse(&key.1, session.database.as_deref(), &self.schema);
            self.parsed.insert(key.clone(), parsed);
        }
        match &self.parsed[&key] {
            ParsedShape::Query(shape) => {
                let shape = Arc::clone(shape);
                StatementMeaning {
                    reading: Reading::Tables(QueryReading { shape, arguments }),
                    effect: Effect::Nothing,
                }
            }
            ParsedShape::Write(statement) => {
                let database = session.database.as_deref();
                let context = WriteContext {
                    database,
                    schema: &self.schema,
                    arguments: &arguments,
                };
                StatementMeaning::write(match &**statement {
                    Statement::Insert(insert) => context.insert(insert),
                    Statement::Update(update) => context.update(update),
                    Statement::Delete(delete) => context.delete(delete),
                    Statement::Truncate(truncate) => match &truncate.table_names[..] {
                        [table] => context.truncate(&table.name),
                        _ => Effect::Everything,
                    },
                    _ => Effect::Everything,
                })
            }
            ParsedShape::Harmless(reason) => StatementMeaning::harmless(*reason),
            ParsedShape::NotLearned(reason) => StatementMeaning::everything(*reason),
        }
    }
}

fn parse(text: &str, database: Option<&str>, schema: &Schema) -> ParsedShape {
    let Ok(mut statements) = Parser::parse_sql(&MySqlDialect {}, text) else {
        return ParsedShape::NotLearned(NotLearned::Syntax);
    };
    match (statements.pop(), statements.is_empty()) {
        (Some(Statement::Query(query)), true) => match read_shape(&query, database, schema) {
            Ok(shape) => ParsedShape::Query(Arc::new(shape)),
            Err(reason) if is_harmless(&query, database, schema) => ParsedShape::Harmless(reason),
            Err(reason) => ParsedShape::NotLearned(reason),
        },
        (
            Some(
                statement @ (Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Truncate(_)),
            ),
            true,
        ) => ParsedShape::Write(Box::new(statement)),
        _ => ParsedShape::NotLearned(NotLearned::Syntax),
    }
}

/// WordPress asks for it in each connection. It is the same in each connection with the same settings.
fn is_mode_of_the_session(text: &str) -> bool {
    let text = text.trim().trim_end_matches(';');
    text.eq_ignore_ascii_case("SELECT @@SESSION.sql_mode")
        || text.eq_ignore_ascii_case("SELECT @@sql_mode")
}

/// Whether a statement sets variables and nothing more: calls and subqueries have parentheses.
fn is_set_of_the_session(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let is_set = words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("set"));
    let scope = words
        .next()
        .unwrap_or_default()
        .trim_start_matches('@')
        .to_ascii_lowercase();
    let text = text.to_ascii_lowercase();
    let is_of_all = text.contains("global")
        || text.contains("password")
        || scope == "statement"
        || scope == "role";
    is_set && !is_of_all && !text.contains('(') && !text.trim_end_matches([';', ' ']).contains(';')
}
