//! Variables in text: `$(NAME)`, `$(NAME{KEY})`, `$(NAME|DEFAULT)`
//! (<https://www.w3.org/TR/esi-lang/>, section 4).

use memchr::memmem;

/// Longer than any name, key and default that is meant.
const MAX_VARIABLE_BYTES: usize = 1024;

/// The values of variables.
pub trait Values {
    /// The value of `NAME` or of `NAME{KEY}` as the visitor sent it; `None` if the visitor sent
    /// no value.
    fn value(&self, name: &str, key: Option<&str>) -> Option<Vec<u8>>;
}

/// How values are written. A visitor chooses them, so none is ever written as it came where it
/// could say more than it stands for. ESI 1.0 knows no escaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Text between tags of HTML, or the value of a quoted attribute.
    Html,
    /// A part of a URL: characters that are not unreserved (RFC 3986 section 2.3) are
    /// percent-encoded. The separators of a whole query stay.
    Url,
}

/// A visitor's values may be long, and a text may name them often: values that would make the
/// expanded text longer than this are left out.
const MAX_EXPANDED_BYTES: usize = 1024 * 1024;

/// Appends `text` with the values of its variables. A variable without a value is its default,
/// or nothing.
pub fn expand(text: &[u8], values: &dyn Values, escape: Escape, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(start) = memmem::find(rest, b"$(") {
        out.extend_from_slice(&rest[..start]);
        rest = &rest[start..];
        match variable(rest) {
            Some((found, length)) => {
                if out.len() < MAX_EXPANDED_BYTES {
                    put(&found, values, escape, out);
                }
                rest = &rest[length..];
            }
            None => {
                out.extend_from_slice(b"$(");
                rest = &rest[2..];
            }
        }
    }
    out.extend_from_slice(rest);
}

fn put(variable: &Variable<'_>, values: &dyn Values, escape: Escape, out: &mut Vec<u8>) {
    match variable.value(values) {
        Some(value) => match escape {
            Escape::Html => put_html(&value, out),
            Escape::Url => put_url(&value, variable.is_whole_query(), out),
        },
        // The author of the page has written it.
        None => out.extend_from_slice(variable.default.unwrap_or_default()),
    }
}

/// A variable as it stands in text.
pub(crate) struct Variable<'a> {
    name: &'a str,
    key: Option<&'a str>,
    default: Option<&'a [u8]>,
}

impl Variable<'_> {
    /// Its value; `None` for an empty one.
    pub(crate) fn value(&self, values: &dyn Values) -> Option<Vec<u8>> {
        let value = values.value(self.name, self.key)?;
        (!value.is_empty()).then_some(value)
    }

    /// Its value or its default.
    pub(crate) fn value_or_default(&self, values: &dyn Values) -> Vec<u8> {
        let value = self.value(values);
        value.unwrap_or_else(|| self.default.unwrap_or_default().to_vec())
    }

    fn is_whole_query(&self) -> bool {
        self.name == "QUERY_STRING" && self.key.is_none()
    }
}

/// The variable that `text` begins with, and how long it is.
pub(crate) fn variable(text: &[u8]) -> Option<(Variable<'_>, usize)> {
    let inner = text.strip_prefix(b"$(")?;
    let name_len = inner
        .iter()
        .take(MAX_VARIABLE_BYTES)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let name = str::from_utf8(&inner[..name_len]).ok()?;
    let mut rest = &inner[name_len..];
    let mut key = None;
    if let Some(behind) = rest.strip_prefix(b"{") {
        let end = position(behind, b'}')?;
        key = Some(str::from_utf8(&behind[..end]).ok()?);
        rest = &behind[end + 1..];
    }
    let mut default = None;
    if let Some(behind) = rest.strip_prefix(b"|") {
        let (text, length) = match behind.strip_prefix(b"'") {
            Some(quoted) => {
                let end = position(quoted, b'\'')?;
                (&quoted[..end], end + 2)
            }
            None => {
                let end = position(behind, b')')?;
                (&behind[..end], end)
            }
        };
        default = Some(text);
        rest = &behind[length..];
    }
    let rest = rest.strip_prefix(b")")?;
    if name.is_empty() {
        return None;
    }
    let length = text.len() - rest.len();
    Some((Variable { name, key, default }, length))
}

fn position(text: &[u8], byte: u8) -> Option<usize> {
    let text = &text[..text.len().min(MAX_VARIABLE_BYTES)];
    memchr::memchr(byte, text)
}

fn put_html(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            // Old browsers take these for quotes or for the beginning of a script.
            b'`' => out.extend_from_slice(b"&#96;"),
            byte => out.push(byte),
        }
    }
}

fn put_url(value: &[u8], is_query: bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in value {
        let stays = byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || (is_query && b"=&%+!$'()*,;:@/?[]".contains(&byte));
        match stays {
            true => out.push(byte),
            false => out.extend_from_slice(&[
                b'%',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A visitor who means harm.
    pub(crate) struct Visitor;

    impl Values for Visitor {
        fn value(&self, name: &str, key: Option<&str>) -> Option<Vec<u8>> {
            let value: &[u8] = match (name, key) {
                ("HTTP_COOKIE", Some("group")) => b"Advanced",
                ("HTTP_COOKIE", Some("count")) => b"7",
                ("HTTP_ACCEPT_LANGUAGE", Some("de")) => b"true",
                ("QUERY_STRING", None) => b"a=1&b=<x> y#\r\n",
                ("QUERY_STRING", Some("q")) => b"<script>\"'&`",
                ("QUERY_STRING", Some("path")) => b"../admin?x=1&y#",
                ("HTTP_HOST", None) => b"example.org",
                ("HTTP_REFERER", None) => b"",
                _ => return None,
            };
            Some(value.to_vec())
        }
    }

    fn expanded(text: &str, escape: Escape) -> String {
        let mut out = Vec::new();
        expand(text.as_bytes(), &Visitor, escape, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn variables_are_replaced_by_their_values() {
        for (text, wanted) in [
            ("no variable", "no variable"),
            ("//$(HTTP_HOST)/", "//example.org/"),
            ("$(HTTP_COOKIE{group})!", "Advanced!"),
            ("$(HTTP_COOKIE{none})", ""),
            ("$(HTTP_COOKIE{none}|guest)", "guest"),
            ("$(HTTP_COOKIE{none}|'a (guest)')", "a (guest)"),
            ("$(HTTP_REFERER|<i>none</i>)", "<i>none</i>"),
            ("$(UNKNOWN)", ""),
            ("$ ( and $(", "$ ( and $("),
            ("$(HTTP_HOST", "$(HTTP_HOST"),
            ("$()", "$()"),
            ("$(A{b)", "$(A{b)"),
            ("$($(HTTP_HOST))", "$(example.org)"),
        ] {
            assert_eq!(expanded(text, Escape::Html), wanted, "{text}");
        }
    }

    #[test]
    fn a_visitors_text_stays_text() {
        assert_eq!(
            expanded("<i>$(QUERY_STRING{q})</i>", Escape::Html),
            "<i>&lt;script&gt;&quot;&#39;&amp;&#96;</i>"
        );
    }

    #[test]
    fn a_visitors_text_stays_one_part_of_a_url() {
        assert_eq!(
            expanded("/x/$(QUERY_STRING{path})?k=1", Escape::Url),
            "/x/..%2Fadmin%3Fx%3D1%26y%23?k=1"
        );
        assert_eq!(
            expanded("/x?$(QUERY_STRING)", Escape::Url),
            "/x?a=1&b=%3Cx%3E%20y%23%0D%0A"
        );
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[$(){}|'a-zA ]{0,60}") {
            let _ = expanded(&text, Escape::Url);
        }
    }
}
