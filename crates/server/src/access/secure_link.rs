//! `secure_link`, `secure_link_md5`, `secure_link_secret`: was a link made by one who knows the
//! secret, and does it still hold?
//! (<https://nginx.org/en/docs/http/ngx_http_secure_link_module.html>).
//!
//! The answer is the variable `$secure_link`; `if` decides the consequence. Digests are compared
//! in constant time, so that none can be found out byte by byte.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http_semantics::hex_pair;
use md5::{Digest, Md5};
use site::{Builtin as B, SecureLink};

use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (B::SecureLink, Of(put_verdict)),
    (B::SecureLinkExpires, Of(put_expires)),
];

/// A digest in base64url, with padding.
const MAX_DIGEST_TEXT_BYTES: usize = 24;
/// A decoder as lenient as nginx's: bits and padding beyond the digest have no meaning.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The parts of a link's signature: `DIGEST` or `DIGEST,EXPIRES`.
struct LinkParts<'a> {
    digest: &'a [u8],
    /// The end of the link as text, and in seconds.
    expires: Option<(&'a [u8], i64)>,
}

impl LinkParts<'_> {
    /// `None`: an end that is no time.
    fn parse(text: &[u8]) -> Option<LinkParts<'_>> {
        let Some(comma) = memchr::memchr(b',', text) else {
            return Some(LinkParts {
                digest: text,
                expires: None,
            });
        };
        let (digest, written) = (text.get(..comma)?, text.get(comma + 1..)?);
        if written.is_empty() || !written.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let seconds: i64 = std::str::from_utf8(written).ok()?.parse().ok()?;
        (seconds > 0).then_some(LinkParts {
            digest,
            expires: Some((written, seconds)),
        })
    }

    /// Is its digest the one of `signed`?
    fn is_of(&self, signed: &[u8]) -> bool {
        if self.digest.len() > MAX_DIGEST_TEXT_BYTES {
            return false;
        }
        let end = memchr::memchr(b'=', self.digest).unwrap_or(self.digest.len());
        let decoded = BASE64_URL.decode(self.digest.get(..end).unwrap_or_default());
        decoded.is_ok_and(|digest| is_md5_of(&digest, &[signed]))
    }
}

fn is_md5_of(digest: &[u8], parts: &[&[u8]]) -> bool {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    verify_slices_are_equal(&hash.finalize(), digest).is_ok()
}

/// `$secure_link`: `1` for a link that holds, `0` for one that did, the rest of the address for
/// the older form; no value for any other.
fn put_verdict(request: &Request, out: &mut Vec<u8>) -> bool {
    let settings = request.settings();
    match settings.secure_link.as_deref() {
        Some(SecureLink::Signed { link, text }) => {
            let link = variable::evaluate(request, link);
            let signed = variable::evaluate(request, text);
            let parts = LinkParts::parse(&link).filter(|parts| parts.is_of(&signed));
            let Some(parts) = parts else {
                return false;
            };
            let now = i64::try_from(clock::wall(request.now()) / 1000).unwrap_or(i64::MAX);
            let is_over = parts.expires.is_some_and(|(_, end)| end < now);
            out.push(if is_over { b'0' } else { b'1' });
            true
        }
        Some(SecureLink::Secret(secret)) => match rest_of(request.received.target(), secret) {
            Some(rest) => {
                out.extend_from_slice(rest);
                true
            }
            None => false,
        },
        None => false,
    }
}

/// `$secure_link_expires`: the end of a link, copied from its address.
fn put_expires(request: &Request, out: &mut Vec<u8>) -> bool {
    let settings = request.settings();
    let Some(SecureLink::Signed { link, .. }) = settings.secure_link.as_deref() else {
        return false;
    };
    let link = variable::evaluate(request, link);
    match LinkParts::parse(&link).and_then(|parts| parts.expires) {
        Some((written, _)) => {
            out.extend_from_slice(written);
            true
        }
        None => false,
    }
}

/// Returns REST of `/PREFIX/DIGEST/REST`, if the digest is the one of REST and the secret.
fn rest_of<'a>(target: &'a [u8], secret: &[u8]) -> Option<&'a [u8]> {
    let mut parts = target.strip_prefix(b"/")?.splitn(3, |&byte| byte == b'/');
    let (_, digest, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let mut bytes = [0; 16];
    let (pairs, odd) = digest.as_chunks::<2>();
    if pairs.len() != bytes.len() || !odd.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = hex_pair(*high, *low)?;
    }
    is_md5_of(&bytes, &[rest, secret]).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_links_are_compared() {
        // printf secret/test.html | openssl md5 -binary | openssl base64 | tr +/ -_
        for (link, expected) in [
            (&b"q-5vpkjBkRXXtkUMXiJVHA=="[..], true),
            (b"q-5vpkjBkRXXtkUMXiJVHA", true),
            (b"q-5vpkjBkRXXtkUMXiJVHA,1", true),
            (b"q-5vpkjBkRXXtkUMXiJVHA=,9999999999", true),
            (b"q-5vpkjBkRXXtkUMXiJVHA,", false),
            (b"q-5vpkjBkRXXtkUMXiJVHA,0", false),
            (b"q-5vpkjBkRXXtkUMXiJVHA,-1", false),
            (b"q-5vpkjBkRXXtkUMXiJVHA,99999999999999999999", false),
            (b"q-5vpkjBkRXXtkUMXiJVHAQQ", false),
            (b"q-5vpkjBkRXXtkUMXiJVHA-TOOLONG", false),
            (b"q-5vpkjBkRXXtkUMXiJVHX==", false),
            (b"q+5vpkjBkRXXtkUMXiJVHA==", false),
            (b"BADHASHLENGTH", false),
            (b"", false),
            (b",", false),
        ] {
            let parts = LinkParts::parse(link);
            let is_valid = parts.is_some_and(|parts| parts.is_of(b"secret/test.html"));
            assert_eq!(is_valid, expected, "{:?}", String::from_utf8_lossy(link));
        }
    }

    #[test]
    fn the_rest_of_an_older_link_is_found() {
        let link = "/p/181a8c6df88b74bb87b14f72df0a86f9/test.html";
        for (target, expected) in [
            (link.to_owned(), Some(&b"test.html"[..])),
            (
                link.to_uppercase().replace("TEST.HTML", "test.html"),
                Some(b"test.html"),
            ),
            (format!("{link}?a"), None),
            (link.replace("181", "000"), None),
            (link.replace("181", ""), None),
            (link.replace("/p", ""), None),
            ("/p/test.html".to_owned(), None),
            ("*".to_owned(), None),
        ] {
            assert_eq!(rest_of(target.as_bytes(), b"secret"), expected, "{target}");
        }
    }
}
