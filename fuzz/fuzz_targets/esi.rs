//! Pages with Edge Side Includes: tags, conditions and variables.
#![no_main]

use esi::{Escape, MarkupState, Tag, TagSearch, Values, evaluate, expand, find_tag};

/// Every value is what is looked for.
struct Page<'a>(&'a [u8]);

impl Values for Page<'_> {
    fn value(&self, _name: &str, key: Option<&str>) -> Option<Vec<u8>> {
        key.map(|_| self.0.to_vec())
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let values = Page(&bytes[..bytes.len().min(64)]);
    let mut inside = MarkupState::default();
    let mut at = 0;
    while let TagSearch::Tag(range) = find_tag(&bytes[at..], &mut inside) {
        assert!(!range.is_empty(), "a tag has bytes");
        match Tag::parse(&bytes[at..][range.clone()]) {
            Tag::When(test) => drop(evaluate(&test, &values)),
            Tag::Include(include) => {
                let mut url = Vec::new();
                expand(b"$(QUERY_STRING{x})", &values, Escape::Url, &mut url);
                assert!(url.iter().all(u8::is_ascii_graphic), "a URL stays one");
                expand(&include.src, &values, Escape::Url, &mut url);
            }
            _ => {}
        }
        at += range.end;
    }
    let mut text = Vec::new();
    expand(bytes, &values, Escape::Html, &mut text);
    let _ = evaluate(bytes, &values);
});
