//! Judgement of a response that a clean visitor got after another visitor's altered request.
//!
//! A [`Sign`] is a trace of the alteration in the response. It becomes a finding once `page_audit.rs` has
//! seen it again with another cache buster, while control requests without a variation do not show it.

use serde::Serialize;

use super::baseline::{Baseline, Difference};
use super::response::PageResponse;

/// The kind of a finding, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignKind {
    /// A visitor gets a cookie that was set for another visitor.
    Leak,
    /// A visitor gets a page that another visitor's request has shaped.
    Poisoning,
    /// A visitor gets the usual page, though the application has another one for this visitor.
    WrongPage,
}

impl SignKind {
    pub fn words(self) -> &'static str {
        match self {
            SignKind::Leak => "leak",
            SignKind::Poisoning => "poisoning",
            SignKind::WrongPage => "wrong page",
        }
    }
}

/// A sign of an alteration in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A value of the altered request, with the text around it.
    Evidence { value: String, shown: String },
    /// `Set-Cookie` of another visitor.
    SharedCookie(String),
    /// Another page than usual visitors get.
    Difference(Difference),
    /// The usual page, in place of one that differs from it in this way.
    UsualPage(Difference),
}

impl Sign {
    pub fn kind(&self) -> SignKind {
        match self {
            Sign::SharedCookie(_) => SignKind::Leak,
            Sign::Evidence { .. } | Sign::Difference(_) => SignKind::Poisoning,
            Sign::UsualPage(_) => SignKind::WrongPage,
        }
    }

    /// Whether two signs are of one kind: the values differ between two runs.
    pub fn is_like(&self, other: &Sign) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// One sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Sign::Evidence { shown, .. } => {
                format!("the next visitor gets its value: {shown}")
            }
            Sign::SharedCookie(cookie) => {
                let name = cookie.split('=').next().unwrap_or_default();
                format!("the next visitor is given the cookie {name} that was set for this one")
            }
            Sign::Difference(difference) => {
                format!("the next visitor gets {}", difference_text(difference))
            }
            Sign::UsualPage(difference) => format!(
                "answered from memory with the usual page; without the cache this visitor gets {}",
                difference_text(difference)
            ),
        }
    }
}

fn difference_text(difference: &Difference) -> String {
    match difference {
        Difference::Status { usual, seen } => format!("status {seen} in place of {usual}"),
        Difference::Field { name, usual, seen } => match (&**usual, &**seen) {
            ("", seen) => format!("a field more: {name}: {}", quoted(seen)),
            (usual, "") => format!("no {name}, which is usually {}", quoted(usual)),
            (usual, seen) => {
                format!("{name}: {} in place of {}", quoted(seen), quoted(usual))
            }
        },
        Difference::Body { missing, new } => match (&**missing, &**new) {
            ("", new) => format!("another page, which has also {}", quoted(new)),
            (missing, "") => format!("another page, which lacks {}", quoted(missing)),
            (missing, new) => format!(
                "another page, with {} and without {}",
                quoted(new),
                quoted(missing)
            ),
        },
    }
}

/// Judges a clean visitor's response after an altered request with this evidence, whose own responses set
/// `cookies`.
pub fn sign(
    baseline: &Baseline,
    (evidence, cookies): (&[String], &[String]),
    response: &PageResponse,
    buster: Option<&str>,
) -> Option<Sign> {
    let text = response.lower_text();
    for value in evidence {
        if let Some(at) = text.find(value.as_str())
            && !baseline.has_text(value)
        {
            return Some(Sign::Evidence {
                value: value.clone(),
                shown: around(&text, at, value.len()),
            });
        }
    }
    let is_shared = |cookie: &&str| {
        let is_theirs = cookies.iter().any(|it| it == cookie);
        is_theirs && !baseline.has_cookie(cookie, buster)
    };
    if let Some(cookie) = response.values("set-cookie").find(is_shared) {
        return Some(Sign::SharedCookie(cookie.to_owned()));
    }
    baseline.difference(response, buster).map(Sign::Difference)
}

/// Judges responses of clean visitors alone, each list from one address: a cookie that two visitors of an
/// address are given, and visitors of other addresses are not, was stored.
pub fn stored_cookie(addresses: &[(String, Vec<PageResponse>)]) -> Option<String> {
    let is_ever_known = addresses
        .iter()
        .flat_map(|(_, responses)| responses)
        .any(PageResponse::is_from_memory);
    for (index, (buster, responses)) in addresses.iter().enumerate() {
        let others = addresses.iter().enumerate().filter(|(it, _)| *it != index);
        let others: Vec<String> = others
            .flat_map(|(_, (buster, responses))| {
                let cookies = responses.iter().flat_map(|it| it.values("set-cookie"));
                cookies.map(|it| it.replace(buster.as_str(), "~"))
            })
            .collect();
        for (at, response) in responses.iter().enumerate().skip(1) {
            if is_ever_known && !response.is_from_memory() {
                continue;
            }
            let earlier = responses.get(..at).unwrap_or_default();
            let was_given = |cookie: &str| {
                let mut all = earlier.iter().flat_map(|it| it.values("set-cookie"));
                all.any(|it| it == cookie)
            };
            let is_of_all = |cookie: &str| others.contains(&cookie.replace(buster.as_str(), "~"));
            let mut cookies = response.values("set-cookie");
            if let Some(cookie) = cookies.find(|it| was_given(it) && !is_of_all(it)) {
                return Some(cookie.to_owned());
            }
        }
    }
    None
}

/// The text around the first place of a value.
pub fn around_value(text: &str, value: &str) -> String {
    let at = text.find(value);
    at.map_or_else(String::new, |at| around(text, at, value.len()))
}

/// Bytes of text that are shown on each side of a value.
const AROUND_BYTES: usize = 40;
/// Characters of a part that are shown.
const MAX_SHOWN: usize = 80;

/// The text around a value, within its line.
fn around(text: &str, at: usize, length: usize) -> String {
    let mut from = at.saturating_sub(AROUND_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let mut to = (at + length + AROUND_BYTES).min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    let before = text.get(from..at).unwrap_or_default();
    let before = before.rsplit('\n').next().unwrap_or_default();
    let rest = text.get(at..to).unwrap_or_default();
    let rest = rest.split('\n').next().unwrap_or_default();
    format!("{before}{rest}").trim().to_owned()
}

/// Returns the text, with `...` in the place of what stands behind its first `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    let mut letters = text.chars();
    let begin: String = letters.by_ref().take(most).collect();
    match letters.next() {
        Some(_) => format!("{begin}..."),
        None => begin,
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text, MAX_SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(fields: &[(&str, &str)], body: &str) -> PageResponse {
        let fields = fields.iter();
        PageResponse {
            status: 200,
            fields: fields
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: body.as_bytes().to_vec(),
        }
    }

    fn baseline() -> Baseline {
        let mut baseline = Baseline::default();
        for _ in 0..2 {
            baseline.add(&response(&[], "<p>page 198.51.100.7"), None);
        }
        baseline
    }

    fn kind(evidence: &str, cookies: &[String], response: &PageResponse) -> Option<SignKind> {
        let evidence = [evidence.to_owned()];
        sign(&baseline(), (&evidence, cookies), response, None).map(|it| it.kind())
    }

    #[test]
    fn values_of_another_visitor_are_poisoning_wherever_they_stand() {
        for response in [
            response(&[], "<p>page 198.51.100.7<a href=//MFWx.test>"),
            response(&[("location", "http://mfwx.test/")], ""),
            response(&[("set-cookie", "from=mfwx")], "<p>page 198.51.100.7"),
        ] {
            assert_eq!(kind("mfwx", &[], &response), Some(SignKind::Poisoning));
        }
    }

    #[test]
    fn values_that_every_visitor_gets_are_no_sign() {
        let usual = response(&[], "<p>page 198.51.100.7");
        assert_eq!(kind("198.51.100.7", &[], &usual), None);
    }

    #[test]
    fn a_cookie_of_another_visitor_is_a_leak() {
        let cookies = ["session=1".to_owned()];
        let body = "<p>page 198.51.100.7";
        let theirs = response(&[("set-cookie", "session=1")], body);
        assert_eq!(kind("mfwx", &cookies, &theirs), Some(SignKind::Leak));
        // It is a new field of the page all the same.
        let own = response(&[("set-cookie", "session=2")], body);
        assert_eq!(kind("mfwx", &cookies, &own), Some(SignKind::Poisoning));
    }

    #[test]
    fn another_page_is_poisoning() {
        assert_eq!(
            kind("mfwx", &[], &response(&[], "<p>Seite")),
            Some(SignKind::Poisoning)
        );
    }

    fn visits(buster: &str, cookies: &[&str], is_from_memory: bool) -> (String, Vec<PageResponse>) {
        let responses = cookies.iter().enumerate().map(|(number, cookie)| {
            let word = if is_from_memory && number > 0 {
                "HIT"
            } else {
                "MISS"
            };
            response(&[("x-cache", word), ("set-cookie", cookie)], "")
        });
        (buster.to_owned(), responses.collect())
    }

    #[test]
    fn a_cookie_that_is_kept_with_the_page_is_found() {
        let kept = [
            visits("b", &["s=1", "s=1"], true),
            visits("c", &["s=2", "s=2"], true),
        ];
        assert_eq!(stored_cookie(&kept).as_deref(), Some("s=1"));
        for harmless in [
            // Each visitor has an own one.
            [
                visits("b", &["s=1", "s=2"], false),
                visits("c", &["s=3", "s=4"], false),
            ],
            // The server adds it to responses from memory.
            [
                visits("b", &["s=1", "s=2"], true),
                visits("c", &["s=3", "s=4"], true),
            ],
            // All visitors have the same one.
            [
                visits("b", &["s=1", "s=1"], true),
                visits("c", &["s=1", "s=1"], true),
            ],
            // It is made of the address.
            [
                visits("b", &["s=b", "s=b"], true),
                visits("c", &["s=c", "s=c"], true),
            ],
        ] {
            assert_eq!(stored_cookie(&harmless), None);
        }
    }

    #[test]
    fn what_is_shown_is_short_and_within_its_line() {
        let text = format!("{}\n<a href=mfwx>\u{e9}\nmore", "y".repeat(90));
        let at = text.find("mfwx").unwrap();
        assert_eq!(around(&text, at, 4), "<a href=mfwx>\u{e9}");
        assert_eq!(quoted(&"\u{e9}".repeat(81)).chars().count(), MAX_SHOWN + 5);
    }
}
