//! Messages on the FastCGI error stream by which an application names tags while it makes a page (`cache_tags
//! ... stderr`). The mark is a secret that is made anew for each request and sent to the application alone:
//!
//! ```text
//! MARK news:5 list /MARK
//! ```
//!
//! A mark counts only where a message begins: at the beginning of a line, or behind PHP-FPM's prefix for a
//! message (`PHP message: `, with `; ` if it is not the first of the request; PHP-FPM sends no end of a line).
//! In a dump of the request's parameters, for example, a mark stands elsewhere, and so does the text that a
//! visitor sent behind it. The tags end at `/MARK`, which no text of a visitor can contain, or else at the end
//! of the message: applications without the end mark are understood as well. All other text is for the error
//! log.

use bytes::{Buf, BytesMut};
use http_cache::Tags;
use memchr::memmem;

/// PHP-FPM's prefix for the first message of a request, and for each further one.
const FIRST: &[u8] = b"PHP message: ";
const NEXT: &[u8] = b"; PHP message: ";

/// The end of a message that PHP-FPM has cut (`log_limit`).
const CUT: &[u8] = b"...";

/// A message may be as long as all tags of a response together.
const MAX_MESSAGE_BYTES: usize = 1 << 21;

/// Takes the messages with tags out of an error stream.
#[derive(Debug)]
pub struct TagLines {
    /// `MARK `
    mark: Box<[u8]>,
    /// `; PHP message: MARK `
    next_mark: Box<[u8]>,
    /// `/MARK`
    end_mark: Box<[u8]>,
    /// Received bytes that are not decided yet.
    rest: BytesMut,
    position: Position,
    tags: Tags,
}

/// The position in the stream at which the undecided bytes begin.
#[derive(Clone, Copy, Debug)]
enum Position {
    LineStart,
    WithinLine,
    /// Behind a mark; `searched` bytes do not have the end of the tags.
    WithinTags {
        searched: usize,
    },
}

/// How a list of tags ended.
enum TagsEnd {
    EndMark,
    /// The line ended.
    Line,
    /// PHP-FPM's next message begins, or the stream has ended.
    Message,
}

impl TagLines {
    pub fn new(mark: &[u8]) -> TagLines {
        let mark = [mark, b" "].concat();
        TagLines {
            next_mark: [NEXT, &mark].concat().into(),
            end_mark: [b"/", mark.trim_ascii_end()].concat().into(),
            mark: mark.into(),
            rest: BytesMut::new(),
            position: Position::LineStart,
            tags: Tags::default(),
        }
    }

    /// Reads on; returns the text for the error log.
    pub fn read(&mut self, text: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(text);
        let mut others = Vec::new();
        while self.step(&mut others) {}
        others
    }

    /// The stream has ended: returns the rest for the error log.
    pub fn end(&mut self) -> Vec<u8> {
        if let Position::WithinTags { .. } = self.position {
            self.end_tags(self.rest.len(), TagsEnd::Message);
        }
        self.rest.split().to_vec()
    }

    /// The tags that were named so far.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Decides a part of the received bytes; returns whether there may be more to decide.
    fn step(&mut self, others: &mut Vec<u8>) -> bool {
        match self.position {
            Position::WithinTags { searched } => self.step_in_tags(searched, others),
            Position::LineStart | Position::WithinLine => self.step_in_text(others),
        }
    }

    fn step_in_text(&mut self, others: &mut Vec<u8>) -> bool {
        let starts_line = matches!(self.position, Position::LineStart);
        let found = memmem::find_iter(&self.rest, &self.mark)
            .find_map(|at| Some((self.message_start(at, starts_line)?, at)));
        if let Some((start, at)) = found {
            others.extend_from_slice(&self.rest.split_to(start));
            self.rest.advance(at - start + self.mark.len());
            self.position = Position::WithinTags { searched: 0 };
            return true;
        }
        let decided = self.rest.len() - self.undecided_bytes(starts_line);
        if let Some(last) = decided.checked_sub(1).and_then(|last| self.rest.get(last)) {
            self.position = match last {
                b'\n' => Position::LineStart,
                _ => Position::WithinLine,
            };
        }
        others.extend_from_slice(&self.rest.split_to(decided));
        false
    }

    /// Returns the start of the message whose text begins with the mark at `at`; `None` if no message begins
    /// there.
    fn message_start(&self, at: usize, starts_line: bool) -> Option<usize> {
        let before = self.rest.get(..at)?;
        if before.ends_with(NEXT) {
            return Some(at - NEXT.len());
        }
        let start = before.strip_suffix(FIRST).unwrap_or(before);
        begins_line(start, starts_line).then_some(start.len())
    }

    /// How many bytes at the end may be the beginning of a message with a mark.
    fn undecided_bytes(&self, starts_line: bool) -> usize {
        let longest = self.next_mark.len().min(self.rest.len());
        let is_undecided = |bytes: &usize| {
            let (before, tail) = self.rest.split_at(self.rest.len() - bytes);
            let begins = begins_line(before, starts_line);
            let on_first = self.next_mark.get(b"; ".len()..).unwrap_or_default();
            self.next_mark.starts_with(tail)
                || begins && (on_first.starts_with(tail) || self.mark.starts_with(tail))
        };
        (1..=longest).rev().find(is_undecided).unwrap_or(0)
    }

    fn step_in_tags(&mut self, searched: usize, others: &mut Vec<u8>) -> bool {
        let unsearched = self.rest.get(searched..).unwrap_or_default();
        let end = memchr::memchr3_iter(b'\n', b'/', b';', unsearched)
            .find_map(|at| Some((searched + at, self.tags_end(unsearched.get(at..)?)?)));
        if let Some((at, end)) = end {
            self.end_tags(at, end);
            return true;
        }
        if self.rest.len() > MAX_MESSAGE_BYTES {
            self.tags.note_missing();
            self.position = Position::WithinLine;
            others.extend_from_slice(&self.rest.split());
            return false;
        }
        let longest_end = self.end_mark.len().max(NEXT.len());
        let searched = self.rest.len().saturating_sub(longest_end);
        self.position = Position::WithinTags { searched };
        false
    }

    fn tags_end(&self, text: &[u8]) -> Option<TagsEnd> {
        match text {
            [b'\n', ..] => Some(TagsEnd::Line),
            _ if text.starts_with(&self.end_mark) => Some(TagsEnd::EndMark),
            _ if text.starts_with(NEXT) => Some(TagsEnd::Message),
            _ => None,
        }
    }

    /// Adds the tags, which are all bytes before `at`. If PHP-FPM has cut the message, the page has tags that
    /// are not known.
    fn end_tags(&mut self, at: usize, end: TagsEnd) {
        let named = self.rest.split_to(at).freeze();
        let is_text = |tag: &&[u8]| !tag.iter().any(u8::is_ascii_control);
        let tags = named.split(u8::is_ascii_whitespace).filter(is_text);
        tags.for_each(|tag| self.tags.add(tag));
        let (ending, position) = match end {
            TagsEnd::EndMark => (self.end_mark.len(), Position::WithinLine),
            TagsEnd::Line => (1, Position::LineStart),
            TagsEnd::Message => (0, Position::WithinLine),
        };
        if !matches!(end, TagsEnd::EndMark) && named.trim_ascii_end().ends_with(CUT) {
            self.tags.note_missing();
        }
        self.rest.advance(ending);
        self.position = position;
    }
}

/// Whether the text behind `before` is at the beginning of a line.
fn begins_line(before: &[u8], starts_line: bool) -> bool {
    before.last().map_or(starts_line, |byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text for the log and the tags. Reads the text in one piece and byte by byte, and asserts
    /// equal results.
    fn read(text: &str) -> (String, Vec<String>, bool) {
        let in_pieces_of = |bytes: usize| {
            let mut lines = TagLines::new(b"k3y");
            let pieces = text.as_bytes().chunks(bytes);
            let mut others: Vec<u8> = pieces.flat_map(|piece| lines.read(piece)).collect();
            others.extend(lines.end());
            let tags = lines.tags().iter();
            let tags = tags.map(|tag| String::from_utf8_lossy(tag).into_owned());
            let others = String::from_utf8(others).unwrap();
            (others, tags.collect(), lines.tags().checked().is_ok())
        };
        let whole = in_pieces_of(text.len().max(1));
        for bytes in [1, 2, 3, 7, 20] {
            assert_eq!(in_pieces_of(bytes), whole, "{text:?} in pieces of {bytes}");
        }
        whole
    }

    /// The error stream of Debian's PHP-FPM 8.2 for `error_log("k3y news:5 news:6"); error_log("k3y news:7
    /// /k3y"); error_log("login failed for bob vict:1
    /// and k3y vict:2"); trigger_error("oh no");`, with and without `catch_workers_output`; `error_log` in
    /// php.ini names no file, or one that cannot be written.
    const FROM_PHP_FPM: &str = "PHP message: k3y news:5 news:6; PHP message: k3y news:7 /k3y; \
        PHP message: login failed for bob vict:1\nand k3y vict:2; \
        PHP message: PHP Warning:  oh no in /tmp/x.php on line 1";

    /// The bytes sent, the expected error log, and the expected tags.
    const STREAMS: &[(&str, &str, &[&str])] = &[
        ("k3y news:5 list /k3y\n", "\n", &["news:5", "list"]),
        (
            FROM_PHP_FPM,
            "; PHP message: login failed for bob vict:1\nand k3y vict:2; \
             PHP message: PHP Warning:  oh no in /tmp/x.php on line 1",
            &["news:5", "news:6", "news:7"],
        ),
        (
            "PHP message: k3y news:5 /k3y; PHP message: k3y news:6 news:7 /k3y; PHP message: oh no",
            "; PHP message: oh no",
            &["news:5", "news:6", "news:7"],
        ),
        // Without the mark of the end.
        (
            "PHP message: k3y news:5 news:6; PHP message: k3y news:7",
            "",
            &["news:5", "news:6", "news:7"],
        ),
        (
            "PHP message: k3y news:5\nPHP message: no\nk3y news:6\tb\x01ad\r\n",
            "PHP message: no\n",
            &["news:5", "news:6"],
        ),
        (
            "PHP message: k3y news:5; PHP message: login failed for bob vict:1",
            "; PHP message: login failed for bob vict:1",
            &["news:5"],
        ),
        // Text behind the end mark is no tag, whatever wrote it.
        ("k3y news:5 /k3y vict:1\n", " vict:1\n", &["news:5"]),
        // A message with other text before the mark is a dump of it.
        (
            "PHP message: [MAYFLY_TAG_MARK] => k3y vict:1\n [agent] => k3y vict:2 /k3y",
            "PHP message: [MAYFLY_TAG_MARK] => k3y vict:1\n [agent] => k3y vict:2 /k3y",
            &[],
        ),
        (
            "a PHP message: k3y vict:1\n; PHP message: k3y news:1",
            "a PHP message: k3y vict:1\n",
            &["news:1"],
        ),
        // The beginning of a mark that is not completed.
        ("PHP message: k3", "PHP message: k3", &[]),
        ("PHP mess\nk3yvict:1\n", "PHP mess\nk3yvict:1\n", &[]),
        ("k3y\n; PHP message: no", "k3y\n; PHP message: no", &[]),
        // A tag may have the bytes that messages are joined by, but for their spaces.
        ("k3y a;PHP b; /k3y", "", &["a;PHP", "b;"]),
    ];

    #[test]
    fn messages_that_begin_with_the_mark_are_tags_and_all_others_are_left() {
        for (text, others, tags) in STREAMS {
            let read = read(text);
            assert_eq!((read.0.as_str(), read.2), (*others, true), "{text:?}");
            assert_eq!(read.1, *tags, "{text:?}");
        }
    }

    #[test]
    fn a_message_that_php_has_cut_leaves_tags_missing() {
        for text in [
            "PHP message: k3y news:5 news:...",
            "PHP message: k3y news:5 /k...; PHP message: bob vict:1 /k4y",
            "k3y news:5 n...\n",
        ] {
            let (_, tags, is_complete) = read(text);
            assert!(!is_complete, "{text:?}");
            assert!(!tags.contains(&"vict:1".to_owned()), "{tags:?}");
        }
        assert!(read("PHP message: k3y and... /k3y").2);
    }

    #[test]
    fn text_of_others_is_not_held_back() {
        let mut lines = TagLines::new(b"k3y");
        assert_eq!(lines.read(b"PHP message: one; PHP m"), b"PHP message: one");
        assert_eq!(lines.read(b"essage: two"), b"; PHP message: two");
        assert_eq!(lines.end(), b"");
    }

    #[test]
    fn a_message_without_end_is_bounded() {
        let mut lines = TagLines::new(b"k3y");
        assert_eq!(lines.read(b"k3y "), b"");
        let text = vec![b'x'; MAX_MESSAGE_BYTES + 1];
        assert_eq!(lines.read(&text).len(), text.len());
        assert!(lines.tags().checked().is_err());
    }
}
