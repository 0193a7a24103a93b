//! Selects the lines about responses that hold for one request.

use crate::response::{FieldChange, FieldCondition, FieldLine, ResponseRules, ResponseSettings};
use crate::round::Round;
use crate::values::{FileKind, Values as _};

/// Returns the rules that hold for the response to a request; `None`: there are
/// none.
pub fn judged(
    settings: &ResponseSettings,
    round: &Round<'_>,
    cookies: &[Vec<u8>],
) -> Option<Box<ResponseRules>> {
    if settings.is_empty() && cookies.is_empty() {
        return None;
    }
    let lines = settings
        .fields
        .iter()
        .filter(|it| holds(&it.condition, round));
    let mut fields: Vec<FieldLine> = lines.map(|line| line_of(line, round)).collect();
    fields.extend(cookies.iter().map(|cookie| FieldLine {
        name: "Set-Cookie".to_owned(),
        is_always: true,
        change: FieldChange::Add(cookie.clone()),
        condition: FieldCondition::Always,
    }));
    let is_file = round.file.is(FileKind::File);
    Some(Box::new(ResponseRules {
        fields,
        expires: settings.expires.clone(),
        file_type: match is_file {
            true => settings.media.of_file(&round.file.name),
            false => settings.media.of_no_file(),
        },
        error_documents: settings.error_documents.clone(),
    }))
}

fn holds(condition: &FieldCondition, round: &Round<'_>) -> bool {
    match condition {
        FieldCondition::Always => true,
        FieldCondition::Variable { name, is_negated } => {
            round.variables.contains_key(name) != *is_negated
        }
        FieldCondition::Expression(expression) => {
            expression.holds(&mut round.scope()) == Some(true)
        }
    }
}

/// The line with the values of variables.
fn line_of(line: &FieldLine, round: &Round<'_>) -> FieldLine {
    use FieldChange::*;
    let fill = |value: &[u8]| filled(value, round);
    let change = match &line.change {
        Add(value) => Add(fill(value)),
        Append(value) => Append(fill(value)),
        Merge(value) => Merge(fill(value)),
        Set(value) => Set(fill(value)),
        SetIfEmpty(value) => SetIfEmpty(fill(value)),
        Unset => Unset,
        Edit { .. } => line.change.clone(),
    };
    FieldLine {
        change,
        condition: FieldCondition::Always,
        ..line.clone()
    }
}

/// A value with its variables; Apache writes `(null)` for one that is not set.
fn filled(value: &[u8], round: &Round<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [b'%', behind @ ..]) => {
                out.push(b'%');
                rest = behind;
            }
            (b'%', [b'{', inner @ ..]) => {
                let end = inner
                    .iter()
                    .position(|byte| *byte == b'}')
                    .unwrap_or(inner.len());
                let name = String::from_utf8_lossy(&inner[..end]);
                let value = match inner.get(end + 1) {
                    Some(b's') => round
                        .variable(&format!("SSL:{name}"))
                        .filter(|it| !it.is_empty()),
                    _ => round.variables.get(&*name).cloned(),
                };
                out.extend(value.unwrap_or_else(|| b"(null)".to_vec()));
                rest = inner.get(end + 2..).unwrap_or_default();
            }
            (byte, _) => out.push(*byte),
        }
    }
    out
}
