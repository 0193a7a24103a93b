//! The kinds of text at a place where answers differ.

use std::collections::HashSet;

/// The kind of text at a place, which decides what guests are shown there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// A time or a duration: one answer's is shown to all.
    Number,
    /// A number that rises from answer to answer: how often a page was seen.
    Count,
    /// A token that the visitor's session knows: the server's own is shown.
    Token {
        /// Its length, where all have the same.
        length: Option<usize>,
        alphabet: Alphabet,
    },
}

/// The bytes that tokens of a place are made of, as far as the server's own are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    Digits,
    Lower,
    Upper,
    Mixed,
    LowerHex,
    UpperHex,
}

impl Alphabet {
    #[must_use]
    pub fn bytes(self) -> &'static [u8] {
        const ALL: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const UPPER: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        match self {
            Alphabet::Digits => &ALL[..10],
            Alphabet::LowerHex => &ALL[..16],
            Alphabet::Lower => &ALL[..36],
            Alphabet::UpperHex => &UPPER[..16],
            Alphabet::Upper => UPPER,
            Alphabet::Mixed => ALL,
        }
    }

    fn is_hex(self) -> bool {
        matches!(self, Alphabet::LowerHex | Alphabet::UpperHex)
    }

    /// Is the text one of those that are drawn from hexadecimal digits?
    pub(crate) fn may_have_drawn(self, text: &[u8]) -> bool {
        let is_in = |byte: &u8| self.bytes().contains(byte);
        self.is_hex() && text.len() >= LEAST_TOKEN && text.iter().all(is_in)
    }
}

/// How the guests differ whose answers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guests {
    /// In nothing but their sessions: a token is another one in each answer.
    Alike,
    /// The last one differs from the others, who are alike: by a browser, or by a session. Some answers may have the same
    /// token, which is a long one. A number must differ between the others, too: the price of a cart is no duration.
    LastUnlike,
}

/// The result of looking at the values of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlaceFinding {
    Place(PlaceKind),
    /// It takes so many answers to say.
    Needs(usize),
    /// Neither a number nor a token: it may say something of the visitor, or of what others do.
    Other,
}

/// So many answers say that something is a token.
const FOR_TOKENS: usize = 3;
/// So many are compared where some have letters alone at a place of hexadecimal digits.
const FOR_UNCLEAR: usize = 5;
/// So many say that a whole number is a count.
const FOR_COUNTS: usize = 4;
/// A count rises by no more from one answer to the next, or by this part of it: some guests may come between.
const MOST_STEP: u128 = 3;
const MOST_STEP_PART: u128 = 16;
/// A time in seconds has so many digits, and answers that are compared are so many seconds apart at most.
const TIME_DIGITS: usize = 9;
const MOST_APART: u128 = 120;
/// The shortest token; and the shortest one that is not known by its letters and digits alone.
pub(crate) const LEAST_TOKEN: usize = 6;
const LONG_TOKEN: usize = 16;
/// The longest that is exchanged.
pub(crate) const MOST_TOKEN: usize = 1024;

/// Words that say that a number is how long something took, or how much memory.
const UNITS: [&str; 14] = [
    "ms", "s", "sec", "secs", "second", "seconds", "us", "kb", "mb", "kib", "mib", "b", "bytes",
    "byte",
];

/// The part of differing runs that differs: how many bytes at the begin and at the end they have in common, up to the
/// joints of a path.
#[must_use]
pub(crate) fn narrow(values: &[&[u8]]) -> (usize, usize) {
    let (mut start, mut end) = (0, 0);
    for joint in *b"/." {
        let inner: Vec<&[u8]> = values
            .iter()
            .map(|value| inner(value, start, end))
            .collect();
        // The point of a number is within it.
        if joint == b'.' && inner.iter().all(|value| is_number(value)) {
            break;
        }
        let (before, after) = common_pieces(&inner, joint);
        (start, end) = (start + before, end + after);
    }
    let inner: Vec<&[u8]> = values
        .iter()
        .map(|value| inner(value, start, end))
        .collect();
    let (before, after) = around_number(&inner);
    (start + before, end + after)
}

fn inner(value: &[u8], start: usize, end: usize) -> &[u8] {
    value
        .get(start..value.len().saturating_sub(end))
        .unwrap_or_default()
}

/// The bytes of the pieces that all have at the begin and at the end, with their joints.
fn common_pieces(values: &[&[u8]], joint: u8) -> (usize, usize) {
    let shortest = values.iter().map(|value| value.len()).min().unwrap_or(0);
    let Some((first, rest)) = values.split_first() else {
        return (0, 0);
    };
    let is_common = |at: &usize| rest.iter().all(|value| value.get(*at) == first.get(*at));
    let begin = (0..shortest).take_while(is_common).count();
    let before = first.get(..begin).unwrap_or_default();
    let before = before
        .iter()
        .rposition(|&byte| byte == joint)
        .map_or(0, |at| at + 1);
    let from_end = |value: &[u8], at: usize| {
        value
            .len()
            .checked_sub(at + 1)
            .and_then(|at| value.get(at).copied())
    };
    let is_common_end = |at: &usize| {
        rest.iter()
            .all(|value| from_end(value, *at) == from_end(first, *at))
    };
    let most = shortest - before;
    let common = (0..most).take_while(is_common_end).count();
    let tail = first.get(first.len() - common..).unwrap_or_default();
    let after = tail
        .iter()
        .position(|&byte| byte == joint)
        .map_or(0, |at| common - at);
    (before, after)
}

/// The letters around a number, where they are the same around all: `took12ms`.
fn around_number(values: &[&[u8]]) -> (usize, usize) {
    let is_letter = |byte: &&u8| !byte.is_ascii_digit() && **byte != b'-' && **byte != b'.';
    let mut affixes = values.iter().map(|value| {
        let before = value.iter().take_while(is_letter).count();
        let after = value.iter().rev().take_while(is_letter).count();
        (
            value.get(..before),
            value.get(value.len() - after..),
            before,
            after,
        )
    });
    let Some((begin, tail, before, after)) = affixes.next() else {
        return (0, 0);
    };
    let are_alike = affixes.all(|(other, other_tail, ..)| other == begin && other_tail == tail);
    let are_numbers = || {
        values
            .iter()
            .all(|value| value.len() > before + after && is_number(inner(value, before, after)))
    };
    match are_alike && are_numbers() {
        true => (before, after),
        false => (0, 0),
    }
}

/// Digits, with a point, a sign or an exponent.
pub(crate) fn is_number(value: &[u8]) -> bool {
    let begins = value
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
    let exponents = value
        .iter()
        .filter(|byte| matches!(byte, b'e' | b'E'))
        .count();
    // Digits and an `e` may be a token.
    let has_exponent = exponents == 1 && value.contains(&b'.');
    begins
        && (exponents == 0 || has_exponent)
        && value.iter().any(u8::is_ascii_digit)
        && value
            .iter()
            .all(|byte| byte.is_ascii_digit() || is_in_number(*byte))
}

/// Whether a number may have this byte beside digits.
pub(crate) fn is_in_number(byte: u8) -> bool {
    matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')
}

/// Whether a token may have this byte, as it stands in a page.
pub(crate) fn is_in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'_'
                | b'+'
                | b'/'
                | b'.'
                | b':'
                | b'|'
                | b','
                | b'~'
                | b'%'
                | b'\\'
                | b'*'
                | b'!'
                | b'$'
                | b'@'
                | b'^'
        )
}

/// Says what stands at a place of answers.
pub(crate) fn classify(
    values: &[&[u8]],
    around: &Surroundings<'_>,
    guests: Guests,
) -> PlaceFinding {
    if values.iter().all(|value| is_number(value)) {
        let others = values.split_last().map_or(values, |(_, others)| others);
        let are_the_same = others.iter().all(|value| others.first() == Some(value));
        return match guests {
            Guests::LastUnlike if are_the_same => PlaceFinding::Needs(values.len() + 1),
            _ => number(values, around, guests),
        };
    }
    token(values, around, guests)
}

fn number(values: &[&[u8]], around: &Surroundings<'_>, guests: Guests) -> PlaceFinding {
    let is_whole = |value: &&[u8]| value.iter().all(u8::is_ascii_digit);
    if around.has_unit() || around.is_clock(values) || around.is_in_comment() {
        return PlaceFinding::Place(PlaceKind::Number);
    }
    let whole_part = |value: &&[u8]| {
        value
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    if !values.iter().all(is_whole) {
        // A price has a point, too.
        let are_times = values.iter().all(|value| whole_part(value) >= TIME_DIGITS);
        let are_dates = values.iter().all(|value| is_date(value));
        return match are_times || are_dates {
            true => PlaceFinding::Place(PlaceKind::Number),
            false => PlaceFinding::Other,
        };
    }
    let parsed: Option<Vec<u128>> = values
        .iter()
        .map(|value| std::str::from_utf8(value).ok()?.parse().ok())
        .collect();
    let Some(parsed) = parsed else {
        return token(values, around, guests);
    };
    if is_time(values, &parsed) {
        return PlaceFinding::Place(PlaceKind::Number);
    }
    if values.iter().all(|value| value.len() >= TIME_DIGITS) {
        return token(values, around, guests);
    }
    let rises = parsed.windows(2).all(|pair| {
        let [one, next] = pair else { return true };
        let most = MOST_STEP.max(one / MOST_STEP_PART);
        next.checked_sub(*one).is_some_and(|step| step <= most)
    });
    match rises && !around.is_in_form() {
        false => PlaceFinding::Other,
        true if values.len() < FOR_COUNTS => PlaceFinding::Needs(FOR_COUNTS),
        true => PlaceFinding::Place(PlaceKind::Count),
    }
}

fn is_date(value: &[u8]) -> bool {
    let is_joint = |at: usize| value.get(at) == Some(&b'-');
    value.len() == 10 && is_joint(4) && is_joint(7)
}

/// The text around a place, in the first answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'t> {
    pub before: &'t [u8],
    pub after: &'t [u8],
}

/// So far back it is looked what a place is in.
const LOOK_BACK: usize = 64 * 1024;

impl Surroundings<'_> {
    fn has_unit(&self) -> bool {
        has_unit(self.after)
    }

    /// Is it behind the hour or the minute of a time of day?
    fn is_clock(&self, values: &[&[u8]]) -> bool {
        let is_part = |value: &&[u8]| {
            value.len() == 2
                && value
                    .first()
                    .is_some_and(|byte| (b'0'..=b'5').contains(byte))
        };
        let [.., tens, units, b':'] = self.before else {
            return false;
        };
        tens.is_ascii_digit() && units.is_ascii_digit() && values.iter().all(is_part)
    }

    /// Is `begin` nearer than `end`?
    fn is_within(&self, begin: &[u8], end: &[u8]) -> bool {
        let from = self.before.len().saturating_sub(LOOK_BACK);
        let near = self.before.get(from..).unwrap_or_default();
        let last = |text: &[u8]| memchr::memmem::rfind(near, text);
        last(begin).is_some_and(|begin| last(end).is_none_or(|end| end < begin))
    }

    fn is_in_comment(&self) -> bool {
        self.is_within(b"<!--", b"-->")
    }

    fn is_in_form(&self) -> bool {
        self.is_within(b"<form", b"</form")
    }

    /// Is it where a browser or a script reads it, and not a person?
    fn is_in_markup(&self) -> bool {
        self.is_within(b"<", b">")
            || self.is_within(b"<script", b"</script")
            || self.is_in_comment()
    }
}

/// A time in seconds, or in thousandths or millionths of them.
fn is_time(values: &[&[u8]], parsed: &[u128]) -> bool {
    let digits = values.iter().map(|value| value.len()).min().unwrap_or(0);
    let unit = match digits {
        ..TIME_DIGITS => return false,
        TIME_DIGITS..=10 => 1,
        11..=13 => 1000,
        14..=16 => 1_000_000,
        _ => return false,
    };
    let (least, most) = (parsed.iter().min(), parsed.iter().max());
    least
        .zip(most)
        .is_some_and(|(least, most)| most - least <= MOST_APART * unit)
}

fn has_unit(after: &[u8]) -> bool {
    let after = after
        .strip_prefix(b"&nbsp;")
        .unwrap_or(after)
        .trim_ascii_start();
    let letters = after
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let word = after.get(..letters).unwrap_or_default();
    UNITS
        .iter()
        .any(|unit| word.eq_ignore_ascii_case(unit.as_bytes()))
}

fn token(values: &[&[u8]], around: &Surroundings<'_>, guests: Guests) -> PlaceFinding {
    let lengths = || values.iter().map(|value| value.len());
    let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
    let is_long_enough = match least == most {
        true => least >= LEAST_TOKEN,
        false if least >= LONG_TOKEN => most - least <= most / 2,
        // The names that SMF draws for its tokens: seven to twelve digits and letters up to f.
        false => {
            let is_hex = |value: &&[u8]| value.iter().all(u8::is_ascii_hexdigit);
            least >= LEAST_TOKEN && values.iter().all(is_hex)
        }
    };
    let is_of_token = |value: &&[u8]| value.iter().all(|byte| is_in_token(*byte));
    if !around.is_in_markup() || values.iter().any(|value| has_meaning(value)) {
        return PlaceFinding::Other;
    }
    if !is_long_enough || most > MOST_TOKEN || !values.iter().all(is_of_token) {
        return PlaceFinding::Other;
    }
    let distinct: HashSet<&[u8]> = values.iter().copied().collect();
    let repeated = values.len() - distinct.len();
    let drawn = values.iter().filter(|value| is_drawn(value)).count();
    let alphabet = alphabet(values);
    // One in some hundred short names of hexadecimal digits is made of letters alone.
    let most_are_drawn = drawn * 3 >= values.len() * 2;
    let are_drawn = match guests {
        Guests::Alike => most_are_drawn,
        Guests::LastUnlike => drawn == values.len() || alphabet.is_hex() && most_are_drawn,
    };
    let may_repeat = match guests {
        // A token that is made of the time may be the same in answers of one moment.
        Guests::Alike => least >= LONG_TOKEN,
        Guests::LastUnlike => least >= LONG_TOKEN && least == most,
    };
    if repeated > 0 && !may_repeat {
        return PlaceFinding::Other;
    }
    if !are_drawn {
        return match drawn > 0 && alphabet.is_hex() && values.len() < FOR_UNCLEAR {
            true => PlaceFinding::Needs(values.len() + 1),
            false => PlaceFinding::Other,
        };
    }
    // `\\/` and `%2B` make a token of one length longer, now and then.
    let is_escaped = values
        .iter()
        .any(|value| value.iter().any(|byte| matches!(byte, b'\\' | b'%')));
    let is_known = guests == Guests::LastUnlike && values.len() >= FOR_TOKENS;
    match distinct.len() < FOR_TOKENS && !is_known {
        true => PlaceFinding::Needs(values.len() + 1),
        false => PlaceFinding::Place(PlaceKind::Token {
            // Short ones of one length may be of another next time.
            length: (least == most && least >= LONG_TOKEN && !is_escaped).then_some(least),
            alphabet,
        }),
    }
}

/// Would a script miss what it reads in it? Encoded JSON (a signed token has it, too), and a UUID.
fn has_meaning(value: &[u8]) -> bool {
    let is_joint = |at: &usize| value.get(*at) == Some(&b'-');
    value.starts_with(b"eyJ") || value.len() == 36 && [8, 13, 18, 23].iter().all(is_joint)
}

/// Does it look drawn by chance? Words and their joints do not.
pub(crate) fn is_drawn(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let upper = value
        .iter()
        .filter(|byte| byte.is_ascii_uppercase())
        .count();
    let lower = value
        .iter()
        .filter(|byte| byte.is_ascii_lowercase())
        .count();
    if value.len() >= LONG_TOKEN {
        return digits >= 2 || upper >= 3 && lower >= 3;
    }
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    let has_enough = digits >= 2 || digits == 1 && is_hex;
    let is_plain = digits + upper + lower == value.len();
    has_enough && is_plain && (upper + lower > 0 || value.len() >= TIME_DIGITS)
}

fn alphabet(values: &[&[u8]]) -> Alphabet {
    let all = |is: fn(u8) -> bool| {
        values
            .iter()
            .all(|value| value.iter().all(|byte| is(*byte)))
    };
    let any = |is: fn(&u8) -> bool| values.iter().any(|value| value.iter().any(is));
    if all(|byte| byte.is_ascii_digit()) {
        Alphabet::Digits
    } else if all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        Alphabet::LowerHex
    } else if all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F')) {
        Alphabet::UpperHex
    } else {
        match (any(u8::is_ascii_lowercase), any(u8::is_ascii_uppercase)) {
            (true, false) => Alphabet::Lower,
            (false, true) => Alphabet::Upper,
            _ => Alphabet::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str], after: &str) -> PlaceFinding {
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let around = Surroundings {
            before: b"<a href=\"",
            after: after.as_bytes(),
        };
        classify(&values, &around, Guests::Alike)
    }

    fn narrowed(values: &[&str]) -> String {
        let bytes: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let (start, end) = narrow(&bytes);
        values[0][start..values[0].len() - end].to_owned()
    }

    const NUMBER: PlaceFinding = PlaceFinding::Place(PlaceKind::Number);
    const COUNT: PlaceFinding = PlaceFinding::Place(PlaceKind::Count);
    const IN_TAG: Surroundings<'static> = Surroundings {
        before: b"<a href=\"",
        after: b"\"",
    };

    fn of_before(values: &[&str], before: &str) -> PlaceFinding {
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let around = Surroundings {
            before: before.as_bytes(),
            after: b"<",
        };
        classify(&values, &around, Guests::Alike)
    }

    #[test]
    fn what_a_person_reads_is_no_token_and_a_price_no_duration() {
        let codes = [
            "75F816225D5E75F816",
            "05F816225D5E75F817",
            "95F816225D5E75F818",
        ];
        assert_eq!(of_before(&codes, "<p>Code: "), PlaceFinding::Other);
        assert!(matches!(
            of_before(&codes, "<script>var t='"),
            PlaceFinding::Place(_)
        ));
        assert_eq!(of_before(&["6.79", "7.12"], "<p>EUR "), PlaceFinding::Other);
        assert_eq!(of_before(&["6.79", "7.12"], "<!-- Runtime: "), NUMBER);
        assert_eq!(of_before(&["59", "00"], "<p>05:30:"), NUMBER);
        assert_eq!(of_before(&["7", "8", "9", "10"], "<p>"), COUNT);
        assert_eq!(
            of_before(&["7", "8", "9", "10"], "<form><p>3 + "),
            PlaceFinding::Other
        );
        let uuids = ["0cc175b9-c0f1-4b6a-8a31-c399e2697726"; 3];
        assert_eq!(of_before(&uuids, "<p id=\""), PlaceFinding::Other);
    }

    #[test]
    fn what_differs_is_a_piece_of_its_run() {
        for (values, wanted) in [
            (&["/logout/abc/now", "/logout/def/now"][..], "abc"),
            (&["0.0123", "0.0119"], "0.0123"),
            (&["took12ms", "took9ms"], "12"),
            (&["a.123.js", "a.456.js"], "123"),
            (&["Xx/y+Z9", "Yx/y+W8"], "Xx/y+Z9"),
            (&["p/Xx/y", "p/ab"], "Xx/y"),
            (&["06Z", "07Z"], "06"),
        ] {
            assert_eq!(narrowed(values), wanted, "{values:?}");
        }
    }

    #[test]
    fn times_durations_and_counts_are_numbers() {
        assert_eq!(of(&["1732850000", "1732850001"], ""), NUMBER);
        assert_eq!(of(&["1732850000123", "1732850000456"], ""), NUMBER);
        assert_eq!(of(&["0.0123", "0.4"], " s"), NUMBER);
        assert_eq!(of(&["12", "7"], " ms"), NUMBER);
        assert_eq!(of(&["1234", "1230"], "&nbsp;KB"), NUMBER);
        assert_eq!(of(&["7", "8"], "x"), PlaceFinding::Needs(FOR_COUNTS));
        assert_eq!(of(&["7", "8", "8", "10"], " views"), COUNT);
        assert_eq!(of(&["320", "331", "331", "350"], " guests"), COUNT);
        assert_eq!(
            of(&["320", "331", "331", "360"], " guests"),
            PlaceFinding::Other
        );
        // A sum that a person shall compute.
        assert_eq!(of(&["7", "3"], " +"), PlaceFinding::Other);
        assert_eq!(of(&["1", "9"], " +"), PlaceFinding::Other);
    }

    #[test]
    fn names_of_hexadecimal_digits_may_have_letters_alone() {
        let names = ["abbecfb", "d83ab1c77", "e0190bb2f", "c4f81e0b2"];
        let name = PlaceFinding::Place(PlaceKind::Token {
            length: None,
            alphabet: Alphabet::LowerHex,
        });
        assert_eq!(of(&names[..2], ""), PlaceFinding::Needs(3));
        assert_eq!(of(&names[..3], ""), name);
        assert_eq!(
            of(&["abbecfb", "fadedbe", "e0190bb2f"], ""),
            PlaceFinding::Needs(4)
        );
        let to_another = ["d83ab1c77", "e0190bb2f", "abbecfb"].map(str::as_bytes);
        assert_eq!(classify(&to_another, &IN_TAG, Guests::LastUnlike), name);
        let words = ["facade", "decade", "accede", "deface", "efface"];
        assert_eq!(of(&words[..2], ""), PlaceFinding::Other);
        assert_eq!(
            of(&["facade", "decade", "accede", "deface", "c4f81e"], ""),
            PlaceFinding::Other
        );
        let to_another = ["d83ab1c77", "d83ab1c77", "abbecfb"].map(str::as_bytes);
        assert_eq!(
            classify(&to_another, &IN_TAG, Guests::LastUnlike),
            PlaceFinding::Other
        );
    }

    #[test]
    fn tokens_are_drawn_by_chance_and_words_are_not() {
        let hex = [
            "0cc175b9c0f1b6a831c399e269772661",
            "92eb5ffee6ae2fec3ad71c777531578f",
            "4a8a08f09d37b73795649038408b5f33",
        ];
        assert_eq!(of(&hex[..2], ""), PlaceFinding::Needs(FOR_TOKENS));
        assert_eq!(
            of(&hex, ""),
            PlaceFinding::Place(PlaceKind::Token {
                length: Some(32),
                alphabet: Alphabet::LowerHex
            })
        );
        assert_eq!(
            of(&["a94a8fe5c", "z1d5781111", "c8d6666"], ""),
            PlaceFinding::Other,
            "short, of several lengths"
        );
        assert_eq!(
            of(&["c4f81e0b2", "d83ab1c77", "e0190bb2f"], ""),
            PlaceFinding::Place(PlaceKind::Token {
                length: None,
                alphabet: Alphabet::LowerHex
            })
        );
        assert_eq!(
            of(
                &[
                    "dGhpcyBpcyBhIHRva2Vu",
                    "YW5vdGhlciB0b2tlbiB4",
                    "c29tZXRoaW5nIGVsc2Ug"
                ],
                ""
            ),
            PlaceFinding::Place(PlaceKind::Token {
                length: Some(20),
                alphabet: Alphabet::Mixed
            })
        );
        let cart = ["0.00", "0.00", "20.00"].map(str::as_bytes);
        assert_eq!(
            classify(&cart, &IN_TAG, Guests::LastUnlike),
            PlaceFinding::Needs(4)
        );
        let duration = ["0.12", "0.13", "20.00"].map(str::as_bytes);
        assert_eq!(
            classify(
                &duration,
                &Surroundings {
                    before: b"<p>",
                    after: b" s"
                },
                Guests::LastUnlike
            ),
            NUMBER
        );
        for words in [
            [
                "hello-world-again",
                "hello-there-again",
                "great-world-again",
            ],
            ["Alice", "Bob", "Carol"],
            ["summer", "winter", "spring"],
        ] {
            assert_eq!(of(&words, ""), PlaceFinding::Other, "{words:?}");
        }
        assert_eq!(
            of(&[hex[0], hex[0], hex[1]], ""),
            PlaceFinding::Needs(4),
            "the same twice"
        );
        assert!(matches!(
            of(
                &[
                    "918273645546372819",
                    "473829104857362910",
                    "109283746574839201"
                ],
                ""
            ),
            PlaceFinding::Place(PlaceKind::Token {
                alphabet: Alphabet::Digits,
                ..
            })
        ));
    }
}
