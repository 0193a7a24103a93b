//! Percent-encoding and its undoing, and HTML escaping, byte for byte as nginx
//! does them, since URIs made from them meet PHP applications and upstreams
//! that were configured behind nginx.

use std::borrow::Cow;

use crate::target::hex_pair;

/// Bytes as hexadecimal digits, two for each.
pub fn hex_digits(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
    bytes
        .iter()
        .flat_map(move |byte| [digit(byte >> 4), digit(*byte)])
}

/// The bytes that are written as `%XX`. Control characters, space and bytes from 0x7F
/// always are, except that memcached keys may have the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// A path (proxying, redirects): `"#%<>?\^` and `` `{|} ``.
    Uri,
    /// Arguments: those, and `&+;`.
    Args,
    /// One component: everything but letters, digits and `-._~`.
    Component,
    /// A URI inside HTML: `"#%'<>\^` and `` `{|} ``.
    Html,
    /// A URI inside an attribute of HTML, to which a browser goes: `"%'<>`.
    Refresh,
    /// A memcached key: `%`, space and control characters.
    Memcached,
}

impl Escape {
    fn applies_to(self, byte: u8) -> bool {
        let extra: &[u8] = match self {
            Escape::Refresh => {
                return matches!(byte, 0..=b' ' | 0x7f.. | b'"' | b'%' | b'\'' | b'<' | b'>');
            }
            Escape::Memcached => return byte <= b' ' || byte == b'%',
            Escape::Component => {
                return !(byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
            }
            Escape::Uri => b"#%?",
            Escape::Args => b"#%?&+;",
            Escape::Html => b"#%'",
        };
        matches!(byte, 0..=b' ' | 0x7f.. | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
            || extra.contains(&byte)
    }
}

/// Percent-encodes `bytes`; borrows when there is nothing to encode.
pub fn escape(bytes: &[u8], kind: Escape) -> Cow<'_, [u8]> {
    if !bytes.iter().any(|&byte| kind.applies_to(byte)) {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for &byte in bytes {
        if kind.applies_to(byte) {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value & 15)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
        } else {
            out.push(byte);
        }
    }
    Cow::Owned(out)
}

/// [`escape`] for a path.
pub fn escape_uri(path: &[u8]) -> Cow<'_, [u8]> {
    escape(path, Escape::Uri)
}

/// [`escape`] for arguments.
pub fn escape_args(args: &[u8]) -> Cow<'_, [u8]> {
    escape(args, Escape::Args)
}

/// Writes `<`, `>`, `&` and `"` as entities; borrows a text without them.
pub fn escape_html(text: &[u8]) -> Cow<'_, [u8]> {
    let entity = |byte: u8| -> Option<&'static [u8]> {
        Some(match byte {
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'&' => b"&amp;",
            b'"' => b"&quot;",
            _ => return None,
        })
    };
    if !text.iter().any(|&byte| entity(byte).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    for byte in text {
        out.extend_from_slice(entity(*byte).unwrap_or(std::slice::from_ref(byte)));
    }
    Cow::Owned(out)
}

/// Decodes `%XX`. Like in nginx, a broken escape loses its `%` (and, if the first digit
/// was good, that digit and the next character); at the end it is dropped.
pub fn unescape(bytes: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', bytes).is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        rest = match rest {
            [] | [b'%'] => break,
            [b'%', high, after @ ..] if !high.is_ascii_hexdigit() => {
                out.push(*high);
                after
            }
            [b'%', _] => break,
            [b'%', high, low, after @ ..] => {
                out.extend(hex_pair(*high, *low));
                after
            }
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
        };
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_encodes_its_bytes() {
        let all = "a/ \"#%&'+;<>?\\^`{|}~@\x01\u{e9}";
        for (kind, expected) in [
            (
                Escape::Uri,
                "a/%20%22%23%25&'+;%3C%3E%3F%5C%5E%60%7B%7C%7D~@%01%C3%A9",
            ),
            (
                Escape::Args,
                "a/%20%22%23%25%26'%2B%3B%3C%3E%3F%5C%5E%60%7B%7C%7D~@%01%C3%A9",
            ),
            (
                Escape::Component,
                "a%2F%20%22%23%25%26%27%2B%3B%3C%3E%3F%5C%5E%60%7B%7C%7D~%40%01%C3%A9",
            ),
            (
                Escape::Html,
                "a/%20%22%23%25&%27+;%3C%3E?%5C%5E%60%7B%7C%7D~@%01%C3%A9",
            ),
            (Escape::Memcached, "a/%20\"#%25&'+;<>?\\^`{|}~@%01\u{e9}"),
        ] {
            let escaped = escape(all.as_bytes(), kind);
            assert_eq!(String::from_utf8_lossy(&escaped), expected, "{kind:?}");
        }
        assert!(matches!(escape_uri(b"/a/b"), Cow::Borrowed(_)));
    }

    #[test]
    fn html_is_inert() {
        assert_eq!(
            &*escape_html(b"<a href=\"x&y\">"),
            b"&lt;a href=&quot;x&amp;y&quot;&gt;"
        );
        assert!(matches!(escape_html(b"abc"), Cow::Borrowed(_)));
    }

    #[test]
    fn unescaping_survives_broken_escapes() {
        for (text, expected) in [
            ("abc", "abc"),
            ("a%20b", "a b"),
            ("%41%4a%4A", "AJJ"),
            ("%zz", "zz"),
            ("%2", ""),
            ("%", ""),
            ("%4zb", "b"),
            ("%%41", "%41"),
        ] {
            assert_eq!(&*unescape(text.as_bytes()), expected.as_bytes(), "{text}");
        }
    }
}
