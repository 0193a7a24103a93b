//! A resource of a page: its address, its use, and how soon a browser wants it.

use serde::Serialize;
use url::Url;

/// The use of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceKind {
    Document,
    Style,
    Script,
    Font,
    Image,
    Frame,
    Icon,
    Other,
}

impl ResourceKind {
    /// Returns the word of tables and HAR files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ResourceKind::Document => "document",
            ResourceKind::Style => "style",
            ResourceKind::Script => "script",
            ResourceKind::Font => "font",
            ResourceKind::Image => "image",
            ResourceKind::Frame => "frame",
            ResourceKind::Icon => "icon",
            ResourceKind::Other => "other",
        }
    }

    /// The field `Accept`, as Chromium sends it.
    pub(crate) fn accept(self) -> &'static str {
        match self {
            ResourceKind::Document | ResourceKind::Frame => {
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
            }
            ResourceKind::Style => "text/css,*/*;q=0.1",
            ResourceKind::Image | ResourceKind::Icon => {
                "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
            }
            ResourceKind::Script | ResourceKind::Font | ResourceKind::Other => "*/*",
        }
    }

    /// The field `Sec-Fetch-Dest` (Fetch Metadata).
    pub(crate) fn destination(self) -> &'static str {
        match self {
            ResourceKind::Document => "document",
            ResourceKind::Style => "style",
            ResourceKind::Script => "script",
            ResourceKind::Font => "font",
            ResourceKind::Image | ResourceKind::Icon => "image",
            ResourceKind::Frame => "iframe",
            ResourceKind::Other => "empty",
        }
    }
}

/// How soon a resource is asked for, where not all can be at once. The classes are Chromium's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// The document, style sheets that block rendering, fonts.
    Highest,
    /// Scripts that block the parser in the head; resources with `fetchpriority=high`.
    High,
    /// Scripts that block the parser in the body.
    Medium,
    /// Scripts with `async`, `defer` or `type=module`; images; frames.
    Low,
    /// Style sheets for other media, and alternative ones; icons.
    Lowest,
}

impl Priority {
    /// The field `Priority` (RFC 9218 §4.1) that a browser sends with it.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Priority::Highest => "u=0",
            Priority::High => "u=1",
            Priority::Medium => "u=2",
            Priority::Low => "u=3",
            Priority::Lowest => "u=5",
        }
    }
}

/// A resource that a page names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedResource {
    /// Without its fragment.
    pub url: Url,
    pub kind: ResourceKind,
    pub priority: Priority,
    /// The page is not drawn before it is there.
    pub blocks_rendering: bool,
}

/// The address that a text names, as seen from `base`: `http` and `https` alone, without fragment.
/// `None` as well for a text that names the same document (`#part`), and for an empty one.
#[must_use]
pub fn address(base: &Url, text: &str) -> Option<Url> {
    let text = text.trim_matches(|it: char| it.is_ascii_whitespace());
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let mut url = base.join(text).ok()?;
    let is_asked_for = matches!(url.scheme(), "http" | "https") && url.host().is_some();
    url.set_fragment(None);
    // A page's text must not choose our user name.
    let _ = (url.set_username(""), url.set_password(None));
    is_asked_for.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_web_are_asked_for() {
        let base = Url::parse("http://site.test/blog/post?x=1").expect("a URL");
        for (text, expected) in [
            ("a.png", Some("http://site.test/blog/a.png")),
            (" /a.png#part ", Some("http://site.test/a.png")),
            ("//cdn.test/a", Some("http://cdn.test/a")),
            ("https://cdn.test/a b", Some("https://cdn.test/a%20b")),
            ("http://me:secret@cdn.test/", Some("http://cdn.test/")),
            ("?y=2", Some("http://site.test/blog/post?y=2")),
            ("#part", None),
            ("", None),
            ("data:image/png;base64,AA", None),
            ("javascript:x()", None),
            ("file:///etc/passwd", None),
            ("blob:http://site.test/1", None),
            ("http://", None),
        ] {
            let found = address(&base, text);
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{text}");
        }
    }
}
