//! The table of variations: parts of a request that a cache key may leave out, while the application reads
//! them. Each row changes one part. The rest of the request is that of a usual visitor.
//!
//! A template may contain placeholders, which `request.rs` fills in:
//!
//! | placeholder | stands for |
//! | --- | --- |
//! | `{word}` | a random word, new for each request series |
//! | `{port}` | a random port |
//! | `{address}` | a random address of a network for documentation |
//! | `{long}` | the word many times |
//! | `{host}`, `{HOST}` | the page's host with its port, as it is and in upper case |
//! | `{name}`, `{colon}` | the host without its port; the port with a colon, if it is not the usual one |
//! | `{scheme}` | the scheme that the page is not requested by |
//! | `{path}`, `{coded}` | the page's path, as it is and with its first letter percent-encoded |
//! | `{first}` | the name of the page's first own argument |

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Variation {
    pub name: &'static str,
    pub change: Change,
}

/// The part of the request that is changed, with the template of its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Method(&'static str),
    /// The path of the target.
    Path(&'static str),
    /// Scheme and host before the target (RFC 9112 §3.2.2), with the value of `Host`.
    AbsoluteForm(&'static str, &'static str),
    Host(&'static str),
    /// An argument behind the page's own ones.
    Argument(&'static str),
    /// Field lines, separated by `\n`.
    Fields(&'static str),
    Cookie(&'static str),
    /// A form in the body of a GET request.
    Body(&'static str),
}

impl Change {
    /// The templates that are filled in.
    pub fn templates(&self) -> [&'static str; 2] {
        match *self {
            Change::AbsoluteForm(before, host) => [before, host],
            Change::Method(it)
            | Change::Path(it)
            | Change::Host(it)
            | Change::Argument(it)
            | Change::Fields(it)
            | Change::Cookie(it)
            | Change::Body(it) => [it, ""],
        }
    }

    /// Whether a cache may take the request for that of a usual visitor, while the application answers it
    /// for this visitor alone.
    pub fn is_personal(&self) -> bool {
        matches!(self, Change::Argument(_) | Change::Cookie(_))
    }
}

const fn row(name: &'static str, change: Change) -> Variation {
    Variation { name, change }
}

const fn field(name: &'static str, line: &'static str) -> Variation {
    row(name, Change::Fields(line))
}

const fn cookie(name: &'static str, text: &'static str) -> Variation {
    row(name, Change::Cookie(text))
}

const fn argument(name: &'static str, text: &'static str) -> Variation {
    row(name, Change::Argument(text))
}

/// All variations, by the part of the request that they change.
#[rustfmt::skip]
pub const VARIATIONS: &[Variation] = &[
    // The host, as proxies name it.
    field("X-Forwarded-Host", "X-Forwarded-Host: {word}.test"),
    field("X-Host", "X-Host: {word}.test"),
    field("X-Forwarded-Server", "X-Forwarded-Server: {word}.test"),
    field("X-Original-Host", "X-Original-Host: {word}.test"),
    field("X-HTTP-Host-Override", "X-HTTP-Host-Override: {word}.test"),
    field("Forwarded", "Forwarded: for={address};host={word}.test;proto={scheme}"),
    // The scheme and the port.
    field("X-Forwarded-Proto", "X-Forwarded-Proto: {scheme}"),
    field("X-Forwarded-Proto, invented", "X-Forwarded-Proto: {word}"),
    field("X-Forwarded-Scheme", "X-Forwarded-Scheme: {scheme}"),
    field("X-Forwarded-SSL", "X-Forwarded-SSL: on"),
    field("X-URL-Scheme", "X-URL-Scheme: {scheme}"),
    field("Front-End-Https", "Front-End-Https: on"),
    field("X-Forwarded-Port", "X-Forwarded-Port: {port}"),
    // The path and the method.
    field("X-Forwarded-Prefix", "X-Forwarded-Prefix: /{word}"),
    field("X-Forwarded-Path", "X-Forwarded-Path: /{word}"),
    field("X-Original-URL", "X-Original-URL: /{word}"),
    field("X-Rewrite-URL", "X-Rewrite-URL: /{word}"),
    field("X-HTTP-Method-Override", "X-HTTP-Method-Override: POST"),
    field("X-HTTP-Method", "X-HTTP-Method: {word}"),
    field("X-Method-Override", "X-Method-Override: POST"),
    row("HEAD", Change::Method("HEAD")),
    row("body of a GET request", Change::Body("mayfly_form={word}")),
    // The visitor's address and country.
    field("X-Forwarded-For", "X-Forwarded-For: {address}"),
    field("X-Real-IP", "X-Real-IP: {address}"),
    field("Client-IP", "Client-IP: {address}\nX-Client-IP: {address}"),
    field("True-Client-IP", "True-Client-IP: {address}"),
    field("CF-Connecting-IP", "CF-Connecting-IP: {address}"),
    field("CF-IPCountry", "CF-IPCountry: DE\nX-Country-Code: DE"),
    // The visitor's program and its wishes.
    field(
        "User-Agent of a phone",
        "User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1",
    ),
    field(
        "User-Agent of a crawler",
        "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    ),
    field("User-Agent, invented", "User-Agent: {word}/1.0"),
    field("Accept-Language", "Accept-Language: de"),
    field("Accept-Language, invented", "Accept-Language: {word}"),
    field("Accept of data", "Accept: application/json"),
    field("Accept, invented", "Accept: text/{word}"),
    field("Accept-Encoding: gzip", "Accept-Encoding: gzip"),
    field("Accept-Encoding: br", "Accept-Encoding: br"),
    field("Accept-Encoding, invented", "Accept-Encoding: {word}"),
    field("Accept-Charset", "Accept-Charset: {word}"),
    field("client hints", "Sec-CH-UA-Mobile: ?1\nSec-CH-UA-Platform: \"{word}\""),
    field(
        "client hints of the screen",
        "Sec-CH-Prefers-Color-Scheme: dark\nSec-CH-Viewport-Width: 320\nViewport-Width: 320\nDPR: 3",
    ),
    field("Save-Data", "Save-Data: on"),
    field("X-WAP-Profile", "X-WAP-Profile: http://{word}.test/"),
    // Fields about the origin and the purpose of the request.
    field("Referer", "Referer: http://{word}.test/"),
    field("Origin", "Origin: http://{word}.test"),
    field("X-Requested-With", "X-Requested-With: XMLHttpRequest"),
    field("Purpose", "Purpose: prefetch\nSec-Purpose: prefetch"),
    field("Authorization", "Authorization: Bearer {word}"),
    field("Content-Type", "Content-Type: {word}/{word}"),
    field("invented field", "X-Mayfly-Audit: {word}"),
    field("long field", "X-Long-Field: {long}"),
    field("odd field", "X-Odd-Field: \\{word}\t'\"<>"),
    // Conditions and parts.
    field("Range", "Range: bytes=0-0"),
    field("Range beyond the end", "Range: bytes=99999999-"),
    field("If-Range", "Range: bytes=0-1\nIf-Range: \"{word}\""),
    field("If-None-Match", "If-None-Match: *"),
    field("If-Modified-Since", "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT"),
    field("If-Match", "If-Match: \"{word}\""),
    field("If-Unmodified-Since", "If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT"),
    // Fields that Connection takes away on the way.
    field(
        "Connection with proxies' fields",
        "Connection: keep-alive, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, X-Real-IP",
    ),
    field("Connection with Cookie", "Connection: keep-alive, Cookie, Authorization, Accept"),
    field("Connection with an invented field", "Connection: keep-alive, X-Mayfly-Audit\nX-Mayfly-Audit: {word}"),
    // Cookies.
    cookie("invented cookie", "mayfly_audit={word}"),
    cookie("cookie of a theme", "theme=dark"),
    cookie("cookie of a theme, invented", "theme={word}"),
    cookie("cookie of a language", "lang=de"),
    cookie("cookie of a language, invented", "language={word}"),
    cookie("cookie of a currency", "currency=USD"),
    cookie("cookie of a consent", "cookie_consent={word}"),
    cookie("cookie of a device", "device=mobile"),
    cookie("cookie of a session", "PHPSESSID={word}"),
    cookie("cookie of a login", "wordpress_logged_in_0={word}"),
    cookie("cookie with odd spelling", "mayfly.audit[{word}]=\"{word}\""),
    cookie("cookie in upper case", "LANG=de; THEME={word}"),
    cookie("cookie without a name", "={word}; ;;{word}"),
    // Arguments.
    argument("utm_source", "utm_source={word}"),
    argument("utm_campaign", "utm_campaign={word}"),
    argument("utm_content", "utm_content={word}"),
    argument("fbclid", "fbclid={word}"),
    argument("gclid", "gclid={word}"),
    argument("_method", "_method=POST"),
    argument("callback", "callback={word}"),
    argument("lang", "lang=de"),
    argument("invented argument", "mayfly_other={word}"),
    argument("argument as an array", "utm_source[]={word}"),
    argument("repeated argument", "utm_source=a&utm_source={word}"),
    argument("repeated own argument", "{first}={word}"),
    argument("encoded argument", "%75tm_source={word}"),
    argument("argument behind a semicolon", "utm_content=1;callback={word}"),
    // Hosts.
    row("Host with another port", Change::Host("{name}:{port}")),
    row("Host with a trailing dot", Change::Host("{name}.{colon}")),
    row("Host in upper case", Change::Host("{HOST}")),
    row("absolute-form target", Change::AbsoluteForm("http://{host}", "{word}.test")),
    row("absolute-form target of another host", Change::AbsoluteForm("http://{word}.test", "{host}")),
    // Paths.
    row("path parameter", Change::Path("{path};{word}")),
    row("path behind the path", Change::Path("{path}/{word}")),
    row("dot segments", Change::Path("/{word}/..{path}")),
    row("doubled slash", Change::Path("/{path}")),
    row("encoded path", Change::Path("{coded}")),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_have_names_of_their_own() {
        let names: HashSet<&str> = VARIATIONS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), VARIATIONS.len());
    }

    #[test]
    fn no_two_rows_change_the_same() {
        for (index, row) in VARIATIONS.iter().enumerate() {
            let others = VARIATIONS.iter().skip(index + 1);
            let twin = others.clone().find(|other| other.change == row.change);
            assert!(twin.is_none(), "{}", row.name);
        }
    }

    #[test]
    fn each_part_of_a_request_is_changed() {
        let has = |is: fn(&Change) -> bool| VARIATIONS.iter().filter(|row| is(&row.change)).count();
        assert!(has(|it| matches!(it, Change::Fields(_))) >= 40);
        assert!(has(|it| matches!(it, Change::Cookie(_))) >= 10);
        assert!(has(|it| matches!(it, Change::Argument(_))) >= 10);
        assert!(has(|it| matches!(it, Change::Host(_) | Change::AbsoluteForm(..))) >= 5);
        assert!(has(|it| matches!(it, Change::Path(_))) >= 5);
        assert!(has(|it| matches!(it, Change::Method(_) | Change::Body(_))) >= 2);
    }

    /// A page must not be changed by an audit of it.
    #[test]
    fn no_row_deletes_anything() {
        for row in VARIATIONS {
            for template in row.change.templates() {
                for word in ["DELETE", "PUT", "PATCH", "PURGE"] {
                    assert!(!template.contains(word), "{}", row.name);
                }
            }
        }
    }
}
