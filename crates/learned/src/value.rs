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
const MAX_DIGITS: usize = 15;

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
            Ok(number) if digits.len() <= MAX_DIGITS => Self::Integer(number),
            _ => Self::Other,
        }
    }

    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text),
            Self::Other => ValueRef::Other,
        }
    }
}

/// A [`Value`] that is somewhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueRef<'a> {
    Null,
    Integer(i64),
    Text(&'a [u8]),
    Other,
}

impl ValueRef<'_> {
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Integer(number) => number.checked_neg().map_or(Self::Other, Self::Integer),
            Self::Null => Self::Null,
            Self::Text(_) | Self::Other => Self::Other,
        }
    }

    #[cfg(test)]
    pub(crate) fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Integer(number) => Value::Integer(number),
            Self::Text(text) => Value::Text(text.to_vec()),
            Self::Other => Value::Other,
        }
    }
}

/// The known content of a column of a row.
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

/// A value as a comparison with a column sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Comparable<'a> {
    Null,
    Integer(i64),
    Text(&'a [u8]),
    Date(&'a [u8]),
}

/// A value as a comparison with a column of this kind sees it. `None`: the rules do not say.
pub(crate) fn comparable(kind: ColumnKind, value: ValueRef<'_>) -> Option<Comparable<'_>> {
    match (kind, value) {
        (_, ValueRef::Null) => Some(Comparable::Null),
        (ColumnKind::Integer { .. }, ValueRef::Integer(number)) => {
            Some(Comparable::Integer(number))
        }
        (ColumnKind::Integer { .. }, ValueRef::Text(text)) => {
            whole_number(text).map(Comparable::Integer)
        }
        (ColumnKind::Text { .. } | ColumnKind::Bytes { .. }, ValueRef::Text(text))
            if is_printable(text) =>
        {
            Some(Comparable::Text(text))
        }
        (ColumnKind::DateTime, ValueRef::Text(text)) if is_date_and_time(text) => {
            Some(Comparable::Date(text))
        }
        (ColumnKind::Date, ValueRef::Text(text)) if is_date(text) => Some(Comparable::Date(text)),
        _ => None,
    }
}

/// Returns the content of the column in a row for which `column = value` is true.
pub(crate) fn known_to_equal(column: &Column, value: ValueRef<'_>) -> Option<KnownContent> {
    match comparable(column.kind, value)? {
        // Nothing equals NULL: there is no such row, and saying nothing is right as well.
        Comparable::Null => None,
        Comparable::Text(text) if matches!(column.kind, ColumnKind::Text { .. }) => {
            Some(KnownContent::EqualTo(text.to_vec()))
        }
        known => Some(known.to_content()),
    }
}

/// Returns the content of the column after `value` was stored in it. `None` where the value may be converted.
pub(crate) fn known_when_stored(column: &Column, value: ValueRef<'_>) -> Option<KnownContent> {
    let known = comparable(column.kind, value)?;
    let is_kept = match (known, column.kind) {
        (Comparable::Null, _) => column.is_nullable && !column.counts_up,
        (Comparable::Integer(0), _) if column.counts_up => false,
        (Comparable::Integer(number), ColumnKind::Integer { least, most }) => {
            (least..=most).contains(&i128::from(number))
        }
        // Trailing blanks beyond the length are dropped without an error.
        (Comparable::Text(text), ColumnKind::Text { most_characters }) => {
            text.len() as u64 <= most_characters && text.last() != Some(&b' ')
        }
        (Comparable::Text(text), ColumnKind::Bytes { most_bytes }) => {
            text.len() as u64 <= most_bytes
        }
        (Comparable::Date(_), _) => true,
        _ => false,
    };
    (is_kept && !column.changes_by_itself).then(|| known.to_content())
}

impl Comparable<'_> {
    fn to_content(self) -> KnownContent {
        match self {
            Self::Null => KnownContent::Null,
            Self::Integer(number) => KnownContent::Integer(number),
            Self::Text(text) => KnownContent::Text(text.to_vec()),
            Self::Date(text) => KnownContent::Date(text.to_vec()),
        }
    }
}

impl KnownContent {
    pub(crate) fn as_comparable(&self) -> Comparable<'_> {
        match self {
            Self::Null => Comparable::Null,
            Self::Integer(number) => Comparable::Integer(*number),
            Self::Text(text) | Self::EqualTo(text) => Comparable::Text(text),
            Self::Date(text) => Comparable::Date(text),
        }
    }
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
    value: ValueRef<'_>,
) -> Possible {
    if *known == KnownContent::Null || value == ValueRef::Null {
        return Possible::NULL;
    }
    let Some(value) = comparable(kind, value) else {
        return Possible::ANY;
    };
    let order = match (known, value) {
        (KnownContent::Integer(left), Comparable::Integer(right)) => left.cmp(&right),
        (KnownContent::Date(left), Comparable::Date(right)) => left[..].cmp(right),
        (KnownContent::Text(left), Comparable::Text(right))
            if matches!(kind, ColumnKind::Bytes { .. }) =>
        {
            left[..].cmp(right)
        }
        (KnownContent::Text(left) | KnownContent::EqualTo(left), Comparable::Text(right)) => {
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
    } else if !is_printable(left) || !is_printable(right) || are_equal_folded(left, right) {
        Possible::TRUE_OR_FALSE
    } else {
        Possible::FALSE
    }
}

/// `known LIKE pattern`, where the pattern has no escape.
pub(crate) fn like(kind: ColumnKind, known: &KnownContent, pattern: ValueRef<'_>) -> Possible {
    if *known == KnownContent::Null || pattern == ValueRef::Null {
        return Possible::NULL;
    }
    let (KnownContent::Text(text), ValueRef::Text(pattern)) = (known, pattern) else {
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
pub(crate) fn matches_pattern(text: &[u8], pattern: &[u8]) -> bool {
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

fn are_equal_folded(left: &[u8], right: &[u8]) -> bool {
    fold(left).eq(fold(right))
}

/// Printable texts are equal to others only if these are the same for both.
pub(crate) fn fold(text: &[u8]) -> impl Iterator<Item = u8> {
    text.trim_ascii_end().iter().map(u8::to_ascii_lowercase)
}

/// A number as MySQL itself would write it.
fn whole_number(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !digits.is_empty()
        && digits.len() <= MAX_DIGITS
        && digits.bytes().all(|it| it.is_ascii_digit());
    let number: i64 = text.parse().ok().filter(|_| is_plain)?;
    (number.to_string() == text).then_some(number)
}

/// `2024-02-29`, a day that exists in every reading.
fn is_date(text: &[u8]) -> bool {
    let &[a, b, c, d, b'-', e, f, b'-', g, h] = text else {
        return false;
    };
    let digits = [a, b, c, d, e, f, g, h];
    let number = |from: usize, to: usize| whole_number_of(&digits[from..to]);
    // Later days of a month exist or not by its length; up to here each does.
    digits.iter().all(u8::is_ascii_digit)
        && number(0, 4) >= 1000
        && (1..=12).contains(&number(4, 6))
        && (1..=28).contains(&number(6, 8))
}

/// `2024-02-29 23:59:59`.
fn is_date_and_time(text: &[u8]) -> bool {
    let Some((day, [b' ', a, b, b':', c, d, b':', e, f])) = text.split_at_checked(10) else {
        return false;
    };
    let digits = [*a, *b, *c, *d, *e, *f];
    let number = |from: usize| whole_number_of(&digits[from..from + 2]);
    is_date(day)
        && digits.iter().all(u8::is_ascii_digit)
        && number(0) < 24
        && number(2) < 60
        && number(4) < 60
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
                compare(kind, &content, comparison, value.as_ref()),
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
                known_when_stored(&column(kind), value.as_ref()),
                expected,
                "{value:?}"
            );
        }
        let no_null = Column {
            is_nullable: false,
            ..column(INTEGER)
        };
        assert_eq!(known_when_stored(&no_null, Value::Null.as_ref()), None);
        let counting = Column {
            counts_up: true,
            ..column(INTEGER)
        };
        assert_eq!(
            known_when_stored(&counting, Value::Integer(0).as_ref()),
            None
        );
        let generated = Column {
            changes_by_itself: true,
            ..column(INTEGER)
        };
        assert_eq!(
            known_when_stored(&generated, Value::Integer(1).as_ref()),
            None
        );
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
                like(
                    TEXT,
                    &KnownContent::Text(b"abc".into()),
                    text(pattern).as_ref()
                ),
                expected,
                "{pattern}"
            );
        }
        assert_eq!(
            like(
                TEXT,
                &KnownContent::EqualTo(b"abc".into()),
                text("b%").as_ref()
            ),
            Possible::ANY
        );
        assert_eq!(
            like(
                BYTES,
                &KnownContent::Text(b"abc".into()),
                text("A%").as_ref()
            ),
            Possible::FALSE
        );
    }
}
