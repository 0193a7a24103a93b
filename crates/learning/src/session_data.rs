//! The content of PHP's sessions, as `session.serialize_handler` writes them: `php` and `php_serialize`.
//!
//! Pure and bounded: at most [`MAX_LEAVES`] values, in arrays of at most [`MAX_DEPTH`] levels. Objects, references and
//! whatever else is not understood make the whole content unknown.

/// Values of one session that are read.
const MAX_LEAVES: usize = 512;
/// Arrays within arrays.
const MAX_DEPTH: usize = 16;
/// Digits of a number.
const MAX_DIGITS: usize = 20;

/// Before a name of an array's key in a path; in no name that PHP writes without its length.
const SEPARATOR: u8 = 0;

/// A number of seconds before this one, of 9 September 2001, is no time.
const FIRST_TIME: i64 = 1_000_000_000;
/// How long before now a run may have taken the time that it writes, and how far clocks may differ.
const RUN_SECONDS: i64 = 120;
const CLOCK_SECONDS: i64 = 5;

/// A value that holds no other.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(&'a [u8]),
    /// An array without elements.
    EmptyArray,
}

/// The values of a session, in the order in which they stand there, each with its path of names.
pub type SessionValues<'a> = Vec<(Vec<u8>, Leaf<'a>)>;

/// Reads the content of a session; `None`: it is not understood.
pub fn parse(content: &[u8]) -> Option<SessionValues<'_>> {
    whole(content).or_else(|| named(content))
}

/// Reads the form of `php_serialize`: one array.
fn whole(content: &[u8]) -> Option<SessionValues<'_>> {
    let mut reader = ValueReader::new(content);
    if !content.starts_with(b"a:") {
        return None;
    }
    reader.value(&mut Vec::new(), 0)?;
    let has_all = reader.rest.is_empty();
    reader.values.retain(|(path, _)| !path.is_empty());
    has_all.then_some(reader.values)
}

/// Reads the form of `php`: `NAME|VALUE` for each variable.
fn named(content: &[u8]) -> Option<SessionValues<'_>> {
    let mut reader = ValueReader::new(content);
    while !reader.rest.is_empty() {
        let end = reader.rest.iter().position(|byte| *byte == b'|')?;
        let (name, rest) = reader.rest.split_at(end);
        reader.rest = rest.get(1..)?;
        // A variable that is not set.
        if name.starts_with(b"!") || name.is_empty() {
            return None;
        }
        let mut path = [&[SEPARATOR], name].concat();
        reader.value(&mut path, 0)?;
    }
    Some(reader.values)
}

struct ValueReader<'a> {
    rest: &'a [u8],
    values: SessionValues<'a>,
}

impl<'a> ValueReader<'a> {
    fn new(content: &'a [u8]) -> ValueReader<'a> {
        ValueReader {
            rest: content,
            values: Vec::new(),
        }
    }

    fn value(&mut self, path: &mut Vec<u8>, depth: usize) -> Option<()> {
        if self.values.len() >= MAX_LEAVES || depth > MAX_DEPTH {
            return None;
        }
        let leaf = match self.take(2)? {
            b"N;" => Leaf::Null,
            b"b:" => match self.until(b';')? {
                b"0" => Leaf::Bool(false),
                b"1" => Leaf::Bool(true),
                _ => return None,
            },
            b"i:" => Leaf::Integer(integer(self.until(b';')?)?),
            b"d:" => Leaf::Float(float(self.until(b';')?)?),
            b"s:" => {
                let text = self.text()?;
                self.expect(b";")?;
                Leaf::Text(text)
            }
            b"a:" => return self.array(path, depth),
            _ => return None,
        };
        self.values.push((path.clone(), leaf));
        Some(())
    }

    fn array(&mut self, path: &mut Vec<u8>, depth: usize) -> Option<()> {
        let count = usize::try_from(integer(self.until(b':')?)?).ok()?;
        self.expect(b"{")?;
        if count == 0 {
            self.values.push((path.clone(), Leaf::EmptyArray));
        }
        let length = path.len();
        for _ in 0..count {
            path.push(SEPARATOR);
            match self.take(2)? {
                b"i:" => {
                    let number = integer(self.until(b';')?)?;
                    path.extend_from_slice(number.to_string().as_bytes());
                }
                b"s:" => {
                    path.extend_from_slice(self.text()?);
                    self.expect(b";")?;
                }
                _ => return None,
            }
            self.value(path, depth + 1)?;
            path.truncate(length);
        }
        self.expect(b"}")
    }

    /// A length, and so many bytes between quotes.
    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(integer(self.until(b':')?)?).ok()?;
        self.expect(b"\"")?;
        let text = self.take(length)?;
        self.expect(b"\"")?;
        Some(text)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn expect(&mut self, expected: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// The bytes before the next `end`, which is passed over.
    fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        let length = self.rest.iter().take(64).position(|byte| *byte == end)?;
        let found = self.take(length)?;
        self.rest = self.rest.get(1..)?;
        Some(found)
    }
}

fn integer(digits: &[u8]) -> Option<i64> {
    let is_short = digits.len() <= MAX_DIGITS;
    let text = str::from_utf8(digits).ok().filter(|_| is_short)?;
    // `+1` is a number for Rust alone.
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

fn float(digits: &[u8]) -> Option<f64> {
    let is_plain = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    let text = str::from_utf8(digits).ok()?;
    let number: f64 = text.parse().ok().filter(|_| digits.iter().all(is_plain))?;
    number.is_finite().then_some(number)
}

impl Leaf<'_> {
    /// The Unix seconds that the value may stand for.
    #[expect(clippy::cast_possible_truncation, reason = "it lies within the bounds")]
    pub fn as_time(&self) -> Option<i64> {
        let seconds = match self {
            Leaf::Integer(seconds) => *seconds,
            Leaf::Float(seconds) if seconds.abs() < 1e15 => *seconds as i64,
            Leaf::Text(digits) => integer(digits)?,
            _ => return None,
        };
        (seconds >= FIRST_TIME).then_some(seconds)
    }
}

/// The names of the times that a run has just set, where two contents of one session differ in nothing else; `None`: they
/// do. `now`: in Unix seconds.
pub fn times_set(before: &[u8], after: &[u8], now: i64) -> Option<Vec<Vec<u8>>> {
    let (before, after) = (parse(before)?, parse(after)?);
    let is_set_now = |old: &Leaf<'_>, new: &Leaf<'_>| {
        let times = old.as_time().zip(new.as_time());
        let is_same_kind = std::mem::discriminant(old) == std::mem::discriminant(new);
        is_same_kind
            && times.is_some_and(|(old, new)| {
                old <= new && (now - RUN_SECONDS..=now + CLOCK_SECONDS).contains(&new)
            })
    };
    if before.len() != after.len() {
        return None;
    }
    let mut names = Vec::new();
    for ((path, old), (other, new)) in before.iter().zip(after) {
        if *path != other || *old != new && !is_set_now(old, &new) {
            return None;
        }
        if *old != new {
            names.push(other);
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    #[test]
    fn both_forms_are_read_to_the_same_values() {
        let php =
            b"user|a:2:{s:2:\"id\";i:7;s:4:\"name\";s:3:\"A|b\";}seen|d:1.5;none|N;cart|a:0:{}";
        let whole = b"a:4:{s:4:\"user\";a:2:{s:2:\"id\";i:7;s:4:\"name\";s:3:\"A|b\";}\
            s:4:\"seen\";d:1.5;s:4:\"none\";N;s:4:\"cart\";a:0:{}}";
        let expected = vec![
            (b"\0user\0id".to_vec(), Leaf::Integer(7)),
            (b"\0user\0name".to_vec(), Leaf::Text(b"A|b")),
            (b"\0seen".to_vec(), Leaf::Float(1.5)),
            (b"\0none".to_vec(), Leaf::Null),
            (b"\0cart".to_vec(), Leaf::EmptyArray),
        ];
        assert_eq!(parse(php), Some(expected.clone()));
        assert_eq!(parse(whole), Some(expected));
        assert_eq!(parse(b""), Some(Vec::new()));
        assert_eq!(parse(b"a:0:{}"), Some(Vec::new()));
    }

    #[test]
    fn content_that_is_not_understood_is_no_content() {
        for content in [
            &b"user|O:4:\"User\":1:{s:2:\"id\";i:7;}"[..],
            b"user|i:7",
            b"user|i:7;x",
            b"user|s:9:\"short\";",
            b"user|s:-1:\"\";",
            b"a|i:1;b|R:1;",
            b"a|E:3:\"A:B\";",
            b"a|i:+1;",
            b"a|d:INF;",
            b"a|b:2;",
            b"|i:1;",
            b"!a|",
            b"a:1:{i:0;i:1;}x",
            b"a:2:{i:0;i:1;}",
            b"a|a:99999999999:{",
            b"\x04userb:1;",
        ] {
            assert_eq!(parse(content), None, "{}", content.escape_ascii());
        }
        let deep = [b"a|".to_vec(), b"a:1:{i:0;".repeat(40)].concat();
        assert_eq!(parse(&deep), None);
        assert_eq!(parse(&b"a|i:1;".repeat(MAX_LEAVES + 1)), None);
        assert!(parse(&b"a|i:1;".repeat(MAX_LEAVES)).is_some());
    }

    /// Pieces of the two forms in random order, and random bytes between: nothing panics, and what is read is bounded.
    #[test]
    fn random_content_is_read_or_refused_within_bounds() {
        const PIECES: [&[u8]; 16] = [
            b"a:2:{",
            b"}",
            b"s:3:\"abc\";",
            b"i:1;",
            b"user|",
            b"N;",
            b"b:1;",
            b"d:1.5;",
            b"s:",
            b"a:",
            b"\"",
            b"|",
            b"9223372036854775808",
            b"i:0;",
            b"O:1:\"A\":0:{}",
            b":",
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % bound as u64).unwrap()
        };
        let mut understood = 0;
        for _ in 0..50_000 {
            let mut content = Vec::new();
            for _ in 0..next(12) {
                match next(20) {
                    0 => content.push(u8::try_from(next(256)).unwrap()),
                    piece => content.extend_from_slice(PIECES[piece % PIECES.len()]),
                }
            }
            if let Some(values) = parse(&content) {
                understood += 1;
                assert!(values.len() <= MAX_LEAVES);
                assert_eq!(times_set(&content, &content, NOW), Some(Vec::new()));
            }
        }
        assert!(understood > 1000, "{understood}");
    }

    #[test]
    fn times_that_a_run_has_set_are_no_change_and_everything_else_is_one() {
        let seen = |time: i64, user: i64| format!("seen|i:{time};user|i:{user};");
        for (before, after, expected) in [
            (seen(NOW - 9000, 1), seen(NOW - 1, 1), true),
            (seen(NOW - 9000, 1), seen(NOW - 9000, 1), true),
            (seen(NOW - 9000, 1), seen(NOW - 1, 2), false),
            (seen(NOW - 9000, 1), seen(NOW - 8000, 1), false),
            (seen(NOW - 1, 1), seen(NOW - 2, 1), false),
            (seen(1, 1), seen(NOW, 1), false),
            (seen(NOW - 9000, 1), "seen|i:1800000000;".to_owned(), false),
            (
                "a|i:1800000000;".to_owned(),
                "b|i:1800000000;".to_owned(),
                false,
            ),
            (
                "a|s:10:\"1799990000\";".to_owned(),
                "a|s:10:\"1800000000\";".to_owned(),
                true,
            ),
            (
                "a|d:1799990000.5;".to_owned(),
                "a|i:1800000000;".to_owned(),
                false,
            ),
            ("a|O:1".to_owned(), "a|O:1".to_owned(), false),
        ] {
            let found = times_set(before.as_bytes(), after.as_bytes(), NOW);
            assert_eq!(found.is_some(), expected, "{before} -> {after}");
            let name = after.split('|').next().unwrap_or_default();
            let names = match before == after {
                true => Vec::new(),
                false => vec![format!("\0{name}").into_bytes()],
            };
            assert!(
                found.is_none_or(|found| found == names),
                "{before} -> {after}"
            );
        }
    }
}
