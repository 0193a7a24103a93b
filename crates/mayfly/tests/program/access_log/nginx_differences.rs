//! The differences between our lines and nginx's, and their reasons.

use std::fmt::Write as _;

/// The intended differences: request, columns or logs, and the reason.
#[rustfmt::skip]
const KNOWN: &[(&str, &[&str], &str)] = &[
    ("failed condition", &["request_completion"], "a response that was sent whole is complete"),
    ("absolute", &["http_host"], "the host of the target is what counts (RFC 9112 section 3.2.2)"),
    ("connect", &["combined.log", "json.log", "status"], "405, as newer nginx"),
    ("field without a colon", &["*"], "refused: it may be read as a field elsewhere"),
    ("line ends", &["*"], "what may stand between requests is none (RFC 9112 section 2.2)"),
    ("space before a colon", FIELDS, NOT_WHOLE),
    ("folded field", FIELDS, NOT_WHOLE),
    ("long field", FIELDS, NOT_WHOLE),
    ("half a head", FIELDS, NOT_WHOLE),
    ("half a line", FIELDS, NOT_WHOLE),
    ("http/9.9", &["server_protocol"], NOT_WHOLE),
    ("no version", &["server_protocol"], NOT_WHOLE),
    ("long target", &["combined.log", "json.log", "raw.log", "request"], "nginx cuts the line at its buffer"),
    (
        "half a body", &["request_completion", "request_body"],
        "the refusal was sent whole, and what came of the body is let go",
    ),
    (
        "bad chunk", &["content_length", "proxy_host", "proxy_port"],
        "no handler is asked, and what came of the body is let go",
    ),
];

const FIELDS: &[&str] = &["host", "http_host", "connection_requests"];

const NOT_WHOLE: &str = "of a head that was not read whole no more than the line is known";

/// Variables for which an error page is looked for below `/` if the path is not
/// known.
const PATHS_WHERE_REFUSED: &[&str] = &["request_filename", "fastcgi_script_name"];

/// Variables of a request that nginx refuses unread: we have read the line and
/// may log more.
const MORE_WHERE_REFUSED: &[&str] = &[
    "server_protocol",
    "request_method",
    "uri",
    "document_uri",
    "request_uri",
    "args",
    "query_string",
    "http_host",
    "request_filename",
    "fastcgi_script_name",
];

/// Returns the differences between one request's lines, for all requests.
pub fn differences(expected: &str, found: &str) -> String {
    let parts = |text: &str| -> Vec<String> { text.split("== ").map(str::to_owned).collect() };
    let mut shown = String::new();
    let (expected, found) = (parts(expected), parts(found));
    assert_eq!(expected.len(), found.len(), "the same requests");
    for (expected, found) in expected.iter().zip(&found) {
        let name = expected.lines().next().unwrap_or_default();
        let label = |line: &str| -> String {
            let end = line.trim_start().find([':', ' ']).unwrap_or(line.len());
            line.trim_start()[..end].to_owned()
        };
        let is_known = |line: &str| {
            let label = label(line);
            let known = |columns: &&[&str]| columns.contains(&"*") || columns.contains(&&*label);
            KNOWN
                .iter()
                .any(|(request, columns, _)| *request == name && known(columns))
        };
        let is_refused = ["400", "405", "414", "505"]
            .iter()
            .any(|status| expected.contains(&format!("  status [{status}]")));
        let says_more = |line: &str| {
            let label = label(line);
            let start = format!("\n  {label} [");
            let has_no_path = !expected.contains("\n  uri [");
            is_refused && has_no_path && PATHS_WHERE_REFUSED.contains(&&*label)
                || is_refused && MORE_WHERE_REFUSED.contains(&&*label) && !expected.contains(&start)
        };
        let own = |one: &str, other: &str, sign: char| -> String {
            let other: Vec<&str> = other.lines().collect();
            let lines = one
                .lines()
                .filter(|line| !other.contains(line) && !is_known(line))
                .filter(|line| !says_more(line));
            lines.map(|line| format!("  {sign}{line:.200}\n")).collect()
        };
        let lines = own(expected, found, '-') + &own(found, expected, '+');
        if !lines.is_empty() {
            let _ = write!(shown, "{name}\n{lines}");
        }
    }
    shown
}
