//! Heads that HTTP/3 allows and HTTP/1 and FastCGI would misread never reach an upstream: the
//! same cases as for HTTP/2.

use quinn::Connection;
use testkit::http3::{Outcome, ask_raw, frame, headers};

use super::{Site, site};
use crate::http2::smuggling::{MALFORMED_FIELDS, MALFORMED_PSEUDO_FIELDS, PLACES, UpstreamPair};

async fn behind() -> UpstreamPair<(Site, Connection)> {
    UpstreamPair::behind(async |locations| {
        let site = site(&format!("keepalive_requests 100000;\n{locations}")).await;
        let connection = site.quic().connect(site.address, "a.test").await;
        (site, connection.expect("a handshake"))
    })
    .await
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

impl UpstreamPair<(Site, Connection)> {
    async fn ask(&self, fields: &[(&str, &str)], body: Option<&[u8]>) -> Outcome {
        let mut bytes = headers(fields);
        if let Some(body) = body {
            bytes.extend(frame(0, body));
        }
        ask_raw(&self.site.1, &bytes).await
    }
}

const REFUSED: Outcome = Outcome::Status(400);

#[tokio::test]
async fn malformed_fields_go_nowhere() {
    let behind = behind().await;
    for place in PLACES {
        for field in MALFORMED_FIELDS {
            let fields = [&request("POST", place)[..], &[*field]].concat();
            let outcome = behind.ask(&fields, Some(b"body")).await;
            assert_eq!(outcome, REFUSED, "{place} {field:?}");
        }
    }
    assert_eq!(behind.requests(), 0);
}

#[tokio::test]
async fn malformed_pseudo_fields_go_nowhere() {
    let behind = behind().await;
    for (at, field) in MALFORMED_PSEUDO_FIELDS {
        let mut fields = request("GET", "/http");
        fields[*at] = *field;
        assert_eq!(behind.ask(&fields, None).await, REFUSED, "{field:?}");
        let mut twice = request("GET", "/http").to_vec();
        twice.insert(*at, twice[*at]);
        assert_eq!(behind.ask(&twice, None).await, REFUSED, "twice {field:?}");
    }
    let differs = [&request("GET", "/http")[..], &[("host", "b.test")]].concat();
    assert_eq!(behind.ask(&differs, None).await, REFUSED);
    for method in ["CONNECT", "TRACE"] {
        let outcome = behind.ask(&request(method, "/http"), None).await;
        assert_eq!(outcome, Outcome::Status(405), "{method}");
    }
    assert_eq!(behind.requests(), 0);
}

#[tokio::test]
async fn a_length_that_the_body_does_not_have_never_makes_a_whole_request() {
    let behind = behind().await;
    for place in PLACES {
        for lengths in [&["4", "4"][..], &["4", "5"], &["3"], &["5"], &["0"]] {
            let lengths: Vec<_> = lengths.iter().map(|it| ("content-length", *it)).collect();
            let fields = [&request("POST", place)[..], &lengths].concat();
            let outcome = behind.ask(&fields, Some(b"body")).await;
            assert_ne!(outcome, Outcome::Status(200), "{place} {lengths:?}");
        }
        let fields = [&request("POST", place)[..], &[("content-length", "4")]].concat();
        assert_eq!(behind.ask(&fields, None).await, REFUSED, "{place} none");
    }
    // None of them was taken for one: the streamed ones were cut off.
    assert_eq!(behind.heads.lock().len(), 0);
    assert_eq!(behind.params.lock().len(), 0);
}

#[tokio::test]
async fn a_body_is_framed_anew_for_each_upstream() {
    let behind = behind().await;
    let body = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = body.len().to_string();
    for place in PLACES {
        for length in [None, Some(("content-length", length.as_str()))] {
            let fields = [&request("POST", place)[..], length.as_slice()].concat();
            let outcome = behind.ask(&fields, Some(body)).await;
            assert_eq!(outcome, Outcome::Status(200), "{place} {length:?}");
        }
    }
    let heads = behind.heads.lock();
    assert_eq!(heads.len(), 4);
    for request in heads.iter() {
        assert_eq!(&request.body[..], body, "{}", request.head);
        assert!(request.head.starts_with("POST /http"), "{}", request.head);
        assert!(request.head.contains(" HTTP/1.1\r\n"), "{}", request.head);
    }
    let params = behind.params.lock();
    assert_eq!(params.len(), 4);
    assert!(params.iter().all(|request| &request.body[..] == body));
}

#[tokio::test]
async fn an_upstream_gets_the_fields_and_no_more() {
    let behind = behind().await;
    let fields = [
        &request("GET", "/http?a=b%0d%0ac")[..],
        &[
            ("host", "a.test"),
            ("te", "trailers"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("x_underscore", "1"),
            ("content_length", "7"),
            ("x-a", "b: c"),
        ],
    ]
    .concat();
    assert_eq!(behind.ask(&fields, None).await, Outcome::Status(200));
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
}

#[tokio::test]
async fn trailers_are_no_fields_of_the_request_and_malformed_ones_end_it() {
    let behind = behind().await;
    let trailed = |place, trailers: &[(&str, &str)]| {
        let pieces = [
            headers(&request("POST", place)),
            frame(0, b"body"),
            headers(trailers),
        ];
        pieces.concat()
    };
    for place in PLACES {
        let bytes = trailed(place, &[("x-smuggled", "1"), ("content-length", "9")]);
        let outcome = ask_raw(&behind.site.1, &bytes).await;
        assert_eq!(outcome, Outcome::Status(200), "{place}");
    }
    for request in behind.heads.lock().iter() {
        assert_eq!(&request.body[..], b"body");
        assert!(!request.head.contains("smuggled"), "{}", request.head);
    }
    assert_eq!(behind.requests(), 4);
    for trailers in [("x-a", "b\r\nc: d"), (":path", "/http")] {
        let bytes = trailed("/http", &[trailers]);
        let outcome = ask_raw(&behind.site.1, &bytes).await;
        assert_eq!(outcome, REFUSED, "{trailers:?}");
    }
    assert_eq!(behind.requests(), 4);
}

#[tokio::test]
async fn heads_are_bounded() {
    let behind = behind().await;
    let long = "x".repeat(9000);
    let fields = [&request("GET", "/http")[..], &[("x-a", &long)]].concat();
    assert_eq!(behind.ask(&fields, None).await, REFUSED);
    // A block of field indexes that stand for far more.
    let mut block = vec![0, 0];
    block.resize(200_000, 0xff);
    let length = (block.len() as u32 | 0x8000_0000).to_be_bytes();
    let bytes = [&[1], &length[..], &block].concat();
    assert_eq!(ask_raw(&behind.site.1, &bytes).await, REFUSED);
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
