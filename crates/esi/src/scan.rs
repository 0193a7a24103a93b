//! Finds the tags of a page.

use std::ops::Range;

use memchr::{memchr, memmem};

/// Longer than any tag that is meant; more is text that only looks like one.
pub const MAX_TAG_BYTES: usize = 16 * 1024;

const START: &[u8] = b"<esi:";
const END_START: &[u8] = b"</esi:";
const MARKUP: &[u8] = b"<!--esi";
const MARKUP_END: &[u8] = b"-->";

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagSearch {
    /// A tag, from its first byte to behind its last.
    Tag(Range<usize>),
    /// No whole tag. The number is the length of the text before a possible beginning of one, or
    /// of all that was searched.
    None(usize),
}

/// The state of the page's markup before this part, as its tags set it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MarkupState {
    /// `<!--esi` is open: its `-->` is a tag too.
    markup: bool,
}

/// Finds the first tag in `bytes`: `<esi:NAME ...>`, `</esi:NAME>`, `<!--esi`, and `-->` where
/// that is open.
///
/// A tag longer than [`MAX_TAG_BYTES`] without an end is text.
#[must_use]
pub fn find_tag(bytes: &[u8], inside: &mut MarkupState) -> TagSearch {
    let mut at = 0;
    loop {
        let end_of_markup = match inside.markup {
            true => memmem::find(&bytes[at..], MARKUP_END).map(|found| at + found),
            false => None,
        };
        let before = end_of_markup.unwrap_or(bytes.len());
        let Some(found) = memchr(b'<', &bytes[at..before]) else {
            return match end_of_markup {
                Some(start) => {
                    inside.markup = false;
                    TagSearch::Tag(start..start + MARKUP_END.len())
                }
                None => TagSearch::None(bytes.len() - tail(&bytes[at..], *inside)),
            };
        };
        let start = at + found;
        match tag_at(&bytes[start..], inside) {
            TagStart::Tag(length) => return TagSearch::Tag(start..start + length),
            TagStart::Text => at = start + 1,
            TagStart::Unknown => return TagSearch::None(start),
        }
    }
}

/// Returns how many bytes at the end may begin the `-->` that is waited for.
fn tail(bytes: &[u8], inside: MarkupState) -> usize {
    let lengths = (1..MARKUP_END.len()).rev();
    let mut ends = lengths.filter(|&length| bytes.ends_with(&MARKUP_END[..length]));
    match inside.markup {
        true => ends.next().unwrap_or(0),
        false => 0,
    }
}

enum TagStart {
    /// A tag of this length.
    Tag(usize),
    Text,
    /// More bytes are needed to know.
    Unknown,
}

/// Recognizes the tag that a `<` begins.
fn tag_at(bytes: &[u8], inside: &mut MarkupState) -> TagStart {
    for start in [START, END_START] {
        if bytes.starts_with(start) {
            return match end_of_tag(bytes) {
                Some(length) => TagStart::Tag(length),
                None if bytes.len() > MAX_TAG_BYTES => TagStart::Text,
                None => TagStart::Unknown,
            };
        }
    }
    if bytes.starts_with(MARKUP) {
        return match bytes.get(MARKUP.len()) {
            None => TagStart::Unknown,
            Some(byte) if byte.is_ascii_whitespace() || *byte == b'<' => {
                inside.markup = true;
                TagStart::Tag(MARKUP.len())
            }
            Some(_) => TagStart::Text,
        };
    }
    let may_become = |start: &[u8]| start.starts_with(bytes);
    match [START, END_START, MARKUP].into_iter().any(may_become) {
        true => TagStart::Unknown,
        false => TagStart::Text,
    }
}

/// Returns the position behind the `>` that stands outside of quotes.
fn end_of_tag(bytes: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (at, &byte) in bytes.iter().enumerate().take(MAX_TAG_BYTES) {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return Some(at + 1),
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The page in text and `[tags]`, read in pieces of `cut` bytes as a reader does.
    fn shown(page: &[u8], cut: usize) -> String {
        let (mut shown, mut held) = (Vec::new(), Vec::new());
        let mut inside = MarkupState::default();
        for piece in page.chunks(cut.max(1)) {
            held.extend_from_slice(piece);
            loop {
                match find_tag(&held, &mut inside) {
                    TagSearch::Tag(range) => {
                        shown.extend_from_slice(&held[..range.start]);
                        shown.push(b'[');
                        shown.extend_from_slice(&held[range.clone()]);
                        shown.push(b']');
                        held.drain(..range.end);
                    }
                    TagSearch::None(kept) => {
                        shown.extend(held.drain(..kept));
                        break;
                    }
                }
            }
        }
        shown.extend_from_slice(&held);
        String::from_utf8_lossy(&shown).into_owned()
    }

    #[test]
    fn tags_are_found_however_the_page_is_cut() {
        let cases = [
            ("plain <b>text</b> --> here", "plain <b>text</b> --> here"),
            ("a<esi:include src='/x'/>b", "a[<esi:include src='/x'/>]b"),
            (
                "<esi:remove>x</esi:remove>",
                "[<esi:remove>]x[</esi:remove>]",
            ),
            (
                "<esi:when test=\"$(A)>'1'\">y",
                "[<esi:when test=\"$(A)>'1'\">]y",
            ),
            (
                "<!--esi <esi:vars>q</esi:vars> -->z-->",
                "[<!--esi] [<esi:vars>]q[</esi:vars>] [-->]z-->",
            ),
            ("<!--esi-note -->", "<!--esi-note -->"),
            ("<!-- esi --><!--x-->", "<!-- esi --><!--x-->"),
            ("<!--esi a - -- b -->", "[<!--esi] a - -- b [-->]"),
            ("x<esi:include src='/", "x<esi:include src='/"),
            ("<<esi:x/>", "<[<esi:x/>]"),
        ];
        for (page, wanted) in cases {
            for cut in 1..=page.len() {
                assert_eq!(shown(page.as_bytes(), cut), wanted, "{page} cut at {cut}");
            }
        }
    }

    #[test]
    fn what_never_ends_is_text() {
        let mut page = b"<esi:include src='".to_vec();
        page.resize(MAX_TAG_BYTES + 100, b'x');
        page.extend_from_slice(b"<esi:vars>");
        let found = find_tag(&page, &mut MarkupState::default());
        let start = MAX_TAG_BYTES + 100;
        assert_eq!(found, TagSearch::Tag(start..page.len()));
    }

    proptest! {
        #[test]
        fn how_a_page_is_cut_makes_no_difference(
            parts in prop::collection::vec(
                prop::sample::select(vec!["<", "esi:", "</", "!--esi", " ", "-", "->", ">", "\"", "'", "x"]),
                0..40,
            ),
            cut in 1usize..9,
        ) {
            let page = parts.concat();
            prop_assert_eq!(shown(page.as_bytes(), cut), shown(page.as_bytes(), page.len()));
        }
    }
}
