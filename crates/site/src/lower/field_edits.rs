//! Lowers `more_set_headers` and `more_clear_headers`: fields that are set in place of those that
//! a response has.
//!
//! The field `Server` is not among the fields of a response here: a line for it is `server_tokens`
//! with a text. Fields that delimit a body or concern a connection are the server's own.

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::headers::is_field_name;
use super::level::Level;
use crate::check::Node;
use crate::model::*;

const SET: &str = "more_set_headers";
const CLEAR: &str = "more_clear_headers";

/// Fields without which, or with another value of which, a message would be framed differently from
/// the bytes that are sent (RFC 9110 §7.6.1, RFC 9112 §6).
const OF_FRAMING: &[&str] = &[
    "connection",
    "content-length",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The statuses and types after `-s` and `-t`.
#[derive(Default)]
struct EditConditions {
    statuses: Vec<u16>,
    types: Vec<Box<[u8]>>,
}

impl Lowering<'_> {
    /// The edits of a response's fields, and the text of `Server` if a line names that field.
    pub fn field_edits(&mut self, level: &Level<'_>) -> (Vec<FieldEdit>, Option<Template>) {
        let (mut edits, mut server) = (Vec::new(), None);
        for node in level.joined(&[SET, CLEAR]) {
            let (conditions, fields) = self.edit_conditions(node);
            for word in fields {
                match self.field_change(node, word) {
                    Some((name, FieldChange::Set(text))) if name.eq_ignore_ascii_case("server") => {
                        server = Some(text);
                    }
                    Some((name, change)) => edits.push(FieldEdit {
                        name: name.as_bytes().to_vec().into(),
                        change,
                        statuses: conditions.statuses.clone(),
                        types: conditions.types.clone(),
                    }),
                    None => {}
                }
            }
        }
        (edits, server)
    }

    /// The options of a line, and its fields. Like in headers-more, they come in any order.
    fn edit_conditions<'w>(&mut self, node: &'w Node<'_>) -> (EditConditions, Vec<&'w Word>) {
        let mut conditions = EditConditions::default();
        let mut fields = Vec::new();
        let mut words = node.args().iter();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                fields.push(word);
                continue;
            }
            match (word.text.as_str(), words.next()) {
                ("-s", Some(list)) => conditions.statuses = self.edit_statuses(list),
                ("-t", Some(list)) => conditions.types = media_types(list),
                ("-s" | "-t", None) => self.invalid(word, "option", "expected a list after it"),
                _ => self.invalid(word, "option", "expected -s or -t"),
            }
        }
        if fields.is_empty() {
            self.invalid(
                node.arg(0),
                "value",
                "expected a field, as in 'NAME: VALUE'",
            );
        }
        (conditions, fields)
    }

    fn edit_statuses(&mut self, list: &Word) -> Vec<u16> {
        let mut statuses = Vec::new();
        for status in list.split_whitespace() {
            match status.parse() {
                Ok(number @ 100..=999) => statuses.push(number),
                _ => self.invalid(list, "status", "expected statuses with spaces between them"),
            }
        }
        statuses
    }

    fn field_change<'w>(
        &mut self,
        node: &Node<'_>,
        word: &'w Word,
    ) -> Option<(&'w str, FieldChange)> {
        // Like in headers-more, the name ends at a colon or a space, and more of them may follow.
        let ends = |letter: char| letter == ':' || letter.is_ascii_whitespace();
        let text = word.trim_ascii_start();
        let (name, value) = match text.split_once(ends) {
            Some((name, value)) => (name, value.trim_start_matches(ends)),
            None => (text, ""),
        };
        let (name, is_family) = match name.trim().strip_suffix('*') {
            Some(start) if node.name() == CLEAR => (start, true),
            _ => (name.trim(), false),
        };
        let removes = |field: &&&str| match is_family {
            true => field.starts_with(&name.to_ascii_lowercase()),
            false => field.eq_ignore_ascii_case(name),
        };
        if !is_field_name(name) {
            self.invalid(word, "field", "expected 'NAME: VALUE'");
            return None;
        }
        if let Some(field) = OF_FRAMING.iter().find(removes) {
            let expected = format!("{field} is the server's own");
            self.invalid(word, "field", expected);
            return None;
        }
        if is_family {
            return Some((name, FieldChange::RemoveFamily));
        }
        if node.name() == CLEAR && !value.is_empty() && self.warned.insert(word.span) {
            self.report(
                Diagnostic::warning(word.span, format!("only {name} is removed"))
                    .label("each field is a word of its own; what follows a name is its value, which does not count here")
                    .hint(format!("{CLEAR} {name} OTHER;")),
            );
        }
        let start = word.len() - value.len();
        let value = match node.name() {
            CLEAR => Template::default(),
            _ => self.template_in(word, start, value.trim()),
        };
        Some((name, FieldChange::Set(value)))
    }
}

fn media_types(list: &Word) -> Vec<Box<[u8]>> {
    let types = list.split_whitespace();
    types.map(|name| name.as_bytes().into()).collect()
}
