//! The text of a statement becomes its shape and its values: `WHERE id = 5` is `WHERE id = ?0` with 5.
//!
//! Statements that differ in values alone share a shape, which is parsed once. A list behind IN is
//! one value, whatever its length.

use std::iter::Peekable;

use crate::arguments::Argument;
use crate::functions::needs_parenthesis_at_once;
use crate::not_learned::NotLearned;
use crate::value::Value;

/// MediaWiki writes this behind SELECT. It sets the order in which the server reads the tables, and does not change
/// the result.
const ORDER_OF_TABLES: &[u8] = b"/*! STRAIGHT_JOIN */";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A keyword, or a name without quotes.
    Word(String),
    /// A name in quotes, with backticks around it.
    Name(String),
    Value(Value),
    Sign(char),
}

impl Token {
    pub(crate) fn is_word(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    pub(crate) fn is_name_beyond_ascii(&self) -> bool {
        matches!(self, Self::Word(name) | Self::Name(name) if !name.is_ascii())
    }
}

/// Cuts a statement into tokens. `parameters` stand for its `?` in order.
pub(crate) fn tokens(
    statement: &str,
    parameters: &[Value],
    has_ansi_quotes: bool,
) -> Result<Vec<Token>, NotLearned> {
    let bytes = statement.as_bytes();
    let mut tokens = Vec::new();
    let mut parameters = parameters.iter();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        at += match byte {
            _ if byte.is_ascii_whitespace() => 1,
            b'/' if rest.starts_with(ORDER_OF_TABLES)
                && tokens.last().is_some_and(|it: &Token| it.is_word("SELECT")) =>
            {
                ORDER_OF_TABLES.len()
            }
            b'/' if rest.starts_with(b"/*") => {
                if matches!(rest.get(2), Some(b'!' | b'M' | b'+')) {
                    return Err(NotLearned::ExecutableComment);
                }
                let end = rest[2..]
                    .windows(2)
                    .position(|it| it == b"*/")
                    .ok_or(NotLearned::Syntax)?;
                end + 4
            }
            b'#' => line_length(rest),
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(u8::is_ascii_whitespace) => {
                line_length(rest)
            }
            b'"' if has_ansi_quotes => {
                let length = name_length(rest, b'"')?;
                let name = &statement[at + 1..at + length - 1];
                let name = name.replace("\"\"", "\"").replace('`', "``");
                tokens.push(Token::Name(format!("`{name}`")));
                length
            }
            b'\'' | b'"' => {
                let (text, length) = quoted(rest)?;
                // Texts that follow each other are one text, unless one of them is an alias.
                if matches!(tokens.last(), Some(Token::Value(_))) {
                    return Err(NotLearned::Syntax);
                }
                tokens.push(Token::Value(Value::Text(text)));
                length
            }
            b'`' => {
                let length = name_length(rest, b'`')?;
                tokens.push(Token::Name(statement[at..at + length].to_owned()));
                length
            }
            b'?' => {
                tokens.push(Token::Value(
                    parameters.next().cloned().ok_or(NotLearned::Syntax)?,
                ));
                1
            }
            b'@' if rest.starts_with(b"@@") => return Err(NotLearned::SystemVariable),
            b'@' => return Err(NotLearned::UserVariable),
            b'0'..=b'9' => {
                let (value, length) = number(rest)?;
                tokens.push(Token::Value(value));
                length
            }
            _ if is_of_word(*byte) => {
                let length = rest
                    .iter()
                    .position(|it| !is_of_word(*it))
                    .unwrap_or(rest.len());
                let word = &statement[at..at + length];
                match rest.get(length) {
                    // x'41', b'01', N'text', _utf8mb4'text'
                    Some(b'\'' | b'"') if word.len() == 1 || word.starts_with('_') => {
                        return Err(NotLearned::Syntax);
                    }
                    _ => tokens.push(Token::Word(word.to_owned())),
                }
                length
            }
            // Behind a blank or a comment it is the name of a stored function.
            b'(' if at > 0
                && !is_of_word(bytes[at - 1])
                && matches!(tokens.last(), Some(Token::Word(word)) if needs_parenthesis_at_once(word)) =>
            {
                return Err(NotLearned::UnknownFunction);
            }
            // They bind otherwise than the parser believes; `||` also by the mode of the session.
            b'|' | b'&' if rest.get(1) == Some(byte) => return Err(NotLearned::Syntax),
            _ => {
                tokens.push(Token::Sign(char::from(*byte)));
                1
            }
        };
    }
    if tokens.iter().any(|token| token.is_word("xor")) {
        return Err(NotLearned::Syntax);
    }
    while tokens.last() == Some(&Token::Sign(';')) {
        tokens.pop();
    }
    if tokens.contains(&Token::Sign(';')) {
        return Err(NotLearned::SeveralStatements);
    }
    Ok(tokens)
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

fn line_length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |end| end + 1)
}

/// The stack that a thread has who understands statements. A link takes up to a kilobyte of it, and seven without optimisation.
pub const STACK_BYTES: usize = 16 * 1024 * 1024;
/// The longest chain (`1 + 1 + ...`) that is parsed. The parser has a bound for what stands in parentheses, and none for
/// chains, and each link of them is a call within a call.
const MAX_LINKS: usize = 1_000;
/// The links that one JOIN counts for: it takes more of the stack. The server knows 61 tables in a join.
const LINKS_OF_JOIN: usize = 7;

/// Whether the tree of a statement may be deeper than what this thread has room for.
pub(crate) fn is_too_deep(tokens: &[Token]) -> bool {
    let mut open = Vec::new();
    let (mut links, mut outside) = (Links::default(), 0);
    tokens.iter().any(|token| {
        match token {
            Token::Sign('(' | '[' | '{') => {
                links.of_expression += 1;
                open.push((links, outside));
                outside += links.count();
                links = Links::default();
            }
            Token::Sign(')' | ']' | '}') => (links, outside) = open.pop().unwrap_or_default(),
            _ => links.add(token),
        }
        outside + links.count() > MAX_LINKS
    })
}

/// The length of one chain, within one pair of parentheses.
#[derive(Debug, Clone, Copy, Default)]
struct Links {
    of_expression: usize,
    of_queries: usize,
}

impl Links {
    const fn count(&self) -> usize {
        self.of_expression + self.of_queries
    }

    fn add(&mut self, token: &Token) {
        const BETWEEN_QUERIES: [&str; 4] = ["union", "except", "intersect", "minus"];
        match token {
            Token::Value(_) | Token::Name(_) | Token::Sign('.') => {}
            Token::Sign(',') => self.of_expression = 0,
            Token::Sign(_) => self.of_expression += 1,
            Token::Word(_) if token.is_word("join") => self.of_expression += LINKS_OF_JOIN,
            Token::Word(_) if BETWEEN_QUERIES.iter().any(|it| token.is_word(it)) => {
                self.of_queries += 1
            }
            Token::Word(_) => self.of_expression += 1,
        }
    }
}

/// A text without its quotes and escapes, and its length with them.
fn quoted(bytes: &[u8]) -> Result<(Vec<u8>, usize), NotLearned> {
    let quote = bytes[0];
    let mut text = Vec::new();
    let mut at = 1;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'\\'), Some(escaped)) => {
                match escaped {
                    b'0' => text.push(0),
                    b'b' => text.push(8),
                    b'n' => text.push(b'\n'),
                    b'r' => text.push(b'\r'),
                    b't' => text.push(b'\t'),
                    b'Z' => text.push(26),
                    // Patterns keep the backslash.
                    b'%' | b'_' => text.extend([b'\\', *escaped]),
                    _ => text.push(*escaped),
                }
                at += 2;
            }
            (Some(byte), next) if *byte == quote => {
                if next != Some(&quote) {
                    return Ok((text, at + 1));
                }
                text.push(quote);
                at += 2;
            }
            (Some(byte), _) => {
                text.push(*byte);
                at += 1;
            }
            (None, _) => return Err(NotLearned::Syntax),
        }
    }
}

fn name_length(bytes: &[u8], quote: u8) -> Result<usize, NotLearned> {
    let mut at = 1;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(byte), Some(next)) if *byte == quote && *next == quote => at += 2,
            (Some(byte), _) if *byte == quote => return Ok(at + 1),
            (Some(_), _) => at += 1,
            (None, _) => return Err(NotLearned::Syntax),
        }
    }
}

fn number(bytes: &[u8]) -> Result<(Value, usize), NotLearned> {
    let length = bytes
        .iter()
        .position(|byte| !is_of_word(*byte) && *byte != b'.')
        .unwrap_or(bytes.len());
    let text = str::from_utf8(&bytes[..length]).map_err(|_| NotLearned::Syntax)?;
    let is_number = text.parse::<f64>().is_ok() && bytes.get(length - 1) != Some(&b'e');
    if is_number {
        Ok((Value::number(text), length))
    } else {
        Err(NotLearned::Syntax)
    }
}

/// The text that is parsed, and its values by number.
pub(crate) fn shape(tokens: &[Token]) -> (String, Vec<Argument>) {
    let mut text = String::new();
    let mut arguments = Vec::new();
    let mut tokens = tokens.iter().peekable();
    let mut last_sign = ' ';
    let mut follows_in = false;
    while let Some(token) = tokens.next() {
        let mut is_in = false;
        match token {
            Token::Value(value) => {
                text.push_str(&format!(" ?{}", arguments.len()));
                arguments.push(Argument::One(value.clone()));
                last_sign = ' ';
            }
            Token::Sign('(') if follows_in && matches!(tokens.peek(), Some(Token::Value(_))) => {
                let items = list(&mut tokens);
                text.push('(');
                push_list(items, &mut text, &mut arguments);
                last_sign = ' ';
            }
            Token::Sign(sign) => {
                // Operators of two signs stay together, and so do the parts of a name.
                let is_operator = last_sign != ' ' && matches!(sign, '=' | '>' | '<' | '&' | '|');
                if !is_operator && *sign != '.' && !text.ends_with('.') {
                    text.push(' ');
                }
                text.push(*sign);
                last_sign = *sign;
            }
            Token::Word(word) | Token::Name(word) => {
                is_in = word.eq_ignore_ascii_case("in");
                if !text.ends_with('.') {
                    text.push(' ');
                }
                text.push_str(word);
                last_sign = ' ';
            }
        }
        follows_in = is_in;
    }
    (text, arguments)
}

/// The tokens up to the closing parenthesis, as far as they are values and commas.
fn list<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a Token>>) -> Vec<&'a Token> {
    let mut items = Vec::new();
    while let Some(Token::Value(_) | Token::Sign(',' | ')')) = tokens.peek() {
        let item = tokens.next();
        let is_end = item == Some(&Token::Sign(')'));
        items.extend(item);
        if is_end {
            break;
        }
    }
    items
}

/// One value for a whole list of plain values; otherwise each for itself.
fn push_list(items: Vec<&Token>, text: &mut String, arguments: &mut Vec<Argument>) {
    let is_plain = items.len().is_multiple_of(2)
        && items.last() == Some(&&Token::Sign(')'))
        && items
            .iter()
            .enumerate()
            .all(|(index, item)| matches!(item, Token::Value(_)) == (index % 2 == 0));
    if is_plain {
        let values = items.into_iter().filter_map(|item| match item {
            Token::Value(value) => Some(value.clone()),
            _ => None,
        });
        text.push_str(&format!("?{})", arguments.len()));
        arguments.push(Argument::List(values.collect()));
        return;
    }
    for item in items {
        match item {
            Token::Value(value) => {
                text.push_str(&format!(" ?{}", arguments.len()));
                arguments.push(Argument::One(value.clone()));
            }
            Token::Sign(sign) => text.push(*sign),
            Token::Word(_) | Token::Name(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(statement: &str) -> (String, Vec<Argument>) {
        shape(&tokens(statement, &[Value::Integer(7)], false).unwrap())
    }

    fn one(text: &str) -> Argument {
        Argument::One(Value::Text(text.into()))
    }

    #[test]
    fn values_leave_the_text_of_a_statement() {
        for (statement, expected, values) in [
            (
                "SELECT a FROM t WHERE id = 5 AND b='it''s \\'x\\''",
                " SELECT a FROM t WHERE id = ?0 AND b = ?1",
                vec![Argument::One(Value::Integer(5)), one("it's 'x'")],
            ),
            (
                "SELECT t.a, `t`.`b c` /* why */ FROM t -- end\n WHERE a >= ? # more",
                " SELECT t.a , `t`.`b c` FROM t WHERE a >= ?0",
                vec![Argument::One(Value::Integer(7))],
            ),
            (
                "SELECT a FROM t WHERE b IN (1, 'x') LIMIT 1;",
                " SELECT a FROM t WHERE b IN(?0) LIMIT ?1",
                vec![
                    Argument::List(vec![Value::Integer(1), Value::Text(b"x".into())]),
                    Argument::One(Value::Integer(1)),
                ],
            ),
            (
                "SELECT 1.5, -2, a<>-3, \"a\\%b\", 12345678901234567890",
                " SELECT ?0 , - ?1 , a <> - ?2 , ?3 , ?4",
                vec![
                    Argument::One(Value::Other),
                    Argument::One(Value::Integer(2)),
                    Argument::One(Value::Integer(3)),
                    one("a\\%b"),
                    Argument::One(Value::Other),
                ],
            ),
        ] {
            assert_eq!(
                shape_of(statement),
                (expected.to_owned(), values),
                "{statement}"
            );
        }
    }

    #[test]
    fn text_that_may_be_read_otherwise_is_not_learned() {
        for (statement, reason) in [
            ("SELECT /*!50000 a */ FROM t", NotLearned::ExecutableComment),
            (
                "SELECT /*M!100000 a */ FROM t",
                NotLearned::ExecutableComment,
            ),
            ("SELECT 'a' 'b'", NotLearned::Syntax),
            ("SELECT _latin1'a'", NotLearned::Syntax),
            ("SELECT x'41'", NotLearned::Syntax),
            ("SELECT 'a", NotLearned::Syntax),
            ("SELECT `a", NotLearned::Syntax),
            ("SELECT /* a", NotLearned::Syntax),
            ("SELECT 0x41", NotLearned::Syntax),
            (
                "SELECT a FROM t WHERE a = 1 || b = 2 AND c = 3",
                NotLearned::Syntax,
            ),
            ("SELECT a FROM t WHERE a = 1 && b = 2", NotLearned::Syntax),
            ("SELECT a FROM t WHERE a = 1 XOR b = 2", NotLearned::Syntax),
            ("SELECT COUNT (a) FROM t", NotLearned::UnknownFunction),
            ("SELECT 1; SELECT 2", NotLearned::SeveralStatements),
            ("SELECT @a", NotLearned::UserVariable),
            ("SELECT @@a", NotLearned::SystemVariable),
            ("SELECT ?, ?", NotLearned::Syntax),
        ] {
            assert_eq!(
                tokens(statement, &[Value::Null], false),
                Err(reason),
                "{statement}"
            );
        }
    }

    #[test]
    fn double_quotes_are_those_of_a_name_with_ansi_quotes() {
        let shape_of = |statement| shape(&tokens(statement, &[], true).unwrap());
        assert_eq!(
            shape_of(r#"SELECT "a""b`\" FROM "t" WHERE "t"."c" = 'd"e'"#),
            (
                r#" SELECT `a"b``\` FROM `t` WHERE `t`.`c` = ?0"#.to_owned(),
                vec![one("d\"e")]
            )
        );
        assert_eq!(tokens(r#"SELECT "a"#, &[], true), Err(NotLearned::Syntax));
    }
}
