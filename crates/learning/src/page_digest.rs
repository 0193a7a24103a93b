//! The digest by which two runs of PHP for a page are compared.
//!
//! What a run says of itself is left out: it is another each time, and says nothing of the page's data.
//!
//! - comments, but for those that a server or a browser reads;
//! - the number of the request, which the response has in a field as well (`X-Request-Id`);
//! - how long it took: a number with a unit of seconds (`0.034 seconds`), and in scripts one whose name says so
//!   (`"wgBackendResponseTime":98`);
//! - the report of MediaWiki's parser, which a script has.
//!
//! Only text and scripts of HTML that is not compressed are read so. Of everything else each byte counts.

use memchr::{memchr_iter, memmem};

use crate::digest::Digest;

/// A longer line is read in parts.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A shorter number of a request may stand in the page by chance. A longer one is looked for slowly.
const REQUEST_NUMBER_BYTES: std::ops::RangeInclusive<usize> = 8..=128;

/// Fields of a response that have the number of the request, lower case.
const REQUEST_NUMBERS: [&[u8]; 4] = [
    b"x-request-id",
    b"request-id",
    b"x-correlation-id",
    b"x-trace-id",
];

/// What follows `<!--` in comments that are read, by a server (SSI, ESI) or by a browser (conditions), and in those that end
/// there (`<!-->`).
const READ_COMMENTS: [&[u8]; 6] = [b"#", b"esi", b"[if", b"<![", b">", b"->"];

/// Elements whose text is no HTML: `<!--` begins no comment there.
const ELEMENTS_OF_TEXT: [&[u8]; 4] = [b"style", b"textarea", b"title", b"xmp"];

/// Units of seconds behind a time with decimals, as many languages have them.
#[rustfmt::skip]
const SECONDS: [&str; 21] = [
    "milliseconds", "ms", "s", "sec", "second", "seconde", "secondes", "secondi", "secondo", "seconds", "secs",
    "segundo", "segundos", "sekund", "sekunde", "sekunden", "sekunder", "сек", "секунд", "секунды", "秒",
];

/// Ends of names in scripts that say how long a part of the run took, lower case.
const TIMES_OF_RUN: [&[u8]; 7] = [
    b"responsetime",
    b"cputime",
    b"walltime",
    b"rendertime",
    b"generationtime",
    b"executiontime",
    b"loadtime",
];

/// Begins a report of the run, up to the end of the script: MediaWiki's of its parser, with times and shares of them.
const REPORT: &[u8] = b"\"wgPageParseReport\":";

/// Stands for what is left out. No text has it.
const LEFT_OUT: &[u8] = b"\0";

/// Reads a page, piece by piece.
#[derive(Default)]
pub struct PageDigest {
    digest: Digest,
    html: Option<Html>,
}

/// HTML, read line by line.
#[derive(Default)]
struct Html {
    line: Vec<u8>,
    within: HtmlPart,
    request_number: Option<Vec<u8>>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum HtmlPart {
    #[default]
    Text,
    Comment,
    Script,
    /// The rest of a script.
    Report,
    /// The text of such an element.
    Element(&'static [u8]),
}

impl PageDigest {
    /// Reads the status and the fields of a response, of which where a redirect leads counts.
    pub fn read_head<'f>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) {
        let named = |wanted: &[u8]| {
            let mut fields = fields.clone();
            fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        self.digest.read(&status.to_be_bytes());
        let location = named(b"location");
        self.digest.read(location.map_or(b"", |(_, value)| value));
        let is_html = named(b"content-type").is_some_and(|(_, kind)| is_html(kind));
        self.html = (is_html && named(b"content-encoding").is_none()).then(|| {
            let mut numbers = REQUEST_NUMBERS.iter().filter_map(|name| named(name));
            let number = numbers.find(|(_, value)| is_request_number(value));
            Html {
                request_number: number.map(|(_, value)| value.to_vec()),
                ..Html::default()
            }
        });
    }

    /// Reads more of the body.
    pub fn read(&mut self, bytes: &[u8]) {
        match &mut self.html {
            Some(html) => html.read(bytes, &mut self.digest),
            None => self.digest.read(bytes),
        }
    }

    #[must_use]
    pub fn finish(&mut self) -> u64 {
        if let Some(html) = &mut self.html {
            html.read_line(html.line.len(), &mut self.digest);
        }
        self.digest.finish()
    }
}

fn is_html(kind: &[u8]) -> bool {
    let kinds: [&[u8]; 2] = [b"text/html", b"application/xhtml+xml"];
    kinds.iter().any(|it| starts_with(kind, it))
}

impl Html {
    fn read(&mut self, bytes: &[u8], digest: &mut Digest) {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let mut rest = line;
            while !rest.is_empty() {
                let room = MAX_LINE_BYTES - self.line.len();
                let (now, later) = rest.split_at(room.min(rest.len()));
                self.line.extend_from_slice(now);
                rest = later;
                if now.ends_with(b"\n") {
                    self.read_line(self.line.len(), digest);
                } else if self.line.len() == MAX_LINE_BYTES {
                    // No tag is cut, and no word.
                    let is_joint = |byte: &u8| matches!(byte, b'<' | b' ');
                    let joint = self.line.iter().rposition(is_joint).filter(|&at| at > 0);
                    self.read_line(joint.unwrap_or(MAX_LINE_BYTES), digest);
                }
            }
        }
    }

    /// Reads the first bytes of the line, and leaves the others in it.
    fn read_line(&mut self, bytes: usize, digest: &mut Digest) {
        let mut line = std::mem::take(&mut self.line);
        let (mut rest, _) = line.split_at(bytes);
        while !rest.is_empty() {
            let (read, next) = self.next_part(rest);
            let (part, behind) = rest.split_at(read);
            match self.within {
                HtmlPart::Text | HtmlPart::Script => self.count(part, digest),
                HtmlPart::Element(_) => digest.read(part),
                HtmlPart::Comment | HtmlPart::Report => {}
            }
            (self.within, rest) = (next, behind);
        }
        line.drain(..bytes);
        self.line = line;
    }

    /// Returns how many bytes belong to what is read now, and what follows them.
    fn next_part(&self, rest: &[u8]) -> (usize, HtmlPart) {
        let (end, next) = match self.within {
            HtmlPart::Comment => (find_comment_end(rest), HtmlPart::Text),
            HtmlPart::Report => (find_end_tag(rest, b"script"), HtmlPart::Text),
            HtmlPart::Element(name) => (find_end_tag(rest, name), HtmlPart::Text),
            HtmlPart::Script => {
                let end = find_end_tag(rest, b"script").unwrap_or(rest.len());
                let script = rest.get(..end).unwrap_or_default();
                match memmem::find(script, REPORT) {
                    Some(report) => (Some(report), HtmlPart::Report),
                    None => (Some(end).filter(|&end| end < rest.len()), HtmlPart::Text),
                }
            }
            HtmlPart::Text => match find_opening(rest) {
                Some((at, opened)) => (Some(at), opened),
                None => (None, HtmlPart::Text),
            },
        };
        end.map_or((rest.len(), self.within), |end| (end, next))
    }

    /// Reads text or a script but for what a run says of itself.
    fn count(&self, part: &[u8], digest: &mut Digest) {
        let Some(number) = &self.request_number else {
            return self.count_but_times(part, digest);
        };
        let mut rest = part;
        while let Some(at) = memmem::find(rest, number) {
            let (before, from) = rest.split_at(at);
            self.count_but_times(before, digest);
            digest.read(LEFT_OUT);
            rest = from.get(number.len()..).unwrap_or_default();
        }
        self.count_but_times(rest, digest);
    }

    fn count_but_times(&self, part: &[u8], digest: &mut Digest) {
        let mut rest = part;
        while let Some(at) = rest.iter().position(u8::is_ascii_digit) {
            let (before, from) = rest.split_at(at);
            let number = Number::at_start_of(from);
            let (digits, behind) = from.split_at(number.bytes);
            digest.read(before);
            let is_time = number.has_decimals && is_unit_of_seconds(behind)
                || self.within == HtmlPart::Script && ends_in_time_of_run(before);
            digest.read(if is_time { LEFT_OUT } else { digits });
            rest = behind;
        }
        digest.read(rest);
    }
}

/// A number, as a text begins with it.
struct Number {
    bytes: usize,
    /// It has two or more.
    has_decimals: bool,
}

impl Number {
    fn at_start_of(text: &[u8]) -> Number {
        let digits = |text: &[u8]| text.iter().take_while(|it| it.is_ascii_digit()).count();
        let (whole, behind) = text.split_at(digits(text));
        let decimals = match behind {
            [b'.' | b',', behind @ ..] => digits(behind),
            _ => 0,
        };
        Number {
            bytes: whole.len() + if decimals > 0 { 1 + decimals } else { 0 },
            has_decimals: decimals >= 2,
        }
    }
}

/// Returns where a part begins that is read otherwise than text: behind the bytes that open it.
fn find_opening(text: &[u8]) -> Option<(usize, HtmlPart)> {
    memchr_iter(b'<', text).find_map(|at| {
        let tag = text.get(at + 1..)?;
        if starts_with(tag, b"script") {
            return Some((at + 1 + b"script".len(), HtmlPart::Script));
        }
        let mut elements = ELEMENTS_OF_TEXT.iter();
        if let Some(name) = elements.find(|name| starts_with(tag, name)) {
            return Some((at + 1 + name.len(), HtmlPart::Element(name)));
        }
        let comment = tag.strip_prefix(b"!--")?;
        let is_read = READ_COMMENTS.iter().any(|it| starts_with(comment, it));
        (!is_read).then_some((at + b"<!--".len(), HtmlPart::Comment))
    })
}

fn find_comment_end(comment: &[u8]) -> Option<usize> {
    let mut ends = memmem::find_iter(comment, b"--");
    ends.find(|&at| {
        let end = comment.get(at + 2..).unwrap_or_default();
        end.starts_with(b">") || end.starts_with(b"!>") || end.starts_with(b"->")
    })
}

fn find_end_tag(text: &[u8], name: &[u8]) -> Option<usize> {
    let mut tags = memchr_iter(b'<', text);
    tags.find(|&at| {
        let tag = text.get(at + 1..).and_then(|tag| tag.strip_prefix(b"/"));
        tag.is_some_and(|tag| starts_with(tag, name))
    })
}

fn is_request_number(value: &[u8]) -> bool {
    let is_of_number = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
    REQUEST_NUMBER_BYTES.contains(&value.len()) && value.iter().all(is_of_number)
}

/// Does the text begin so, in upper or lower case?
fn starts_with(text: &[u8], begin: &[u8]) -> bool {
    let head = text.get(..begin.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(begin))
}

fn is_unit_of_seconds(mut text: &[u8]) -> bool {
    for space in [&b"&nbsp;"[..], b"\xc2\xa0", b" "] {
        text = text.strip_prefix(space).unwrap_or(text);
    }
    let is_of_word = |byte: &&u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let (word, _) = text.split_at(text.iter().take_while(is_of_word).count());
    let mut units = SECONDS.iter().map(|it| it.as_bytes());
    // A capital S is a size.
    units.any(|it| word == it || it.len() > 2 && word.eq_ignore_ascii_case(it))
}

/// Is the next value of the script named so?
fn ends_in_time_of_run(script: &[u8]) -> bool {
    let is_between = |byte: &u8| b" \"':=".contains(byte);
    let Some(end) = script.iter().rposition(|byte| !is_between(byte)) else {
        return false;
    };
    let (name, between) = script.split_at(end + 1);
    let has_value = between.iter().any(|byte| b":=".contains(byte));
    has_value && TIMES_OF_RUN.iter().any(|it| ends_with(name, it))
}

fn ends_with(text: &[u8], end: &[u8]) -> bool {
    let begin = text.len().checked_sub(end.len());
    let tail = begin.and_then(|begin| text.get(begin..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTML: (&str, &str) = ("Content-Type", "text/html; charset=UTF-8");

    fn digest(fields: &[(&str, &str)], pieces: &[&str]) -> u64 {
        let mut digest = PageDigest::default();
        let fields = fields.iter();
        digest.read_head(
            200,
            fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())),
        );
        pieces.iter().for_each(|it| digest.read(it.as_bytes()));
        digest.finish()
    }

    fn are_same(one: &str, other: &str) -> bool {
        let [one, other] = [one, other].map(|page| digest(&[HTML], &[page]));
        one == other
    }

    #[test]
    fn what_a_run_says_of_itself_is_left_out() {
        for (one, other) in [
            ("a<!-- 3 queries\n0.1 s\nx -->b", "a<!-- 4 queries -->b"),
            ("<p>Made in 0.034 seconds.", "<p>Made in 12.5512 seconds."),
            ("0.034s", "0.0299s"),
            ("in 0,03 Sekunden", "in 1,27 Sekunden"),
            ("in 0.03&nbsp;s, ", "in 0.04&nbsp;s, "),
            ("0.034 сек", "0.035 сек"),
            (
                "<script>a={\"wgBackendResponseTime\":98}",
                "<script>a={\"wgBackendResponseTime\":102}",
            ),
            (
                "<script>f({\"wgPageParseReport\":{\"a\":[\"70% 3\"]}})</script>b",
                "<script>f({\"wgPageParseReport\":{\"a\":[\"71% 4\",\n\"2%\"]}})</script>b",
            ),
            ("<SCRIPT>loadTime = '0.5'", "<SCRIPT>loadTime = '7'"),
        ] {
            assert!(are_same(one, other), "{one}");
        }
    }

    #[test]
    fn what_a_visitor_may_see_counts() {
        for (one, other) in [
            ("12 comments", "13 comments"),
            ("12.50 EUR", "12.90 EUR"),
            ("12.50 SEK", "12.90 SEK"),
            ("1.234 seguidores", "1.235 seguidores"),
            ("33.87 S", "33.88 S"),
            (
                "<!--[if !IE]><!-->5<!--<![endif]-->",
                "<!--[if !IE]><!-->6<!--<![endif]-->",
            ),
            ("<!-->5<!-- a -->", "<!-->6<!-- a -->"),
            ("<!-- a --!>5", "<!-- a --!>6"),
            (
                "<style><!-- a { b: 5 } --></style>",
                "<style><!-- a { b: 6 } --></style>",
            ),
            (
                "<textarea><!--5--></textarea>",
                "<textarea><!--6--></textarea>",
            ),
            ("3 seconds left", "2 seconds left"),
            ("0.034", "0.035"),
            ("loadTime = 5", "loadTime = 6"),
            ("<script>n = 5", "<script>n = 6"),
            ("<script>time = 5", "<script>time = 6"),
            (
                "<script></script>loadTime = 5",
                "<script></script>loadTime = 6",
            ),
            ("<!-- a -->5", "<!-- a -->6"),
            ("<!-- a -->", "<!-- a"),
            ("<!--# include file=a -->", "<!--# include file=b -->"),
            ("<!--esi 5-->", "<!--esi 6-->"),
            ("<!--[if IE]>5<![endif]-->", "<!--[if IE]>6<![endif]-->"),
            ("<script>'<!--';n=5", "<script>'<!--';n=6"),
            ("made in 0.034 seconds", "made in seconds"),
        ] {
            assert!(!are_same(one, other), "{one}");
        }
    }

    #[test]
    fn the_number_of_the_request_is_left_out_where_the_response_names_it() {
        let page = |number: &str, named: &str| {
            let body =
                format!("<script>{{\"wgRequestId\":\"{number}\",\"a\":1}}</script><i id={number}>");
            digest(&[HTML, ("X-Request-Id", named)], &[&body])
        };
        assert_eq!(
            page("d2c5f1a09b", "d2c5f1a09b"),
            page("0123456789", "0123456789")
        );
        assert_ne!(
            page("d2c5f1a09b", "another-one"),
            page("0123456789", "another-one")
        );
        for (one, other) in [("1234567", "7654321"), ("a b c d e f", "f e d c b a")] {
            assert_ne!(page(one, one), page(other, other), "{one}");
        }
    }

    #[test]
    fn a_page_has_one_digest_however_it_arrives() {
        let page = "<p>0.034 seconds\n<!-- a\nb --><script>loadTime=3</script>\n".repeat(3) + "end";
        let whole = digest(&[HTML], &[&page]);
        for size in 1..9 {
            let pieces = page.as_bytes().chunks(size);
            let pieces: Vec<&str> = pieces.map(|it| std::str::from_utf8(it).unwrap()).collect();
            assert_eq!(digest(&[HTML], &pieces), whole, "{size}");
        }
        let long = "<i>0.034 s</i>".repeat(MAX_LINE_BYTES / 7);
        let other = "<i>1.50 s</i>".repeat(MAX_LINE_BYTES / 7);
        assert!(are_same(&long, &other), "no tag is cut");
        for (line, end) in [("x".repeat(3 * MAX_LINE_BYTES), "\n"), (long, "")] {
            let page = format!("{line}{end}");
            let half = page.len() / 2;
            let pieces = [&page[..half], &page[half..]];
            assert_eq!(digest(&[HTML], &[&page]), digest(&[HTML], &pieces));
        }
    }

    #[test]
    fn each_byte_of_other_content_counts_and_so_do_status_and_target() {
        for fields in [
            &[("Content-Type", "text/css")][..],
            &[HTML, ("Content-Encoding", "gzip")],
            &[],
        ] {
            assert_ne!(
                digest(fields, &["<!-- 1 -->"]),
                digest(fields, &["<!-- 2 -->"])
            );
        }
        let to = |target| digest(&[HTML, ("Location", target)], &[]);
        assert_ne!(to("/a"), to("/b"));
        // A page in which nothing is left out has the digest of its bytes, as on disks.
        let mut bytes = Digest::default();
        bytes.read(&200_u16.to_be_bytes());
        bytes.read(b"<p>12 comments</p>");
        assert_eq!(digest(&[HTML], &["<p>12 comments</p>"]), bytes.finish());
    }
}
