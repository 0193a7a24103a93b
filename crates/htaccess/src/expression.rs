//! Expressions of `<If>`, `Require expr`, `RewriteCond expr` and `SetEnvIfExpr`
//! (<https://httpd.apache.org/docs/2.4/expr.html>). A part that is not understood makes the expression
//! unknown.

use std::net::IpAddr;

use crate::address::Network;
use crate::pattern::{Groups, Pattern, fits_glob};
use crate::values::{FileKind, Values};

/// Parts in one another.
const MAX_DEPTH: usize = 40;

/// The values that an expression is evaluated with.
pub struct Scope<'r> {
    pub values: &'r dyn Values,
    /// The groups of the last pattern that matched.
    pub groups: Groups,
}

#[derive(Clone, Debug)]
pub enum Expression {
    Constant(bool),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Compare(Word, String, Word),
    Matches(Word, Pattern, bool),
    IsIn(Word, Vec<Word>),
    Unary(char, Word),
}

/// A text with variables in it.
#[derive(Clone, Debug, Default)]
pub struct Word(Vec<WordPart>);

#[derive(Clone, Debug)]
enum WordPart {
    Text(String),
    Variable(String),
    Group(usize),
    Function(String, Word),
}

impl Expression {
    /// `None` if it is not understood.
    pub fn of(text: &str) -> Option<Expression> {
        let mut reader = Reader {
            rest: text.trim(),
            depth: 0,
        };
        let expression = reader.either()?;
        reader.rest.trim().is_empty().then_some(expression)
    }

    /// One of which it is not known whether it holds.
    pub fn unknown() -> Expression {
        Expression::Unary('?', Word::default())
    }

    /// Whether it holds; `None` if that is not known.
    pub fn holds(&self, scope: &mut Scope<'_>) -> Option<bool> {
        match self {
            Expression::Constant(value) => Some(*value),
            Expression::Not(inner) => inner.holds(scope).map(|it| !it),
            Expression::And(left, right) => match (left.holds(scope), right.holds(scope)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (left, right) => Some(left? && right?),
            },
            Expression::Or(left, right) => match (left.holds(scope), right.holds(scope)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (left, right) => Some(left? || right?),
            },
            Expression::Compare(left, operator, right) => {
                let (left, right) = (left.value(scope)?, right.value(scope)?);
                compare(&left, operator, &right)
            }
            Expression::Matches(word, pattern, is_positive) => {
                let subject = word.value(scope)?;
                let groups = pattern.groups(&subject).ok()?;
                let is_match = groups.is_some();
                if let Some(groups) = groups {
                    scope.groups = groups;
                }
                Some(is_match == *is_positive)
            }
            Expression::IsIn(word, list) => {
                let value = word.value(scope)?;
                let mut is_in = false;
                for other in list {
                    is_in |= other.value(scope)? == value;
                }
                Some(is_in)
            }
            Expression::Unary(operator, word) => unary(scope, *operator, &word.value(scope)?),
        }
    }
}

impl Word {
    fn value(&self, scope: &Scope<'_>) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        for part in &self.0 {
            match part {
                WordPart::Text(text) => value.extend_from_slice(text.as_bytes()),
                WordPart::Variable(name) => value.extend(scope.values.variable(name)?),
                WordPart::Group(number) => value.extend_from_slice(scope.groups.get(*number)),
                WordPart::Function(name, word) => {
                    let argument = word.value(scope)?;
                    value.extend(function(scope, name, argument)?);
                }
            }
        }
        Some(value)
    }
}

fn function(scope: &Scope<'_>, name: &str, argument: Vec<u8>) -> Option<Vec<u8>> {
    let text = || String::from_utf8_lossy(&argument).into_owned();
    match name {
        "tolower" => Some(argument.to_ascii_lowercase()),
        "toupper" => Some(argument.to_ascii_uppercase()),
        "req" | "http" | "req_novary" => scope.values.variable(&format!("HTTP:{}", text())),
        "reqenv" | "env" => scope.values.variable(&format!("ENV:{}", text())),
        "escape" => Some(crate::paths::escaped(&argument)),
        _ => None,
    }
}

fn compare(left: &[u8], operator: &str, right: &[u8]) -> Option<bool> {
    let number = |text: &[u8]| -> i64 {
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        let end = text
            .char_indices()
            .find(|(at, it)| !(it.is_ascii_digit() || *at == 0 && matches!(it, '-' | '+')))
            .map_or(text.len(), |(at, _)| at);
        text[..end].parse().unwrap_or(0)
    };
    Some(match operator {
        "=" | "==" => left == right,
        "!=" => left != right,
        "<" | "-slt" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        "-eq" | "eq" => number(left) == number(right),
        "-ne" | "ne" => number(left) != number(right),
        "-lt" | "lt" => number(left) < number(right),
        "-le" | "le" => number(left) <= number(right),
        "-gt" | "gt" => number(left) > number(right),
        "-ge" | "ge" => number(left) >= number(right),
        "-ipmatch" => {
            let address: IpAddr = std::str::from_utf8(left).ok()?.parse().ok()?;
            Network::of(std::str::from_utf8(right).ok()?)?.contains(address)
        }
        "-strmatch" | "-fnmatch" => fits_glob(right, left, false),
        "-strcmatch" => fits_glob(right, left, true),
        _ => return None,
    })
}

fn unary(scope: &Scope<'_>, operator: char, value: &[u8]) -> Option<bool> {
    let facts = || scope.values.look(value);
    Some(match operator {
        'z' => value.is_empty(),
        'n' => !value.is_empty(),
        'T' => {
            let falses: [&[u8]; 5] = [b"", b"0", b"off", b"false", b"no"];
            !falses.contains(&value.to_ascii_lowercase().as_slice())
        }
        'e' => !matches!(facts().kind, FileKind::Missing | FileKind::Forbidden),
        'f' => facts().kind == FileKind::File,
        'd' => facts().kind == FileKind::Folder,
        's' => facts().kind == FileKind::File && facts().length > 0,
        'L' | 'h' => facts().link_of_owner.is_some(),
        'x' => facts().is_executable,
        'R' => {
            let network = Network::of(std::str::from_utf8(value).ok()?)?;
            network.contains(scope.values.client()?)
        }
        _ => return None,
    })
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, text: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn either(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut left = self.both()?;
        while self.eat("||") {
            left = Expression::Or(Box::new(left), Box::new(self.both()?));
        }
        self.depth -= 1;
        Some(left)
    }

    fn both(&mut self) -> Option<Expression> {
        let mut left = self.one()?;
        while self.eat("&&") {
            left = Expression::And(Box::new(left), Box::new(self.one()?));
        }
        Some(left)
    }

    fn one(&mut self) -> Option<Expression> {
        self.skip();
        if self.rest.starts_with('!')
            && !self.rest.starts_with("!=")
            && !self.rest.starts_with("!~")
        {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return None;
            }
            self.eat("!");
            let inner = self.one()?;
            self.depth -= 1;
            return Some(Expression::Not(Box::new(inner)));
        }
        if self.eat("(") {
            let inner = self.either()?;
            return self.eat(")").then_some(inner);
        }
        for (word, value) in [("true", true), ("false", false)] {
            let rest = self.rest.strip_prefix(word);
            if rest
                .is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '('))
            {
                self.eat(word);
                return Some(Expression::Constant(value));
            }
        }
        let mut letters = self.rest.chars();
        if letters.next() == Some('-')
            && let Some(operator) = letters.next()
            && letters.next().is_some_and(char::is_whitespace)
        {
            self.rest = letters.as_str();
            return Some(Expression::Unary(operator, self.word()?));
        }
        let left = self.word()?;
        self.skip();
        for (operator, is_positive) in [("=~", true), ("!~", false)] {
            if self.eat(operator) {
                let pattern = self.pattern()?;
                return Some(Expression::Matches(left, pattern, is_positive));
            }
        }
        if self.eat("-in ") || self.eat("in ") {
            return self.list().map(|list| Expression::IsIn(left, list));
        }
        #[rustfmt::skip]
        let operators = [
            "==", "!=", "<=", ">=", "=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-ipmatch",
            "-strmatch", "-strcmatch", "-fnmatch", "eq", "ne", "lt", "le", "gt", "ge",
        ];
        let operator = operators.into_iter().find(|it| self.eat(it))?;
        let right = self.word()?;
        Some(Expression::Compare(left, operator.to_owned(), right))
    }

    fn list(&mut self) -> Option<Vec<Word>> {
        if !self.eat("{") {
            return None;
        }
        let mut words = vec![self.word()?];
        while self.eat(",") {
            words.push(self.word()?);
        }
        self.eat("}").then_some(words)
    }

    /// `/a/i`, `m#a#i`
    fn pattern(&mut self) -> Option<Pattern> {
        self.skip();
        if let Some(rest) = self.rest.strip_prefix('m')
            && rest.starts_with(|it: char| !it.is_alphanumeric())
        {
            self.rest = rest;
        }
        let delimiter = self.rest.chars().next()?;
        if !"/#$%^|?!'\",;:._-".contains(delimiter) {
            return None;
        }
        let rest = &self.rest[delimiter.len_utf8()..];
        let end = rest.find(delimiter)?;
        let (pattern, after) = (&rest[..end], &rest[end + delimiter.len_utf8()..]);
        let flags = after
            .char_indices()
            .find(|(_, it)| !it.is_ascii_alphabetic())
            .map_or(after.len(), |(at, _)| at);
        let is_caseless = after[..flags].contains('i');
        if after[..flags].contains(['m', 'g']) {
            return None;
        }
        self.rest = &after[flags..];
        Pattern::new(pattern, is_caseless)
    }

    fn word(&mut self) -> Option<Word> {
        let mut word = self.factor()?;
        loop {
            self.skip();
            if !self.rest.starts_with('.') {
                return Some(word);
            }
            self.rest = &self.rest[1..];
            word.0.extend(self.factor()?.0);
        }
    }

    fn factor(&mut self) -> Option<Word> {
        self.skip();
        let first = self.rest.chars().next()?;
        match first {
            '\'' | '"' => self.quoted(first),
            '%' => {
                let end = self.rest.find('}')?;
                let name = self.rest.strip_prefix("%{")?.get(..end - 2)?;
                let part = variable(name)?;
                self.rest = &self.rest[end + 1..];
                Some(Word(vec![part]))
            }
            '$' => {
                let number = self.rest[1..].chars().next()?.to_digit(10)?;
                self.rest = &self.rest[2..];
                Some(Word(vec![WordPart::Group(number as usize)]))
            }
            '0'..='9' => {
                let end = self
                    .rest
                    .find(|it: char| !(it.is_ascii_digit() || it == '.'))
                    .unwrap_or(self.rest.len());
                let number = self.rest[..end].to_owned();
                self.rest = &self.rest[end..];
                Some(Word(vec![WordPart::Text(number)]))
            }
            'a'..='z' | 'A'..='Z' => {
                let end = self.rest.find('(')?;
                let name = self.rest[..end].trim().to_ascii_lowercase();
                if !name
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || it == b'_')
                {
                    return None;
                }
                self.rest = &self.rest[end + 1..];
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return None;
                }
                let argument = self.word()?;
                self.depth -= 1;
                let is_ended = self.eat(")");
                is_ended.then(|| Word(vec![WordPart::Function(name, argument)]))
            }
            _ => None,
        }
    }

    fn quoted(&mut self, quote: char) -> Option<Word> {
        let mut word = Word::default();
        let mut text = String::new();
        let mut letters = self.rest[1..].char_indices();
        let inner = &self.rest[1..];
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => text.extend(letters.next().map(|it| it.1)),
                _ if letter == quote => {
                    word.0.push(WordPart::Text(text));
                    self.rest = &inner[at + 1..];
                    return Some(word);
                }
                '%' if inner[at..].starts_with("%{") => {
                    let end = inner[at..].find('}')? + at;
                    word.0.push(WordPart::Text(std::mem::take(&mut text)));
                    word.0.push(variable(&inner[at + 2..end])?);
                    while letters.next().is_some_and(|(here, _)| here < end) {}
                }
                '$' if inner[at + 1..].starts_with(|it: char| it.is_ascii_digit()) => {
                    let number = letters.next()?.1.to_digit(10)?;
                    word.0.push(WordPart::Text(std::mem::take(&mut text)));
                    word.0.push(WordPart::Group(number as usize));
                }
                letter => text.push(letter),
            }
        }
        None
    }
}

/// `%{NAME}` and `%{function:argument}`
fn variable(name: &str) -> Option<WordPart> {
    let Some((function, argument)) = name.split_once(':') else {
        return Some(WordPart::Variable(name.to_owned()));
    };
    match function.to_ascii_lowercase().as_str() {
        "http" | "req" | "req_novary" | "env" | "reqenv" => {
            Some(WordPart::Variable(name.to_owned()))
        }
        "tolower" | "toupper" | "escape" => Some(WordPart::Function(
            function.to_ascii_lowercase(),
            Word(vec![WordPart::Text(argument.to_owned())]),
        )),
        _ => None,
    }
}
