//! One answer of the application, as far as two of them are compared.
//!
//! ```text
//! Renderer ── read(status, fields), read(body) ─► Rendering: a digest, and the parts of the page
//! ```
//!
//! The digest shows whether two answers are the same. The parts (text up to the next `<` or line end) show,
//! for answers that differ each time, whether they also differ in the parts that stay.

use std::hash::Hasher;

use twox_hash::{XxHash3_64, XxHash64};

/// Parts of one page that are kept; the digest counts all of them.
const MAX_PARTS: usize = 50_000;
/// A longer part is cut: a picture has no `<`.
const MAX_PART_BYTES: usize = 4096;

/// An answer, read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendering {
    pub status: u16,
    pub digest: u64,
    /// Hashes of the parts, sorted, each once; empty if they were not asked for.
    parts: Vec<u64>,
}

impl Rendering {
    /// Stands for an answer that may not be stored.
    pub(crate) fn refused() -> Rendering {
        Rendering {
            status: 0,
            digest: 0,
            parts: Vec::new(),
        }
    }
}

/// Reads an answer.
pub struct Renderer {
    status: u16,
    whole: XxHash3_64,
    parts: Option<Parts>,
}

struct Parts {
    found: Vec<u64>,
    open: XxHash64,
    open_bytes: usize,
}

/// Fields of a response that belong to the page, lower case. Others are about the moment or the transfer.
const OF_PAGE: [&str; 7] = [
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "link",
    "location",
    "refresh",
];

impl Renderer {
    /// A reader of an answer with this status and these fields.
    pub fn new<'f>(
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        wants_parts: bool,
    ) -> Renderer {
        let mut counted: Vec<(usize, &[u8])> = fields
            .filter_map(|(name, value)| {
                let mut names = OF_PAGE.iter();
                let at = names.position(|it| name.eq_ignore_ascii_case(it.as_bytes()))?;
                Some((at, value.trim_ascii()))
            })
            .collect();
        // Values of one name stay in their order.
        counted.sort_by_key(|(at, _)| *at);
        let mut whole = XxHash3_64::with_seed(0);
        whole.write(&status.to_be_bytes());
        for (at, value) in counted {
            whole.write(&[0, at as u8]);
            whole.write(value);
        }
        whole.write(&[0, u8::MAX]);
        Renderer {
            status,
            whole,
            parts: wants_parts.then(Parts::new),
        }
    }

    /// Reads more of the body.
    pub fn read(&mut self, bytes: &[u8]) {
        self.whole.write(bytes);
        if let Some(parts) = &mut self.parts {
            parts.read(bytes);
        }
    }

    #[must_use]
    pub fn finish(self) -> Rendering {
        let digest = self.whole.finish();
        let mut parts = self.parts.map_or_else(Vec::new, Parts::finish);
        parts.sort_unstable();
        parts.dedup();
        Rendering {
            status: self.status,
            digest,
            parts,
        }
    }
}

impl Parts {
    fn new() -> Parts {
        Parts {
            found: Vec::new(),
            open: XxHash64::with_seed(0),
            open_bytes: 0,
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let mut rest = piece;
            // A part begins with its `<`.
            while let Some(at) = rest.iter().position(|&byte| byte == b'<') {
                let (before, tag) = rest.split_at(at);
                self.add(before);
                self.end();
                self.add(&tag[..1]);
                rest = &tag[1..];
            }
            self.add(rest);
            if piece.ends_with(b"\n") {
                self.end();
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = MAX_PART_BYTES - self.open_bytes;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.open.write(now);
            self.open_bytes += now.len();
            if self.open_bytes == MAX_PART_BYTES {
                self.end();
            }
            rest = later;
        }
    }

    fn end(&mut self) {
        let open = std::mem::replace(&mut self.open, XxHash64::with_seed(0));
        if std::mem::take(&mut self.open_bytes) > 0 && self.found.len() < MAX_PARTS {
            self.found.push(open.finish());
        }
    }

    fn finish(mut self) -> Vec<u64> {
        self.end();
        self.found
    }
}

/// Do answers of one kind have something in each of them that no answer of the other kind has? Both were
/// given parts. A part that differs from answer to answer (a time, a random number) is in no two of them.
#[must_use]
pub fn differ_in_what_stays(one: &[Rendering], other: &[Rendering]) -> bool {
    let statuses = |of: &[Rendering]| of.iter().map(|it| it.status).collect::<Vec<_>>();
    if statuses(one)
        .iter()
        .any(|status| !statuses(other).contains(status))
    {
        return true;
    }
    has_own_part(one, other) || has_own_part(other, one)
}

fn has_own_part(one: &[Rendering], other: &[Rendering]) -> bool {
    let Some((first, rest)) = one.split_first() else {
        return false;
    };
    let is_in = |part: &u64, page: &Rendering| page.parts.binary_search(part).is_ok();
    first.parts.iter().any(|part| {
        rest.iter().all(|page| is_in(part, page)) && !other.iter().any(|page| is_in(part, page))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(status: u16, fields: &[(&str, &str)], body: &[&str]) -> Rendering {
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut renderer = Renderer::new(status, fields, true);
        for piece in body {
            renderer.read(piece.as_bytes());
        }
        renderer.finish()
    }

    #[test]
    fn a_digest_is_of_status_fields_of_the_page_and_body_however_they_arrive() {
        let page = rendered(200, &[("Content-Type", "text/html")], &["<p>one\n</p>two"]);
        let same = rendered(
            200,
            &[
                ("date", "now"),
                ("content-type", "text/html "),
                ("X-Runtime", "3"),
            ],
            &["<", "p>on", "e\n<", "/p>two"],
        );
        assert_eq!(page, same);
        for other in [
            rendered(404, &[("Content-Type", "text/html")], &["<p>one\n</p>two"]),
            rendered(200, &[("Content-Type", "text/plain")], &["<p>one\n</p>two"]),
            rendered(200, &[("Content-Type", "text/html")], &["<p>one\n</p>tow"]),
            rendered(
                200,
                &[("Content-Type", "text/html"), ("Location", "/")],
                &["<p>one\n</p>two"],
            ),
        ] {
            assert_ne!(page.digest, other.digest);
        }
    }

    #[test]
    fn long_parts_are_cut_at_one_place() {
        let long = "x".repeat(3 * MAX_PART_BYTES + 5);
        let whole = rendered(200, &[], &[&long]);
        let (one, two) = long.split_at(MAX_PART_BYTES + 1);
        assert_eq!(whole, rendered(200, &[], &[one, two]));
        assert_eq!(whole.parts.len(), 2);
    }

    #[test]
    fn chance_is_told_from_what_stays() {
        let page = |text: String| rendered(200, &[], &[&text]);
        let timed = |language: &str, time: u32| {
            page(format!("<h1>{language}</h1><i>{time} ms</i><b>x</b>"))
        };
        let german = [timed("Hallo", 3), timed("Hallo", 5)];
        let english = [timed("Hello", 4), timed("Hello", 7)];
        assert!(differ_in_what_stays(&german, &english));
        assert!(!differ_in_what_stays(
            &german,
            &[timed("Hallo", 8), timed("Hallo", 9)]
        ));
        let without = [
            page("<h1>Hallo</h1>".to_owned()),
            page("<h1>Hallo</h1><i>1".to_owned()),
        ];
        assert!(differ_in_what_stays(&german, &without));
        assert!(!differ_in_what_stays(&[], &[]));
        assert!(differ_in_what_stays(
            &[rendered(200, &[], &[])],
            &[rendered(302, &[], &[])]
        ));
    }
}
