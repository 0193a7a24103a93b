//! Parses one tag.

/// A tag of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tag {
    Include(Include),
    /// `<esi:comment text="..."/>`: nothing comes of it.
    Comment,
    /// `<esi:when test="EXPRESSION">`
    When(Vec<u8>),
    /// The beginning of another element.
    Open(Element),
    /// The end of an element.
    Close(Element),
    /// It is not a tag of the language, or lacks an attribute that it needs: the error.
    Invalid(String),
}

/// An element that has content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Attempt,
    Choose,
    Except,
    /// `<esi:inline name="URL">`: a fragment for a store, not shown where it stands.
    Inline,
    /// `<!--esi ... -->`: its content is run as if it stood in the page itself.
    Markup,
    Otherwise,
    Remove,
    Try,
    Vars,
    When,
}

/// `<esi:include src="URL" alt="URL" onerror="continue"/>`. Variables in the URLs are not yet
/// replaced, character references are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Include {
    pub src: Vec<u8>,
    /// It is asked for when `src` fails.
    pub alt: Option<Vec<u8>>,
    /// `onerror="continue"`: without the fragment the page is as it should be.
    pub is_optional: bool,
}

impl Element {
    const NAMES: [(&'static str, Element); 9] = [
        ("attempt", Element::Attempt),
        ("choose", Element::Choose),
        ("except", Element::Except),
        ("inline", Element::Inline),
        ("otherwise", Element::Otherwise),
        ("remove", Element::Remove),
        ("try", Element::Try),
        ("vars", Element::Vars),
        ("when", Element::When),
    ];

    fn named(name: &[u8]) -> Option<Element> {
        let mut names = Element::NAMES.iter();
        let (_, element) = names.find(|(known, _)| known.as_bytes() == name)?;
        Some(*element)
    }

    /// Its name as it stands in a page.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut names = Element::NAMES.iter();
        names
            .find(|(_, element)| *element == self)
            .map_or("<!--esi", |(name, _)| name)
    }
}

impl Tag {
    /// Takes a tag apart that [`find_tag`](crate::find_tag) has found.
    #[must_use]
    pub fn parse(tag: &[u8]) -> Tag {
        if tag == b"-->" {
            return Tag::Close(Element::Markup);
        }
        if tag.starts_with(b"<!--") {
            return Tag::Open(Element::Markup);
        }
        if let Some(rest) = tag.strip_prefix(b"</esi:") {
            let name = rest.strip_suffix(b">").unwrap_or(rest).trim_ascii();
            return match Element::named(name) {
                Some(element) => Tag::Close(element),
                // Closed by themselves, as `<esi:include ...></esi:include>`.
                None if name == b"include" || name == b"comment" => Tag::Comment,
                None => unknown(name),
            };
        }
        let inner = tag.strip_prefix(b"<esi:").unwrap_or(tag);
        let inner = inner.strip_suffix(b">").unwrap_or(inner);
        let (inner, is_empty) = match inner.strip_suffix(b"/") {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        let end = inner.iter().position(u8::is_ascii_whitespace);
        let (name, attributes) = inner.split_at(end.unwrap_or(inner.len()));
        let Some(attributes) = parse_attributes(attributes) else {
            let name = String::from_utf8_lossy(name);
            return Tag::Invalid(format!(
                "expected attributes as NAME=\"VALUE\" in <esi:{name}>"
            ));
        };
        match name {
            b"include" => include(&attributes),
            b"comment" => Tag::Comment,
            b"when" => match attribute(&attributes, "test") {
                Some(test) => Tag::When(test),
                None => Tag::Invalid("<esi:when> has no attribute \"test\"".to_owned()),
            },
            // Without content nothing comes of it.
            name => match Element::named(name) {
                Some(_) if is_empty => Tag::Comment,
                Some(element) => Tag::Open(element),
                None => unknown(name),
            },
        }
    }
}

fn unknown(name: &[u8]) -> Tag {
    let name = String::from_utf8_lossy(name);
    Tag::Invalid(format!("<esi:{name}> is not known"))
}

fn include(attributes: &[(Vec<u8>, Vec<u8>)]) -> Tag {
    let Some(src) = attribute(attributes, "src") else {
        return Tag::Invalid("<esi:include> has no attribute \"src\"".to_owned());
    };
    Tag::Include(Include {
        src,
        alt: attribute(attributes, "alt"),
        is_optional: attribute(attributes, "onerror").is_some_and(|value| value == b"continue"),
    })
}

fn attribute(attributes: &[(Vec<u8>, Vec<u8>)], name: &str) -> Option<Vec<u8>> {
    let mut attributes = attributes.iter();
    let (_, value) = attributes.find(|(known, _)| known == name.as_bytes())?;
    Some(value.clone())
}

fn parse_attributes(text: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut rest = text.trim_ascii_start();
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let equals = rest.iter().position(|&byte| byte == b'=')?;
        let name = rest[..equals].trim_ascii();
        let (&quote, behind) = rest[equals + 1..].trim_ascii_start().split_first()?;
        if name.is_empty() || (quote != b'"' && quote != b'\'') {
            return None;
        }
        let end = behind.iter().position(|&byte| byte == quote)?;
        attributes.push((name.to_vec(), without_references(&behind[..end])));
        rest = behind[end + 1..].trim_ascii_start();
    }
    Some(attributes)
}

/// The five character references that every XML has
/// (<https://www.w3.org/TR/xml/#sec-predefined-ent>), and the number of the apostrophe, which
/// PHP writes.
fn without_references(text: &[u8]) -> Vec<u8> {
    const REFERENCES: [(&[u8], u8); 6] = [
        (b"&amp;", b'&'),
        (b"&lt;", b'<'),
        (b"&gt;", b'>'),
        (b"&quot;", b'"'),
        (b"&apos;", b'\''),
        (b"&#039;", b'\''),
    ];
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let mut references = REFERENCES.iter();
        match references.find(|(reference, _)| rest.starts_with(reference)) {
            Some((reference, byte)) => {
                out.push(*byte);
                rest = &rest[reference.len()..];
            }
            None => {
                out.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn src(tag: &str) -> Include {
        match Tag::parse(tag.as_bytes()) {
            Tag::Include(include) => include,
            other => panic!("{tag}: {other:?}"),
        }
    }

    #[test]
    fn includes_have_urls_and_what_is_done_without_them() {
        let plain = src("<esi:include src=\"/a?b=1&amp;c=2\"/>");
        assert_eq!(plain.src, b"/a?b=1&c=2");
        assert_eq!((plain.alt, plain.is_optional), (None, false));
        let all = src("<esi:include onerror='continue'\n src='/a' alt='/b' />");
        assert_eq!(
            (all.alt.as_deref(), all.is_optional),
            (Some(&b"/b"[..]), true)
        );
        assert_eq!(src("<esi:include src='/a'>").src, b"/a");
        assert_eq!(src("<esi:include src='/a&b&#039;'/>").src, b"/a&b'");
    }

    #[test]
    fn elements_open_and_close() {
        assert_eq!(Tag::parse(b"<esi:try>"), Tag::Open(Element::Try));
        assert_eq!(Tag::parse(b"</esi:try >"), Tag::Close(Element::Try));
        assert_eq!(Tag::parse(b"<!--esi"), Tag::Open(Element::Markup));
        assert_eq!(Tag::parse(b"-->"), Tag::Close(Element::Markup));
        assert_eq!(Tag::parse(b"<esi:comment text='x'/>"), Tag::Comment);
        assert_eq!(Tag::parse(b"</esi:include>"), Tag::Comment);
        assert_eq!(Tag::parse(b"<esi:remove/>"), Tag::Comment);
        let inline = Tag::parse(b"<esi:inline name='/a' cache-control='private'>");
        assert_eq!(inline, Tag::Open(Element::Inline));
        let test = Tag::parse(b"<esi:when test=\"$(A)=='1'\">");
        assert_eq!(test, Tag::When(b"$(A)=='1'".to_vec()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (tag, wanted) in [
            ("<esi:include/>", "<esi:include> has no attribute \"src\""),
            ("<esi:when>", "<esi:when> has no attribute \"test\""),
            ("<esi:function>", "<esi:function> is not known"),
            ("</esi:nothing>", "<esi:nothing> is not known"),
            (
                "<esi:include src=/x />",
                "expected attributes as NAME=\"VALUE\" in <esi:include>",
            ),
        ] {
            assert_eq!(Tag::parse(tag.as_bytes()), Tag::Invalid(wanted.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Tag::parse(&bytes);
            let _ = Tag::parse(&[b"<esi:include ", &bytes[..], b">"].concat());
        }
    }
}
