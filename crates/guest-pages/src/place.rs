//! The kinds of text at a place where answers differ.

use std::collections::HashSet;

use crate::markup::{Spot, SpotKind};
use crate::moment;

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
        self.is_hex() && text.len() >= MIN_TOKEN && text.iter().all(is_in)
    }
}

/// How the guests differ whose answers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guests {
    /// In nothing but their sessions: a token is another one in each answer.
    Alike,
    /// The last one differs from the others, who are alike: by a browser, or by a session. Some answers may have the same
    /// token, which is a long one. A number must differ between the others, too: the price of a cart is no duration. So
    /// must a token without a token's name: the hash of a cart is none.
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
const MAX_STEP: u128 = 3;
const MAX_STEP_PART: u128 = 16;
/// A time in seconds has so many digits, and answers that are compared are so many seconds apart at most.
const TIME_DIGITS: usize = 9;
const MAX_APART: u64 = 120;
/// The shortest token; and the shortest one that is not known by its letters and digits alone.
pub(crate) const MIN_TOKEN: usize = 6;
pub(crate) const LONG_TOKEN: usize = 16;
/// The longest that is exchanged.
pub(crate) const MAX_TOKEN: usize = 1024;

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
        return match guests {
            Guests::LastUnlike if are_others_alike(values) => PlaceFinding::Needs(values.len() + 1),
            _ => number(values, around, guests),
        };
    }
    token(values, around, guests)
}

fn least_length(values: &[&[u8]]) -> usize {
    let lengths = values.iter().map(|value| value.len());
    lengths.min().unwrap_or(0)
}

/// Are all but the last one the same?
fn are_others_alike(values: &[&[u8]]) -> bool {
    let others = values.split_last().map_or(values, |(_, others)| others);
    others.iter().all(|value| others.first() == Some(value))
}

fn number(values: &[&[u8]], around: &Surroundings<'_>, guests: Guests) -> PlaceFinding {
    let are_whole = values
        .iter()
        .all(|value| value.iter().all(u8::is_ascii_digit));
    let are_long = || values.iter().all(|value| value.len() >= TIME_DIGITS);
    let are_times = are_times(values, around.now);
    // Drawn text has digits alone now and then, or the same letters around them: two answers do not say.
    let is_part_of_token =
        around.is_sent() && (around.is_in_word() || least_length(values) >= MIN_TOKEN);
    let other = match is_part_of_token && values.len() < FOR_TOKENS {
        true => PlaceFinding::Needs(FOR_TOKENS),
        false => PlaceFinding::Other,
    };
    match around.spot.kind {
        SpotKind::Field => return PlaceFinding::Other,
        // A time with a check of it beside it goes back with the write.
        SpotKind::Hidden if are_times => return PlaceFinding::Place(token_of_time(values)),
        SpotKind::Hidden if are_whole && are_long() => return token(values, around, guests),
        SpotKind::Hidden => return other,
        _ => {}
    }
    let are_decimals = values.iter().all(is_decimal);
    let are_durations =
        around.has_unit(are_decimals) || are_decimals && around.spot.kind == SpotKind::Comment;
    let are_dates = || {
        let mut values = values.iter();
        values.all(|value| moment::is_near_date(value, around.now))
    };
    if are_durations || around.is_clock(values) || are_times || are_dates() {
        return PlaceFinding::Place(PlaceKind::Number);
    }
    // A price has a point, too.
    if !are_whole {
        return other;
    }
    let parsed: Option<Vec<u128>> = values
        .iter()
        .map(|value| std::str::from_utf8(value).ok()?.parse().ok())
        .collect();
    let Some(parsed) = parsed.filter(|_| !are_long()) else {
        return token(values, around, guests);
    };
    let rises = parsed.windows(2).all(|pair| {
        let [one, next] = pair else { return true };
        let most = MAX_STEP.max(one / MAX_STEP_PART);
        next.checked_sub(*one).is_some_and(|step| step <= most)
    });
    match rises && !around.spot.is_in_form {
        false => other,
        true if values.len() < FOR_COUNTS => PlaceFinding::Needs(FOR_COUNTS),
        true => PlaceFinding::Place(PlaceKind::Count),
    }
}

/// The token that a time is which goes back to the server.
pub(crate) fn token_of_time(values: &[&[u8]]) -> PlaceKind {
    PlaceKind::Token {
        length: None,
        alphabet: alphabet(values),
    }
}

/// Digits, with a point among them?
fn is_decimal(value: &&[u8]) -> bool {
    let parts: Vec<&[u8]> = value.split(|&byte| byte == b'.').collect();
    let are_digits = |part: &&[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    parts.len() == 2 && parts.iter().all(are_digits)
}

/// Are they times of this day, as they pass while answers are made?
pub(crate) fn are_times(values: &[&[u8]], now: u64) -> bool {
    let micros: Option<Vec<u64>> = values
        .iter()
        .map(|value| moment::near(value, now))
        .collect();
    let micros = micros.unwrap_or_default();
    let ends = micros.iter().min().zip(micros.iter().max());
    ends.is_some_and(|(least, most)| most - least <= MAX_APART * 1_000_000)
}

/// What is around a place, in the first answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'t> {
    pub before: &'t [u8],
    pub after: &'t [u8],
    pub spot: Spot,
    /// The present time, in seconds since 1970.
    pub now: u64,
}

impl Surroundings<'_> {
    /// A row of seats has one letter, too, but no point.
    fn has_unit(&self, are_decimals: bool) -> bool {
        let unit = unit(self.after);
        unit.len() > 1 || unit.len() == 1 && are_decimals
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

    /// Are there letters or digits right before it or behind it?
    fn is_in_word(&self) -> bool {
        let ends = [self.before.last(), self.after.first()];
        let mut ends = ends.into_iter().flatten();
        ends.any(u8::is_ascii_alphanumeric)
    }

    /// Does it go back to the server as a token does?
    fn is_sent(&self) -> bool {
        matches!(self.spot.kind, SpotKind::Hidden | SpotKind::Sender)
    }
}

/// The unit behind a number.
fn unit(after: &[u8]) -> &[u8] {
    let after = after
        .strip_prefix(b"&nbsp;")
        .unwrap_or(after)
        .trim_ascii_start();
    let letters = after
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let word = after.get(..letters).unwrap_or_default();
    let mut units = UNITS.iter();
    match units.any(|unit| word.eq_ignore_ascii_case(unit.as_bytes())) {
        true => word,
        false => b"",
    }
}

fn token(values: &[&[u8]], around: &Surroundings<'_>, guests: Guests) -> PlaceFinding {
    let lengths = values.iter().map(|value| value.len());
    let (least, most) = (least_length(values), lengths.max().unwrap_or(0));
    let is_long_enough = match least == most {
        true => least >= MIN_TOKEN,
        false if least >= LONG_TOKEN => most - least <= most / 2,
        // The names that SMF draws for its tokens: seven to twelve digits and letters up to f.
        false => {
            let is_hex = |value: &&[u8]| value.iter().all(u8::is_ascii_hexdigit);
            least >= MIN_TOKEN && values.iter().all(is_hex)
        }
    };
    let is_of_token = |value: &&[u8]| value.iter().all(|byte| is_in_token(*byte));
    if !around.is_sent() || values.iter().any(|value| has_meaning(value)) {
        return PlaceFinding::Other;
    }
    if !is_long_enough || most > MAX_TOKEN || !values.iter().all(is_of_token) {
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
    if guests == Guests::LastUnlike && are_others_alike(values) && !around.spot.has_token_name {
        return PlaceFinding::Needs(values.len() + 1);
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
    // By its name, where there are two answers.
    let is_known = guests == Guests::LastUnlike;
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
#[path = "place_tests.rs"]
mod tests;
