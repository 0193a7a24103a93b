//! Values of statements, and what follows from them without asking the database.
//!
//! Two values are compared only within one kind of column, and only where MySQL's comparison is
//! known: whole numbers of up to fifteen digits, dates in their full form, bytes, and printable ASCII
//! text under the collations of `schema.rs`. Text with equal bytes is equal; text that differs after
//! case and trailing blanks were folded is different; everything between is unknown. `ß` and `ss`,
//! `'a\x01b'` and `'ab'`, `'abc'` and `0` are the database's business.

use std::cmp::Ordering;

use crate::condition::Possible;
use crate::schema::{Column, ColumnKind};

/// Doubles hold whole numbers of fifteen digits exactly, and MySQL may compare as doubles.
const MOST_DIGITS: usize = 15;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    Null,
    Integer(i64),
    Text(Vec<u8>),
    /// A number with a fraction, a hexadecimal literal, a value that was not seen.
    Other,
}

impl Value {
    /// A number as it is written in a statement.
    pub(crate) fn number(digits: &str) -> Self {
        match digits.parse() {
            Ok(number) if digits.len() <= MOST_DIGITS => Self::Integer(number),
            _ => Self::Other,
        }
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Integer(number) => Self::Integer(number.wrapping_neg()),
            Self::Null => Self::Null,
            Self::Text(_) | Self::Other => Self::Other,
        }
    }
}

/// What is known of a column of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownContent {
    Null,
    Integer(i64),
    /// These bytes.
    Text(Vec<u8>),
    /// A text that the column's collation finds equal to this one.
    EqualTo(Vec<u8>),
    /// A date in its full form, whose order is that of its bytes.
    Date(Vec<u8>),
}

/// A value as a comparison with a column of this kind sees it. `None`: the rules do not say.
fn comparable(kind: ColumnKind, value: &Value) -> Option<KnownContent> {
    match (kind, value) {
        (_, Value::Null) => Some(KnownContent::Null),
        (ColumnKind::Integer { .. }, Value::Integer(number)) => {
            Some(KnownContent::Integer(*number))
        }
        (ColumnKind::Integer { .. }, Value::Text(text)) => {
            whole_number(text).map(KnownContent::Integer)
        }
        (ColumnKind::Text { .. } | ColumnKind::Bytes { .. }, Value::Text(text))
            if is_printable(text) =>
        {
            Some(KnownContent::Text(text.clone()))
        }
        (ColumnKind::DateTime, Value::Text(text)) => date_and_time(text).map(KnownContent::Date),
        (ColumnKind::Date, Value::Text(text)) => {
            date(text).map(|text| KnownContent::Date(text.to_vec()))
        }
        _ => None,
    }
}

/// What a row holds of which `column = value` is true.
pub(crate) fn known_to_equal(column: &Column, value: &Value) -> Option<KnownContent> {
    match comparable(column.kind, value)? {
        // Nothing equals NULL: there is no such row, and saying nothing is right as well.
        KnownContent::Null => None,
        KnownContent::Text(text) if matches!(column.kind, ColumnKind::Text { .. }) => {
            Some(KnownContent::EqualTo(text))
        }
        known => Some(known),
    }
}

/// What a row holds after `value` was stored in the column. `None` where it may be converted.
pub(crate) fn known_when_stored(column: &Column, value: &Value) -> Option<KnownContent> {
    let known = comparable(column.kind, value)?;
    let is_kept = match (&known, column.kind) {
        (KnownContent::Null, _) => column.is_nullable && !column.counts_up,
        (KnownContent::Integer(0), _) if column.counts_up => false,
        (KnownContent::Integer(number), ColumnKind::Integer { least, most }) => {
            (least..=most).contains(&i128::from(*number))
        }
        // Trailing blanks beyond the length are dropped without an error.
        (KnownContent::Text(text), ColumnKind::Text { most_characters }) => {
            text.len() as u64 <= most_characters && text.last() != Some(&b' ')
        }
        (KnownContent::Text(text), ColumnKind::Bytes { most_bytes }) => {
            text.len() as u64 <= most_bytes
        }
        (KnownContent::Date(_), _) => true,
        _ => false,
    };
    (is_kept && !column.changes_by_itself).then_some(known)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

pub(crate) fn compare(
    kind: ColumnKind,
    known: &KnownContent,
    comparison: Comparison,
    value: &Value,
) -> Possible {
    if *known == KnownContent::Null || *value == Value::Null {
        return Possible::NULL;
    }
    let Some(value) = comparable(kind, value) else {
        return Possible::ANY;
    };
    let order = match (known, &value) {
        (KnownContent::Integer(left), KnownContent::Integer(right)) => left.cmp(right),
        (KnownContent::Date(left), KnownContent::Date(right)) => left.cmp(right),
        (KnownContent::Text(left), KnownContent::Text(right))
            if matches!(kind, ColumnKind::Bytes { .. }) =>
        {
            left.cmp(right)
        }
        (KnownContent::Text(left) | KnownContent::EqualTo(left), KnownContent::Text(right)) => {
            let is_equal = equal_texts(left, right);
            return match comparison {
                Comparison::Equal => is_equal,
                Comparison::NotEqual => is_equal.not(),
                _ => Possible::TRUE_OR_FALSE,
            };
        }
        _ => return Possible::ANY,
    };
    Possible::certain(match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    })
}

fn equal_texts(left: &[u8], right: &[u8]) -> Possible {
    if left == right {
        Possible::TRUE
    } else if !is_printable(left) || !is_printable(right) || folded(left) == folded(right) {
        Possible::TRUE_OR_FALSE
    } else {
        Possible::FALSE
    }
}

/// `known LIKE pattern`, where the pattern has no escape.
pub(crate) fn like(kind: ColumnKind, known: &KnownContent, pattern: &Value) -> Possible {
    if *known == KnownContent::Null || *pattern == Value::Null {
        return Possible::NULL;
    }
    let (KnownContent::Text(text), Value::Text(pattern)) = (known, pattern) else {
        return Possible::ANY;
    };
    if !is_printable(text) || !is_printable(pattern) || pattern.contains(&b'\\') {
        return Possible::ANY;
    }
    if matches_pattern(text, pattern) {
        Possible::TRUE
    } else if matches!(kind, ColumnKind::Bytes { .. })
        || !matches_pattern(&text.to_ascii_lowercase(), &pattern.to_ascii_lowercase())
    {
        Possible::FALSE
    } else {
        Possible::TRUE_OR_FALSE
    }
}

/// `%` stands for any bytes, `_` for one. The last `%` alone is tried again, so that the time is that
/// of the product of both lengths at most.
fn matches_pattern(text: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut next) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(next) {
            Some(b'%') => {
                again = Some((at, next));
                next += 1;
            }
            Some(byte) if *byte == b'_' || *byte == text[at] => {
                at += 1;
                next += 1;
            }
            _ => match &mut again {
                Some((from, wildcard)) => {
                    *from += 1;
                    (at, next) = (*from, *wildcard + 1);
                }
                None => return false,
            },
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'%')
}

fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

fn folded(text: &[u8]) -> Vec<u8> {
    text.trim_ascii_end().to_ascii_lowercase()
}

/// A number as MySQL itself would write it.
fn whole_number(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !digits.is_empty()
        && digits.len() <= MOST_DIGITS
        && digits.bytes().all(|it| it.is_ascii_digit());
    let number: i64 = text.parse().ok().filter(|_| is_plain)?;
    (number.to_string() == text).then_some(number)
}

/// `2024-02-29`, a day that exists in every reading.
fn date(text: &[u8]) -> Option<&[u8]> {
    let &[a, b, c, d, b'-', e, f, b'-', g, h] = text else {
        return None;
    };
    let number = |digits: &[u8]| {
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| whole_number_of(digits))
    };
    let (year, month, day) = (number(&[a, b, c, d])?, number(&[e, f])?, number(&[g, h])?);
    // Later days of a month exist or not by its length; up to here each does.
    (year >= 1000 && (1..=12).contains(&month) && (1..=28).contains(&day)).then_some(text)
}

/// `2024-02-29 23:59:59`.
fn date_and_time(text: &[u8]) -> Option<Vec<u8>> {
    let (day, [b' ', a, b, b':', c, d, b':', e, f]) = text.split_at_checked(10)? else {
        return None;
    };
    date(day)?;
    let digits = [*a, *b, *c, *d, *e, *f];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |from: usize| whole_number_of(&digits[from..from + 2]);
    (number(0) < 24 && number(2) < 60 && number(4) < 60).then(|| text.to_vec())
}

fn whole_number_of(digits: &[u8]) -> u32 {
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEGER: ColumnKind = ColumnKind::Integer {
        least: -128,
        most: 127,
    };
    const TEXT: ColumnKind = ColumnKind::Text { most_characters: 5 };
    const BYTES: ColumnKind = ColumnKind::Bytes { most_bytes: 5 };

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn column(kind: ColumnKind) -> Column {
        Column {
            name: "c".to_owned(),
            kind,
            is_nullable: true,
            is_indexed: false,
            changes_by_itself: false,
            counts_up: false,
        }
    }

    #[test]
    fn comparisons_are_certain_only_where_the_rules_say_so() {
        use Comparison::*;
        let day = "2024-02-28 10:00:00";
        let known = |text: &str| KnownContent::Text(text.as_bytes().into());
        let five = || KnownContent::Integer(5);
        for (kind, content, comparison, value, expected) in [
            (INTEGER, five(), Equal, Value::Integer(5), Possible::TRUE),
            (INTEGER, five(), Equal, text("5"), Possible::TRUE),
            (INTEGER, five(), Equal, text("05"), Possible::ANY),
            (INTEGER, five(), Equal, text("5a"), Possible::ANY),
            (INTEGER, five(), Less, Value::Integer(6), Possible::TRUE),
            (
                INTEGER,
                five(),
                GreaterOrEqual,
                Value::Integer(6),
                Possible::FALSE,
            ),
            (INTEGER, five(), Equal, Value::Other, Possible::ANY),
            (INTEGER, five(), NotEqual, Value::Null, Possible::NULL),
            (
                INTEGER,
                KnownContent::Null,
                NotEqual,
                Value::Integer(5),
                Possible::NULL,
            ),
            (TEXT, known("abc"), Equal, text("abc"), Possible::TRUE),
            (
                TEXT,
                known("abc"),
                Equal,
                text("ABC "),
                Possible::TRUE_OR_FALSE,
            ),
            (TEXT, known("abc"), Equal, text("abd"), Possible::FALSE),
            (
                TEXT,
                KnownContent::EqualTo(b"abc".into()),
                NotEqual,
                text("abd"),
                Possible::TRUE,
            ),
            (
                TEXT,
                known("abc"),
                Less,
                text("abd"),
                Possible::TRUE_OR_FALSE,
            ),
            (TEXT, known("ss"), Equal, text("\u{df}"), Possible::ANY),
            (TEXT, known("ab"), Equal, text("a\u{1}b"), Possible::ANY),
            (TEXT, known("abc"), Equal, Value::Integer(0), Possible::ANY),
            (BYTES, known("abc"), Equal, text("ABC"), Possible::FALSE),
            (
                ColumnKind::DateTime,
                KnownContent::Date(day.into()),
                Less,
                text("2024-03-01 00:00:00"),
                Possible::TRUE,
            ),
            (
                ColumnKind::DateTime,
                KnownContent::Date(day.into()),
                Less,
                text("2024-03-01"),
                Possible::ANY,
            ),
            (
                ColumnKind::Other,
                KnownContent::Integer(1),
                Equal,
                Value::Integer(2),
                Possible::ANY,
            ),
        ] {
            assert_eq!(
                compare(kind, &content, comparison, &value),
                expected,
                "{content:?} {comparison:?} {value:?}"
            );
        }
    }

    #[test]
    fn stored_values_are_known_unless_they_may_be_converted() {
        for (kind, value, expected) in [
            (
                INTEGER,
                Value::Integer(127),
                Some(KnownContent::Integer(127)),
            ),
            (INTEGER, Value::Integer(128), None),
            (INTEGER, text("12"), Some(KnownContent::Integer(12))),
            (INTEGER, text("1.5"), None),
            (
                TEXT,
                text("abcde"),
                Some(KnownContent::Text(b"abcde".into())),
            ),
            (TEXT, text("abcdef"), None),
            (TEXT, text("a "), None),
            (TEXT, text("\u{e9}"), None),
            (TEXT, Value::Integer(5), None),
            (TEXT, Value::Null, Some(KnownContent::Null)),
            (
                ColumnKind::Date,
                text("2024-02-28"),
                Some(KnownContent::Date(b"2024-02-28".into())),
            ),
            (ColumnKind::Date, text("2024-02-30"), None),
            (ColumnKind::Date, text("0000-00-00"), None),
            (ColumnKind::DateTime, text("2024-02-28 24:00:00"), None),
        ] {
            assert_eq!(
                known_when_stored(&column(kind), &value),
                expected,
                "{value:?}"
            );
        }
        let no_null = Column {
            is_nullable: false,
            ..column(INTEGER)
        };
        assert_eq!(known_when_stored(&no_null, &Value::Null), None);
        let counting = Column {
            counts_up: true,
            ..column(INTEGER)
        };
        assert_eq!(known_when_stored(&counting, &Value::Integer(0)), None);
        let generated = Column {
            changes_by_itself: true,
            ..column(INTEGER)
        };
        assert_eq!(known_when_stored(&generated, &Value::Integer(1)), None);
    }

    #[test]
    fn patterns_match_as_like_does_up_to_case() {
        for (pattern, expected) in [
            ("abc", Possible::TRUE),
            ("a%", Possible::TRUE),
            ("%b%", Possible::TRUE),
            ("_b_", Possible::TRUE),
            ("%", Possible::TRUE),
            ("A%", Possible::TRUE_OR_FALSE),
            ("abc ", Possible::FALSE),
            ("b%", Possible::FALSE),
            ("__", Possible::FALSE),
            ("%a%a%", Possible::FALSE),
            ("a\\%", Possible::ANY),
        ] {
            assert_eq!(
                like(TEXT, &KnownContent::Text(b"abc".into()), &text(pattern)),
                expected,
                "{pattern}"
            );
        }
        assert_eq!(
            like(TEXT, &KnownContent::EqualTo(b"abc".into()), &text("b%")),
            Possible::ANY
        );
        assert_eq!(
            like(BYTES, &KnownContent::Text(b"abc".into()), &text("A%")),
            Possible::FALSE
        );
    }
}
