//! The verdict on an answer to a health check: the rules of `match`, as plain
//! functions.

use bytes::Bytes;
use site::{BodyRule, HeaderRule, HeaderTest, MatchRules, Pattern, StatusRule};

use super::FailedCheck;

/// A server's answer.
#[derive(Clone, Debug, Default)]
pub struct HealthAnswer {
    pub status: u16,
    pub fields: Vec<(Bytes, Bytes)>,
    /// Its beginning.
    pub body: Vec<u8>,
}

/// Without `match`: a status from 200 to 399.
pub fn usual(answer: &HealthAnswer) -> Result<(), FailedCheck> {
    match answer.status {
        200..400 => Ok(()),
        status => Err(FailedCheck::Status(status)),
    }
}

/// Status, header and body. The error names the first test that fails.
pub fn judge(rules: &MatchRules, answer: &HealthAnswer) -> Result<(), FailedCheck> {
    if !rules
        .status
        .iter()
        .all(|rule| status_fits(rule, answer.status))
    {
        return Err(FailedCheck::OtherStatus(answer.status));
    }
    if let Some(rule) = rules.headers.iter().find(|rule| !header_fits(rule, answer)) {
        let name = String::from_utf8_lossy(&rule.name);
        return Err(FailedCheck::OtherHeader(name.into_owned()));
    }
    if !rules
        .bodies
        .iter()
        .all(|rule| body_fits(rule, &answer.body))
    {
        return Err(FailedCheck::OtherBody);
    }
    Ok(())
}

fn status_fits(rule: &StatusRule, status: u16) -> bool {
    let mut ranges = rule.ranges.iter();
    ranges.any(|(first, last)| (*first..=*last).contains(&status)) != rule.negated
}

fn header_fits(rule: &HeaderRule, answer: &HealthAnswer) -> bool {
    let fields = answer.fields.iter();
    let mut values = fields
        .filter(|(name, _)| name.eq_ignore_ascii_case(&rule.name))
        .map(|(_, value)| value);
    match &rule.test {
        HeaderTest::Present => values.next().is_some(),
        HeaderTest::Absent => values.next().is_none(),
        HeaderTest::Equal(wanted) => values.any(|value| **value == **wanted),
        HeaderTest::Unequal(unwanted) => {
            let mut values = values.peekable();
            values.peek().is_some() && values.all(|value| **value != **unwanted)
        }
        HeaderTest::Matches(pattern) => values.any(|value| is_match(pattern, value) == Some(true)),
        HeaderTest::Differs(pattern) => {
            let mut values = values.peekable();
            values.peek().is_some() && values.all(|value| is_match(pattern, value) == Some(false))
        }
    }
}

fn body_fits(rule: &BodyRule, body: &[u8]) -> bool {
    is_match(&rule.pattern, body) == Some(!rule.negated)
}

/// `None`: the pattern gave up on the text, which therefore passes no test.
fn is_match(pattern: &Pattern, text: &[u8]) -> Option<bool> {
    pattern.is_match(text).ok()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// The rules of a `match` block, parsed from configuration text.
    fn rules(block: &str) -> MatchRules {
        let text = format!("http {{ match m {{ {block} }} }}");
        let loader: nginx_conf::MemoryLoader =
            [("/mayfly.conf", text.into_bytes())].into_iter().collect();
        let options = site::LowerOptions::new(&PathBuf::from("/"), &PathBuf::from("/"));
        let reading = site::read_with(Path::new("/mayfly.conf"), None, &loader, &options);
        assert!(!reading.has_errors(), "{block}: {:?}", reading.diagnostics);
        reading.site.unwrap().http.matches.remove(0)
    }

    #[test]
    fn each_test_of_match_means_what_the_documentation_says() {
        let field = |name: &'static str, value: &'static str| {
            (
                Bytes::from_static(name.as_bytes()),
                Bytes::from_static(value.as_bytes()),
            )
        };
        let answer = HealthAnswer {
            status: 302,
            fields: vec![
                field("Content-Type", "text/html"),
                field("Connection", "close"),
            ],
            body: b"Welcome to nginx!".to_vec(),
        };
        let cases = [
            ("", true),
            ("status 302;", true),
            ("status 200 204;", false),
            ("status 301-303 307;", true),
            ("status ! 302;", false),
            ("status ! 400-599;", true),
            ("status 200-399; status ! 302;", false),
            ("header content-type = text/html;", true),
            ("header Content-Type = text/plain;", false),
            ("header Content-Type != text/plain;", true),
            ("header Content-Type != text/html;", false),
            ("header X-Absent != x;", false),
            ("header Connection ~ ^cl;", true),
            ("header Connection !~ ^cl;", false),
            ("header Connection !~ open;", true),
            ("header X-Absent !~ x;", false),
            ("header Connection;", true),
            ("header X-Absent;", false),
            ("header ! X-Accel-Redirect;", true),
            ("header ! Connection;", false),
            ("body ~ \"Welcome to nginx!\";", true),
            ("body ~ welcome;", false),
            ("body ~* welcome;", true),
            ("body !~ Welcome;", false),
            ("body !~ maintenance;", true),
            ("status 302; header Connection; body ~ maintenance;", false),
        ];
        for (block, passes) in cases {
            let judged = judge(&rules(block), &answer);
            assert_eq!(judged.is_ok(), passes, "{block}: {judged:?}");
        }
    }

    #[test]
    fn without_match_any_good_status_passes() {
        for (status, passes) in [
            (199, false),
            (200, true),
            (399, true),
            (400, false),
            (503, false),
        ] {
            let answer = HealthAnswer {
                status,
                ..HealthAnswer::default()
            };
            assert_eq!(usual(&answer).is_ok(), passes, "{status}");
        }
    }
}
