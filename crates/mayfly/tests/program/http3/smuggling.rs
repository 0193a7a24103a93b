//! Heads that HTTP/3 allows and HTTP/1 and FastCGI would misread never reach an upstream: the
//! same cases as for HTTP/2.

use quinn::Connection;
use testkit::http3::{Outcome, ask_raw, frame, headers};

use super::{Site, site};
use crate::http2::smuggling::{PLACES, UpstreamPair, Version, tests_over};

type OverHttp3 = (Site, Connection);

impl Version for OverHttp3 {
    const SCHEME: &str = "https";
    const AUTHORITY: &str = "a.test";

    async fn start(locations: &str) -> Self {
        let site = site(&format!("keepalive_requests 100000;\n{locations}")).await;
        let connection = site.quic().connect(site.address, "a.test").await;
        (site, connection.expect("a handshake"))
    }

    async fn ask(
        &self,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
        trailers: Option<&[(&str, &str)]>,
    ) -> Option<u16> {
        let mut bytes = headers(fields);
        bytes.extend(body.map(|body| frame(0, body)).unwrap_or_default());
        bytes.extend(trailers.map(headers).unwrap_or_default());
        match ask_raw(&self.1, &bytes).await {
            Outcome::Status(status) => Some(status),
            _ => None,
        }
    }
}

tests_over!(OverHttp3);

async fn behind() -> UpstreamPair<OverHttp3> {
    UpstreamPair::behind().await
}

/// The pseudo-fields of a request for `path`.
fn request<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [
        (":method", method),
        (":scheme", "https"),
        (":authority", "a.test"),
        (":path", path),
    ]
}

#[tokio::test]
async fn another_host_other_methods_and_malformed_trailers_go_nowhere() {
    let behind = behind().await;
    let differs = [&request("GET", "/http")[..], &[("host", "b.test")]].concat();
    assert_eq!(behind.ask(&differs, None).await, Some(400));
    for method in ["CONNECT", "TRACE"] {
        let status = behind.ask(&request(method, "/http"), None).await;
        assert_eq!(status, Some(405), "{method}");
    }
    for trailers in [("x-a", "b\r\nc: d"), (":path", "/http")] {
        let post = request("POST", "/http");
        let site = &behind.site;
        let status = site.ask(&post, Some(b"body"), Some(&[trailers])).await;
        assert_eq!(status, Some(400), "{trailers:?}");
    }
    assert_eq!(behind.requests(), 0);
}

#[tokio::test]
async fn a_body_beside_a_length_of_zero_is_refused() {
    let behind = behind().await;
    for place in PLACES {
        let fields = [&request("POST", place)[..], &[("content-length", "0")]].concat();
        let status = behind.ask(&fields, Some(b"body")).await;
        assert_ne!(status, Some(200), "{place}");
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let behind = behind().await;
    let long = "x".repeat(9000);
    let fields = [&request("GET", "/http")[..], &[("x-a", &long)]].concat();
    assert_eq!(behind.ask(&fields, None).await, Some(400));
    // A block of field indexes that stand for far more.
    let mut block = vec![0, 0];
    block.resize(200_000, 0xff);
    let length = (block.len() as u32 | 0x8000_0000).to_be_bytes();
    let bytes = [&[1], &length[..], &block].concat();
    assert_eq!(ask_raw(&behind.site.1, &bytes).await, Outcome::Status(400));
    assert_eq!(behind.requests(), 0);
}

#[tokio::test]
async fn heads_that_do_not_end_are_bounded_together() {
    let behind = behind().await;
    // Each is within its limit, and lacks its last byte.
    let length = 60_000u32;
    let mut bytes = [&[1], &(length | 0x8000_0000).to_be_bytes()[..]].concat();
    bytes.resize(bytes.len() + length as usize - 1, 0);
    let mut streams = Vec::new();
    let excess = loop {
        let Ok((mut send, receive)) = behind.site.1.open_bi().await else {
            break true;
        };
        if send.write_all(&bytes).await.is_err() {
            break true;
        }
        streams.push((send, receive));
        if streams.len() > 100 {
            break false;
        }
    };
    assert!(excess, "{} heads", streams.len());
    let closed = behind.site.1.closed().await;
    let quinn::ConnectionError::ApplicationClosed(close) = closed else {
        panic!("{closed}");
    };
    assert_eq!(close.error_code.into_inner(), 0x107, "H3_EXCESSIVE_LOAD");
}
