//! Lowers `rewrite`, `set`, `if`, `return` and `break`: the steps of a level, in the order in
//! which they are written.

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::level::Level;
use super::location_tree::{EnclosingLocation, LocationList};
use super::template::has_variables;
use crate::check::Node;
use crate::model::*;

/// The beginnings of a URL that `return` accepts without a status.
const URL_STARTS: [&str; 3] = ["http://", "https://", "$scheme"];

impl Lowering<'_> {
    /// The steps of a level. In a location, `around` is the location and the list to which the
    /// locations of its `if` blocks are added.
    pub fn rewrite_ops(
        &mut self,
        level: &Level<'_>,
        mut around: Option<(&EnclosingLocation, &mut LocationList)>,
    ) -> Vec<RewriteOp> {
        let mut ops = Vec::new();
        for node in level.nodes {
            let op = match node.name() {
                "set" => self.set(node),
                "rewrite" => self.rewrite(node),
                "return" => self.return_op(node),
                "break" => Some(RewriteOp::Break),
                "if" => self.if_op(node, level, &mut around),
                _ => None,
            };
            ops.extend(op);
        }
        ops
    }

    fn set(&mut self, node: &Node<'_>) -> Option<RewriteOp> {
        let value = self.template(node.arg(1));
        let target = self.set_target(node.arg(0))?;
        Some(RewriteOp::Set { target, value })
    }

    /// The variable that `set` or `auth_request_set` writes.
    pub fn set_target(&mut self, word: &Word) -> Option<SetTarget> {
        let Some(name) = word.strip_prefix('$').filter(|name| !name.is_empty()) else {
            self.invalid(word, "variable name", "expected a name with $ before it");
            return None;
        };
        match Builtin::from_name(&name.to_ascii_lowercase()) {
            Some(Builtin::Args) => Some(SetTarget::Args),
            Some(Builtin::LimitRate) => Some(SetTarget::LimitRate),
            Some(_) => {
                self.report(
                    Diagnostic::error(word.span, format!("the duplicate \"{name}\" variable"))
                        .label("this variable cannot be written")
                        .hint("choose another name; of the built-in ones only $args and $limit_rate can be set")
                        .cause(format!("set ${name}")),
                );
                None
            }
            None => Some(SetTarget::Slot(self.variables.filled_slot(name))),
        }
    }

    fn rewrite(&mut self, node: &Node<'_>) -> Option<RewriteOp> {
        let pattern_word = node.arg(0);
        let pattern = self.pattern(pattern_word, pattern_word, false);
        let word = node.arg(1);
        let (text, drops_arguments) = match word.strip_suffix('?') {
            Some(text) => (text, true),
            None => (word.text.as_str(), false),
        };
        let replacement = self.template_in(word, 0, text);
        let flags = [
            ("last", RewriteThen::Last),
            ("break", RewriteThen::Break),
            ("redirect", RewriteThen::Redirect),
            ("permanent", RewriteThen::Permanent),
        ];
        let then = match node.args().get(2) {
            Some(flag) => self.choice_of(flag, &flags)?,
            None => RewriteThen::Continue,
        };
        Some(RewriteOp::Rewrite {
            pattern: pattern?,
            replacement,
            then,
            drops_arguments,
            is_redirect: URL_STARTS.iter().any(|start| word.starts_with(start)),
        })
    }

    fn return_op(&mut self, node: &Node<'_>) -> Option<RewriteOp> {
        let first = node.arg(0);
        let status = first.parse::<u16>().ok().filter(|&status| status <= 999);
        let has_digits_only = first.bytes().all(|byte| byte.is_ascii_digit());
        match (status, node.args().get(1)) {
            (Some(status), Some(text)) if has_digits_only => {
                let value = Some(self.template(text));
                Some(RewriteOp::Return { status, value })
            }
            (Some(status), None) if has_digits_only => Some(RewriteOp::Return {
                status,
                value: None,
            }),
            (_, None) if URL_STARTS.iter().any(|start| first.starts_with(start)) => {
                let value = Some(self.template(first));
                Some(RewriteOp::Return { status: 302, value })
            }
            _ => {
                self.report(
                    Diagnostic::error(first.span, format!("invalid return code \"{first}\""))
                        .label("expected a status, or a URL that begins with http://, https:// or $scheme")
                        .hint("for a path of this site write return 302 /path;"),
                );
                None
            }
        }
    }

    fn if_op(
        &mut self,
        node: &Node<'_>,
        around: &Level<'_>,
        location: &mut Option<(&EnclosingLocation, &mut LocationList)>,
    ) -> Option<RewriteOp> {
        let condition = self.condition(node);
        let level = Level::new(&node.children, Some(around));
        let id = location
            .as_mut()
            .map(|(outer, list)| self.if_location(node, &level, outer, list));
        // `if` blocks cannot be nested.
        let then = self.rewrite_ops(&level, None);
        Some(RewriteOp::If {
            condition: condition?,
            then,
            location: id,
        })
    }

    /// `($name)`, `($name OP VALUE)`, `(-f PATH)`. The words keep the brackets.
    fn condition(&mut self, node: &Node<'_>) -> Option<Condition> {
        let words = node.args();
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return None;
        };
        if !first.starts_with('(') || !last.ends_with(')') || (words.len() == 1 && first.len() < 2)
        {
            self.report(
                Diagnostic::error(node.span(), "invalid condition")
                    .label("expected ( before and ) after the condition")
                    .hint("as in if ($request_method = POST) { ... }"),
            );
            return None;
        }
        let parts = strip_brackets(words);
        let (subject_word, subject) = parts.first().copied()?;
        if let Some(name) = subject.strip_prefix('$').filter(|name| !name.is_empty()) {
            return self.variable_condition(node, subject_word, name, &parts);
        }
        if let Some((test, negated)) = file_test(subject)
            && let [_, (word, path)] = parts.as_slice()
        {
            let path = self.template_in(word, offset(word, path), path);
            return Some(Condition::File {
                test,
                path,
                negated,
            });
        }
        self.invalid_condition(subject_word, subject);
        None
    }

    fn variable_condition(
        &mut self,
        node: &Node<'_>,
        word: &Word,
        name: &str,
        parts: &[(&Word, &str)],
    ) -> Option<Condition> {
        let name = name
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'))
            .unwrap_or(name);
        // The rest of the word is the name, as in $arg_wc-ajax; only arguments and cookies have names with other bytes.
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let subject = match name.bytes().all(is_word) {
            true => self.variable(name, word.span),
            // nginx compares names of fields in which _ stands for each -, and no name has an = in it.
            false if starts_with(name, "http_") || is_open(name) && name.contains('=') => {
                self.report(
                    Diagnostic::warning(word.span, format!("no request has ${name}"))
                        .label("always empty, in nginx as well")
                        .hint("in the name of a field, - is written _; spaces stand around the operator"),
                );
                Variable::Missing
            }
            false if is_open(name) => self.variable(name, word.span),
            false => {
                self.invalid_condition(word, &format!("${name}"));
                return None;
            }
        };
        let (operator, value) = match parts {
            [_] => return Some(Condition::IsTrue(subject)),
            [_, operator, value] => (operator, value),
            _ => {
                self.report(
                    Diagnostic::error(node.span(), format!("invalid condition \"${name}\""))
                        .label("expected ($name), ($name OPERATOR VALUE)")
                        .hint("put a value with spaces in quotes; two conditions cannot be joined"),
                );
                return None;
            }
        };
        let (value_word, value) = *value;
        match operator.1 {
            "=" | "!=" => Some(Condition::Equals {
                left: subject,
                right: self.template_in(value_word, offset(value_word, value), value),
                negated: operator.1 == "!=",
            }),
            "~" | "~*" | "!~" | "!~*" => {
                let caseless = operator.1.ends_with('*');
                // Removing the bracket at the end does not move the beginning.
                let pattern = self.pattern(value_word, value, caseless)?;
                let negated = operator.1.starts_with('!');
                Some(Condition::Matches {
                    subject,
                    pattern,
                    negated,
                })
            }
            unexpected => {
                self.refuse(
                    operator.0.span,
                    format!("unexpected \"{unexpected}\" in condition"),
                    "expected = != ~ ~* !~ or !~*",
                );
                None
            }
        }
    }

    fn invalid_condition(&mut self, word: &Word, text: &str) {
        self.report(
            Diagnostic::error(word.span, format!("invalid condition \"{text}\""))
                .label("expected a variable, or one of -f -d -e -x (with ! before it) and a path")
                .hint(if has_variables(text) {
                    "the variable stands alone on the left side"
                } else {
                    "the left side is a variable: ($name = value)"
                }),
        );
    }
}

/// Does the name of the variable end in a part that a client has named?
fn is_open(name: &str) -> bool {
    starts_with(name, "arg_") || starts_with(name, "cookie_")
}

fn starts_with(name: &str, family: &str) -> bool {
    let start = name.get(..family.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(family))
}

/// Returns the offset of `text` in its word, after the bracket was removed.
fn offset(word: &Word, text: &str) -> usize {
    word.find(text).unwrap_or(0)
}

/// The words without `(` before the first and `)` after the last.
fn strip_brackets(words: &[Word]) -> Vec<(&Word, &str)> {
    let last = words.len().saturating_sub(1);
    let mut parts = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        let mut text = word.text.as_str();
        if index == 0 {
            text = text.strip_prefix('(').unwrap_or(text);
        }
        if index == last {
            text = text.strip_suffix(')').unwrap_or(text);
        }
        // A bracket alone is no word. An empty value in quotes is one.
        if !text.is_empty() || word.text.is_empty() {
            parts.push((word, text));
        }
    }
    parts
}

fn file_test(text: &str) -> Option<(FileTest, bool)> {
    let (negated, test) = match text.strip_prefix('!') {
        Some(test) => (true, test),
        None => (false, text),
    };
    let test = match test {
        "-f" => FileTest::RegularFile,
        "-d" => FileTest::Directory,
        "-e" => FileTest::Exists,
        "-x" => FileTest::Executable,
        _ => return None,
    };
    Some((test, negated))
}
