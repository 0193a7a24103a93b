//! A `RewriteCond` as what `if` asks.

use nginx_conf::text::quoted;

use super::expansion::{Part, parts, put, variable};
use super::rule::Condition;
use crate::patterns::{compiles, count_captures, literal_pattern, matches};

/// What a condition comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    Always,
    Never,
    If(Question),
}

/// What `if` asks, both ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// A line before it.
    pub setup: Option<String>,
    pub yes: String,
    pub no: String,
    /// The pattern, where it has captures: those that `%1` may mean.
    pub captured: Option<CapturingPattern>,
}

/// A pattern with captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturingPattern {
    pub pattern: String,
    pub count: usize,
    /// It is compared with the path, which is decoded: what it captures must be escaped again.
    pub is_of_path: bool,
}

/// What conditions know of the lines around them.
pub struct Surroundings<'a> {
    pub is_environment: &'a dyn Fn(&str) -> bool,
    /// The path that was asked for, where a rule may have made another of it.
    pub path_variable: &'a str,
}

impl Test {
    /// Asks with a pattern, or its opposite.
    pub fn pattern(variable: &str, pattern: &str, is_caseless: bool, is_negated: bool) -> Test {
        let case = if is_caseless { "*" } else { "" };
        Test::both(
            format!("{variable} ~{case} {}", quoted(pattern)),
            format!("{variable} !~{case} {}", quoted(pattern)),
            is_negated,
        )
    }

    pub fn both(yes: String, no: String, is_negated: bool) -> Test {
        let (yes, no) = if is_negated { (no, yes) } else { (yes, no) };
        Test::If(Question {
            setup: None,
            yes,
            no,
            captured: None,
        })
    }

    fn constant(holds: bool) -> Test {
        if holds { Test::Always } else { Test::Never }
    }

    /// # Errors
    /// Why `if` cannot ask it.
    pub fn of(condition: &Condition, around: &Surroundings<'_>) -> Result<Test, String> {
        let subject = condition.subject.as_str();
        let upper = subject.to_ascii_uppercase();
        match upper.as_str() {
            "%{HTTPS}" => return of_values(condition, &["on", "off"], "$https"),
            "%{ENV:REDIRECT_STATUS}" => return of_values(condition, &[""], ""),
            "EXPR" => return Err("expressions have no counterpart".to_owned()),
            _ => {}
        }
        if let Some(test) = of_files(condition, around)? {
            return Ok(test);
        }
        let (setup, variable) = asked(subject, around)?;
        let mut test = of_text(condition, &variable)?;
        if let Test::If(question) = &mut test {
            question.setup = setup;
            question.captured = captures(condition, upper == "%{REQUEST_URI}");
        }
        Ok(test)
    }
}

fn captures(condition: &Condition, is_of_path: bool) -> Option<CapturingPattern> {
    let count = count_captures(&condition.pattern)?;
    let is_pattern = !condition.is_negated && !condition.pattern.starts_with('=');
    let case = if condition.is_caseless { "(?i)" } else { "" };
    is_pattern.then(|| CapturingPattern {
        pattern: format!("{case}{}", condition.pattern),
        count,
        is_of_path,
    })
}

/// A variable that has one of few values: `on` and `off` of `%{HTTPS}`.
fn of_values(condition: &Condition, values: &[&str], variable: &str) -> Result<Test, String> {
    let holds = |value: &&str| -> Result<bool, String> {
        let fits = match condition.pattern.strip_prefix('=') {
            Some(literal) if condition.is_caseless => literal.eq_ignore_ascii_case(value),
            Some(literal) => literal.trim_matches('"') == *value,
            None => {
                let case = if condition.is_caseless { "(?i)" } else { "" };
                matches(&format!("{case}{}", condition.pattern), value)
                    .ok_or_else(|| not_a_pattern(&condition.pattern))?
            }
        };
        Ok(fits != condition.is_negated)
    };
    let found: Result<Vec<bool>, String> = values.iter().map(holds).collect();
    Ok(match found?[..] {
        [true, false] => Test::both(
            format!("{variable} = on"),
            format!("{variable} != on"),
            false,
        ),
        [false, true] => Test::both(
            format!("{variable} = on"),
            format!("{variable} != on"),
            true,
        ),
        [first, ..] => Test::constant(first),
        [] => Test::Never,
    })
}

/// Tests of files; `None` for another condition.
fn of_files(condition: &Condition, around: &Surroundings<'_>) -> Result<Option<Test>, String> {
    let Some(kind) = condition.pattern.strip_prefix('-') else {
        return Ok(None);
    };
    let letter = match kind {
        // An empty file is one as well.
        "f" | "s" => 'f',
        "d" => 'd',
        "x" => 'x',
        // What a link leads to is looked at by the others.
        "l" | "L" | "h" => return Ok(Some(Test::constant(condition.is_negated))),
        "F" | "U" => return Err("requests for a test have no counterpart".to_owned()),
        "" => return Ok(None),
        _ => return Err(format!("there is no comparison -{kind}")),
    };
    let mut path = String::new();
    let parts = known_parts(&condition.subject)?;
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Variable(name)
                if ["REQUEST_FILENAME", "SCRIPT_FILENAME"]
                    .contains(&name.to_ascii_uppercase().as_str()) =>
            {
                path.push_str("$document_root");
                put(&mut path, SCRIPT_PATH, next_letter(&parts, at));
            }
            _ => put_part(&mut path, &parts, at, around)?,
        }
    }
    let path = match path.contains([' ', '"', '\\', '{', ';']) {
        true => quoted(&path),
        false => path,
    };
    let test = Test::both(
        format!("-{letter} {path}"),
        format!("!-{letter} {path}"),
        condition.is_negated,
    );
    Ok(Some(test))
}

/// The path up to the end of a script, without what follows it, as Apache has it in `REQUEST_FILENAME`.
pub const SCRIPT_PATH: &str = "script_path";

fn known_parts(text: &str) -> Result<Vec<Part>, String> {
    parts(text).ok_or_else(|| "RewriteMap has no counterpart; write a map".to_owned())
}

fn next_letter(parts: &[Part], at: usize) -> Option<char> {
    match parts.get(at + 1) {
        Some(Part::Text(text)) => text.chars().next(),
        _ => None,
    }
}

fn put_part(
    text: &mut String,
    parts: &[Part],
    at: usize,
    around: &Surroundings<'_>,
) -> Result<(), String> {
    match &parts[at] {
        Part::Text(plain) if plain.contains('$') => return Err("a $ cannot be written".to_owned()),
        Part::Text(plain) => text.push_str(plain),
        Part::Variable(name) => {
            let variable = match variable(name, around.is_environment)? {
                path if path == "uri" => around.path_variable.to_owned(),
                other => other,
            };
            put(text, &variable, next_letter(parts, at));
        }
        Part::OfRule(_) => {
            return Err(
                "captures of the rule are not known before its pattern is compared".to_owned(),
            );
        }
        Part::OfCondition(_) => {
            return Err("a condition asks what another one has captured".to_owned());
        }
    }
    Ok(())
}

/// The variable that `if` asks, and what sets it before.
fn asked(subject: &str, around: &Surroundings<'_>) -> Result<(Option<String>, String), String> {
    let parts = known_parts(subject)?;
    let mut text = String::new();
    for at in 0..parts.len() {
        put_part(&mut text, &parts, at, around)?;
    }
    match parts[..] {
        [Part::Variable(_)] => Ok((None, text)),
        _ => Ok((
            Some(format!("set $asked {};", quoted(&text))),
            "$asked".to_owned(),
        )),
    }
}

fn of_text(condition: &Condition, variable: &str) -> Result<Test, String> {
    let pattern = condition.pattern.as_str();
    let is_empty = |is_negated| {
        Test::both(
            format!("{variable} = \"\""),
            format!("{variable} != \"\""),
            is_negated,
        )
    };
    if let Some(literal) = pattern.strip_prefix('=') {
        let literal = literal.trim_matches('"');
        return Ok(match literal {
            "" => is_empty(condition.is_negated),
            _ if condition.is_caseless || literal.contains('$') => {
                let pattern = format!("^{}$", literal_pattern(literal.as_bytes()));
                Test::pattern(
                    variable,
                    &pattern,
                    condition.is_caseless,
                    condition.is_negated,
                )
            }
            _ => Test::both(
                format!("{variable} = {}", quoted(literal)),
                format!("{variable} != {}", quoted(literal)),
                condition.is_negated,
            ),
        });
    }
    if pattern.starts_with(['<', '>']) {
        return Err("texts cannot be compared by their order".to_owned());
    }
    if !compiles(pattern) {
        return Err(not_a_pattern(pattern));
    }
    Ok(match pattern {
        "" | "^" | "$" | ".*" | "^.*" | "^.*$" | ".*$" | "(.*)" | "^(.*)$" => {
            Test::constant(!condition.is_negated)
        }
        "^$" => is_empty(condition.is_negated),
        "." | ".+" | "^." | "^.+" | "^.+$" | ".+$" | "(.+)" | "^(.+)$" => {
            is_empty(!condition.is_negated)
        }
        _ => Test::pattern(
            variable,
            pattern,
            condition.is_caseless,
            condition.is_negated,
        ),
    })
}

pub fn not_a_pattern(pattern: &str) -> String {
    format!("{pattern} is no regular expression")
}
