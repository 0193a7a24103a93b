//! The application's tokens in the place of the server's, in what a guest sends.

use crate::tokens::FoundToken;

/// How a token is written where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Unchanged: a part of `multipart/form-data`, a field.
    Plain,
    /// Percent-encoded, in `application/x-www-form-urlencoded` and query strings.
    Percent,
    /// In a string of JSON.
    Json,
}

impl Writing {
    /// That of a body with this `Content-Type`.
    #[must_use]
    pub fn of_body(content_type: &[u8]) -> Writing {
        let media = content_type
            .split(|&byte| byte == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        if media.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
            Writing::Percent
        } else if media.to_ascii_lowercase().ends_with(b"json") {
            Writing::Json
        } else {
            Writing::Plain
        }
    }

    /// The token as it is written here. `token`: as it stood in the page.
    fn put(self, token: &[u8], out: &mut Vec<u8>) {
        // A script's string may have `\/` for `/`.
        let mut plain = Vec::with_capacity(token.len());
        let mut rest = token;
        while let Some((&byte, after)) = rest.split_first() {
            if !(byte == b'\\' && after.first() == Some(&b'/')) {
                plain.push(byte);
            }
            rest = after;
        }
        match self {
            Writing::Plain | Writing::Json => out.extend_from_slice(&plain),
            Writing::Percent => put_percent(&plain, out),
        }
    }
}

fn put_percent(token: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let is_escape = |at: usize| {
        let digits = token.get(at + 1..at + 3);
        digits.is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit))
    };
    for (at, &byte) in token.iter().enumerate() {
        // A link has it in this writing already.
        let stays = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'~')
            || byte == b'%' && is_escape(at);
        match stays {
            true => out.push(byte),
            false => {
                let digit = |of: u8| DIGITS.get(usize::from(of)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

/// The text with the application's tokens. `found`: the server's, in their order; `of` gives the application's for one.
/// `None`: there is none for one of them.
#[must_use]
pub fn with_tokens<'t>(
    text: &[u8],
    found: &[FoundToken],
    writing: Writing,
    of: &dyn Fn(&FoundToken) -> Option<&'t [u8]>,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut at = 0;
    for token in found {
        out.extend_from_slice(text.get(at..token.range.start)?);
        writing.put(of(token)?, &mut out);
        at = token.range.end;
    }
    out.extend_from_slice(text.get(at..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(writing: Writing, token: &str) -> String {
        let mut out = Vec::new();
        writing.put(token.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_token_is_written_as_its_place_asks() {
        assert_eq!(written(Writing::Percent, "ab+c/d="), "ab%2Bc%2Fd%3D");
        assert_eq!(written(Writing::Percent, "ab%2Bc"), "ab%2Bc");
        assert_eq!(written(Writing::Percent, "ab%x"), "ab%25x");
        assert_eq!(written(Writing::Plain, "ab+c\\/d"), "ab+c/d");
        assert_eq!(written(Writing::Json, "ab+c/d"), "ab+c/d");
    }

    #[test]
    fn the_writing_is_that_of_the_body() {
        for (media, wanted) in [
            (
                "application/x-www-form-urlencoded; charset=UTF-8",
                Writing::Percent,
            ),
            ("multipart/form-data; boundary=x", Writing::Plain),
            ("Application/JSON", Writing::Json),
            ("application/vnd.api+json", Writing::Json),
            ("", Writing::Plain),
        ] {
            assert_eq!(Writing::of_body(media.as_bytes()), wanted, "{media}");
        }
    }
}
