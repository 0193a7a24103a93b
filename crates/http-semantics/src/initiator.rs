//! On whose behalf a request was sent, as far as its fields tell: whether a proxy passed it on for
//! another client, and whether a browser sent it for a page of another site.
//!
//! Browsers send `Origin` with each method but GET and HEAD, and pages cannot change it (Fetch
//! Standard §3.1). To an `https` or loopback address they also send `Sec-Fetch-Site` (Fetch Metadata).
//! Elsewhere a GET has no more evidence than `Referer`, which a page may leave out; but each browser
//! sends `Accept-Language`, which a page can change and not leave out.

use crate::host::{Host, parse_host};
use crate::request::RequestView;

/// The party on whose behalf a client sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// No field shows a browser.
    Program,
    /// A browser, for a page of the request's own host, or for its user alone.
    OwnSite,
    /// A browser, which does not say for which page.
    Unknown,
    /// A browser, for a page of another site.
    OtherSite,
}

impl Initiator {
    /// The initiator of a request for `host`.
    pub fn of(request: RequestView<'_>, host: &[u8], port: Option<u16>) -> Initiator {
        let is_own = |url: &[u8]| is_of_host(url, host, port);
        let site = |value: &[u8]| matches!(value, b"same-origin" | b"none");
        let mut is_own_site = false;
        for (name, value) in request.fields() {
            let is_same = match () {
                () if name.eq_ignore_ascii_case(b"sec-fetch-site") => site(value),
                () if name.eq_ignore_ascii_case(b"origin") => is_own(value),
                () if name.eq_ignore_ascii_case(b"referer") => is_own(value),
                () => continue,
            };
            if !is_same {
                return Initiator::OtherSite;
            }
            // A page may send the user on, without a word of itself but the last address.
            is_own_site |= !name.eq_ignore_ascii_case(b"referer");
        }
        if is_own_site {
            Initiator::OwnSite
        } else if ["accept-language", "referer"]
            .iter()
            .any(|name| request.field(name).is_some())
        {
            Initiator::Unknown
        } else {
            Initiator::Program
        }
    }
}

/// Does a browser fetch a page of its own, which no other page can look into, for its user? The user
/// may have followed a link of another site.
pub fn is_navigation(request: RequestView<'_>) -> bool {
    request.field("sec-fetch-mode") == Some(b"navigate")
        && request.field("sec-fetch-dest") == Some(b"document")
}

/// Is a URL, or an origin such as `https://example.org:8443`, of this host? The standard ports of both
/// schemes are the same: a proxy in front may speak TLS.
fn is_of_host(url: &[u8], host: &[u8], port: Option<u16>) -> bool {
    let authority = [&b"http://"[..], b"https://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(*scheme));
    let Some(authority) = authority else {
        return false;
    };
    let end = authority.iter().position(|byte| b"/?#".contains(byte));
    let authority = authority.get(..end.unwrap_or(authority.len()));
    let plain = |port: Option<u16>| port.filter(|port| ![80, 443].contains(port));
    authority
        .and_then(parse_host)
        .is_some_and(|Host { name, port: other }| *name == *host && plain(other) == plain(port))
}

/// Words of field names by which proxies tell of a client, a chain or themselves: `X-Real-IP`,
/// `X-Original-Host`. A word ends where PHP and proxies make `_` of a byte.
const WORDS: &[&str] = &[
    "addr",
    "address",
    "clientip",
    "forwarded",
    "forwardedfor",
    "ip",
    "ipv4",
    "ipv6",
    "original",
    "realip",
    "remoteip",
    "socketip",
    "via",
];

/// How fields begin that certain proxies add to each request.
const PREFIXES: &[&[&str]] = &[
    &["akamai"],
    &["cdn"],
    &["cf"],
    &["fastly"],
    &["fly"],
    &["x", "amz"],
    &["x", "amzn"],
    &["x", "appengine"],
    &["x", "azure"],
    &["x", "cloud"],
    &["x", "envoy"],
    &["x", "varnish"],
];

/// Does a proxy say with a field of this name for whom it asks, or that it is one?
pub fn tells_of_proxy(name: &[u8]) -> bool {
    let words = || {
        name.split(|byte| !byte.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
    };
    let is_word = |word: &[u8], known: &str| word.eq_ignore_ascii_case(known.as_bytes());
    let begins = |prefix: &&[&str]| {
        let mut words = words();
        prefix
            .iter()
            .all(|known| words.next().is_some_and(|word| is_word(word, known)))
    };
    words().any(|word| WORDS.iter().any(|known| is_word(word, known)))
        || PREFIXES.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestHead;

    fn initiator(host: &str, port: Option<u16>, fields: &[(&str, &str)]) -> Initiator {
        let head = RequestHead::of("GET", "/", fields.iter().copied());
        Initiator::of(head.view(), host.as_bytes(), port)
    }

    #[test]
    fn fields_tell_on_whose_behalf_a_browser_asks() {
        use Initiator::{OtherSite, OwnSite, Program, Unknown};
        for (fields, expected) in [
            (&[][..], Program),
            (&[("User-Agent", "curl/8"), ("Accept", "*/*")], Program),
            (&[("Accept-Language", "de")], Unknown),
            (&[("Accept-Language", "")], Unknown),
            (&[("Referer", "http://site.test/page")], Unknown),
            (&[("Referer", "http://evil.example/site.test")], OtherSite),
            (&[("Referer", "http://site.test@evil.example/")], OtherSite),
            (&[("Referer", "about:client")], OtherSite),
            (&[("Origin", "http://site.test")], OwnSite),
            (&[("Origin", "https://site.test")], OwnSite),
            (&[("Origin", "https://site.test:443")], OwnSite),
            (&[("Origin", "http://site.test:8080")], OtherSite),
            (&[("Origin", "http://SITE.test")], OwnSite),
            (&[("Origin", "http://site.test.example")], OtherSite),
            (&[("Origin", "null")], OtherSite),
            (&[("Origin", "")], OtherSite),
            (&[("Sec-Fetch-Site", "same-origin")], OwnSite),
            (&[("Sec-Fetch-Site", "none")], OwnSite),
            (&[("Sec-Fetch-Site", "same-site")], OtherSite),
            (&[("Sec-Fetch-Site", "cross-site")], OtherSite),
            (&[("Sec-Fetch-Site", "none, cross-site")], OtherSite),
            (
                &[("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")],
                OtherSite,
            ),
            (
                &[
                    ("Origin", "http://site.test"),
                    ("Referer", "http://other.test/"),
                ],
                OtherSite,
            ),
        ] {
            assert_eq!(initiator("site.test", None, fields), expected, "{fields:?}");
        }
        let origin = |text| [("Origin", text)];
        for (host, port, text, expected) in [
            ("site.test", Some(8080), "http://site.test:8080", OwnSite),
            ("site.test", Some(8080), "http://site.test", OtherSite),
            ("site.test", Some(443), "https://site.test", OwnSite),
            ("[::1]", Some(8080), "http://[::1]:8080", OwnSite),
            ("[::1]", None, "http://[::2]", OtherSite),
        ] {
            assert_eq!(initiator(host, port, &origin(text)), expected, "{text}");
        }
    }

    #[test]
    fn only_a_page_for_the_user_is_a_navigation() {
        for (mode, dest, expected) in [
            ("navigate", "document", true),
            ("navigate", "iframe", false),
            ("no-cors", "image", false),
            ("no-cors", "document", false),
        ] {
            let fields = [("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", dest)];
            let head = RequestHead::of("GET", "/", fields);
            assert_eq!(is_navigation(head.view()), expected, "{mode} {dest}");
        }
    }

    #[test]
    fn proxies_tell_of_themselves_in_each_spelling() {
        #[rustfmt::skip]
        let cases = [
            "Forwarded", "Via", "X-Forwarded-For", "x_forwarded_for", "X.Forwarded.For", "X-Forwarded",
            "X-Forwarded-Host", "X-Forwarded-Server", "X-Original-Forwarded-For", "X-Real-IP", "X_REAL_IP",
            "True-Client-IP", "CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Ray", "CDN-Loop", "Client-IP",
            "X-Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP", "Fly-Client-IP", "DO-Connecting-IP",
            "WL-Proxy-Client-IP", "X-ProxyUser-IP", "X-Remote-Addr", "X-Originating-IP", "X-Envoy-External-Address",
            "X-Azure-ClientIP", "X-Appengine-User-IP", "X-Amz-Cf-Id", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context",
            "X-Varnish", "X-Original-Host",
        ];
        for name in cases {
            assert!(tells_of_proxy(name.as_bytes()), "{name}");
        }
        for name in [
            "Host",
            "Accept",
            "Accept-Encoding",
            "Content-Type",
            "X-Host",
            "X-Url",
            "X-Magento-Tags-Pattern",
            "X-Purge-Method",
            "xkey-purge",
            "X-Zip",
            "X-Membership",
            "Cookie",
            "Authorization",
            "X-Requested-With",
            // MediaWiki sends it with each PURGE.
            "Proxy-Connection",
            "",
            "-",
        ] {
            assert!(!tells_of_proxy(name.as_bytes()), "{name}");
        }
    }
}
