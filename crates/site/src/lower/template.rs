//! Parses values with variables: `$name`, `${name}`, `$1`.

use nginx_conf::{Diagnostic, Span, Word};

use super::Lowering;
use crate::model::*;

impl Lowering<'_> {
    /// The word as a value with variables.
    pub fn template(&mut self, word: &Word) -> Template {
        self.template_in(word, 0, &word.text)
    }

    /// The variable `$name`, used at `span`.
    pub fn variable(&mut self, name: &str, span: Span) -> Variable {
        self.variables.resolve(name, span)
    }

    /// `text`, which begins at byte `start` of `word`, as a value with variables.
    pub fn template_in(&mut self, word: &Word, start: usize, text: &str) -> Template {
        let mut parts = TemplateBuilder::default();
        let mut at = 0;
        while let Some(dollar) = text.get(at..).and_then(|rest| rest.find('$')) {
            let dollar = at + dollar;
            parts.literal(text.get(at..dollar).unwrap_or_default());
            let rest = text.get(dollar + 1..).unwrap_or_default();
            let (name, length) = match name_at(rest) {
                Ok(found) => found,
                Err(message) => {
                    let span = word.part(start + dollar..start + text.len());
                    self.report(
                        Diagnostic::error(span, format!("{message} in \"{text}\""))
                            .label("expected $name or ${name}")
                            .hint("for a plain dollar sign define a variable that holds one: geo $dollar { default \"$\"; }"),
                    );
                    return Template::default();
                }
            };
            let span = word.part(start + dollar..start + dollar + 1 + length);
            parts.variable(self.variable(name, span));
            at = dollar + 1 + length;
        }
        parts.literal(text.get(at..).unwrap_or_default());
        Template { parts: parts.parts }
    }
}

/// Joins several values.
pub(crate) fn join(templates: impl IntoIterator<Item = Template>) -> Template {
    let mut parts: Vec<Part> = Vec::new();
    for part in templates.into_iter().flat_map(|template| template.parts) {
        match (parts.last_mut(), part) {
            (Some(Part::Literal(before)), Part::Literal(text)) => {
                *before = [before.as_ref(), text.as_ref()].concat().into();
            }
            (_, part) => parts.push(part),
        }
    }
    Template { parts }
}

/// Does the text hold a variable?
pub(crate) fn has_variables(text: &str) -> bool {
    text.contains('$')
}

/// The name after a dollar sign, and its length in bytes with brackets.
fn name_at(rest: &str) -> Result<(&str, usize), &'static str> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if let Some(inner) = rest.strip_prefix('{') {
        let length = inner.bytes().take_while(is_name).count();
        let name = inner.get(..length).unwrap_or_default();
        return match inner.as_bytes().get(length) {
            Some(b'}') if !name.is_empty() => Ok((name, length + 2)),
            Some(b'}') => Err("invalid variable name"),
            _ => Err("the closing bracket is missing"),
        };
    }
    // `$1` ends after its digit: `$10` is the first group and a zero.
    let is_group = rest.starts_with(|c: char| ('1'..='9').contains(&c));
    let length = if is_group {
        1
    } else {
        rest.bytes().take_while(is_name).count()
    };
    match rest.get(..length) {
        Some(name) if !name.is_empty() => Ok((name, length)),
        _ => Err("invalid variable name"),
    }
}

/// Collects the pieces of a template.
#[derive(Default)]
struct TemplateBuilder {
    parts: Vec<Part>,
}

impl TemplateBuilder {
    fn literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.parts.push(Part::Literal(text.as_bytes().into()));
    }

    fn variable(&mut self, variable: Variable) {
        self.parts.push(Part::Variable(variable));
    }
}

#[cfg(test)]
mod tests {
    use super::name_at;

    #[test]
    fn names_end_where_nginx_ends_them() {
        let cases = [
            ("uri/x", Ok(("uri", 3))),
            ("{uri}x", Ok(("uri", 5))),
            ("10", Ok(("1", 1))),
            ("{1}0", Ok(("1", 3))),
            ("arg_a-b", Ok(("arg_a", 5))),
            ("{uri", Err("the closing bracket is missing")),
            ("{a-b}", Err("the closing bracket is missing")),
            ("{}", Err("invalid variable name")),
            ("", Err("invalid variable name")),
            ("-", Err("invalid variable name")),
        ];
        for (text, expected) in cases {
            assert_eq!(name_at(text), expected, "{text}");
        }
    }
}
