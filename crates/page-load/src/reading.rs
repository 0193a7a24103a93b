//! Reads all parts of a page server's answers in one call: for fuzzing.

use url::Url;

use crate::content::Content;
use crate::link;
use crate::media::Viewport;

/// The addresses that a page names in its markup, which comes in pieces of this many bytes, in a style
/// sheet of it, and in its field `Link`.
#[must_use]
pub fn named_addresses(
    page: &Url,
    (markup, piece_bytes): (&[u8], usize),
    sheet: &[u8],
    link: &str,
) -> Vec<Url> {
    let mut content = Content::new(page, Viewport::default());
    let mut named = link::preloads(page, link);
    for piece in markup.chunks(piece_bytes.max(1)) {
        named.extend(content.feed(piece));
    }
    named.extend(content.end());
    named.extend(content.sheet(page, sheet, true));
    let mut named: Vec<Url> = named.into_iter().map(|resource| resource.url).collect();
    if let Some(work) = content.style_work() {
        let needed = work();
        named.extend(needed.pictures.into_iter().chain(needed.fonts));
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_sheets_and_links_are_read() {
        let page = crate::address("http://site.test/").expect("an address");
        let markup =
            b"<img srcset='/small.png 1x, /large.png 2x'><link rel=stylesheet href=/a.css>";
        let sheet = b"@import '/b.css'; img { background: url(/c.png) }";
        for piece_bytes in [0, 1, 1000] {
            let markup = (&markup[..], piece_bytes);
            let named = named_addresses(&page, markup, sheet, "</d.css>; rel=preload; as=style");
            let mut paths: Vec<&str> = named.iter().map(Url::path).collect();
            paths.sort_unstable();
            assert_eq!(
                paths,
                [
                    "/a.css",
                    "/b.css",
                    "/c.png",
                    "/d.css",
                    "/favicon.ico",
                    "/small.png"
                ]
            );
        }
    }
}
