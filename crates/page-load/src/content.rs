//! The page's text and its style sheets so far, and the resources that they name.

use std::time::{Duration, Instant};

use url::Url;

use crate::css::StyleSheet;
use crate::html::{Finding, Scanner};
use crate::media::Viewport;
use crate::resource::{NamedResource, Priority, ResourceKind, address};
use crate::style::{self, LoadedSheet, NeededFiles};

/// Bytes of the page that are read; the rest is loaded, and not looked at.
const MAX_HTML_BYTES: usize = 16 << 20;
/// In which rules are tried on the page.
const STYLE_TIME: Duration = Duration::from_secs(2);

/// The text of a page and the resources found in it so far.
pub struct Content {
    viewport: Viewport,
    scanner: Scanner,
    html: String,
    /// Bytes of a character that has not come whole.
    cut: Vec<u8>,
    sheets: Vec<LoadedSheet>,
    /// Sheets came since they were last looked at.
    has_news: bool,
    pub lazy: usize,
    pub scripts: usize,
}

impl Content {
    pub fn new(page: &Url, viewport: Viewport) -> Content {
        Content {
            viewport,
            scanner: Scanner::new(page, viewport),
            html: String::new(),
            cut: Vec::new(),
            sheets: Vec::new(),
            has_news: false,
            lazy: 0,
            scripts: 0,
        }
    }

    /// Takes some bytes of the page, and returns the resources that they name.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<NamedResource> {
        if self.html.len() > MAX_HTML_BYTES {
            return Vec::new();
        }
        self.cut.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.cut);
        let whole = whole_characters(&bytes);
        let (now, later) = bytes.split_at(whole);
        self.cut = later.to_vec();
        let text = String::from_utf8_lossy(now);
        self.html.push_str(&text);
        let found = self.scanner.feed(&text);
        self.wanted(found)
    }

    /// The page is whole.
    pub fn end(&mut self) -> Vec<NamedResource> {
        self.has_news = true;
        let found = self.scanner.end();
        self.wanted(found)
    }

    fn wanted(&mut self, found: Vec<Finding>) -> Vec<NamedResource> {
        let mut wanted = Vec::new();
        for finding in found {
            match finding {
                Finding::Resource(resource) => wanted.push(resource),
                Finding::Lazy(_) => self.lazy += 1,
                Finding::Script => self.scripts += 1,
                Finding::Style(text) => {
                    let base = self.scanner.base();
                    let sheet = StyleSheet::parse(&text, self.viewport);
                    wanted.extend(self.add(base, sheet, true));
                }
                Finding::StyleAttribute(text) => {
                    let base = self.scanner.base();
                    let sheet = StyleSheet::parse_attribute(&text, self.viewport);
                    wanted.extend(self.add(base, sheet, true));
                }
            }
        }
        wanted
    }

    /// A style sheet is whole: takes it, and gives its imports.
    pub fn sheet(&mut self, url: &Url, bytes: &[u8], applies: bool) -> Vec<NamedResource> {
        let sheet = StyleSheet::parse(&String::from_utf8_lossy(bytes), self.viewport);
        self.add(url.clone(), sheet, applies)
    }

    /// A style sheet that was preloaded applies after all.
    pub fn apply(&mut self, url: &Url) {
        for loaded in self.sheets.iter_mut().filter(|it| it.base == *url) {
            self.has_news |= !loaded.applies;
            loaded.applies = true;
        }
    }

    fn add(&mut self, base: Url, sheet: StyleSheet, applies: bool) -> Vec<NamedResource> {
        let imports = sheet.imports.iter().filter_map(|import| {
            let blocks = applies && import.applies;
            Some(NamedResource {
                url: address(&base, &import.address)?,
                kind: ResourceKind::Style,
                priority: match blocks {
                    true => Priority::Highest,
                    false => Priority::Lowest,
                },
                blocks_rendering: blocks,
            })
        });
        let imports = imports.collect();
        self.sheets.push(LoadedSheet {
            base,
            sheet,
            applies,
        });
        self.has_news = true;
        imports
    }

    /// The work of finding the files that the sheets need, if there is any since the
    /// last time.
    pub fn style_work(&mut self) -> Option<impl FnOnce() -> NeededFiles + Send + 'static> {
        if !std::mem::take(&mut self.has_news) {
            return None;
        }
        let (html, sheets) = (self.html.clone(), self.sheets.clone());
        Some(move || style::needed(&html, &sheets, Instant::now() + STYLE_TIME))
    }
}

/// How many bytes have their characters whole; a byte that is no UTF-8 counts as
/// whole.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    for (at, byte) in bytes.iter().enumerate().skip(tail) {
        let length = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        if at + length > bytes.len() {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_names_is_found_however_it_is_cut() {
        let text = "<p>ä€😀<img src=\"/ä€😀.png\"><style>@import 'b.css';</style><img src=c.png>";
        let url = Url::parse("http://site.test/").expect("a URL");
        let found = |piece: usize| {
            let mut content = Content::new(&url, Viewport::default());
            let mut wanted = Vec::new();
            for bytes in text.as_bytes().chunks(piece) {
                wanted.extend(content.feed(bytes));
            }
            wanted.extend(content.end());
            assert_eq!(content.html, text, "by {piece}");
            wanted
        };
        let whole = found(1000);
        let paths: Vec<&str> = whole.iter().map(|it| it.url.path()).collect();
        let picture = "/%C3%A4%E2%82%AC%F0%9F%98%80.png";
        assert_eq!(paths, [picture, "/b.css", "/c.png", "/favicon.ico"]);
        for piece in [1, 2, 3, 5] {
            assert_eq!(found(piece), whole, "by {piece}");
        }
    }
}
