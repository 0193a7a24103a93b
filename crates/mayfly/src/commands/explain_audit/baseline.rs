//! The page as usual visitors get it, made of several clean responses, and how a response differs from it.
//!
//! Only parts that all clean responses have in common count. A body is cut into parts at `<` and at line
//! ends, so that a nonce or a timer takes out the part that it is in and no more. The cache buster and
//! numbers are masked: a page may print its own address, and counters move.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::response::PageResponse;

/// Fields that differ between two responses of one page, or follow from its body.
#[rustfmt::skip]
const VOLATILE_FIELDS: [&str; 27] = [
    // Stored answers have it, and those that are passed on may not.
    "accept-ranges", "age", "alt-svc", "cache-status", "cf-cache-status", "cf-ray", "connection", "content-length",
    "date", "etag", "expires", "keep-alive", "last-modified", "nel", "report-to", "server-timing",
    "transfer-encoding", "vary", "via", "x-cache", "x-cache-status", "x-fastcgi-cache", "x-nginx-cache",
    "x-proxy-cache", "x-request-id", "x-runtime", "x-varnish",
];

/// The common properties of clean responses.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    responses: usize,
    statuses: BTreeSet<u16>,
    /// Fields that all responses have with the same values.
    stable_fields: BTreeMap<String, String>,
    /// Names of fields that a response has had.
    known_names: BTreeSet<String>,
    /// Parts that all bodies have.
    stable_parts: HashSet<String>,
    /// Parts that a body has had.
    known_parts: HashSet<String>,
    /// `Set-Cookie` of clean visitors.
    cookies: HashSet<String>,
    /// The first response as text.
    text: String,
}

/// How a response differs from the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Status {
        usual: u16,
        seen: u16,
    },
    Field {
        name: String,
        usual: String,
        seen: String,
    },
    Body {
        missing: String,
        new: String,
    },
}

impl Baseline {
    /// Adds a clean response, which was requested with this cache buster.
    pub fn add(&mut self, response: &PageResponse, buster: Option<&str>) {
        let fields = masked_fields(response, buster);
        let parts = parts(&response.body, buster);
        if self.responses == 0 {
            self.stable_fields.clone_from(&fields);
            self.stable_parts.clone_from(&parts);
            self.text = response.lower_text();
        } else {
            self.stable_fields
                .retain(|name, value| fields.get(name) == Some(value));
            self.stable_parts.retain(|part| parts.contains(part));
        }
        self.responses += 1;
        self.statuses.insert(response.status);
        self.known_names.extend(fields.into_keys());
        self.known_parts.extend(parts);
        let cookies = response.values("set-cookie").map(|it| masked(it, buster));
        self.cookies.extend(cookies);
    }

    /// The status of a clean response.
    pub fn status(&self) -> Option<u16> {
        self.statuses.first().copied()
    }

    /// Whether clean visitors get a text anyway.
    pub fn has_text(&self, lower: &str) -> bool {
        self.text.contains(lower)
    }

    /// Whether a clean visitor has been given this value of `Set-Cookie`.
    pub fn has_cookie(&self, value: &str, buster: Option<&str>) -> bool {
        self.cookies.contains(&masked(value, buster))
    }

    /// The first difference between a response and the baseline.
    pub fn difference(&self, response: &PageResponse, buster: Option<&str>) -> Option<Difference> {
        let fields = masked_fields(response, buster);
        self.status_difference(response)
            .or_else(|| self.field_difference(&fields))
            .or_else(|| self.body_difference(response, buster))
    }

    /// The first difference that visitors see: the status, where a redirect leads, or the body.
    pub fn visible_difference(
        &self,
        response: &PageResponse,
        buster: Option<&str>,
    ) -> Option<Difference> {
        let mut fields = masked_fields(response, buster);
        for (name, value) in &self.stable_fields {
            if name != "location" {
                fields.insert(name.clone(), value.clone());
            }
        }
        fields.retain(|name, _| name == "location" || self.stable_fields.contains_key(name));
        self.status_difference(response)
            .or_else(|| self.field_difference(&fields))
            .or_else(|| self.body_difference(response, buster))
    }

    fn status_difference(&self, response: &PageResponse) -> Option<Difference> {
        let (usual, seen) = (self.status()?, response.status);
        let is_usual = self.statuses.contains(&seen);
        (!is_usual).then_some(Difference::Status { usual, seen })
    }

    fn field_difference(&self, fields: &BTreeMap<String, String>) -> Option<Difference> {
        let seen = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let changed = self
            .stable_fields
            .iter()
            .find(|(name, usual)| seen(name) != **usual);
        if let Some((name, usual)) = changed {
            return Some(Difference::Field {
                name: name.clone(),
                usual: usual.clone(),
                seen: seen(name),
            });
        }
        let is_new = |name: &&String| !self.known_names.contains(*name);
        let new = fields.keys().find(is_new)?;
        Some(Difference::Field {
            name: new.clone(),
            usual: String::new(),
            seen: seen(new),
        })
    }

    fn body_difference(&self, response: &PageResponse, buster: Option<&str>) -> Option<Difference> {
        let parts = parts(&response.body, buster);
        let mut missing: Vec<&String> = self.stable_parts.difference(&parts).collect();
        let mut new: Vec<&String> = parts.difference(&self.known_parts).collect();
        // A part that is added to a page with parts of its own each time is no difference by itself.
        let is_steady = self.known_parts.len() == self.stable_parts.len();
        if missing.is_empty() && (new.is_empty() || !is_steady) {
            return None;
        }
        missing.sort();
        new.sort();
        let first = |parts: &[&String]| parts.first().map_or_else(String::new, |it| (*it).clone());
        Some(Difference::Body {
            missing: first(&missing),
            new: first(&new),
        })
    }
}

/// Values of fields by name, several lines joined.
fn masked_fields(response: &PageResponse, buster: Option<&str>) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in &response.fields {
        if VOLATILE_FIELDS.contains(&&**name) {
            continue;
        }
        let value = masked(value, buster);
        fields
            .entry(name.clone())
            .and_modify(|all| *all = format!("{all}, {value}"))
            .or_insert(value);
    }
    fields
}

/// The parts of a body, each once.
fn parts(body: &[u8], buster: Option<&str>) -> HashSet<String> {
    let text = masked(&String::from_utf8_lossy(body), buster);
    let pieces = text.split(['<', '\n']).map(|it| without_numbers(it.trim()));
    pieces.filter(|it| !it.is_empty()).collect()
}

/// A text in which the cache buster is a `~`, in whatever case it stands.
fn masked(text: &str, buster: Option<&str>) -> String {
    let Some(buster) = buster.filter(|it| !it.is_empty()) else {
        return text.to_owned();
    };
    // Same places: ASCII letters keep their length.
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, found) in lower.match_indices(buster) {
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push('~');
        from = at + found.len();
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// A text with a `#` for each number.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if out.ends_with('#') => {}
            true => out.push('#'),
            false => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, fields: &str, body: &str) -> PageResponse {
        let lines = fields.lines().filter_map(|line| line.split_once(": "));
        PageResponse {
            status,
            fields: lines
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            body: body.as_bytes().to_vec(),
        }
    }

    fn baseline(bodies: &[&str]) -> Baseline {
        let mut baseline = Baseline::default();
        for body in bodies {
            baseline.add(
                &response(200, "content-type: text/html", body),
                Some("bust"),
            );
        }
        baseline
    }

    fn differs(baseline: &Baseline, body: &str) -> bool {
        let response = response(200, "content-type: text/html", body);
        baseline.difference(&response, Some("bust")).is_some()
    }

    #[test]
    fn nonces_timers_and_counters_make_no_difference() {
        let page = |nonce: &str, time: &str| {
            format!("<p>text\n<script nonce={nonce}>x</script><!-- {time} ms -->")
        };
        let baseline = baseline(&[&page("aX", "1"), &page("bY", "22"), &page("cZ", "3")]);
        assert!(!differs(&baseline, &page("dW", "444")));
        assert!(differs(
            &baseline,
            "<p>other text\n<script nonce=e>x</script>"
        ));
        assert!(differs(&baseline, ""));
    }

    #[test]
    fn the_cache_buster_is_masked_in_any_case() {
        let baseline = baseline(&["<a href=/?x=bust>", "<a href=/?x=bust>"]);
        assert!(!differs(&baseline, "<a href=/?x=BUST>"));
        assert!(differs(&baseline, "<a href=/?x=other>"));
        assert_eq!(masked("a\u{e9}Bust b", Some("bust")), "a\u{e9}~ b");
    }

    #[test]
    fn an_added_part_is_a_difference_of_a_steady_page_only() {
        assert!(differs(&baseline(&["<p>a", "<p>a"]), "<p>a<p>b"));
        assert!(!differs(
            &baseline(&["<p>a<i>x", "<p>a<i>y"]),
            "<p>a<i>z<i>w"
        ));
    }

    #[test]
    fn status_and_stable_fields_are_compared_and_volatile_ones_are_not() {
        let mut baseline = Baseline::default();
        let clean = "content-type: text/html\ndate: 1\nage: 0\nset-cookie: a=x";
        baseline.add(&response(302, clean, ""), None);
        baseline.add(&response(302, "content-type: text/html\ndate: 2", ""), None);
        for (status, fields, expected) in [
            (302, "content-type: text/html\nage: 9", None),
            (302, "content-type: text/html\nset-cookie: a=y", None),
            (404, "content-type: text/html", Some("status")),
            (302, "content-type: text/plain", Some("content-type")),
            (302, "", Some("content-type")),
            (
                302,
                "content-type: text/html\nlocation: /",
                Some("location"),
            ),
        ] {
            let difference = baseline.difference(&response(status, fields, ""), None);
            let name = difference.map(|it| match it {
                Difference::Status { .. } => "status".to_owned(),
                Difference::Field { name, .. } => name,
                Difference::Body { .. } => "body".to_owned(),
            });
            assert_eq!(name.as_deref(), expected, "{status} {fields}");
        }
    }

    #[test]
    fn visitors_see_status_location_and_body() {
        let mut baseline = Baseline::default();
        baseline.add(&response(302, "location: /a\nserver: x", "<p>a"), None);
        for (status, fields, body, expected) in [
            (
                302,
                "location: /a\nserver: y\ncache-control: private",
                "<p>a",
                false,
            ),
            (302, "location: /b\nserver: x", "<p>a", true),
            (200, "location: /a\nserver: x", "<p>a", true),
            (302, "location: /a\nserver: x", "<p>b", true),
        ] {
            let response = response(status, fields, body);
            let difference = baseline.visible_difference(&response, None);
            assert_eq!(difference.is_some(), expected, "{status} {fields} {body}");
        }
    }

    #[test]
    fn each_further_response_can_only_take_away() {
        let mut baseline = baseline(&["<p>a<p>b", "<p>a<p>b"]);
        assert!(differs(&baseline, "<p>a"));
        baseline.add(&response(200, "content-type: text/html", "<p>a"), None);
        assert!(!differs(&baseline, "<p>a"));
    }
}
