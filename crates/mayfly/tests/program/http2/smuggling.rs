//! Heads that HTTP/2 and HTTP/3 allow and HTTP/1 and FastCGI would misread never reach an upstream: the bytes
//! that it received are compared. Functions with a [`Version`] are tests of both.

use std::sync::Arc;

use parking_lot::Mutex;
use testkit::fake_http::{self, FakeHttp};
use testkit::fake_php::{self, FakePhp};
use testkit::http2::{ErrorCode, data, headers};
use testkit::running::RunningServer;

use super::{GET, POST, frames, site, with};

/// A site that is reached over one version of HTTP.
pub trait Version: Sized {
    const SCHEME: &str;
    const AUTHORITY: &str;

    async fn start(locations: &str) -> Self;

    /// Sends a request by itself; the status of its answer, or `None` if it was reset.
    async fn ask(
        &self,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
        trailers: Option<&[(&str, &str)]>,
    ) -> Option<u16>;
}

impl Version for RunningServer {
    const SCHEME: &str = GET[1].1;
    const AUTHORITY: &str = GET[2].1;

    async fn start(locations: &str) -> Self {
        site(locations).await
    }

    async fn ask(
        &self,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
        trailers: Option<&[(&str, &str)]>,
    ) -> Option<u16> {
        let mut client = frames(self).await;
        client.send(headers(1, fields, body.is_none())).await;
        if let Some(body) = body {
            client.send(data(1, body, trailers.is_none())).await;
        }
        if let Some(trailers) = trailers {
            client.send(headers(1, trailers, true)).await;
        }
        let outcome = client.outcome(1).await;
        outcome.reply.map(|reply| reply.status)
    }
}

/// The pseudo-fields of a request for `path`, and more fields.
fn request<'a, V: Version>(
    method: &'a str,
    path: &'a str,
    fields: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let pseudo = [
        (":method", method),
        (":scheme", V::SCHEME),
        (":authority", V::AUTHORITY),
        (":path", path),
    ];
    with(&pseudo, fields)
}

/// Makes tests of the functions with a [`Version`].
macro_rules! tests_over {
    ($version:ty) => {
        $crate::http2::smuggling::tests_over! { $version:
            malformed_fields_go_nowhere
            malformed_pseudo_fields_go_nowhere
            two_lengths_go_nowhere
            a_length_that_the_body_does_not_have_never_makes_a_whole_request
            a_body_beside_a_length_of_zero_is_lost
            a_body_is_framed_anew_for_each_upstream
            an_upstream_gets_the_fields_and_no_more
            what_follows_a_body_as_trailers_is_no_field_of_the_request
        }
    };
    ($version:ty: $($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            $crate::http2::smuggling::over::$name::<$version>().await;
        })*
    };
}
pub(crate) use tests_over;

tests_over!(RunningServer);

/// Two upstreams behind one site, and their requests.
pub struct UpstreamPair<S> {
    pub site: S,
    http: FakeHttp,
    php: FakePhp,
    pub heads: Arc<Mutex<Vec<fake_http::Request>>>,
    pub params: Arc<Mutex<Vec<fake_php::Request>>>,
}

impl<S: Version> UpstreamPair<S> {
    /// Requests below `/http`, `/http-stream`, `/php` and `/php-stream` go to an upstream, whole or while they
    /// arrive.
    pub async fn behind() -> UpstreamPair<S> {
        let (heads, params) = (Arc::default(), Arc::default());
        let seen: Arc<Mutex<Vec<fake_http::Request>>> = Arc::clone(&heads);
        let http = FakeHttp::start(move |request| {
            seen.lock().push(request.clone());
            fake_http::Script::page("", "page")
        })
        .await;
        let seen: Arc<Mutex<Vec<fake_php::Request>>> = Arc::clone(&params);
        let php = FakePhp::tcp(move |request| {
            seen.lock().push(request.clone());
            fake_php::Script::page("", "page")
        })
        .await;
        let (url, address) = (http.url(), php.address());
        let fastcgi = format!(
            "fastcgi_pass {address}; fastcgi_param REQUEST_METHOD $request_method;\n\
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param CONTENT_LENGTH $content_length;"
        );
        let locations = format!(
            "location /http {{ proxy_http_version 1.1; proxy_pass {url}; }}\n\
             location /http-stream {{ proxy_http_version 1.1; proxy_request_buffering off; proxy_pass {url}; }}\n\
             location /php {{ {fastcgi} }}\n\
             location /php-stream {{ fastcgi_request_buffering off; {fastcgi} }}"
        );
        UpstreamPair {
            site: S::start(&locations).await,
            http,
            php,
            heads,
            params,
        }
    }

    pub async fn ask(&self, fields: &[(&str, &str)], body: Option<&[u8]>) -> Option<u16> {
        self.site.ask(fields, body, None).await
    }

    pub fn requests(&self) -> usize {
        self.http.requests() + self.php.requests()
    }
}

pub const PLACES: [&str; 4] = ["/http", "/http-stream", "/php", "/php-stream"];

/// Fields that no request may have, in any version that has fields alone.
const MALFORMED_FIELDS: &[(&str, &str)] = &[
    ("x-a", "b\r\nx-smuggled: 1"),
    ("x-a", "b\nx-smuggled: 1"),
    ("x-a", "b\rc"),
    ("x-a", "b\0c"),
    ("x-a", " b"),
    ("x-a", "b\t"),
    ("x-a\r\nx-smuggled", "1"),
    ("x-a: b\r\nx-smuggled", "1"),
    ("x a", "1"),
    ("x-a:", "1"),
    ("", "1"),
    ("X-Upper", "1"),
    ("Content-Length", "4"),
    ("transfer-encoding", "chunked"),
    ("Transfer-Encoding", "chunked"),
    ("connection", "close"),
    ("connection", "x-a"),
    ("keep-alive", "timeout=5"),
    ("proxy-connection", "keep-alive"),
    ("upgrade", "h2c"),
    ("te", "chunked"),
    ("te", "trailers, chunked"),
    ("content-length", "+4"),
    ("content-length", "4, 4"),
    ("content-length", "0x4"),
    ("content-length", "-4"),
    ("content-length", ""),
    ("content-length", "99999999999999999999999"),
    (":path", "/late"),
    (":unknown", "1"),
];

/// Pseudo-fields that no request may have, and their places among the four.
const MALFORMED_PSEUDO_FIELDS: &[(usize, (&str, &str))] = &[
    (3, (":path", "/http HTTP/1.1\r\nx-smuggled: 1\r\n\r\n")),
    (3, (":path", "/http /php")),
    (3, (":path", "/http\tb")),
    (3, (":path", "http")),
    (3, (":path", "http://other.test/http")),
    (3, (":path", "")),
    (3, (":path", "*")),
    (3, (":path", "/http\0")),
    (2, (":authority", "site.test\r\nx-smuggled: 1")),
    (2, (":authority", "site.test/http")),
    (2, (":authority", "a b")),
    (0, (":method", "GET / HTTP/1.1\r\nx: y\r\n\r\nGET")),
    (0, (":method", "GET ")),
    (0, (":method", "")),
    (0, (":method", "get")),
    (1, (":scheme", "http\r\nx: y")),
    (1, (":scheme", "")),
];

#[tokio::test]
async fn malformed_trailers_end_the_request() {
    let behind = UpstreamPair::<RunningServer>::behind().await;
    for (trailers, end) in [
        (&[("x-a", "b\r\nc: d")][..], true),
        (&[(":path", "/http")], true),
        (&[("x-a", "b")], false),
    ] {
        let mut pseudo = POST;
        pseudo[3].1 = "/http";
        let mut client = frames(&behind.site).await;
        client.send(headers(1, &pseudo, false)).await;
        client.send(data(1, b"body", false)).await;
        client.send(headers(1, trailers, end)).await;
        let outcome = client.outcome(1).await;
        let status = outcome.reply.map(|reply| reply.status);
        let is_refused = status == Some(400) || outcome.error == Some(ErrorCode::PROTOCOL_ERROR);
        assert!(is_refused, "{trailers:?}: {status:?} {:?}", outcome.error);
    }
    assert_eq!(behind.requests(), 0);
}

/// The tests of both versions.
pub mod over {
    use super::*;

    pub async fn malformed_fields_go_nowhere<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        for place in PLACES {
            for field in MALFORMED_FIELDS {
                let fields = request::<V>("POST", place, &[*field]);
                let status = behind.ask(&fields, Some(b"body")).await;
                assert_eq!(status, Some(400), "{place} {field:?}");
            }
        }
        assert_eq!(behind.requests(), 0);
    }

    pub async fn malformed_pseudo_fields_go_nowhere<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        for (at, field) in MALFORMED_PSEUDO_FIELDS {
            let mut fields = request::<V>("GET", "/http", &[]);
            let mut twice = fields.clone();
            fields[*at] = *field;
            assert_eq!(behind.ask(&fields, None).await, Some(400), "{field:?}");
            twice.insert(*at, twice[*at]);
            assert_eq!(behind.ask(&twice, None).await, Some(400), "twice {field:?}");
        }
        assert_eq!(behind.requests(), 0);
    }

    pub async fn two_lengths_go_nowhere<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        for place in PLACES {
            for lengths in [["4", "4"], ["4", "5"]] {
                let lengths = lengths.map(|length| ("content-length", length));
                let fields = request::<V>("POST", place, &lengths);
                let status = behind.ask(&fields, Some(b"body")).await;
                assert_eq!(status, Some(400), "{place} {lengths:?}");
            }
        }
        assert_eq!(behind.requests(), 0);
    }

    pub async fn a_length_that_the_body_does_not_have_never_makes_a_whole_request<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        for place in PLACES {
            for length in ["3", "5"] {
                let fields = request::<V>("POST", place, &[("content-length", length)]);
                let status = behind.ask(&fields, Some(b"body")).await;
                assert_ne!(status, Some(200), "{place} {length}");
            }
            let fields = request::<V>("POST", place, &[("content-length", "4")]);
            assert_eq!(behind.ask(&fields, None).await, Some(400), "{place} none");
        }
        // None of them was taken for one: the streamed ones were cut off.
        assert_eq!(behind.heads.lock().len(), 0);
        assert_eq!(behind.params.lock().len(), 0);
    }

    pub async fn a_body_beside_a_length_of_zero_is_lost<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        let body = b"GET /smuggled HTTP/1.1\r\n\r\n";
        for place in PLACES {
            let fields = request::<V>("POST", place, &[("content-length", "0")]);
            behind.ask(&fields, Some(body)).await;
        }
        for request in behind.heads.lock().iter() {
            assert!(request.target.starts_with("/http"), "{}", request.target);
            assert_eq!(request.body.len(), 0);
        }
        for request in behind.params.lock().iter() {
            assert_eq!(request.body.len(), 0);
        }
    }

    pub async fn a_body_is_framed_anew_for_each_upstream<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        let body = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        let length = body.len().to_string();
        for place in PLACES {
            for length in [None, Some(("content-length", length.as_str()))] {
                let fields = request::<V>("POST", place, length.as_slice());
                let status = behind.ask(&fields, Some(body)).await;
                assert_eq!(status, Some(200), "{place} {length:?}");
            }
        }
        let heads = behind.heads.lock();
        assert_eq!(heads.len(), 4);
        for request in heads.iter() {
            assert_eq!(&request.body[..], body, "{}", request.head);
            let framings = ["content-length", "transfer-encoding"];
            let said = framings
                .iter()
                .filter(|name| !request.field(name).is_empty());
            assert_eq!(said.count(), 1, "{}", request.head);
            assert!(request.head.starts_with("POST /http"), "{}", request.head);
            assert!(request.head.contains(" HTTP/1.1\r\n"), "{}", request.head);
        }
        let params = behind.params.lock();
        assert_eq!(params.len(), 4);
        for request in params.iter() {
            assert_eq!(&request.body[..], body);
            let length = request.param("CONTENT_LENGTH");
            assert!(
                length.is_empty() || length == body.len().to_string(),
                "{length}"
            );
        }
    }

    pub async fn an_upstream_gets_the_fields_and_no_more<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        let fields = [
            ("host", V::AUTHORITY),
            ("te", "trailers"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("x_underscore", "1"),
            ("content_length", "7"),
            ("x-a", "b: c"),
        ];
        for place in ["/http?a=b%0d%0ac", "/php"] {
            let fields = request::<V>("GET", place, &fields);
            assert_eq!(behind.ask(&fields, None).await, Some(200));
        }
        let heads = behind.heads.lock();
        let head = &heads[0].head;
        assert!(
            head.starts_with("GET /http?a=b%0d%0ac HTTP/1.1\r\n"),
            "{head}"
        );
        assert_eq!(heads[0].field("cookie"), "a=1; b=2");
        assert_eq!(heads[0].field("x-a"), "b: c");
        let lower = head.to_ascii_lowercase();
        assert_eq!(lower.matches("\r\nhost:").count(), 1, "{head}");
        for absent in ["\r\nte:", "underscore", "content_length", "\r\n:"] {
            assert!(!lower.contains(absent), "{absent:?} {head}");
        }
        let params = behind.params.lock();
        assert_eq!(params[0].param("HTTP_COOKIE"), "a=1; b=2");
        assert_eq!(params[0].param("CONTENT_LENGTH"), "");
        assert_eq!(params[0].param("HTTP_CONTENT_LENGTH"), "");
        assert_eq!(params[0].param("HTTP_TRANSFER_ENCODING"), "");
    }

    pub async fn what_follows_a_body_as_trailers_is_no_field_of_the_request<V: Version>() {
        let behind = UpstreamPair::<V>::behind().await;
        let trailers = [("x-smuggled", "1"), ("content-length", "9")];
        for place in PLACES {
            let fields = request::<V>("POST", place, &[]);
            let site = &behind.site;
            let status = site.ask(&fields, Some(b"body"), Some(&trailers)).await;
            assert_eq!(status, Some(200), "{place}");
        }
        for request in behind.heads.lock().iter() {
            assert_eq!(&request.body[..], b"body");
            assert!(!request.head.contains("smuggled"), "{}", request.head);
        }
        for request in behind.params.lock().iter() {
            assert_eq!(&request.body[..], b"body");
            assert_eq!(request.param("HTTP_X_SMUGGLED"), "");
        }
        assert_eq!(behind.requests(), 4);
    }
}
