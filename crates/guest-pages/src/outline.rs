//! The parts of an answer's head that may be for one visitor: where it leads, and the cookies that it sets.
//!
//! Two guests who ask for their wish list are both led to the log-in form. A link that logs a visitor in leads elsewhere
//! when it is used a second time.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use page_evidence::AnswerOutline;

use crate::session::{Field, set_cookies};

/// The shortest word of a target that may be drawn for one answer.
const MIN_DRAWN: usize = 8;

/// The outline of an answer with this status and these fields.
#[must_use]
pub fn of(status: u16, fields: &[Field]) -> AnswerOutline {
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut locations = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"location"));
    let location = locations.next().map(|(_, value)| without_drawn(value));
    let cookies = set_cookies(fields);
    let names = cookies.iter().filter(|cookie| !cookie.is_removed);
    let bits = names.map(|cookie| 1_u32 << (SECRET.hash_one(cookie.name) % 32));
    AnswerOutline {
        digest: SECRET.hash_one((status, location)) as u32,
        cookies: bits.fold(0, |all, bit| all | bit),
        is_page: status == 200,
    }
}

/// Is an answer with this status and these fields a page that people read?
#[must_use]
pub fn is_html_page(status: u16, fields: &[Field]) -> bool {
    let mut types = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
    let html = b"text/html";
    let is_html = |value: &[u8]| {
        let start = value.trim_ascii().get(..html.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(html))
    };
    status == 200 && types.next().is_some_and(|(_, value)| is_html(value))
}

/// A target without its numbers, and without its words that are drawn: those of a search, or of a random picture.
fn without_drawn(target: &[u8]) -> Vec<Vec<u8>> {
    let words = target.split(|byte| !byte.is_ascii_alphanumeric());
    words
        .map(|word| match is_drawn(word) {
            true => Vec::new(),
            false => word.to_vec(),
        })
        .collect()
}

fn is_drawn(word: &[u8]) -> bool {
    let has_digit = word.iter().any(u8::is_ascii_digit);
    let mut pairs = word.windows(2);
    let is_mixed = pairs.any(|it| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase());
    let is_number = word.iter().all(u8::is_ascii_digit);
    is_number || word.len() >= MIN_DRAWN && (has_digit || is_mixed)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn outline(status: u16, fields: &[(&'static str, &'static str)]) -> AnswerOutline {
        let to_bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        let fields: Vec<Field> = fields
            .iter()
            .map(|(name, value)| (to_bytes(name), to_bytes(value)))
            .collect();
        of(status, &fields)
    }

    #[test]
    fn answers_that_lead_elsewhere_differ() {
        let log_in = outline(302, &[("Location", "/login"), ("Set-Cookie", "sid=1")]);
        let again = outline(302, &[("location", "/login")]);
        assert_eq!(log_in.digest, again.digest);
        assert_eq!(again.cookies, 0);
        assert_ne!(log_in.cookies, 0);
        for other in [
            outline(303, &[("Location", "/login")]),
            outline(302, &[("Location", "/account")]),
            outline(302, &[]),
        ] {
            assert_ne!(other.digest, log_in.digest);
        }
    }

    #[test]
    fn what_is_drawn_for_one_answer_does_not_count() {
        let search = |target| outline(302, &[("Location", target)]).digest;
        assert_eq!(
            search("/index.php?/search/psk-20261129-hQkPwZbNcd"),
            search("/index.php?/search/psk-20261129-ZZkbwabQcd")
        );
        assert_eq!(search("/list/12,3"), search("/list/1,13"));
        assert_ne!(search("/user/12"), search("/login"));
    }
}
