//! Sitemaps (<https://www.sitemaps.org/protocol.html>): the pages of a `urlset`, the sitemaps of a
//! `sitemapindex`. Written by an application or by strangers: all is bounded, and no entity is expanded
//! but XML's own.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Elements within each other. A sitemap has three.
const MAX_DEPTH: usize = 32;
/// A longer address is invalid: the protocol allows 2048 characters.
const MAX_URL_BYTES: usize = 8 << 10;

/// The URLs in a sitemap, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    pub pages: Vec<String>,
    pub sitemaps: Vec<String>,
}

/// Reads a sitemap.
///
/// # Errors
/// The reason why it is no sitemap, one clause for people.
pub fn parse(xml: &[u8]) -> Result<Sitemap, String> {
    let mut reader = Reader::from_reader(xml);
    let mut sitemap = Sitemap::default();
    // The names of the elements that the reader is in, without their namespaces.
    let mut path: Vec<Vec<u8>> = Vec::new();
    let mut text = String::new();
    let mut is_known = false;
    loop {
        match reader.read_event() {
            Err(error) => return Err(format!("it is not valid XML: {error}")),
            Ok(Event::Eof) => break,
            Ok(Event::Start(start)) => {
                let name = start.local_name().as_ref().to_vec();
                is_known |= path.is_empty() && matches!(&name[..], b"urlset" | b"sitemapindex");
                path.push(name);
                text.clear();
                if path.len() > MAX_DEPTH {
                    return Err("its elements are nested too deeply".to_owned());
                }
            }
            Ok(Event::End(_)) => {
                let into = match path.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
                    [b"urlset", b"url", b"loc"] => Some(&mut sitemap.pages),
                    [b"sitemapindex", b"sitemap", b"loc"] => Some(&mut sitemap.sitemaps),
                    _ => None,
                };
                let url = text.trim();
                if let Some(into) = into
                    && !url.is_empty()
                    && url.len() <= MAX_URL_BYTES
                {
                    into.push(url.to_owned());
                }
                text.clear();
                path.pop();
            }
            Ok(Event::Text(piece)) => put(&mut text, &piece),
            Ok(Event::CData(piece)) => put(&mut text, &piece),
            Ok(Event::GeneralRef(name)) => match &*name {
                b"amp" => text.push('&'),
                b"lt" => text.push('<'),
                b"gt" => text.push('>'),
                b"apos" => text.push('\''),
                b"quot" => text.push('"'),
                _ => match name.resolve_char_ref() {
                    Ok(Some(letter)) => text.push(letter),
                    // An entity of its own: the address is not known.
                    _ => text.push('\0'),
                },
            },
            Ok(
                Event::Empty(_)
                | Event::Comment(_)
                | Event::Decl(_)
                | Event::PI(_)
                | Event::DocType(_),
            ) => {}
        }
    }
    match is_known && path.is_empty() {
        true => {
            let is_whole = |url: &String| !url.contains('\0');
            sitemap.pages.retain(is_whole);
            sitemap.sitemaps.retain(is_whole);
            Ok(sitemap)
        }
        false if is_known => Err("it ends too early".to_owned()),
        false => Err("it has no urlset and no sitemapindex".to_owned()),
    }
}

/// Adds a piece of text, as long as an address may be.
fn put(text: &mut String, piece: &[u8]) {
    if text.len() <= MAX_URL_BYTES {
        text.push_str(&String::from_utf8_lossy(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(xml: &str) -> Result<(String, String), String> {
        let sitemap = parse(xml.as_bytes())?;
        Ok((sitemap.pages.join(" "), sitemap.sitemaps.join(" ")))
    }

    #[test]
    fn pages_and_sitemaps_are_found_and_images_are_not() {
        let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
            <?xml-stylesheet type="text/xsl" href="/x.xsl"?>
            <!-- made by hand -->
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
              <url><loc> https://a/?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod>
                <image:image><image:loc>https://a/i.png</image:loc></image:image></url>
              <url><loc><![CDATA[https://a/c?d&e]]></loc><priority/></url>
              <url><loc>https://a/&#233;&#x41;</loc></url>
              <url><loc></loc></url>
              <url><loc>https://a/&own;</loc></url>
            </urlset>"#;
        assert_eq!(
            parsed(xml),
            Ok((
                "https://a/?x=1&y=2 https://a/c?d&e https://a/\u{e9}A".to_owned(),
                String::new()
            ))
        );
        let index = "<s:sitemapindex xmlns:s=\"x\"><s:sitemap><s:loc>https://a/1.xml</s:loc></s:sitemap></s:sitemapindex>";
        assert_eq!(
            parsed(index),
            Ok((String::new(), "https://a/1.xml".to_owned()))
        );
    }

    #[test]
    fn what_is_no_sitemap_says_why() {
        let deep = "<urlset>".to_owned() + &"<a>".repeat(MAX_DEPTH);
        for (xml, words) in [
            ("", "no urlset"),
            (
                "<html><body><url><loc>https://a/</loc></url></body></html>",
                "no urlset",
            ),
            ("<urlset><url><loc>https://a/</loc>", "ends too early"),
            ("<urlset></url>", "not valid XML"),
            (&deep, "too deeply"),
        ] {
            let complaint = parsed(xml).unwrap_err();
            assert!(complaint.contains(words), "{xml}: {complaint}");
        }
    }

    /// A thousand million laughs: entities of its own are not expanded.
    #[test]
    fn entities_do_not_grow() {
        let xml = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\
                   <urlset><url><loc>https://a/&b;</loc></url><url><loc>https://a/</loc></url></urlset>";
        assert_eq!(parsed(xml), Ok(("https://a/".to_owned(), String::new())));
        let long = format!(
            "<urlset><url><loc>https://a/{}</loc></url></urlset>",
            "x".repeat(MAX_URL_BYTES)
        );
        assert_eq!(parsed(&long), Ok((String::new(), String::new())));
    }
}
