//! A page as `mayfly bench --page` reads it: markup, `srcset`, style sheets, and the field `Link`.
#![no_main]

use std::sync::LazyLock;

use page_load::{address, named_addresses};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static PAGE: LazyLock<Vec<url::Url>> =
        LazyLock::new(|| address("http://site.test/a/b?c").into_iter().collect());
    // The parts stand behind each other; the first byte says how the markup is cut.
    let (cut, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let mut parts = bytes.split(|&byte| byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (markup, sheet, link) = (part(), part(), String::from_utf8_lossy(part()));
    for page in PAGE.iter() {
        let named = named_addresses(page, (markup, usize::from(*cut)), sheet, &link);
        for url in named {
            assert!(
                ["http", "https"].contains(&url.scheme()),
                "{url} is of the web"
            );
        }
    }
});
