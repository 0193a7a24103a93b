//! A statement is understood: what it reads, what it writes.

use std::collections::HashMap;
use std::sync::Arc;

use sqlparser::ast::Statement;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::arguments::Arguments;
use crate::functions;
use crate::not_learned::NotLearned;
use crate::postgres::PostgresShapes;
use crate::read::{QueryReading, ReadShape, is_harmless, read_shape};
use crate::row::Effect;
use crate::schema::{Relation, Schema};
use crate::session::{Session, changes_plain_modes};
use crate::tokens::{Token, is_too_deep, shape, tokens};
use crate::value::Value;
use crate::write::WriteContext;

/// Shapes of one site. With more, those that no page has and that were not used lately are let go; if there are
/// none, the program makes its statements from something endless.
pub const MAX_SHAPES: usize = 2_000;

/// Statements in a row that may be refused before the table of shapes is looked through again.
const REFUSALS: usize = 200;

#[derive(Debug, Clone)]
pub enum Reading {
    /// The statement returns nothing that depends on data.
    Nothing,
    Tables(QueryReading),
    /// `SELECT FOUND_ROWS()`: its number is part of what the statement before it returned.
    OfStatementBefore,
    /// It writes: what it returns (changed rows, a new number) depends on what is there.
    OfWrite,
    NotLearned(NotLearned),
}

#[derive(Debug, Clone)]
pub struct StatementMeaning {
    pub reading: Reading,
    pub effect: Effect,
}

impl StatementMeaning {
    pub(crate) const fn neither() -> Self {
        Self {
            reading: Reading::Nothing,
            effect: Effect::Nothing,
        }
    }

    /// It may return anything, and do anything.
    pub(crate) const fn everything(reason: NotLearned) -> Self {
        Self {
            reading: Reading::NotLearned(reason),
            effect: Effect::Everything,
        }
    }

    pub(crate) const fn harmless(reason: NotLearned) -> Self {
        Self {
            reading: Reading::NotLearned(reason),
            effect: Effect::Nothing,
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

struct KnownShape {
    parsed: ParsedShape,
    was_used: bool,
}

/// The shapes of a site, each parsed once. They hold for one schema: when it changes, begin anew.
pub struct Shapes {
    schema: Arc<Schema>,
    /// By the database, whether texts are compared as bytes, and the text.
    parsed: HashMap<(Option<String>, bool, String), KnownShape>,
    refusals: usize,
    postgres: PostgresShapes,
}

impl Shapes {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            schema,
            parsed: HashMap::new(),
            refusals: 0,
            postgres: PostgresShapes::default(),
        }
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub fn count(&self) -> usize {
        self.parsed.len()
    }

    /// The reads and writes of a statement. `parameters` are those of a prepared one.
    pub fn understand(
        &mut self,
        text: &[u8],
        parameters: &[Value],
        session: &Session,
    ) -> StatementMeaning {
        if session.is_unreadable() {
            return StatementMeaning::everything(NotLearned::SessionMode);
        }
        // Bytes that are no characters stand in texts, of which the rules say nothing then.
        let text = String::from_utf8_lossy(text);
        let meaning = match session.is_of_postgres() {
            true => self.postgres.understand(&text, parameters, &self.schema),
            false => self.understand_text(&text, parameters, session),
        };
        match (session.doubts(), meaning.reading) {
            (Some(reason), Reading::Tables(_) | Reading::OfStatementBefore) => StatementMeaning {
                reading: Reading::NotLearned(reason),
                effect: meaning.effect,
            },
            (_, reading) => StatementMeaning { reading, ..meaning },
        }
    }

    fn understand_text(
        &mut self,
        text: &str,
        parameters: &[Value],
        session: &Session,
    ) -> StatementMeaning {
        if is_known_variable(text) || changes_plain_modes(text) {
            return StatementMeaning::neither();
        }
        let mut tokens = match tokens(text, parameters, session.has_ansi_quotes()) {
            Ok(tokens) => tokens,
            // SET names variables of either kind, and changes nothing but the session.
            Err(NotLearned::UserVariable | NotLearned::SystemVariable)
                if is_set_of_the_session(text) =>
            {
                return StatementMeaning::neither();
            }
            Err(NotLearned::SystemVariable) if only_reads_variables(text) => {
                return StatementMeaning::harmless(NotLearned::SystemVariable);
            }
            Err(reason) => return StatementMeaning::everything(reason),
        };
        if !session.has_utf8_names() && tokens.iter().any(Token::is_name_beyond_ascii) {
            return StatementMeaning::everything(NotLearned::SessionMode);
        }
        let schema = Arc::clone(&self.schema);
        let names = KnownNames {
            database: session.database.as_deref(),
            schema: &schema,
        };
        if let Some(made_of) = temporary_table(&tokens) {
            // Only this session sees it, and other doubts are those of the session.
            return match made_of.is_empty() || is_harmless_by_words(made_of, &names) {
                true => StatementMeaning::harmless(NotLearned::TemporaryTable),
                false => StatementMeaning::everything(NotLearned::TemporaryTable),
            };
        }
        write_table_as_select(&mut tokens);
        if let Some(meaning) = without_shape(text, &tokens) {
            return meaning;
        }
        let takes_lock = take_share_lock(&mut tokens);
        let is_harmless = || is_harmless_by_words(&tokens, &names);
        let (text, arguments) = shape(&tokens);
        let arguments = Arguments::of(&arguments);
        let parsed = match is_too_deep(&tokens) {
            true => Err(NotLearned::TooLong),
            false => self.shape(text, session, is_harmless),
        };
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(reason) if is_harmless() => return StatementMeaning::harmless(reason),
            Err(reason) => return StatementMeaning::everything(reason),
        };
        match parsed {
            ParsedShape::Query(_) if takes_lock => StatementMeaning::harmless(NotLearned::Lock),
            ParsedShape::Query(shape) => {
                let shape = Arc::clone(shape);
                StatementMeaning {
                    reading: Reading::Tables(QueryReading { shape, arguments }),
                    effect: Effect::Nothing,
                }
            }
            ParsedShape::Write(statement) => {
                let context = WriteContext {
                    database: session.database.as_deref(),
                    compares_bytes: session.compares_bytes(),
                    schema: &schema,
                    arguments: &arguments,
                };
                StatementMeaning {
                    reading: Reading::OfWrite,
                    effect: context.effect(statement),
                }
            }
            ParsedShape::Harmless(reason) => StatementMeaning::harmless(*reason),
            ParsedShape::NotLearned(reason) => StatementMeaning::everything(*reason),
        }
    }

    /// The shape, parsed if it is new; `is_harmless` is asked then alone.
    fn shape(
        &mut self,
        text: String,
        session: &Session,
        is_harmless: impl Fn() -> bool,
    ) -> Result<&ParsedShape, NotLearned> {
        let key = (session.database.clone(), session.compares_bytes(), text);
        if !self.parsed.contains_key(&key) {
            self.make_room()?;
            let mut parsed = parse(&key.2, session, &self.schema);
            if matches!(parsed, ParsedShape::NotLearned(NotLearned::Syntax)) && is_harmless() {
                parsed = ParsedShape::Harmless(NotLearned::Syntax);
            }
            let known = KnownShape {
                parsed,
                was_used: false,
            };
            self.parsed.insert(key.clone(), known);
        }
        let known = self.parsed.get_mut(&key).ok_or(NotLearned::TooManyShapes)?;
        known.was_used = true;
        Ok(&known.parsed)
    }

    fn make_room(&mut self) -> Result<(), NotLearned> {
        if self.parsed.len() < MAX_SHAPES {
            return Ok(());
        }
        if self.refusals == 0 {
            self.parsed.retain(|_, known| {
                let is_of_page = matches!(&known.parsed, ParsedShape::Query(shape) if Arc::strong_count(shape) > 1);
                std::mem::take(&mut known.was_used) || is_of_page
            });
        }
        if self.parsed.len() < MAX_SHAPES {
            self.refusals = 0;
            return Ok(());
        }
        self.refusals = (self.refusals + 1) % REFUSALS;
        Err(NotLearned::TooManyShapes)
    }
}

/// The meaning that the first words have alone. `None`: the statement is to be parsed.
fn without_shape(text: &str, tokens: &[Token]) -> Option<StatementMeaning> {
    let word = |keyword: &str| tokens.first().is_some_and(|token| token.is_word(keyword));
    let any = |keywords: &[&str]| keywords.iter().any(|keyword| word(keyword));
    let second = |keywords: &[&str]| {
        let mut others = tokens
            .iter()
            .skip(1)
            .filter(|token| !token.is_word("full") && !token.is_word("extended"));
        others
            .next()
            .is_some_and(|token| keywords.iter().any(|keyword| token.is_word(keyword)))
    };
    let calls = tokens.contains(&Token::Sign('('));
    if is_found_rows(tokens) {
        return Some(StatementMeaning {
            reading: Reading::OfStatementBefore,
            effect: Effect::Nothing,
        });
    }
    Some(match () {
        () if asks_for_the_time(tokens) => StatementMeaning::neither(),
        () if any(&[
            "select", "insert", "replace", "update", "delete", "truncate", "with",
        ]) =>
        {
            return None;
        }
        () if tokens.first() == Some(&Token::Sign('(')) => return None,
        () if word("set") && is_set_of_the_session(text) => StatementMeaning::neither(),
        () if any(&["begin", "commit", "rollback", "savepoint", "use"]) => {
            StatementMeaning::neither()
        }
        () if word("start") && second(&["transaction"]) => StatementMeaning::neither(),
        () if word("release") && second(&["savepoint"]) => StatementMeaning::neither(),
        // They depend on definitions alone, whose changes count as changes of everything.
        () if word("show") && second(&["tables", "columns", "fields"]) && !calls => {
            StatementMeaning::neither()
        }
        () if any(&["describe", "desc"]) && tokens.len() == 2 => StatementMeaning::neither(),
        () if word("show") && !calls => StatementMeaning::harmless(NotLearned::SystemVariable),
        () if any(&["lock", "unlock"]) => StatementMeaning::harmless(NotLearned::Lock),
        () => StatementMeaning::everything(NotLearned::Syntax),
    })
}

/// Whether a statement returns the present time, and nothing that depends on data: PHP's own clock says as much.
fn asks_for_the_time(tokens: &[Token]) -> bool {
    const CLOCKS: [&str; 5] = [
        "now",
        "unix_timestamp",
        "current_timestamp",
        "utc_timestamp",
        "curdate",
    ];
    const OTHERS: [&str; 6] = ["select", "from", "into", "for", "lock", "procedure"];
    let Some((first, rest)) = tokens.split_first() else {
        return false;
    };
    let is_one_of = |token: &Token, words: &[&str]| words.iter().any(|it| token.is_word(it));
    let calls = rest.windows(2).filter(|it| it[1] == Token::Sign('('));
    let mut calls = calls.peekable();
    first.is_word("select")
        && calls.peek().is_some()
        && calls.all(|it| is_one_of(&it[0], &CLOCKS))
        // With the name of a database it is a stored function.
        && !rest.iter().any(|token| is_one_of(token, &OTHERS) || *token == Token::Sign('.'))
}

/// The query that a temporary table is made of, if the statement makes or drops one: no tokens without a query.
fn temporary_table(tokens: &[Token]) -> Option<&[Token]> {
    let (first, rest) = tokens.split_first()?;
    let rest = match rest {
        [or, replace, rest @ ..] if or.is_word("or") && replace.is_word("replace") => rest,
        rest => rest,
    };
    let (second, rest) = rest.split_first()?;
    let is_it = (first.is_word("create") || first.is_word("drop")) && second.is_word("temporary");
    let begins = ["select", "with", "values", "table"];
    // Behind the word TABLE or SEQUENCE itself.
    let rest = rest.get(1..).unwrap_or_default();
    let is_query = |token: &Token| begins.iter().any(|word| token.is_word(word));
    let query = rest.iter().position(is_query).unwrap_or(rest.len());
    is_it.then(|| rest.get(query..).unwrap_or_default())
}

/// MySQL's `TABLE t` is `SELECT * FROM t`.
fn write_table_as_select(tokens: &mut Vec<Token>) {
    if tokens.first().is_some_and(|token| token.is_word("table")) {
        let word = |word: &str| Token::Word(word.to_owned());
        let select = [word("SELECT"), Token::Sign('*'), word("FROM")];
        tokens.splice(..1, select);
    }
}

/// `SELECT FOUND_ROWS()`, with an alias or without.
fn is_found_rows(tokens: &[Token]) -> bool {
    let [select, name, Token::Sign('('), Token::Sign(')'), alias @ ..] = tokens else {
        return false;
    };
    let is_alias = match alias {
        [] => true,
        [Token::Name(_) | Token::Word(_)] => true,
        [keyword, Token::Name(_) | Token::Word(_)] => keyword.is_word("as"),
        _ => false,
    };
    select.is_word("select") && name.is_word("found_rows") && is_alias
}

/// Takes LOCK IN SHARE MODE from the end.
fn take_share_lock(tokens: &mut Vec<Token>) -> bool {
    const WORDS: [&str; 4] = ["lock", "in", "share", "mode"];
    let Some(start) = tokens.len().checked_sub(WORDS.len()) else {
        return false;
    };
    let is_lock = tokens[start..]
        .iter()
        .zip(WORDS)
        .all(|(token, word)| token.is_word(word));
    if is_lock {
        tokens.truncate(start);
    }
    is_lock
}

/// The place where the names of tables are looked up.
struct KnownNames<'a> {
    database: Option<&'a str>,
    schema: &'a Schema,
}

impl KnownNames<'_> {
    /// Whether what follows FROM or JOIN is a table, an understood view, or a query; and nothing follows
    /// it after a comma.
    fn know(&self, tokens: &[Token]) -> bool {
        let name = |token: &Token| match token {
            Token::Word(name) => Some(name.clone()),
            Token::Name(name) => Some(name[1..name.len() - 1].replace("``", "`")),
            Token::Value(_) | Token::Sign(_) => None,
        };
        let relation = match tokens {
            [Token::Sign('('), ..] => return true,
            [database, Token::Sign('.'), table, ..] => name(database).zip(name(table)),
            [table, ..] => self.database.map(str::to_owned).zip(name(table)),
            [] => None,
        };
        let is_known = relation.is_some_and(|relation| {
            matches!(
                self.schema.relation(&relation),
                Some(Relation::Base(_) | Relation::View(_))
            )
        });
        let ends = [
            "where", "join", "group", "order", "limit", "union", "having",
        ];
        let rest = tokens
            .iter()
            .take_while(|token| !ends.iter().any(|end| token.is_word(end)));
        is_known && !rest.into_iter().any(|token| *token == Token::Sign(','))
    }
}

/// Whether a query that the parser does not know writes nothing for sure: it calls no function that is not the server's own,
/// reads tables that are known, and has no word of those that write. The next value of a sequence is written, but no page
/// that reads a sequence is learned.
fn is_harmless_by_words(tokens: &[Token], names: &KnownNames<'_>) -> bool {
    use NotLearned as N;
    let begins = tokens
        .iter()
        .find(|token| **token != Token::Sign('('))
        .is_some_and(|token| token.is_word("select"));
    let writes = |token: &Token| {
        ["into", "procedure", "update", "insert", "delete", "table"]
            .iter()
            .any(|it| token.is_word(it))
    };
    let is_harmless = |at: usize, token: &Token| {
        let rest = tokens.get(at + 1..).unwrap_or_default();
        let calls = rest.first() == Some(&Token::Sign('('));
        match token {
            Token::Word(word) => {
                let judged = functions::judge(&word.to_ascii_lowercase(), 1);
                let is_built_in = functions::may_stand_before_parenthesis(word)
                    || matches!(
                        judged,
                        Ok(()) | Err(N::Clock | N::Chance | N::Connection | N::Lock)
                    );
                let is_from = token.is_word("from")
                    || token.is_word("join")
                    || token.is_word("straight_join");
                (!calls || is_built_in) && !writes(token) && (!is_from || names.know(rest))
            }
            Token::Name(_) => !calls,
            Token::Value(_) | Token::Sign(_) => true,
        }
    };
    begins
        && tokens
            .iter()
            .enumerate()
            .all(|(at, token)| is_harmless(at, token))
}

fn parse(text: &str, session: &Session, schema: &Schema) -> ParsedShape {
    let database = session.database.as_deref();
    let Ok(mut statements) = Parser::parse_sql(&MySqlDialect {}, text) else {
        return ParsedShape::NotLearned(NotLearned::Syntax);
    };
    match (statements.pop(), statements.is_empty()) {
        (Some(Statement::Query(query)), true) => match read_shape(&query, session, schema) {
            Ok(shape) => ParsedShape::Query(Arc::new(ReadShape {
                text: text.to_owned(),
                ..shape
            })),
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

/// The modes, for which WordPress asks in each connection, are the same in each one with the same settings. Whether the
/// server takes no writes, for which MediaWiki asks, is among what is polled.
fn is_known_variable(text: &str) -> bool {
    let text = without_comments(text);
    let words: Vec<_> = text
        .trim_end_matches([' ', ';'])
        .split_ascii_whitespace()
        .collect();
    let [select, variable, name @ ..] = words.as_slice() else {
        return false;
    };
    let is_one_of = |names: &[&str]| names.iter().any(|it| variable.eq_ignore_ascii_case(it));
    select.eq_ignore_ascii_case("SELECT")
        && match name {
            [] => is_one_of(&["@@sql_mode", "@@SESSION.sql_mode"]),
            ["AS", "Value"] => is_one_of(&["@@GLOBAL.read_only"]),
            _ => false,
        }
}

/// Whether a statement returns variables and nothing more: no call, no table, no sequence, no file.
fn only_reads_variables(text: &str) -> bool {
    let text = without_comments(text);
    let text = text.trim_end_matches([' ', ';']);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@., \t\r\n".contains(&byte);
    let mut words = text.split(|it: char| !it.is_ascii_alphabetic());
    let is_select = words
        .next()
        .is_some_and(|it| it.eq_ignore_ascii_case("select"));
    let others = [
        "from",
        "into",
        "next",
        "nextval",
        "previous",
        "procedure",
        "table",
    ];
    is_select
        && text.bytes().all(is_plain)
        && !words.any(|it| others.iter().any(|other| it.eq_ignore_ascii_case(other)))
}

/// Without comments that are not executed.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("*/") {
            Some((comment, rest)) if !comment.starts_with(['!', 'M', '+']) => {
                plain.push(' ');
                plain.push_str(rest);
            }
            _ => return text.to_owned(),
        }
    }
    plain
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
