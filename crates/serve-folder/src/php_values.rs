//! All values in the text of a PHP file of settings that are literals, by their paths: constants, variables, members, and
//! elements of arrays. Pure: no PHP runs.
//!
//! ```text
//! $databases['default'] = array('host' => 'db');   databases/default/host
//! $CFG->dbhost = 'db';                             CFG/dbhost
//! return ['parameters' => ['host' => 'db']];       parameters/host
//! class JConfig { public $host = 'db'; }           host
//! ```
//!
//! A value is known if its path is set once, and its variable or constant is named in no other statement.

use std::collections::HashMap;

use super::php_literals::{
    literal, occurrences, plain_statements, string_length, without_comments,
};

/// Levels of arrays that are read.
const MAX_LEVELS: usize = 12;

/// Values of one file.
const MAX_VALUES: usize = 4_000;

#[derive(Default)]
pub(super) struct PhpValues {
    text: String,
    /// `None`: not a literal, or set twice.
    values: HashMap<String, Option<String>>,
    /// By the name: how a variable or constant is written, and how many statements set it.
    settings: HashMap<String, (String, usize)>,
}

impl PhpValues {
    pub(super) fn of(text: &str) -> PhpValues {
        let text = without_comments(text);
        let mut values = PhpValues::default();
        for statement in plain_statements(&text) {
            let _ = values.read(statement);
        }
        values.text = text;
        values
    }

    /// The literal at a path, such as `databases/default/host`.
    pub(super) fn literal(&self, path: &str) -> Option<String> {
        let root = path.split('/').next().unwrap_or_default();
        let settings = self.settings.get(root);
        let is_only = settings.is_none_or(|(name, count)| *count == occurrences(&self.text, name));
        let value = self.values.get(path).cloned().flatten();
        value.filter(|_| is_only)
    }

    /// Whether a value stands at the path, known or not.
    pub(super) fn has(&self, path: &str) -> bool {
        self.values.contains_key(path)
    }

    fn read(&mut self, statement: &str) -> Option<()> {
        if let Some(value) = statement.strip_prefix("return") {
            return self.value(value.trim_start(), "", MAX_LEVELS).map(|_| ());
        }
        if let Some(rest) = statement.strip_prefix("define") {
            let arguments = rest.trim_start().strip_prefix('(')?.trim_start();
            let (name, rest) = literal(arguments)?;
            let value = rest.trim_start().strip_prefix(',')?.trim_start();
            self.count(&name, name.clone());
            let rest = self.value(value, &name, MAX_LEVELS)?;
            return (rest.trim() == ")").then_some(());
        }
        for word_before in ["global", "unset"] {
            let rest = statement.strip_prefix(word_before);
            let rest = rest.map(|rest| rest.trim_start_matches(['(', ' ']));
            if let Some((name, _)) = rest.and_then(|rest| word(rest.strip_prefix('$')?)) {
                self.count(name, format!("${name}"));
                return Some(());
            }
        }
        let member = ["public ", "protected ", "var "];
        let member = member.iter().find_map(|it| statement.strip_prefix(it));
        let rest = member.unwrap_or(statement).trim_start().strip_prefix('$')?;
        let (name, mut rest) = word(rest)?;
        self.count(name, format!("${name}"));
        let mut path = name.to_owned();
        loop {
            rest = rest.trim_start();
            let key;
            if let Some(inner) = rest.strip_prefix('[') {
                let (name, after) = literal(inner.trim_start())?;
                (key, rest) = (name, after.trim_start().strip_prefix(']')?);
            } else if let Some(inner) = rest.strip_prefix("->") {
                let (name, after) = word(inner)?;
                (key, rest) = (name.to_owned(), after);
            } else {
                break;
            }
            path = joined(&path, &key);
        }
        let value = rest.strip_prefix('=')?;
        let is_assignment = !value.starts_with(['=', '>']);
        let rest = self.value(value.trim_start(), &path, MAX_LEVELS)?;
        (is_assignment && rest.trim().is_empty()).then_some(())
    }

    fn count(&mut self, name: &str, written: String) {
        let settings = self.settings.entry(name.to_owned());
        settings.or_insert((written, 0)).1 += 1;
    }

    /// Reads the value at the beginning of the text. Returns the rest of the text.
    fn value<'a>(&mut self, text: &'a str, path: &str, levels: usize) -> Option<&'a str> {
        let levels = levels.checked_sub(1)?;
        let array = text.strip_prefix('[').map(|inner| (inner, ']'));
        let array = array.or_else(|| {
            let rest = text.strip_prefix("array")?.trim_start();
            Some((rest.strip_prefix('(')?, ')'))
        });
        if let Some((inner, end)) = array {
            return self.elements(inner, end, path, levels);
        }
        let (value, rest) = match literal(text) {
            Some((value, rest)) => (Some(value), rest),
            None => match word(text) {
                Some((value, rest)) => (Some(value.to_owned()), rest),
                None => (None, text),
            },
        };
        let end = expression_end(rest);
        // More follows: it is computed.
        let value = value.filter(|_| rest.get(..end).is_some_and(|rest| rest.trim().is_empty()));
        if self.values.len() < MAX_VALUES {
            let known = self.values.entry(path.to_owned());
            known.and_modify(|known| *known = None).or_insert(value);
        }
        rest.get(end..)
    }

    fn elements<'a>(
        &mut self,
        mut rest: &'a str,
        end: char,
        path: &str,
        levels: usize,
    ) -> Option<&'a str> {
        let mut left = usize::MAX;
        loop {
            rest = rest.trim_start();
            if let Some(rest) = rest.strip_prefix(end) {
                return Some(rest);
            }
            // Another bracket closes the array, or the text ends.
            if rest.len() >= left || rest.is_empty() {
                return None;
            }
            left = rest.len();
            let key = literal(rest).or_else(|| {
                let (key, rest) = word(rest)?;
                Some((key.to_owned(), rest))
            });
            let named = key.and_then(|(key, after)| {
                let value = after.trim_start().strip_prefix("=>")?;
                Some((joined(path, &key), value.trim_start()))
            });
            rest = match named {
                Some((path, value)) => self.value(value, &path, levels)?,
                None => rest.get(expression_end(rest)..)?,
            };
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    match path.is_empty() {
        true => key.to_owned(),
        false => format!("{path}/{key}"),
    }
}

/// A name or a number at the beginning of the text, and the rest.
fn word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

/// The position of the comma or the closing bracket that ends an expression, or of the end of the text.
fn expression_end(text: &str) -> usize {
    let (mut at, mut open) = (0, 0_usize);
    while let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) {
        at += match letter {
            '\'' | '"' => string_length(text.get(at..).unwrap_or_default()),
            ',' | ')' | ']' if open == 0 => return at,
            _ => {
                open += usize::from(matches!(letter, '(' | '['));
                open -= usize::from(matches!(letter, ')' | ']'));
                letter.len_utf8()
            }
        };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_known_by_their_paths() {
        let text = "<?php
            $databases['default']['default'] = array (
              'database' => 'shop', 'username' => 'ada', 'password' => 'a,b)\\'', 'port' => 3307,
              'init' => array('a', 'b' => strtolower('X', [1, 2]),), 'host' => 'db' . '1',
            );
            unset($CFG); global $CFG; $CFG = new stdClass(); $CFG->dbhost = 'localhost';
            $txpcfg['user'] = 'pat';
            define('DB_USERNAME', 'oc');
            class JConfig { public $host = 'localhost'; public $offset = 5; }
            return ['parameters' => ['database_host' => '127.0.0.1', ['x']], 'more' => [ 'user' => 'eve' ]];";
        let values = PhpValues::of(text);
        for (path, expected) in [
            ("databases/default/default/username", Some("ada")),
            ("databases/default/default/password", Some("a,b)'")),
            ("databases/default/default/port", Some("3307")),
            ("databases/default/default/host", None),
            ("databases/default/default/init/b", None),
            ("txpcfg/user", Some("pat")),
            ("DB_USERNAME", Some("oc")),
            ("host", Some("localhost")),
            ("parameters/database_host", Some("127.0.0.1")),
            ("more/user", Some("eve")),
            ("CFG/dbhost", Some("localhost")),
            ("missing", None),
        ] {
            assert_eq!(values.literal(path).as_deref(), expected, "{path}");
        }
        assert!(values.has("databases/default/default/host") && !values.has("missing"));
    }

    #[test]
    fn value_that_may_be_another_is_not_known() {
        for text in [
            "$dbuser = 'a'; $dbuser = 'b';",
            "$dbuser = 'a'; if ($local) { $dbuser = 'b'; }",
            "if ($local) { $dbuser = 'a'; }",
            "if ($local) $dbuser = 'a';",
            "$dbuser = getenv('U');",
            "$dbuser = \"$name\";",
            "$dbuser = 'a' . $b;",
            "$dbuser == 'a';",
            "$dbuser = ['a' => 'b'",
            "$dbuser = 'a",
            "// $dbuser = 'a';",
            "",
        ] {
            let values = PhpValues::of(&format!("<?php {text}"));
            assert_eq!(values.literal("dbuser"), None, "{text}");
        }
    }

    #[test]
    fn any_text_is_read_without_an_error() {
        let deep = format!("<?php return {}", "[1 => ".repeat(10_000));
        assert!(!PhpValues::of(&deep).has("1"));
        for text in [
            "<?php $a = [",
            "<?php $a[",
            "<?php $",
            "<?php return )",
            "<?php $a = ];,",
            "é$a='é",
        ] {
            PhpValues::of(text);
        }
    }
}
