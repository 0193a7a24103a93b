//! The settings of a load: its address, its fields, its bounds.

use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use url::Url;

use crate::media::Viewport;

/// How pages are loaded.
#[derive(Clone, Debug)]
pub struct Settings {
    pub viewport: Viewport,
    /// Addresses that the user named, of this page and of others.
    pub named: Vec<Url>,
    /// Servers of other addresses than the page's and those are asked as well.
    pub third_party: bool,
    /// For each request.
    pub timeout: Duration,
    /// Sent to the server that the user named.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    pub user_agent: String,
}

/// Whether both addresses are of one server: the same host and port. The usual ports of HTTP and HTTPS
/// count as one, since most pages lead from one to the other.
pub fn is_same_server(one: &Url, other: &Url) -> bool {
    // None: the usual port of its scheme.
    one.host_str() == other.host_str() && one.port() == other.port()
}

/// The reason why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(pub String);

/// Reads the address of a page.
///
/// # Errors
/// It is not an address of the web, or has a password.
pub fn address(text: &str) -> Result<Url, LoadError> {
    let wrong = |what: &str| LoadError(format!("{text}: {what}"));
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    let url = Url::parse(text).ok().filter(|_| is_web);
    let url = url.ok_or_else(|| wrong("expected http:// or https:// with a host"))?;
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(url),
        false => Err(wrong(
            "a URL with a password is not asked for (-H Authorization)",
        )),
    }
}

/// Reads a field such as `Accept-Language: de`.
///
/// # Errors
/// The expected form.
pub fn field(text: &str) -> Result<(HeaderName, HeaderValue), LoadError> {
    let parts = text
        .split_once(':')
        .and_then(|(name, value)| Some((name.trim().parse().ok()?, value.trim().parse().ok()?)));
    let wrong = || {
        LoadError(format!(
            "{text}: expected a field such as \"Accept-Language: de\""
        ))
    };
    match parts.ok_or_else(wrong)? {
        (name, _) if name == http::header::HOST => Err(LoadError(format!(
            "{text}: a page's links lead to its host, so that another name needs an address of its own"
        ))),
        parts => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_the_web_and_have_no_password() {
        for (text, expected) in [
            ("http://site.test", "http://site.test/"),
            ("https://site.test:8443/a?b", "https://site.test:8443/a?b"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
            ("site.test", "expected http://"),
            ("localhost:8080/", "expected http://"),
            ("file:///etc/passwd", "expected http://"),
            ("http://", "expected http://"),
            ("http://me@site.test/", "password"),
        ] {
            let said = match address(text) {
                Ok(url) => url.to_string(),
                Err(error) => error.to_string(),
            };
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn a_server_is_a_host_and_a_port() {
        for (one, other, is_same) in [
            ("http://site.test/a", "https://site.test/b", true),
            ("http://site.test/", "http://SITE.test:80/", true),
            ("http://site.test:8080/", "http://site.test:8080/a", true),
            ("http://site.test/", "http://site.test:22/", false),
            ("http://site.test/", "http://site.test:443/", false),
            ("http://site.test:8080/", "http://site.test:8081/", false),
            ("http://site.test/", "http://www.site.test/", false),
        ] {
            let url = |text| address(text).expect("an address");
            let said = is_same_server(&url(one), &url(other));
            assert_eq!(said, is_same, "{one} {other}");
        }
    }

    #[test]
    fn fields_have_a_name_and_a_value() {
        for (text, is_right) in [
            ("Accept-Language: de", true),
            ("X: ", true),
            ("nonsense", false),
            ("a b: c", false),
            ("a: b\r\nc: d", false),
            ("Host: other.test", false),
        ] {
            assert_eq!(field(text).is_ok(), is_right, "{text}");
        }
    }
}
