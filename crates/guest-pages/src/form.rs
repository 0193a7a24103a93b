//! The form of a page: what stays from answer to answer, and the places where they differ.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use page_evidence::Renderer;
use twox_hash::XxHash3_64;

use crate::markup::Markup;
use crate::moment;
use crate::place::{
    Alphabet, Guests, LONG_TOKEN, PlaceFinding, PlaceKind, Surroundings, are_times, classify,
    is_drawn, is_in_number, is_in_token, narrow, token_of_time,
};
use crate::text::{Next, Run, SideBySide};

/// Places of one page.
const MAX_PLACES: usize = 400;
/// Tokens of one page, each at any number of places.
const MAX_TOKENS: usize = 64;
/// So much of the text around a token is kept to find it in another answer.
const CONTEXT_BEFORE: usize = 64;
/// And so much before that: forms of one page may have fields of one name, each behind others.
const CONTEXT_FARTHER: usize = 160;

/// Text that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Literal {
    length: usize,
    digest: u64,
}

impl Literal {
    fn of(text: &[u8]) -> Literal {
        Literal {
            length: text.len(),
            digest: XxHash3_64::oneshot(text),
        }
    }

    /// The text behind it, where `text` begins with it.
    fn strip<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let (begin, rest) = text.split_at_checked(self.length)?;
        (XxHash3_64::oneshot(begin) == self.digest).then_some(rest)
    }
}

/// A place, and the text before it.
#[derive(Clone, Debug)]
struct Place {
    before: Literal,
    kind: PlaceKind,
    /// Which of the page's tokens.
    token: Option<usize>,
    /// The byte behind it.
    next: Option<u8>,
}

/// A token of the page.
#[derive(Clone, Debug)]
pub struct Token {
    pub kind: PlaceKind,
    /// Its length in the first answer.
    pub length: usize,
    before: Vec<u8>,
    /// The text before that, up to the place before it.
    farther: Vec<u8>,
    /// The byte behind it.
    after: Option<u8>,
}

/// The form of a page.
#[derive(Clone, Debug)]
pub struct PageForm {
    places: Vec<Place>,
    tail: Literal,
    tokens: Vec<Token>,
}

/// Why answers have no form in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// They are built in different ways.
    Structure,
    /// Text differs, at this byte of the first, that is neither a number nor a token.
    Text { at: usize },
    /// They differ at too many places.
    TooManyPlaces,
}

/// Has a page a number that is the session's?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionNumbers {
    None,
    /// One has stayed for a guest who came back, as a time does within its second.
    Perhaps,
    Some,
}

/// The result of comparing some answers.
#[derive(Debug)]
pub enum Comparison {
    Form(PageForm),
    /// It takes more answers to say.
    More,
    Unlike(Unlike),
}

/// The site whose answers are compared.
#[derive(Clone, Copy, Debug)]
pub struct AskedSite<'t> {
    /// The host, with its port, as a client names it.
    pub host: &'t [u8],
    /// The present time, in seconds since 1970.
    pub now: u64,
}

/// Compares answers to the same request, of at least two sessions, in the order in which they were made.
#[must_use]
pub fn compare(answers: &[&[u8]], guests: Guests, asked: AskedSite<'_>) -> Comparison {
    match found_form(answers, guests, asked) {
        Ok(Some(form)) => Comparison::Form(form),
        Ok(None) => Comparison::More,
        Err(why) => Comparison::Unlike(why),
    }
}

/// Has a form of the later answer a hidden field whose text is drawn anew?
#[must_use]
pub fn has_new_key(earlier: &[u8], later: &[u8]) -> bool {
    let hidden = |text| Markup::new(text, b"").hidden_fields();
    let known: HashSet<(&[u8], &[u8])> = hidden(earlier).into_iter().collect();
    let names: HashSet<&[u8]> = known.iter().map(|(name, _)| *name).collect();
    let mut fields = hidden(later).into_iter();
    fields.any(|(name, value)| {
        is_key(value) && names.contains(name) && !known.contains(&(name, value))
    })
}

/// Has a form of the answer a hidden field whose text looks drawn, so that it takes three answers to know it?
#[must_use]
pub fn has_key(answer: &[u8]) -> bool {
    let mut fields = Markup::new(answer, b"").hidden_fields().into_iter();
    fields.any(|(_, value)| is_key(value))
}

fn is_key(value: &[u8]) -> bool {
    // Base64 ends so.
    let value = value.strip_suffix(b"=").unwrap_or(value);
    let value = value.strip_suffix(b"=").unwrap_or(value);
    value.len() >= LONG_TOKEN && value.iter().all(|byte| is_in_token(*byte)) && is_drawn(value)
}

/// `None`: it takes more answers.
fn found_form(
    answers: &[&[u8]],
    guests: Guests,
    asked: AskedSite<'_>,
) -> Result<Option<PageForm>, Unlike> {
    let [first, _, ..] = answers else {
        return Ok(None);
    };
    let mut walked = SideBySide::new(answers);
    let mut reader = PlaceReader {
        markup: Markup::new(first, asked.host),
        answers,
        guests,
        now: asked.now,
    };
    let mut found: Vec<FoundPlace> = Vec::new();
    let mut takes_more = false;
    loop {
        match walked.next() {
            Next::Same => {}
            Next::Different(runs) => match reader.found_place(&runs)? {
                Some(_) if found.len() >= MAX_PLACES => return Err(Unlike::TooManyPlaces),
                Some(place) => found.push(place),
                None => takes_more = true,
            },
            Next::Apart => return Err(Unlike::Structure),
            Next::End => break,
        }
    }
    if takes_more {
        return Ok(None);
    }
    let found = joined(first, with_checked_times(answers, found, asked.now));
    form_of(answers, &found).map(Some)
}

/// A place in all answers.
struct FoundPlace {
    ranges: Vec<Range<usize>>,
    kind: PlaceKind,
    /// Where the value of the attribute begins that it is in.
    value_at: Option<usize>,
}

impl FoundPlace {
    fn is_token(&self) -> bool {
        matches!(self.kind, PlaceKind::Token { .. })
    }

    fn in_first(&self) -> Range<usize> {
        self.ranges.first().cloned().unwrap_or_default()
    }
}

fn values_at<'t>(ranges: &[Range<usize>], answers: &[&'t [u8]]) -> Vec<&'t [u8]> {
    let pairs = ranges.iter().zip(answers);
    pairs
        .map(|(range, text)| text.get(range.clone()).unwrap_or_default())
        .collect()
}

/// Says what the places are of answers that are walked side by side.
struct PlaceReader<'t> {
    /// Of the first one.
    markup: Markup<'t>,
    answers: &'t [&'t [u8]],
    guests: Guests,
    now: u64,
}

impl PlaceReader<'_> {
    /// Classifies runs that differ; `None`: it takes more answers.
    fn found_place(&mut self, runs: &[Run]) -> Result<Option<FoundPlace>, Unlike> {
        let ranges: Vec<Range<usize>> = runs.iter().map(|run| run.start..run.end).collect();
        let (start, end) = narrow(&values_at(&ranges, self.answers));
        let ranges: Vec<Range<usize>> = runs
            .iter()
            .map(|run| run.start + start..run.end.saturating_sub(end))
            .collect();
        let values = values_at(&ranges, self.answers);
        let in_first = ranges.first().cloned().unwrap_or_default();
        let first = self.answers.first().copied().unwrap_or_default();
        let around = Surroundings {
            before: first.get(..in_first.start).unwrap_or_default(),
            after: first.get(in_first.end..).unwrap_or_default(),
            spot: self.markup.spot(in_first.start),
            now: self.now,
        };
        match classify(&values, &around, self.guests) {
            PlaceFinding::Place(kind) => Ok(Some(FoundPlace {
                ranges,
                kind,
                value_at: around.spot.value_at,
            })),
            PlaceFinding::Needs(count) if values.len() < count => Ok(None),
            PlaceFinding::Needs(_) | PlaceFinding::Other => {
                Err(Unlike::Text { at: in_first.start })
            }
        }
    }
}

/// A time in the same value as a token is one, too: the token may be a check of it.
fn with_checked_times(answers: &[&[u8]], mut found: Vec<FoundPlace>, now: u64) -> Vec<FoundPlace> {
    let tokens = found.iter().filter(|place| place.is_token());
    let checked: Vec<usize> = tokens.filter_map(|place| place.value_at).collect();
    for place in &mut found {
        let values = values_at(&place.ranges, answers);
        let mut at = place.value_at.iter();
        if at.any(|at| checked.binary_search(at).is_ok()) && are_times(&values, now) {
            place.kind = token_of_time(&values);
        }
    }
    found
}

/// A token and what stands beside it in one value (the time at which it was made) are one token.
fn joined(first: &[u8], found: Vec<FoundPlace>) -> Vec<FoundPlace> {
    let mut places: Vec<FoundPlace> = Vec::new();
    for place in found {
        let Some(before) = places.last_mut() else {
            places.push(place);
            continue;
        };
        let between = first.get(before.in_first().end..place.in_first().start);
        let are_one_value = between.is_some_and(|text| text.iter().all(|byte| is_joint(*byte)));
        let has_token = before.is_token() || place.is_token();
        if !(are_one_value && has_token) {
            places.push(place);
            continue;
        }
        let pairs = before.ranges.iter_mut().zip(&place.ranges);
        pairs.for_each(|(range, other)| range.end = other.end);
        let length = before.in_first().len();
        let are_as_long = before.ranges.iter().all(|range| range.len() == length);
        before.kind = PlaceKind::Token {
            length: are_as_long.then_some(length),
            alphabet: Alphabet::Mixed,
        };
    }
    places
}

/// Whether the byte may stand between the parts of one value.
fn is_joint(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'|' | b',')
}

/// The form that has these places.
fn form_of(answers: &[&[u8]], found: &[FoundPlace]) -> Result<PageForm, Unlike> {
    let first = answers.first().copied().unwrap_or_default();
    let mut form = PageForm {
        places: Vec::new(),
        tail: Literal::of(b""),
        tokens: Vec::new(),
    };
    // Tokens by their values in all answers.
    let mut known: HashMap<Vec<&[u8]>, usize> = HashMap::new();
    let mut at = 0;
    for place in found {
        let range = place.in_first();
        let token = match place.kind {
            PlaceKind::Number | PlaceKind::Count => None,
            PlaceKind::Token { .. } => {
                let values = values_at(&place.ranges, answers);
                let next = form.tokens.len();
                let number = *known.entry(values).or_insert(next);
                if number == MAX_TOKENS {
                    return Err(Unlike::TooManyPlaces);
                }
                if number == next {
                    form.tokens.push(Token::at(first, at, &range, &place.kind));
                }
                Some(number)
            }
        };
        form.places.push(Place {
            before: Literal::of(first.get(at..range.start).unwrap_or_default()),
            kind: place.kind.clone(),
            token,
            next: first.get(range.end).copied(),
        });
        at = range.end;
    }
    form.tail = Literal::of(first.get(at..).unwrap_or_default());
    Ok(form)
}

impl PageForm {
    /// The tokens of the page, by their numbers.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// How many places have numbers, and how many tokens.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let numbers = self
            .places
            .iter()
            .filter(|place| place.token.is_none())
            .count();
        (numbers, self.places.len() - numbers)
    }

    /// The places of an answer of this form, in their order; `None`: it is of another.
    #[must_use]
    pub fn find(&self, answer: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut rest = answer;
        let mut found = Vec::with_capacity(self.places.len());
        let mut tokens: Vec<Option<&[u8]>> = vec![None; self.tokens.len()];
        for place in &self.places {
            rest = place.before.strip(rest)?;
            let start = answer.len() - rest.len();
            let length = place.length(rest)?;
            let (value, after) = rest.split_at_checked(length)?;
            if place.next.is_some() && after.first() != place.next.as_ref() {
                return None;
            }
            if let Some(known) = place.token.and_then(|token| tokens.get_mut(token)) {
                // One token has one value in one answer.
                if known.is_some_and(|known| known != value) {
                    return None;
                }
                *known = Some(value);
            }
            found.push(start..start + length);
            rest = after;
        }
        self.tail.strip(rest)?.is_empty().then_some(found)
    }

    /// Reads an answer as far as answers of this form are compared; one of another form whole.
    pub fn render(&self, answer: &[u8], renderer: &mut Renderer) {
        if !self.read_blank(answer, &mut |piece| renderer.read(piece)) {
            renderer.read(answer);
        }
    }

    /// Gives an answer of this form piece by piece, without what stands at its places; false where it is of another
    /// form.
    fn read_blank(&self, answer: &[u8], read: &mut dyn FnMut(&[u8])) -> bool {
        let Some(places) = self.find(answer) else {
            return false;
        };
        let mut at = 0;
        for place in places {
            read(answer.get(at..place.start).unwrap_or_default());
            read(b"\0");
            at = place.end;
        }
        read(answer.get(at..).unwrap_or_default());
        true
    }

    /// The answer with other tokens: `tokens` gives the one for each number. `None`: it is of another form.
    #[must_use]
    pub fn with_tokens(&self, answer: &[u8], tokens: &[Vec<u8>]) -> Option<Vec<u8>> {
        let places = self.find(answer)?;
        let mut out = Vec::with_capacity(answer.len() + 64);
        let mut at = 0;
        for (place, range) in self.places.iter().zip(places) {
            let Some(token) = place.token else {
                continue;
            };
            out.extend_from_slice(answer.get(at..range.start)?);
            out.extend_from_slice(tokens.get(token)?);
            at = range.end;
        }
        out.extend_from_slice(answer.get(at..)?);
        Some(out)
    }

    /// How long the time lasts that an answer of this form names in the text that stays, where that is the present time
    /// (in seconds since 1970): what is made of the time may be the same in answers that are nearer to each other.
    #[must_use]
    pub fn named_moment(&self, answer: &[u8], now: u64) -> Option<Duration> {
        let mut longest = None;
        self.read_blank(answer, &mut |piece| {
            longest = longest.max(moment::longest(piece, now))
        });
        longest
    }

    /// Is a number of the page the session's? `own`: the first answer, and those to its guest who comes back; `others`: to
    /// other guests. A count that has not risen when the guest comes back is the session's. So may be a number that stays
    /// and is another one for each other guest, and a time that stays and is another one for some other guest.
    #[must_use]
    pub fn numbers_of_session(&self, own: &[&[u8]], others: &[&[u8]], now: u64) -> SessionNumbers {
        let ranges = |answer: &&[u8]| self.find(answer);
        let read = |answers: &[&[u8]]| answers.iter().map(ranges).collect::<Option<Vec<_>>>();
        let (Some(own_ranges), Some(other_ranges)) = (read(own), read(others)) else {
            return SessionNumbers::Some;
        };
        let number = |text: &&[u8]| std::str::from_utf8(text).ok()?.parse::<u128>().ok();
        let mut found = SessionNumbers::None;
        for (at, place) in self.places.iter().enumerate() {
            let at_place = |ranges: &[Vec<Range<usize>>]| -> Vec<Range<usize>> {
                let ranges = ranges.iter().map(|ranges| ranges.get(at).cloned());
                ranges.map(Option::unwrap_or_default).collect()
            };
            let values = values_at(&at_place(&own_ranges), own);
            let of_others = values_at(&at_place(&other_ranges), others);
            // A guest who comes back again is one of those who are online, and does not raise their number.
            let rises = || {
                values.split_first().is_none_or(|(first, returns)| {
                    returns.iter().all(|it| number(first) < number(it))
                        && returns.is_sorted_by(|one, next| number(one) <= number(next))
                })
            };
            let stays = || values.iter().all(|value| values.first() == Some(value));
            let mut others = of_others.iter().map(|value| values.first() != Some(value));
            let is_of_session = match are_times(&values, now) {
                true => others.any(|is_another| is_another),
                false => others.all(|is_another| is_another),
            };
            match place.kind {
                PlaceKind::Count if !rises() => return SessionNumbers::Some,
                PlaceKind::Number if stays() && is_of_session => found = SessionNumbers::Perhaps,
                _ => {}
            }
        }
        found
    }

    /// The tokens that an answer has: of one of this form by its places, of another by the text around each.
    #[must_use]
    pub fn tokens_of(&self, answer: &[u8]) -> Vec<Option<Vec<u8>>> {
        if let Some(places) = self.find(answer) {
            let mut tokens = vec![None; self.tokens.len()];
            for (place, range) in self.places.iter().zip(places) {
                if let Some(token) = place.token.and_then(|token| tokens.get_mut(token)) {
                    *token = answer.get(range).map(<[u8]>::to_vec);
                }
            }
            return tokens;
        }
        (0..self.tokens.len())
            .map(|number| self.find_token(number, answer))
            .collect()
    }

    /// A token in an answer of another form. Those with the same text before them stand in their order. Where there are more
    /// or fewer of these than the form has, it is the one that alone has the same text farther before it, if there is one.
    fn find_token(&self, number: usize, answer: &[u8]) -> Option<Vec<u8>> {
        let token = self.tokens.get(number)?;
        let found = token.find_all(answer);
        let alike = self
            .tokens
            .iter()
            .filter(|it| it.context() == token.context());
        if found.len() != alike.clone().count() {
            let mut alike = alike.filter(|it| it.farther == token.farther);
            let is_one = alike.next().is_some() && alike.next().is_none();
            return match token.find_all_behind(&token.farther, answer)[..] {
                [found] if is_one => Some(found.to_vec()),
                _ => None,
            };
        }
        found
            .get(self.nth_of_context(number))
            .map(|found| found.to_vec())
    }

    /// Which of the tokens with the same text before them this one is.
    pub(crate) fn nth_of_context(&self, number: usize) -> usize {
        let Some(token) = self.tokens.get(number) else {
            return 0;
        };
        let earlier = self.tokens.iter().take(number);
        earlier.filter(|it| it.context() == token.context()).count()
    }
}

impl Place {
    /// How long what stands here is in `text`, which begins with it.
    fn length(&self, text: &[u8]) -> Option<usize> {
        let length = match &self.kind {
            PlaceKind::Number | PlaceKind::Count => {
                let is_in = |byte: &u8| byte.is_ascii_digit() || is_in_number(*byte);
                let begin = text.iter().take_while(|byte| is_in(byte)).count();
                // A point behind a number ends its sentence, and the letter of an exponent its unit.
                let value = text.get(..begin).unwrap_or_default();
                value.iter().rposition(u8::is_ascii_digit)? + 1
            }
            PlaceKind::Token {
                length: Some(length),
                ..
            } => {
                let value = text.get(..*length)?;
                value
                    .iter()
                    .all(|byte| is_in_token(*byte))
                    .then_some(*length)?
            }
            PlaceKind::Token { length: None, .. } => {
                let is_in = |byte: &u8| is_in_token(*byte) && Some(*byte) != self.next;
                text.iter().take_while(|byte| is_in(byte)).count()
            }
        };
        (length > 0).then_some(length)
    }
}

impl Token {
    /// The text before it.
    pub(crate) fn context(&self) -> &[u8] {
        &self.before
    }

    /// The token at a place of the first answer. `from`: where the place before it ends.
    fn at(first: &[u8], from: usize, range: &Range<usize>, kind: &PlaceKind) -> Token {
        let begin = range.start.saturating_sub(CONTEXT_BEFORE).max(from);
        let before = first.get(begin..range.start).unwrap_or_default();
        // The text of the same tag, where it is in one.
        let tag = before.iter().rposition(|&byte| byte == b'<').unwrap_or(0);
        let tag_at = begin + tag;
        let farther = tag_at.saturating_sub(CONTEXT_FARTHER).max(from);
        Token {
            kind: kind.clone(),
            length: range.len(),
            before: before.get(tag..).unwrap_or_default().to_vec(),
            farther: first.get(farther..tag_at).unwrap_or_default().to_vec(),
            after: first.get(range.end).copied(),
        }
    }

    /// The texts of an answer that stand where this token might, each once, in their order.
    fn find_all<'a>(&self, answer: &'a [u8]) -> Vec<&'a [u8]> {
        self.find_all_behind(b"", answer)
    }

    /// Those of them that stand behind a text.
    fn find_all_behind<'a>(&self, farther: &[u8], answer: &'a [u8]) -> Vec<&'a [u8]> {
        let mut found: Vec<&[u8]> = Vec::new();
        if self.before.len() < 4 {
            return found;
        }
        for at in memchr::memmem::find_iter(answer, &self.before) {
            if !answer.get(..at).is_some_and(|it| it.ends_with(farther)) {
                continue;
            }
            let rest = answer.get(at + self.before.len()..).unwrap_or_default();
            let next = self.after;
            let is_in = |byte: &u8| is_in_token(*byte) && Some(*byte) != next;
            let most = rest.iter().take_while(|byte| is_in(byte)).count();
            let value = rest.get(..most).unwrap_or_default();
            if rest.get(most).copied() == next && self.may_be(value) && !found.contains(&value) {
                found.push(value);
            }
            if found.len() > MAX_TOKENS {
                break;
            }
        }
        found
    }

    /// Does a text look like this token? Names of other fields do not.
    fn may_be(&self, value: &[u8]) -> bool {
        match self.kind {
            PlaceKind::Token {
                length: Some(length),
                ..
            } => value.len() == length,
            PlaceKind::Token {
                length: None,
                alphabet,
            } => is_drawn(value) || alphabet.may_have_drawn(value),
            PlaceKind::Number | PlaceKind::Count => false,
        }
    }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
