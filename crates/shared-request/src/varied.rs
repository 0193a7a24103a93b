//! Fields that the application is sent once one of its responses has named them in `Vary`
//! (RFC 9110 §12.5.5): preferences, which are for the store to compare. They are brought to
//! one form, so that visitors who want the same share it.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};

use http_semantics::RequestView;

use crate::left_out::class_of;
use crate::media;

/// Languages that are sent at most: applications hardly look beyond.
const MAX_LANGUAGES: usize = 4;

/// Longer values are not sent: the client chooses them, and each makes a variant.
const MAX_VALUE_BYTES: usize = 256;

/// May the field called `name` (lower case) be sent because a response has named it?
#[must_use]
pub fn may_be_sent(name: &str) -> bool {
    matches!(
        name,
        "accept"
            | "accept-language"
            | "origin"
            | "device-memory"
            | "downlink"
            | "dpr"
            | "ect"
            | "rtt"
            | "save-data"
            | "viewport-width"
            | "width"
    ) || name.starts_with("sec-ch-")
}

/// Appends the value of the field `name` (lower case) as it is sent; false if it is not.
/// Accept is always sent: a client without it takes pages like browsers.
pub fn put_value(head: RequestView<'_>, name: &str, out: &mut Vec<u8>) -> bool {
    if !may_be_sent(name) {
        return false;
    }
    let is_received = put_received(head, name, out);
    if !is_received && name == "accept" {
        out.extend_from_slice(media::ACCEPT.as_bytes());
        return true;
    }
    is_received
}

/// Is the field `name` (lower case) of this request sent as the client means it?
pub(crate) fn is_fit(head: RequestView<'_>, name: &str) -> bool {
    may_be_sent(name) && put_received(head, name, &mut Vec::new())
}

/// Appends the client's own value of the field.
fn put_received(head: RequestView<'_>, name: &str, out: &mut Vec<u8>) -> bool {
    let Some(value) = head.field_joined(name.as_bytes()) else {
        return false;
    };
    let start = out.len();
    match name {
        "accept" => put_list(&value, out),
        "accept-language" => put_languages(&value, out),
        _ => out.extend_from_slice(value.trim_ascii()),
    }
    let sent = out.get(start..).unwrap_or_default();
    let is_fit = !sent.is_empty()
        && sent.len() <= MAX_VALUE_BYTES
        && sent.iter().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_fit {
        out.truncate(start);
    }
    is_fit
}

/// Members in their order, without white space, in lower case.
fn put_list(value: &[u8], out: &mut Vec<u8>) {
    let mut is_first = true;
    for member in value.split(|&byte| byte == b',') {
        let member = member.trim_ascii();
        if member.is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend(
            member
                .iter()
                .filter(|byte| !byte.is_ascii_whitespace())
                .map(u8::to_ascii_lowercase),
        );
    }
}

/// Values of `Accept-Language` that a thread remembers.
const REMEMBERED: usize = 256;

thread_local! {
    /// Values by hash: the value as it was received, and its class.
    static KNOWN: RefCell<Vec<(Box<[u8]>, u32)>> = const { RefCell::new(Vec::new()) };
}

/// The class of a value of `Accept-Language`: the same for values that have one form. Browsers of one kind
/// and language all send the same text.
pub(crate) fn language_class(value: &[u8]) -> u32 {
    let mut hasher = foldhash::fast::FixedState::with_seed(0).build_hasher();
    hasher.write(value);
    let index = (hasher.finish() % REMEMBERED as u64) as usize;
    KNOWN.with_borrow_mut(|known| {
        if known.is_empty() {
            known.resize_with(REMEMBERED, Default::default);
        }
        let Some(place) = known.get_mut(index) else {
            return class_of(&one_form(value));
        };
        if place.1 == 0 || *place.0 != *value {
            *place = (value.into(), class_of(&one_form(value)));
        }
        place.1
    })
}

fn one_form(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    put_languages(value, &mut out);
    match out.is_empty() {
        // The application is the judge of a value that is no list.
        true => value.get(..MAX_VALUE_BYTES).unwrap_or(value).to_vec(),
        false => out,
    }
}

/// The languages that are wanted most, the first of them first, with weights that say only
/// their order: `de-at,de;q=0.9,en;q=0.8`.
fn put_languages(value: &[u8], out: &mut Vec<u8>) {
    let mut languages: Vec<(u16, Vec<u8>)> = Vec::new();
    for member in value.split(|&byte| byte == b',') {
        let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let language = parts.next().unwrap_or_default().to_ascii_lowercase();
        let is_one = language == b"*"
            || !language.is_empty()
                && language
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        let parameters: Vec<&[u8]> = parts.collect();
        let is_refused = parameters.iter().any(|it| media::is_refusal(it));
        if !is_one || is_refused || languages.iter().any(|(_, known)| *known == language) {
            continue;
        }
        let weight = parameters.iter().find_map(|it| weight(it)).unwrap_or(1000);
        languages.push((weight, language));
    }
    // Stable: of those with one weight, the first was named first.
    languages.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    for (index, (_, language)) in languages.iter().take(MAX_LANGUAGES).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(language);
        if index > 0 {
            out.extend_from_slice(b";q=0.");
            out.push(b'0' + (10 - index) as u8);
        }
    }
}

/// `q=0.85` in thousandths (RFC 9110 §12.4.2).
fn weight(parameter: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(parameter).ok()?;
    let (name, value) = text.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value: f32 = value.trim().parse().ok()?;
    value
        .is_finite()
        .then(|| (value.clamp(0.0, 1.0) * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use http1::{HeadLimits, parse_head};

    use super::*;

    fn sent(name: &str, fields: &str) -> Option<String> {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let head = parse_head(text, &HeadLimits::default()).unwrap();
        let mut out = b"x".to_vec();
        let found = put_value(head.view(), name, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(found, text.len() > 1, "{name} {fields}");
        found.then(|| text[1..].to_owned())
    }

    #[test]
    fn preferences_are_sent_in_one_form() {
        #[rustfmt::skip]
        let cases = [
            ("accept-language", "Accept-Language: de-AT, de;q=0.9,en ;q=0.8\r\n", Some("de-at,de;q=0.9,en;q=0.8")),
            ("accept-language", "Accept-Language: en;q=0.3,fr;q=0.5\r\n", Some("fr,en;q=0.9")),
            (
                "accept-language", "Accept-Language: a,b\r\nAccept-Language: c,d,e\r\n",
                Some("a,b;q=0.9,c;q=0.8,d;q=0.7"),
            ),
            ("accept-language", "Accept-Language: de;q=0,en\r\n", Some("en")),
            ("accept-language", "Accept-Language: <script>,%0d\r\n", None),
            ("accept-language", "", None),
            ("accept", "Accept: Text/HTML, image/webp ; q=0.8\r\n", Some("text/html,image/webp;q=0.8")),
            ("accept", "", Some(media::ACCEPT)),
            ("accept", "Accept: \u{e9}\r\n", Some(media::ACCEPT)),
            ("origin", "Origin: https://a.test\r\n", Some("https://a.test")),
            ("sec-ch-ua-mobile", "Sec-CH-UA-Mobile: ?1\r\n", Some("?1")),
            ("save-data", "Save-Data: on\r\n", Some("on")),
            ("cookie", "Cookie: a=b\r\n", None),
            ("x-invented", "X-Invented: a\r\n", None),
            ("user-agent", "User-Agent: a\r\n", None),
        ];
        for (name, fields, wanted) in cases {
            assert_eq!(sent(name, fields).as_deref(), wanted, "{name} {fields}");
        }
        let long = format!("Origin: {}\r\n", "a".repeat(300));
        assert_eq!(sent("origin", &long), None);
    }
}
