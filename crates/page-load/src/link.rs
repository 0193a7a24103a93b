//! The field `Link` (RFC 8288): resources that a page's head names before its text.

use url::Url;

use crate::html::preloaded;
use crate::resource::{NamedResource, Priority, ResourceKind, address};

/// Links of one field that are looked at.
const MAX_LINKS: usize = 64;

/// Returns the resources that a field value preloads: `<a.css>; rel=preload; as=style, <b.js>;
/// rel=modulepreload`.
pub fn preloads(page: &Url, value: &str) -> Vec<NamedResource> {
    let mut found = Vec::new();
    // The first part has nothing before its address.
    for part in value.split('<').skip(1).take(MAX_LINKS) {
        let Some((target, parameters)) = part.split_once('>') else {
            continue;
        };
        let parameter = |name: &str| {
            parameters.split([';', ',']).find_map(|it| {
                let (known, value) = it.split_once('=')?;
                let is_it = known.trim().eq_ignore_ascii_case(name);
                is_it.then(|| value.trim().trim_matches('"').to_ascii_lowercase())
            })
        };
        let relations = parameter("rel").unwrap_or_default();
        let is = |word: &str| relations.split_ascii_whitespace().any(|it| it == word);
        let kind = match () {
            () if is("preload") => preloaded(&parameter("as").unwrap_or_default()),
            () if is("modulepreload") => Some((ResourceKind::Script, Priority::High)),
            () => None,
        };
        if let (Some((kind, priority)), Some(url)) = (kind, address(page, target)) {
            found.push(NamedResource {
                url,
                kind,
                priority,
                blocks_rendering: false,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_what_is_loaded_early() {
        let page = Url::parse("http://site.test/a/").expect("a URL");
        for (value, expected) in [
            ("<b.css>; rel=preload; as=style", vec!["/a/b.css style"]),
            (
                "</b.woff2>; rel=\"preload\"; as=\"font\"; crossorigin",
                vec!["/b.woff2 font"],
            ),
            (
                "</b.js>; rel=modulepreload, </c.png>; rel=preload; as=image",
                vec!["/b.js script", "/c.png image"],
            ),
            (
                "<http://site.test/wp-json/>; rel=\"https://api.w.org/\"",
                vec![],
            ),
            ("</?p=1>; rel=shortlink", vec![]),
            ("</x>; rel=preload", vec![]),
            ("<", vec![]),
            ("", vec![]),
        ] {
            let found = preloads(&page, value);
            let found: Vec<String> = found
                .iter()
                .map(|it| format!("{} {}", it.url.path(), it.kind.word()))
                .collect();
            assert_eq!(found, expected, "{value}");
        }
    }
}
