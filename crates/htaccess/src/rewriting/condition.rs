//! A `RewriteCond`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::expand::{CapturedGroups, expand};
use crate::expression::{Expression, Scope};
use crate::mistake::LineMistake;
use crate::pattern::{Groups, Pattern};
use crate::values::{FileKind, Values};

#[derive(Clone, Debug)]
pub struct Condition {
    pub subject: String,
    test: Test,
    is_negated: bool,
    is_caseless: bool,
    /// `[OR]`: it or the next one.
    pub or_next: bool,
}

#[derive(Clone, Debug)]
enum Test {
    Pattern(Pattern),
    /// `-f`, `-d`, ...
    File(char),
    /// `<`, `>`, `=`, `<=`, `>=` as texts.
    Text(Vec<Ordering>, String),
    Number(Vec<Ordering>, i64),
    Expression(Option<Arc<Expression>>),
    /// `-U`, `-F`: another request would have to be made.
    Unknown,
}

impl Condition {
    /// # Errors
    /// The mistake in the words behind `RewriteCond`.
    pub fn of(args: &[String]) -> Result<Condition, LineMistake> {
        let (subject, pattern, flags) = match args {
            [subject, pattern] => (subject, pattern, ""),
            [subject, pattern, flags] => (subject, pattern, flags.as_str()),
            _ => return Err("it needs a text, a pattern and, at most, flags".into()),
        };
        let (mut is_caseless, mut or_next) = (false, false);
        for flag in flags.trim_matches(['[', ']']).split(',').map(str::trim) {
            match flag.to_ascii_lowercase().as_str() {
                "nc" | "nocase" => is_caseless = true,
                "or" | "ornext" => or_next = true,
                "" | "nv" | "novary" => {}
                other => return Err(LineMistake::UnknownFlag(other.to_owned())),
            }
        }
        let (is_negated, text) = match pattern.strip_prefix('!') {
            Some(text) => (true, text),
            None => (false, pattern.as_str()),
        };
        let test = match subject.eq_ignore_ascii_case("expr") {
            true => Test::Expression(Expression::of(text).map(Arc::new)),
            false => test(text, is_caseless).ok_or("the pattern cannot be read")?,
        };
        Ok(Condition {
            subject: subject.clone(),
            test,
            is_negated,
            is_caseless,
            or_next,
        })
    }

    /// Whether it holds; `None` if that is not known. Its groups become those that `%1` names.
    pub fn holds(&self, values: &dyn Values, captured: &mut CapturedGroups) -> Option<bool> {
        let holds = match &self.test {
            Test::Expression(expression) => {
                let mut scope = Scope {
                    values,
                    groups: Groups::default(),
                };
                let holds = expression.as_ref()?.holds(&mut scope)?;
                if holds && !self.is_negated {
                    captured.of_condition = scope.groups;
                }
                holds
            }
            test => {
                let subject = expand(&self.subject, values, captured, None)?;
                self.test(test, &subject, values, captured)?
            }
        };
        Some(holds != self.is_negated)
    }

    fn test(
        &self,
        test: &Test,
        subject: &[u8],
        values: &dyn Values,
        captured: &mut CapturedGroups,
    ) -> Option<bool> {
        match test {
            Test::Pattern(pattern) => {
                let groups = pattern.groups(subject).ok()?;
                let is_match = groups.is_some();
                if let (Some(groups), false) = (groups, self.is_negated) {
                    captured.of_condition = groups;
                }
                Some(is_match)
            }
            Test::File(letter) => {
                if subject.contains(&0) {
                    return Some(false);
                }
                let facts = values.look(subject);
                Some(match letter {
                    'd' => facts.kind == FileKind::Folder,
                    's' => facts.kind == FileKind::File && facts.length > 0,
                    'l' | 'L' | 'h' => facts.link_of_owner.is_some(),
                    'x' => facts.is_executable,
                    _ => facts.kind == FileKind::File,
                })
            }
            Test::Text(orders, text) => {
                let order = match self.is_caseless {
                    true => subject
                        .to_ascii_lowercase()
                        .cmp(&text.as_bytes().to_ascii_lowercase()),
                    // A longer text is the greater one.
                    false => (subject.len(), subject).cmp(&(text.len(), text.as_bytes())),
                };
                Some(orders.contains(&order))
            }
            Test::Number(orders, number) => {
                let text = String::from_utf8_lossy(subject);
                let text = text.trim();
                let end = text
                    .char_indices()
                    .find(|(at, it)| !(it.is_ascii_digit() || *at == 0 && matches!(it, '-' | '+')))
                    .map_or(text.len(), |(at, _)| at);
                let found: i64 = text[..end].parse().unwrap_or(0);
                Some(orders.contains(&found.cmp(number)))
            }
            Test::Expression(_) | Test::Unknown => None,
        }
    }
}

fn test(text: &str, is_caseless: bool) -> Option<Test> {
    use Ordering::{Equal, Greater, Less};
    let letter = text.strip_prefix('-');
    if let Some(letters) = letter {
        let number = |orders: Vec<Ordering>, text: &str| {
            let number = text.trim().parse().unwrap_or(0);
            Some(Test::Number(orders, number))
        };
        return match letters {
            "f" | "d" | "s" | "l" | "L" | "h" | "x" => letters.chars().next().map(Test::File),
            "F" | "U" => Some(Test::Unknown),
            _ => match letters.get(..2).zip(letters.get(2..)) {
                Some(("eq", rest)) => number(vec![Equal], rest),
                Some(("ne", rest)) => number(vec![Less, Greater], rest),
                Some(("lt", rest)) => number(vec![Less], rest),
                Some(("le", rest)) => number(vec![Less, Equal], rest),
                Some(("gt", rest)) => number(vec![Greater], rest),
                Some(("ge", rest)) => number(vec![Greater, Equal], rest),
                _ => Pattern::new(text, is_caseless).map(Test::Pattern),
            },
        };
    }
    let compared = [
        ("<=", vec![Less, Equal]),
        (">=", vec![Greater, Equal]),
        ("<", vec![Less]),
        (">", vec![Greater]),
        ("=", vec![Equal]),
    ];
    for (operator, orders) in compared {
        if let Some(rest) = text.strip_prefix(operator) {
            let rest = match rest {
                "\"\"" => "",
                rest => rest,
            };
            return Some(Test::Text(orders, rest.to_owned()));
        }
    }
    Pattern::new(text, is_caseless).map(Test::Pattern)
}
