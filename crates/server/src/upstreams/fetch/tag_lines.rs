//! Lines of the FastCGI error stream by which an application names tags while it makes a page
//! (`cache_tags ... stderr`). They begin with a mark that is made anew for each request and told to the
//! application alone, so that no text of a visitor that ends up in the error stream can name tags. PHP puts
//! `PHP message: ` before what it writes.

use http_cache::Tags;

/// A line may be as long as all tags of a response together.
const MAX_LINE_BYTES: usize = 1 << 21;

/// Takes the lines with tags out of an error stream.
#[derive(Debug)]
pub struct TagLines {
    mark: Box<[u8]>,
    /// The line that has not ended yet.
    rest: Vec<u8>,
    tags: Tags,
}

impl TagLines {
    pub fn new(mark: &[u8]) -> TagLines {
        TagLines {
            mark: mark.into(),
            rest: Vec::new(),
            tags: Tags::default(),
        }
    }

    /// Reads on; what is left of the text is for the error log.
    pub fn read(&mut self, text: &[u8]) -> Vec<u8> {
        let mut others = Vec::new();
        for piece in text.split_inclusive(|&byte| byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.rest.len() > MAX_LINE_BYTES {
                self.end_line(&mut others);
            }
        }
        others
    }

    /// The stream has ended: what is left for the error log.
    pub fn end(&mut self) -> Vec<u8> {
        let mut others = Vec::new();
        self.end_line(&mut others);
        others
    }

    /// The tags that were named so far.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    fn end_line(&mut self, others: &mut Vec<u8>) {
        let line = std::mem::take(&mut self.rest);
        match memchr::memmem::find(&line, &self.mark) {
            None => others.extend_from_slice(&line),
            Some(at) => {
                let named = line.get(at + self.mark.len()..).unwrap_or_default();
                let tags = named.split(u8::is_ascii_whitespace);
                let is_text = |tag: &&[u8]| !tag.iter().any(u8::is_ascii_control);
                tags.filter(is_text).for_each(|tag| self.tags.add(tag));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_the_mark_are_tags_and_all_others_are_left() {
        let mut lines = TagLines::new(b"k3y");
        let mut others = Vec::new();
        for text in [
            &b"PHP message: k3"[..],
            b"y news:5 list\nPHP Warning: oh ",
            b"no\nother news:6\nk3y user:7\tbad\x01tag\n",
            b"k3y last",
        ] {
            others.extend(lines.read(text));
        }
        others.extend(lines.end());
        assert_eq!(others, b"PHP Warning: oh no\nother news:6\n");
        let tags: Vec<&[u8]> = lines.tags().iter().collect();
        assert_eq!(tags, [&b"news:5"[..], b"list", b"user:7", b"last"]);
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut lines = TagLines::new(b"k3y");
        let text = vec![b'x'; MAX_LINE_BYTES + 1];
        assert_eq!(lines.read(&text).len(), text.len());
    }
}
