//! Statements that may have changed a session.

use crate::not_learned::NotLearned;

use super::functions;

/// First words of statements that change nothing of a session, or settings alone, which leave the meaning of names and texts
/// as it is: `standard_conforming_strings` and the client's characters are known by the protocol.
const HARMLESS: &[&str] = &[
    "abort",
    "alter",
    "analyze",
    "begin",
    "close",
    "cluster",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "declare",
    "delete",
    "discard",
    "drop",
    "end",
    "explain",
    "fetch",
    "grant",
    "insert",
    "listen",
    "lock",
    "merge",
    "move",
    "notify",
    "refresh",
    "reindex",
    "release",
    "reset",
    "revoke",
    "rollback",
    "savepoint",
    "select",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "unlisten",
    "update",
    "vacuum",
    "values",
    "with",
];

/// Why nothing that a session returns is learned once it has run this.
pub(crate) fn change_of_session(text: &str) -> Option<NotLearned> {
    let lower = text.to_ascii_lowercase();
    let is_of_word = |it: char| it.is_alphanumeric() || it == '_';
    let mut words = lower
        .split(|it| !is_of_word(it))
        .filter(|it| !it.is_empty());
    let first = words.next().unwrap_or_default();
    // A second statement, a comment, a text with quotes of its own.
    let is_hidden = lower.trim_end().trim_end_matches(';').contains([';', '$'])
        || lower.contains("/*")
        || lower.contains("--");
    if is_hidden || !HARMLESS.contains(&first) {
        return Some(NotLearned::SessionMode);
    }
    let has_name = |name: &str| lower.split(|it| !is_of_word(it)).any(|word| word == name);
    if ["temp", "temporary", "pg_temp"]
        .iter()
        .any(|it| has_name(it))
        || first == "select" && has_name("into")
    {
        return Some(NotLearned::TemporaryTable);
    }
    // A function may set anything.
    let mut rest = lower.as_str();
    while let Some(at) = rest.find('(') {
        let before = rest[..at].trim_end();
        let begin = before.rfind(|it| !is_of_word(it)).map_or(0, |at| at + 1);
        let name = before.get(begin..).unwrap_or_default();
        let is_known = name.is_empty() || functions::writes_nothing(name) || is_reserved(name);
        if first == "select" && !is_known {
            return Some(NotLearned::SessionMode);
        }
        rest = &rest[at + 1..];
    }
    None
}

/// Words that may stand before a parenthesis and call nothing.
fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "all"
            | "and"
            | "any"
            | "array"
            | "as"
            | "between"
            | "by"
            | "case"
            | "distinct"
            | "else"
            | "except"
            | "exists"
            | "filter"
            | "from"
            | "group"
            | "having"
            | "ilike"
            | "in"
            | "intersect"
            | "is"
            | "join"
            | "lateral"
            | "like"
            | "limit"
            | "not"
            | "numeric"
            | "offset"
            | "on"
            | "or"
            | "over"
            | "row"
            | "select"
            | "some"
            | "then"
            | "union"
            | "using"
            | "values"
            | "varchar"
            | "when"
            | "where"
            | "within"
    )
}
