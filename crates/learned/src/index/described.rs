//! Statements as they are shown to people.

use crate::arguments::Arguments;
use crate::value::ValueRef;

const MAX_DESCRIBED: usize = 300;
const MAX_TEXT_DESCRIBED: usize = 60;

/// The text of a shape with its values, cut.
pub(super) fn describe(text: &str, arguments: &Arguments) -> String {
    let mut described = String::new();
    let mut pieces = text.trim_start().split('?');
    described.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        if described.len() > MAX_DESCRIBED {
            break;
        }
        let digits = piece
            .find(|it: char| !it.is_ascii_digit())
            .unwrap_or(piece.len());
        let argument = piece[..digits]
            .parse()
            .ok()
            .and_then(|number| arguments.get(number));
        let values: Vec<_> = argument
            .into_iter()
            .flat_map(|it| it.values.take(8))
            .map(described_value)
            .collect();
        described.push_str(&values.join(", "));
        described.push_str(&piece[digits..]);
    }
    shortened(&described, MAX_DESCRIBED)
}

fn described_value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => {
            let start = &text[..text.len().min(4 * MAX_TEXT_DESCRIBED)];
            format!(
                "'{}'",
                shortened(&String::from_utf8_lossy(start), MAX_TEXT_DESCRIBED)
            )
        }
        ValueRef::Other => "?".to_owned(),
    }
}

fn shortened(text: &str, most: usize) -> String {
    let is_longer = text.chars().nth(most).is_some();
    let mut shortened: String = text
        .chars()
        .take(most)
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect();
    if is_longer {
        shortened.push_str("...");
    }
    shortened
}
