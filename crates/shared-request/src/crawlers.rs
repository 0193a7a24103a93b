//! Crawlers by the names in their `User-Agent`.

use memchr::memmem;

/// A program that reads much, and may get a page that is a minute old.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedCrawler {
    /// The name in its `User-Agent`, in lower case.
    pub name: &'static str,
    /// People find the site by it.
    pub is_search_engine: bool,
    /// The domains of its machines, as its operator publishes them: the host name of an address is below one of
    /// these, and has that address. Empty: the operator publishes none.
    pub domains: &'static [&'static str],
}

const fn search_engine(name: &'static str, domains: &'static [&'static str]) -> NamedCrawler {
    NamedCrawler {
        name,
        is_search_engine: true,
        domains,
    }
}

const fn other(name: &'static str) -> NamedCrawler {
    NamedCrawler {
        name,
        is_search_engine: false,
        domains: &[],
    }
}

const YANDEX: &[&str] = &["yandex.ru", "yandex.net", "yandex.com"];

/// Anyone can have a host below `googleusercontent.com`, and so it is not one of Google's here. DuckDuckGo
/// publishes addresses only.
pub(crate) static CRAWLERS: [NamedCrawler; 18] = [
    search_engine("googlebot", &["googlebot.com", "google.com"]),
    search_engine("bingbot", &["search.msn.com"]),
    search_engine("duckduckbot", &[]),
    search_engine("baiduspider", &["crawl.baidu.com", "crawl.baidu.jp"]),
    search_engine("yandexbot", YANDEX),
    search_engine("yandeximages", YANDEX),
    search_engine("applebot", &["applebot.apple.com"]),
    other("amazonbot"),
    other("gptbot"),
    other("claudebot"),
    other("ccbot"),
    other("bytespider"),
    other("petalbot"),
    other("semrushbot"),
    other("ahrefsbot"),
    other("mj12bot"),
    other("dotbot"),
    other("facebookexternalhit"),
];

/// Words by which other programs name their kind. Lower case.
const OTHER_WORDS: [&str; 4] = ["bot/", "crawler", "spider", "scrapy"];
static OTHER: NamedCrawler = other("other crawler");

/// Returns the known crawler that a User-Agent (lower case) names, and its number.
pub(crate) fn known(lower: &[u8]) -> Option<(usize, &'static NamedCrawler)> {
    let mut all = CRAWLERS.iter().enumerate();
    all.find(|(_, crawler)| memmem::find(lower, crawler.name.as_bytes()).is_some())
}

/// Returns the crawler that a User-Agent (lower case) names, known or not.
pub(crate) fn named(lower: &[u8]) -> Option<&'static NamedCrawler> {
    let is_other = || {
        let mut words = OTHER_WORDS.iter();
        words.any(|word| memmem::find(lower, word.as_bytes()).is_some())
    };
    let known = known(lower).map(|(_, crawler)| crawler);
    known.or_else(|| is_other().then_some(&OTHER))
}
