//! The requests whose lines are compared.

/// Names and bytes of the requests; each is the first of its connection.
pub fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let whole = WITH_HOST.iter().map(|&(name, line, fields)| {
        let close = "Host: site.test\r\nConnection: close\r\n";
        (name, format!("{line} HTTP/1.1\r\n{close}{fields}\r\n"))
    });
    let texts = whole.chain(as_written());
    let mut all: Vec<_> = texts
        .map(|(name, text)| (name, text.into_bytes()))
        .collect();
    let bytes = NO_TEXT.iter().map(|(name, bytes)| (*name, bytes.to_vec()));
    all.extend(bytes);
    all
}

/// Name, method and target, and the fields beside `Host` and `Connection`.
#[rustfmt::skip]
const WITH_HOST: &[(&str, &str, &str)] = &[
    ("file", "GET /a.txt", ""),
    ("head", "HEAD /a.txt", ""),
    (
        "fields", "GET /a.txt?a=1&b",
        "Referer: http://x.test/\r\nUser-Agent: me \"quoted\" \\ \u{e9}\r\nX-Forwarded-For: 192.0.2.1\r\nCookie: a=b\r\n",
    ),
    ("empty fields", "GET /a.txt?a=&", "Referer:\r\nUser-Agent: \r\nCookie: a=\r\nX-Forwarded-For:\r\n"),
    ("question mark", "GET /a.txt?", ""),
    ("range", "GET /a.txt", "Range: bytes=1-2\r\n"),
    ("bad range", "GET /a.txt", "Range: bytes=90-\r\n"),
    ("not modified", "GET /a.txt", "If-None-Match: *\r\n"),
    ("failed condition", "GET /a.txt", "If-Match: \"x\"\r\n"),
    ("missing", "GET /none", ""),
    ("missing page", "GET /page/none", ""),
    ("folder", "GET /folder", ""),
    ("folder without index", "GET /folder/", ""),
    ("text", "GET /text", ""),
    ("moved", "GET /moved", ""),
    ("gone", "GET /gone", ""),
    ("closed", "GET /closed", ""),
    ("rewritten", "GET /rewritten?x=y", ""),
    ("redirect", "GET /redirect", ""),
    ("denied", "GET /denied", ""),
    ("asked", "GET /asked", ""),
    ("wrong password", "GET /asked", "Authorization: Basic YW5uYTp3cm9uZw==\r\n"),
    ("odd credentials", "GET /asked", "Authorization: Basic !!!\r\n"),
    ("name without password", "GET /a.txt", "Authorization: Basic YW5uYTo=\r\n"),
    ("slow, first", "GET /slow", ""),
    ("slow, second", "GET /slow", ""),
    ("upstream is down", "GET /down", ""),
    ("internal", "GET /internal", ""),
    ("post to a file", "POST /a.txt", "Content-Length: 2\r\n"),
    ("large body", "POST /text", "Content-Length: 100\r\n"),
    ("put", "PUT /text", ""),
    ("unknown method", "BREW /text", ""),
    ("escapes", "GET /%61.txt%3fx?%22", ""),
    ("bad escape", "GET /%zz", ""),
    ("out of the root", "GET /../../x", ""),
    ("double slash", "GET //a.txt//", ""),
    ("absolute", "GET http://other.test:81/a.txt", ""),
    ("fragment", "GET /a.txt#x?y", ""),
    ("asterisk", "OPTIONS *", ""),
    ("trace", "TRACE /text", ""),
    ("connect", "CONNECT site.test:80", ""),
    ("two lengths", "POST /text", "Content-Length: 1\r\nContent-Length: 2\r\n"),
    ("length and coding", "POST /text", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
    ("unknown coding", "POST /text", "Transfer-Encoding: odd\r\n"),
    ("bad length", "POST /text", "Content-Length: -1\r\n"),
    ("two hosts", "GET /text", "Host: b.test\r\n"),
    ("space before a colon", "GET /text", "A : b\r\n"),
    ("field without a colon", "GET /text", "odd\r\n"),
    ("folded field", "GET /text", "A: b\r\n c\r\n"),
    ("expectation", "POST /text", "Expect: nothing\r\nContent-Length: 0\r\n"),
];

/// Returns requests that are all that their client sends.
fn as_written() -> Vec<(&'static str, String)> {
    let long = "x".repeat(1500);
    vec![
        ("no host", "GET /text HTTP/1.1\r\n\r\n".to_owned()),
        (
            "bad host",
            "GET /text HTTP/1.1\r\nHost: a/b\r\n\r\n".to_owned(),
        ),
        ("http/1.0", "GET /text HTTP/1.0\r\n\r\n".to_owned()),
        ("http/0.9", "GET /text\r\n".to_owned()),
        (
            "http/2 without tls",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ),
        ("http/9.9", "GET /text HTTP/9.9\r\n\r\n".to_owned()),
        ("no version", "GET /text HTTP\r\n\r\n".to_owned()),
        (
            "lower case method",
            "get /text HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        ),
        ("nonsense", "nonsense\r\n\r\n".to_owned()),
        ("one word", "x\r\n\r\n".to_owned()),
        (
            "long target",
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
        ),
        (
            "long field",
            format!("GET /text HTTP/1.1\r\nHost: a\r\nA: {long}\r\n\r\n"),
        ),
        ("half a line", "GET /te".to_owned()),
        (
            "half a head",
            "GET /text HTTP/1.1\r\nHost: a\r\nA:".to_owned(),
        ),
        (
            "half a body",
            "POST /down HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab".to_owned(),
        ),
        (
            "bad chunk",
            "POST /down HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
        ),
        ("nothing", String::new()),
        ("line ends", "\r\n\r\n".to_owned()),
        (
            "line ends first",
            "\r\n\r\nGET /text HTTP/1.0\r\n\r\n".to_owned(),
        ),
        (
            "two requests",
            "GET /text?1 HTTP/1.1\r\nHost: a\r\n\r\nGET /text?2 HTTP/1.0\r\n\r\n".to_owned(),
        ),
    ]
}

const NO_TEXT: &[(&str, &[u8])] = &[
    (
        "tls",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ),
    ("nul", b"GET /text\0x HTTP/1.0\r\nUser-Agent: a\0b\r\n\r\n"),
    (
        "bytes",
        b"GET /\xff\xfe\"x HTTP/1.0\r\nUser-Agent: \xff\x01\r\n\r\n",
    ),
];

/// Requests whose client sends nothing more and waits; the others wait for an
/// answer.
pub const ENDING: [&str; 5] = [
    "half a line",
    "half a head",
    "half a body",
    "nothing",
    "line ends",
];
