//! The request for a purge, and the report: for the control socket and for the purge API of a
//! location (`cache_purge_api`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::refusal::Refusal;

/// The most targets that one request may name. Each costs a look into every zone, and a walk
/// through it where it is a pattern.
pub const MAX_TARGETS: usize = 10_000;

/// The targets of a purge. All lists may be empty, but not all of them together.
///
/// ```json
/// {"urls":["https://example.org/news/5"],"tags":["post-5"],"soft":true}
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PurgeRequest {
    /// Absolute URLs; one without scheme and host (`/news/5`) where there is exactly one host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// The application's names for things that pages are made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Absolute URLs; all that begin so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Patterns of absolute URLs: `*` is any text and `?` one character, or a regular expression
    /// with `~` in front.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Names without a port; with `urls` that have none, theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// All that is stored.
    #[serde(skip_serializing_if = "is_false")]
    pub everything: bool,
    /// Stale copies are shown while one request fetches the page anew.
    #[serde(skip_serializing_if = "is_false")]
    pub soft: bool,
    /// The pages are counted, and not purged.
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The names of all fields, for messages.
const FIELDS: &str = "urls, tags, prefixes, patterns, hosts, everything, soft and dry_run";

impl PurgeRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// A [`Refusal`] of status 400 that names the field, or 413 for more than [`MAX_TARGETS`]
    /// targets.
    pub fn from_json(json: &[u8]) -> Result<PurgeRequest, Refusal> {
        let value: Value = serde_json::from_slice(json)
            .map_err(|error| Refusal::new(400, format!("expected a JSON object: {error}")))?;
        let Value::Object(fields) = value else {
            return Err(Refusal::new(
                400,
                "expected a JSON object such as {\"tags\":[\"post-5\"]}",
            ));
        };
        let mut request = PurgeRequest::default();
        for (name, value) in fields {
            match name.as_str() {
                "urls" => request.urls = texts(&name, value)?,
                "tags" => request.tags = texts(&name, value)?,
                "prefixes" => request.prefixes = texts(&name, value)?,
                "patterns" => request.patterns = texts(&name, value)?,
                "hosts" => request.hosts = texts(&name, value)?,
                "everything" => request.everything = flag(&name, &value)?,
                "soft" => request.soft = flag(&name, &value)?,
                "dry_run" => request.dry_run = flag(&name, &value)?,
                _ => {
                    return Err(Refusal::field(
                        shortened(&name),
                        format!("unknown field; there are {FIELDS}"),
                    ));
                }
            }
        }
        request.check()?;
        Ok(request)
    }

    /// Whether there is something to do, and not too much.
    ///
    /// # Errors
    /// The errors of [`PurgeRequest::from_json`].
    pub fn check(&self) -> Result<(), Refusal> {
        let count = self.targets();
        if count > MAX_TARGETS {
            return Err(Refusal::new(
                413,
                format!("{count} targets; expected at most {MAX_TARGETS} in one request"),
            ));
        }
        if count == 0 && !self.everything {
            return Err(Refusal::new(
                400,
                "nothing to purge: expected urls, tags, prefixes, patterns, hosts or \"everything\":true",
            ));
        }
        Ok(())
    }

    /// How many targets it names.
    #[must_use]
    pub fn targets(&self) -> usize {
        let lists = [
            &self.urls,
            &self.tags,
            &self.prefixes,
            &self.patterns,
            &self.hosts,
        ];
        lists.iter().map(|list| list.len()).sum()
    }
}

fn texts(name: &str, value: Value) -> Result<Vec<String>, Refusal> {
    let Value::Array(values) = value else {
        return Err(Refusal::field(
            name,
            format!("expected an array of strings, found {}", kind(&value)),
        ));
    };
    let text = |(at, value)| match value {
        Value::String(text) if text.is_empty() => Err(Refusal::field(
            format!("{name}[{at}]"),
            "expected a text that is not empty",
        )),
        Value::String(text) => Ok(text),
        other => Err(Refusal::field(
            format!("{name}[{at}]"),
            format!("expected a string, found {}", kind(&other)),
        )),
    };
    values.into_iter().enumerate().map(text).collect()
}

fn flag(name: &str, value: &Value) -> Result<bool, Refusal> {
    value.as_bool().ok_or_else(|| {
        Refusal::field(
            name,
            format!("expected true or false, found {}", kind(value)),
        )
    })
}

/// JSON's word for a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The first characters of a name that may be of any length.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    Url,
    Tag,
    Prefix,
    Pattern,
    Host,
    Everything,
    /// A cache key, as `*_cache_key` makes it.
    Key,
}

impl TargetKind {
    /// The word for it in answers and in the purge log.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TargetKind::Url => "url",
            TargetKind::Tag => "tag",
            TargetKind::Prefix => "prefix",
            TargetKind::Pattern => "pattern",
            TargetKind::Host => "host",
            TargetKind::Everything => "everything",
            TargetKind::Key => "key",
        }
    }
}

/// The result for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetReport {
    pub kind: TargetKind,
    /// The target as the request has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// How many stored responses it names, in all zones.
    pub responses: u64,
}

/// The value of a zone's purge clock. A response fetched from now on has this stamp or a later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneReport {
    pub name: String,
    pub stamp: u64,
}

/// The result of a purge. A response that two targets name is counted for each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PurgeReport {
    pub soft: bool,
    pub dry_run: bool,
    pub targets: Vec<TargetReport>,
    pub zones: Vec<ZoneReport>,
    /// How long it took, in milliseconds.
    pub milliseconds: f64,
}

impl PurgeReport {
    /// The sum over all targets.
    #[must_use]
    pub fn responses(&self) -> u64 {
        self.targets.iter().map(|target| target.responses).sum()
    }

    /// The body of the response.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts, and numbers of which none is infinite, are always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_with_all_its_fields() {
        let request = PurgeRequest::from_json(
            br#"{"urls":["https://a/"],"tags":["t"],"prefixes":["p"],"patterns":["~x"],"hosts":["h"],
                "everything":true,"soft":true,"dry_run":true}"#,
        )
        .unwrap();
        let one = |text: &str| vec![text.to_owned()];
        let expected = PurgeRequest {
            urls: one("https://a/"),
            tags: one("t"),
            prefixes: one("p"),
            patterns: one("~x"),
            hosts: one("h"),
            everything: true,
            soft: true,
            dry_run: true,
        };
        assert_eq!(request, expected);
        let json = serde_json::to_vec(&request).unwrap();
        assert_eq!(PurgeRequest::from_json(&json).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let cases = [
            ("", None, "JSON object"),
            ("[]", None, "JSON object"),
            ("{}", None, "nothing to purge"),
            (r#"{"soft":true}"#, None, "nothing to purge"),
            (r#"{"url":["x"]}"#, Some("url"), "unknown field"),
            (
                r#"{"urls":"x"}"#,
                Some("urls"),
                "array of strings, found a string",
            ),
            (
                r#"{"urls":["x",5]}"#,
                Some("urls[1]"),
                "a string, found a number",
            ),
            (r#"{"tags":[""]}"#, Some("tags[0]"), "not empty"),
            (
                r#"{"tags":["x"],"soft":"yes"}"#,
                Some("soft"),
                "true or false",
            ),
            (r#"{"tags":["\ud800"]}"#, None, "JSON object"),
        ];
        for (json, field, message) in cases {
            let refusal = PurgeRequest::from_json(json.as_bytes()).unwrap_err();
            assert_eq!(refusal.status, 400, "{json}");
            assert_eq!(refusal.field.as_deref(), field, "{json}: {refusal}");
            assert!(refusal.message.contains(message), "{json}: {refusal}");
        }
    }

    #[test]
    fn json_that_is_nested_too_deep_is_refused() {
        let json = format!("{{\"tags\":{}", "[".repeat(1_000_000));
        assert_eq!(
            PurgeRequest::from_json(json.as_bytes()).unwrap_err().status,
            400
        );
    }

    #[test]
    fn a_million_targets_are_refused() {
        let json = format!("{{\"tags\":[{}\"x\"]}}", "\"x\",".repeat(999_999));
        let refusal = PurgeRequest::from_json(json.as_bytes()).unwrap_err();
        assert_eq!(refusal.status, 413);
        assert!(refusal.message.starts_with("1000000 targets"), "{refusal}");
    }
}
