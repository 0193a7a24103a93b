//! The texts a configuration was read from, and positions in them.
//!
//! Every file (and the text of `-g`) becomes one source, in the order of first
//! opening, however often it is included. Text that is not UTF-8 is kept
//! lossily: each invalid sequence becomes U+FFFD, and offsets count bytes of
//! the kept text. A [`Span`] made by this crate always lies on character
//! boundaries of its source. Cloning shares the texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The one of the [`Sources`] that a span belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// The number of the source in the order of opening, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A range of bytes in one source; `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub source: SourceId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub(crate) fn new(source: SourceId, start: usize, end: usize) -> Self {
        // Texts are bounded far below 4 GiB (`load::MAX_TOTAL_BYTES`).
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self {
            source,
            start: clamp(start),
            end: clamp(end),
        }
    }

    /// The smallest span that covers both. Spans of different sources have
    /// none; then it is `self`.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        if self.source != other.source {
            return self;
        }
        Self {
            source: self.source,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The origin of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file; `-T` prints it.
    File,
    /// The argument of `-g`, or text made by the program itself.
    Argument,
}

/// One text.
#[derive(Clone, Debug)]
pub struct Source {
    path: Arc<Path>,
    text: Arc<str>,
    origin: Origin,
    /// Offset of the first byte of each line.
    lines: Arc<[u32]>,
    /// Offsets of the U+FFFD that stand for bytes which were not UTF-8.
    replaced: Arc<[u32]>,
}

impl Source {
    /// The path as it was opened (or the name of an [`Origin::Argument`]).
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether bytes in this range of the text were not UTF-8.
    pub(crate) fn has_replacement(&self, range: std::ops::Range<usize>) -> bool {
        let first = self
            .replaced
            .partition_point(|&at| (at as usize) < range.start);
        self.replaced
            .get(first)
            .is_some_and(|&at| (at as usize) < range.end)
    }

    /// Number of the line (from 0) that holds the offset, and its range
    /// without the line end.
    pub(crate) fn line_at(&self, offset: usize) -> (usize, std::ops::Range<usize>) {
        let after = self
            .lines
            .partition_point(|&start| start as usize <= offset);
        let index = after.saturating_sub(1);
        let start = self.lines.get(index).map_or(0, |&at| at as usize);
        let end = self
            .lines
            .get(after)
            .map_or(self.text.len(), |&at| at as usize);
        let line = self.text.get(start..end).unwrap_or_default();
        (
            index,
            start..start + line.trim_end_matches(['\n', '\r']).len(),
        )
    }
}

/// A position as people name it: line and column count from 1, columns in
/// characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'a> {
    pub path: &'a Path,
    pub line: usize,
    pub column: usize,
}

/// All texts of one configuration, in the order they were opened.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    sources: Vec<Source>,
}

impl Sources {
    /// Adds a text. Returns the source that is already there when a file of
    /// this path was added before.
    pub fn add(&mut self, path: &Path, bytes: &[u8], origin: Origin) -> SourceId {
        if let Some(id) = self.find(path, origin) {
            return id;
        }
        let (text, replaced) = decode(bytes);
        let mut lines = vec![0];
        lines.extend(
            text.bytes()
                .zip(1_u32..)
                .filter(|(byte, _)| *byte == b'\n')
                .map(|(_, next)| next),
        );
        let id = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        self.sources.push(Source {
            path: Arc::from(path),
            text: Arc::from(text),
            origin,
            lines: Arc::from(lines),
            replaced: Arc::from(replaced),
        });
        id
    }

    fn find(&self, path: &Path, origin: Origin) -> Option<SourceId> {
        let is_same = |source: &Source| {
            origin == Origin::File && source.origin == origin && source.path() == path
        };
        let index = self.sources.iter().position(is_same)?;
        Some(SourceId(u32::try_from(index).ok()?))
    }

    pub fn source(&self, id: SourceId) -> Option<&Source> {
        self.sources.get(id.index())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter()
    }

    /// Path and text of each file once, as `-T` prints them and as a worker
    /// receives them (see [`crate::MemoryLoader`]).
    pub fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.sources
            .iter()
            .filter(|source| source.origin == Origin::File)
            .map(|source| (source.path(), source.text()))
    }

    /// Returns the position at which the span begins. `None` for a span of
    /// other `Sources`.
    pub fn position(&self, span: Span) -> Option<Position<'_>> {
        let source = self.source(span.source)?;
        let start = (span.start as usize).min(source.text.len());
        let (line, range) = source.line_at(start);
        let before = source.text.get(range.start..start).unwrap_or_default();
        Some(Position {
            path: source.path(),
            line: line + 1,
            column: before.chars().count() + 1,
        })
    }
}

/// The text of the bytes, and where it has U+FFFD for bytes that are not UTF-8.
fn decode(bytes: &[u8]) -> (String, Vec<u32>) {
    let mut text = String::with_capacity(bytes.len());
    let mut replaced = Vec::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            replaced.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    (text, replaced)
}

impl FromIterator<(PathBuf, String)> for Sources {
    fn from_iter<I: IntoIterator<Item = (PathBuf, String)>>(pairs: I) -> Self {
        let mut sources = Self::default();
        for (path, text) in pairs {
            sources.add(&path, text.as_bytes(), Origin::File);
        }
        sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let mut sources = Sources::default();
        let id = sources.add(
            Path::new("x.conf"),
            "a b;\r\nä c;\n".as_bytes(),
            Origin::File,
        );
        let cases = [
            ("start", 0, (1, 1)),
            ("second word", 2, (1, 3)),
            ("start of line two", 6, (2, 1)),
            ("after a two-byte character", 9, (2, 3)),
            ("end of text", 12, (3, 1)),
            ("past the end", 99, (3, 1)),
        ];
        for (name, offset, expected) in cases {
            let position = sources.position(Span::new(id, offset, offset)).unwrap();
            assert_eq!((position.line, position.column), expected, "{name}");
        }
    }

    #[test]
    fn a_file_read_twice_is_one_source() {
        let mut sources = Sources::default();
        let first = sources.add(Path::new("x"), b"a;", Origin::File);
        assert_eq!(sources.add(Path::new("x"), b"a;", Origin::File), first);
        assert_eq!(sources.files().count(), 1);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced_and_remembered() {
        let mut sources = Sources::default();
        let id = sources.add(Path::new("x"), b"a \xff;\xEF\xBF\xBD", Origin::File);
        let source = sources.source(id).unwrap();
        assert_eq!(source.text(), "a \u{fffd};\u{fffd}");
        assert!(source.has_replacement(2..5));
        assert!(!source.has_replacement(6..9), "this one was written so");
    }
}
