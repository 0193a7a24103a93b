//! Statements of PostgreSQL: the tables that each reads or writes, without conditions.
//!
//! ```text
//! text ─► tokens of sqlparser ─► text without values ─► sqlparser, once per such text ─► tables
//! ```
//!
//! A statement that is not proved a pure read of known tables may write everything, or keeps its page from being
//! learned. A name without a schema is known where one schema alone has it, so that `search_path` need not be followed.

mod functions;
mod reader;
mod schema;
mod session;

use std::collections::HashMap;
use std::sync::Arc;

use sqlparser::ast::{CopyTarget, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::arguments::Arguments;
use crate::not_learned::NotLearned;
use crate::read::{QueryReading, ReadShape};
use crate::row::{Effect, TableChange};
use crate::schema::{Schema, TableNumber, WrittenAlong};
use crate::statement::{MAX_SHAPES, Reading, StatementMeaning};
use crate::value::Value;

use reader::Reader;
pub(crate) use schema::PostgresFacts;
pub use schema::{PostgresQuery, PostgresSchemaBuilder};
pub(crate) use session::change_of_session;

/// Tokens of a statement that are links of chains, such as `1 + 1 + ...`; a join counts as several.
const MAX_LINKS: usize = 1_000;
const LINKS_OF_JOIN: usize = 7;

/// A longer text is not read as a time by the server.
const MAX_TIME_BYTES: usize = 128;

/// Texts that the server reads as a time of the moment, also where they are compared with a column.
const MOMENTS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// Statements whose first word says that they change nothing but the transaction or the session.
const OF_THE_SESSION: [&str; 9] = [
    "abort",
    "begin",
    "commit",
    "deallocate",
    "end",
    "release",
    "rollback",
    "savepoint",
    "start",
];

/// Settings that are the same for all sessions of a server, or those that its answers are read by.
const KNOWN_SETTINGS: [&str; 5] = [
    "client_encoding",
    "server_encoding",
    "server_version",
    "server_version_num",
    "standard_conforming_strings",
];

/// The texts of a site, each understood once, and the sets of tables that they read. They hold for one schema.
#[derive(Default)]
pub(crate) struct PostgresShapes {
    meanings: HashMap<String, StatementMeaning>,
    shapes: HashMap<Box<[TableNumber]>, Arc<ReadShape>>,
}

impl PostgresShapes {
    pub(crate) fn understand(
        &mut self,
        text: &str,
        parameters: &[Value],
        schema: &Schema,
    ) -> StatementMeaning {
        let Some(facts) = &schema.postgres else {
            return StatementMeaning::everything(NotLearned::UnknownTable);
        };
        let tokens = match tokens(text) {
            Ok(tokens) => tokens,
            Err(reason) => return StatementMeaning::everything(reason),
        };
        let (key, is_of_moment) = without_values(&tokens);
        let is_of_moment = is_of_moment
            || parameters.iter().any(|it| match it {
                Value::Text(text) => is_moment(&String::from_utf8_lossy(text)),
                Value::Null | Value::Integer(_) | Value::Other => false,
            });
        let meaning = match self.meanings.get(&key) {
            Some(known) => known.clone(),
            None => {
                let meaning = self.parse(tokens, schema, facts);
                if self.meanings.len() >= MAX_SHAPES {
                    self.meanings.clear();
                }
                self.meanings.insert(key, meaning.clone());
                meaning
            }
        };
        match meaning.reading {
            Reading::Tables(_) if is_of_moment => StatementMeaning {
                reading: Reading::NotLearned(NotLearned::Clock),
                ..meaning
            },
            _ => meaning,
        }
    }

    fn parse(
        &mut self,
        tokens: Vec<Token>,
        schema: &Schema,
        facts: &PostgresFacts,
    ) -> StatementMeaning {
        if let Some(meaning) = by_first_words(&tokens) {
            return meaning;
        }
        let parsed = Parser::new(&PostgreSqlDialect {})
            .with_tokens(tokens)
            .parse_statements();
        let Ok(statements) = parsed else {
            return StatementMeaning::everything(NotLearned::Syntax);
        };
        let mut all: Option<StatementMeaning> = None;
        for statement in &statements {
            let meaning = self.statement(statement, schema, facts);
            all = Some(match all {
                None => meaning,
                Some(before) => both(before, meaning),
            });
        }
        // An empty text.
        all.unwrap_or_else(StatementMeaning::neither)
    }

    fn statement(
        &mut self,
        statement: &Statement,
        schema: &Schema,
        facts: &PostgresFacts,
    ) -> StatementMeaning {
        let mut reader = Reader::new(schema, facts);
        if let Err(reason) = reader.read(statement) {
            return StatementMeaning::everything(reason);
        }
        let Reader { tables, reason, .. } = reader;
        let tables: Box<[TableNumber]> = tables.into_iter().collect();
        match statement {
            Statement::Query(_) => self.reading(tables, reason, schema),
            Statement::Copy {
                to: true,
                target: CopyTarget::Stdout,
                ..
            } => self.reading(tables, reason, schema),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                written(&tables, schema, facts)
            }
            Statement::Truncate(truncate) if truncate.cascade.is_none() => {
                written(&tables, schema, facts)
            }
            Statement::Copy {
                to: false,
                target: CopyTarget::Stdin,
                ..
            } => written(&tables, schema, facts),
            Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. } => StatementMeaning::neither(),
            _ => StatementMeaning::everything(NotLearned::Syntax),
        }
    }

    fn reading(
        &mut self,
        tables: Box<[TableNumber]>,
        reason: Option<NotLearned>,
        schema: &Schema,
    ) -> StatementMeaning {
        if let Some(reason) = reason {
            return StatementMeaning::harmless(reason);
        }
        if tables.is_empty() {
            return StatementMeaning::neither();
        }
        if self.shapes.len() >= MAX_SHAPES {
            self.meanings.clear();
            self.shapes.retain(|_, shape| Arc::strong_count(shape) > 1);
        }
        if self.shapes.len() >= MAX_SHAPES {
            return StatementMeaning::harmless(NotLearned::TooManyShapes);
        }
        let shape = self.shapes.entry(tables).or_insert_with_key(|tables| {
            let names = tables.iter().filter_map(|it| schema.table(*it));
            let names: Vec<_> = names
                .map(|table| format!("{}.{}", table.name.0, table.name.1))
                .collect();
            let text = format!("SELECT ... FROM {}", names.join(", "));
            Arc::new(ReadShape::of_tables(text, tables))
        });
        StatementMeaning {
            reading: Reading::Tables(QueryReading {
                shape: Arc::clone(shape),
                arguments: Arguments::default(),
            }),
            effect: Effect::Nothing,
        }
    }
}

/// The meaning of two statements of one text.
fn both(first: StatementMeaning, second: StatementMeaning) -> StatementMeaning {
    let effect = match (first.effect, second.effect) {
        (Effect::Nothing, other) | (other, Effect::Nothing) => other,
        (Effect::Tables(mut some), Effect::Tables(others)) => {
            some.extend(others);
            Effect::Tables(some)
        }
        _ => Effect::Everything,
    };
    let reading = match (first.reading, second.reading) {
        (Reading::Nothing, other) | (other, Reading::Nothing) => other,
        (Reading::OfWrite, _) | (_, Reading::OfWrite) => Reading::OfWrite,
        _ => Reading::NotLearned(NotLearned::SeveralStatements),
    };
    StatementMeaning { reading, effect }
}

/// Any rows of these tables, with those that are written along.
fn written(tables: &[TableNumber], schema: &Schema, facts: &PostgresFacts) -> StatementMeaning {
    let effect = facts
        .written_with(tables, |table| match &schema.table(table)?.written_along {
            WrittenAlong::Tables(along) => Some(along),
            WrittenAlong::Everything => None,
        })
        .filter(|all| !all.is_empty())
        .map_or(Effect::Everything, |all| {
            let any = |table| TableChange { table, rows: None };
            Effect::Tables(all.into_iter().map(any).collect())
        });
    StatementMeaning {
        reading: Reading::OfWrite,
        effect,
    }
}

/// The tokens of a text, without blanks and comments. `Err`: the server may read them otherwise.
fn tokens(text: &str) -> Result<Vec<Token>, NotLearned> {
    // Blanks for one of both only.
    let is_strange = |it: char| it.is_whitespace() && !matches!(it, ' ' | '\t' | '\n' | '\r');
    if text.contains(is_strange) || text.contains('\0') {
        return Err(NotLearned::Syntax);
    }
    let all = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize();
    let mut all = all.map_err(|_| NotLearned::Syntax)?;
    all.retain(|token| !matches!(token, Token::Whitespace(_)));
    let mut links = 0;
    for token in &all {
        links += match token {
            // The server cuts a long name, and a quote within one would make two texts of tokens the same.
            Token::Word(word) if word.value.len() > 63 || word.value.contains('"') => {
                return Err(NotLearned::UnknownTable);
            }
            Token::Word(word) if word.quote_style.is_some() => 0,
            Token::Word(word) => match word.keyword {
                Keyword::JOIN => LINKS_OF_JOIN,
                Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::NOTNULL
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT => 1,
                _ => 0,
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Comma
            | Token::Period
            | Token::LParen
            | Token::RParen
            | Token::SemiColon
            | Token::Placeholder(_) => 0,
            // Texts in further notations, and data of COPY.
            Token::DollarQuotedString(_)
            | Token::UnicodeStringLiteral(_)
            | Token::DoubleQuotedString(_)
            | Token::CopyData { .. } => return Err(NotLearned::Syntax),
            _ => 1,
        };
        if links > MAX_LINKS {
            return Err(NotLearned::TooLong);
        }
    }
    Ok(all)
}

/// The text with `?` in the place of its values, and whether one of them is a time of the moment.
fn without_values(tokens: &[Token]) -> (String, bool) {
    use std::fmt::Write as _;
    let (mut text, mut is_of_moment) = (String::new(), false);
    for token in tokens {
        let _ = match token {
            Token::Number(..) => write!(text, "0 "),
            Token::SingleQuotedString(value)
            | Token::EscapedStringLiteral(value)
            | Token::NationalStringLiteral(value) => {
                is_of_moment |= is_moment(value);
                write!(text, "'' ")
            }
            token => write!(text, "{token} "),
        };
    }
    (text, is_of_moment)
}

fn is_moment(value: &str) -> bool {
    let mut words = value.split(|it: char| !it.is_ascii_alphabetic());
    value.len() <= MAX_TIME_BYTES
        && words.any(|word| MOMENTS.iter().any(|it| word.eq_ignore_ascii_case(it)))
}

/// The meaning that the first words of a single statement have alone.
fn by_first_words(tokens: &[Token]) -> Option<StatementMeaning> {
    let tokens = match tokens {
        [rest @ .., Token::SemiColon] => rest,
        all => all,
    };
    if tokens.contains(&Token::SemiColon) {
        return None;
    }
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let (first, second) = (word(0), word(1));
    let calls = tokens.contains(&Token::LParen);
    // What it ends was begun by any program.
    let is_of_session = OF_THE_SESSION.contains(&&*first) && second != "prepared";
    match &*first {
        "set" | "reset" if !calls => Some(StatementMeaning::neither()),
        "show" if KNOWN_SETTINGS.contains(&&*second) => Some(StatementMeaning::neither()),
        "show" | "listen" | "unlisten" | "lock" => {
            Some(StatementMeaning::harmless(NotLearned::SystemVariable))
        }
        _ if is_of_session => Some(StatementMeaning::neither()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
