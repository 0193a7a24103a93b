//! The request for a resource, with the fields that a browser sends.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue,
    REFERER, USER_AGENT,
};
use http::request;
use url::{Host, Url};

use crate::resource::NamedResource;

pub struct RequestFields<'a> {
    pub user_agent: &'a str,
    /// Fields that the user gave; for the page's own host alone.
    pub own: &'a [(HeaderName, HeaderValue)],
    /// The page that names it.
    pub page: Option<&'a Url>,
    pub cookies: &'a str,
}

/// A request with its whole address.
///
/// # Errors
/// The address cannot be sent.
pub fn parts(wanted: &NamedResource, says: &RequestFields<'_>) -> Result<request::Parts, String> {
    let request = http::Request::get(wanted.url.as_str()).body(());
    let (mut parts, ()) = request
        .map_err(|error| format!("the address cannot be asked for: {error}"))?
        .into_parts();
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value)
            && !value.is_empty()
        {
            parts.headers.insert(name, value);
        }
    };
    put(HOST, &authority(&wanted.url));
    put(USER_AGENT, says.user_agent);
    put(ACCEPT, wanted.kind.accept());
    put(ACCEPT_LANGUAGE, "en-US,en;q=0.9");
    // Browsers take the newer codings over secure connections alone.
    put(
        ACCEPT_ENCODING,
        match is_trustworthy(&wanted.url) {
            true => "gzip, deflate, br, zstd",
            false => "gzip, deflate",
        },
    );
    put(
        HeaderName::from_static("sec-fetch-dest"),
        wanted.kind.destination(),
    );
    put(HeaderName::from_static("priority"), wanted.priority.field());
    put(REFERER, &referer(says.page, &wanted.url));
    put(COOKIE, says.cookies);
    set(&mut parts.headers, says.own);
    Ok(parts)
}

/// The user's own fields take the place of ours.
fn set(fields: &mut HeaderMap, own: &[(HeaderName, HeaderValue)]) {
    for (name, _) in own {
        fields.remove(name);
    }
    for (name, value) in own {
        fields.append(name, value.clone());
    }
}

/// `Host`: with the port where it is not the usual one.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// `https`, and this machine (Secure Contexts §3.1).
fn is_trustworthy(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            None => false,
        }
}

/// `strict-origin-when-cross-origin`, the default of browsers.
fn referer(page: Option<&Url>, url: &Url) -> String {
    match page {
        None => String::new(),
        Some(page) if page.origin() == url.origin() => page.as_str().to_owned(),
        Some(page) if page.scheme() == "https" && url.scheme() == "http" => String::new(),
        Some(page) => page.origin().ascii_serialization() + "/",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{Priority, ResourceKind};

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    fn value(target: &str, page: &str, own: &[(HeaderName, HeaderValue)], name: &str) -> String {
        let wanted = NamedResource {
            url: url(target),
            kind: ResourceKind::Style,
            priority: Priority::Highest,
            blocks_rendering: true,
        };
        let says = RequestFields {
            user_agent: "test",
            own,
            page: Some(&url(page)),
            cookies: "",
        };
        let parts = parts(&wanted, &says).expect("a request");
        let values = parts.headers.get_all(name).iter();
        let values: Vec<_> = values.map(|it| it.to_str().expect("text")).collect();
        values.join("|")
    }

    #[test]
    fn fields_are_those_of_a_browser() {
        let page = "http://site.test/post?x=1";
        for (target, name, expected) in [
            ("http://site.test/a.css", "host", "site.test"),
            ("http://site.test:8080/a.css", "host", "site.test:8080"),
            ("http://site.test/a.css", "referer", page),
            ("http://cdn.test/a.css", "referer", "http://site.test/"),
            ("http://site.test/a.css", "accept-encoding", "gzip, deflate"),
            (
                "https://site.test/a.css",
                "accept-encoding",
                "gzip, deflate, br, zstd",
            ),
            (
                "http://127.0.0.1:8080/a",
                "accept-encoding",
                "gzip, deflate, br, zstd",
            ),
            (
                "http://localhost/a",
                "accept-encoding",
                "gzip, deflate, br, zstd",
            ),
            ("http://site.test/a.css", "accept", "text/css,*/*;q=0.1"),
            ("http://site.test/a.css", "priority", "u=0"),
            ("http://site.test/a.css", "cookie", ""),
        ] {
            assert_eq!(value(target, page, &[], name), expected, "{target} {name}");
        }
        assert_eq!(
            value("http://site.test/", "https://site.test/", &[], "referer"),
            ""
        );
        let own = [(ACCEPT_LANGUAGE, HeaderValue::from_static("de"))];
        assert_eq!(
            value("http://site.test/", page, &own, "accept-language"),
            "de"
        );
    }
}
