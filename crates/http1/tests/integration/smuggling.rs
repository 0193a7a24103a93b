//! Requests in which two readers could see different ends. Each is refused with
//! the status named here, from head or body; then the connection is closed, so
//! whatever was smuggled is never read as a request. The same corpus is put to
//! hyper: we take nothing that it refuses.

use std::convert::Infallible;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use http1::chunked::{ChunkedDecoder, DecodedChunk};
use http1::{Framing, HeadLimits, RequestError, body_framing, parse_head};

/// Returns the verdict of our codec on `text`: the status it refuses with, or
/// 200.
fn verdict(text: &[u8]) -> u16 {
    let refused = |error: RequestError| error.status();
    let head = match parse_head(text.to_vec(), &HeadLimits::default()) {
        Ok(head) => head,
        Err(error) => return refused(error),
    };
    match body_framing(&head) {
        Err(error) => refused(error),
        Ok(Framing::Chunked) => chunked_verdict(&text[head.bytes.len()..]),
        Ok(_) => 200,
    }
}

fn chunked_verdict(mut body: &[u8]) -> u16 {
    let mut decoder = ChunkedDecoder::new();
    loop {
        match decoder.decode(body) {
            Err(_) => return 400,
            Ok(DecodedChunk::Data { consumed, .. }) => body = &body[consumed..],
            Ok(DecodedChunk::Done { .. }) => return 200,
            Ok(DecodedChunk::NeedMore) => panic!("the corpus has whole bodies"),
        }
    }
}

/// Name, fields and body of a POST, status.
#[rustfmt::skip]
const CORPUS: &[(&str, &str, u16)] = &[
    ("plain length", "Content-Length: 3\r\n\r\nabc", 200),
    ("plain chunked", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200),
    ("chunked in capitals", "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", 200),
    ("trailing space after value", "Content-Length: 3 \r\n\r\nabc", 200),
    ("chunk extension", "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", 200),
    // Lengths.
    ("two lengths that differ", "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
    ("two lengths that agree", "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    ("length list", "Content-Length: 3, 3\r\n\r\nabc", 400),
    ("length list that differs", "Content-Length: 3, 4\r\n\r\nabc", 400),
    ("plus sign", "Content-Length: +3\r\n\r\nabc", 400),
    ("minus sign", "Content-Length: -3\r\n\r\nabc", 400),
    ("hexadecimal", "Content-Length: 0x3\r\n\r\nabc", 400),
    ("empty length", "Content-Length:\r\n\r\nabc", 400),
    ("space inside", "Content-Length: 3 4\r\n\r\nabc", 400),
    ("decimal point", "Content-Length: 3.0\r\n\r\nabc", 400),
    ("exponent", "Content-Length: 3e0\r\n\r\nabc", 400),
    ("underscore", "Content-Length: 1_0\r\n\r\nabc", 400),
    ("other digits", "Content-Length: \u{0663}\r\n\r\nabc", 400),
    ("overflow of 64 bits", "Content-Length: 18446744073709551619\r\n\r\nabc", 400),
    ("overflow of 63 bits", "Content-Length: 9223372036854775808\r\n\r\nabc", 400),
    ("quoted", "Content-Length: \"3\"\r\n\r\nabc", 400),
    ("vertical tab before", "Content-Length: \x0b3\r\n\r\nabc", 400),
    // Length beside coding.
    ("CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", 400),
    ("TE.CL", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 400),
    ("CL.TE, length zero", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    // Codings.
    ("two codings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("TE.TE", "Transfer-Encoding: chunked\r\nTransfer-encoding: cow\r\n\r\n0\r\n\r\n", 400),
    ("identity", "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501),
    ("chunked, identity", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
    ("gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ("chunked twice in a list", "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501),
    ("xchunked", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("quoted coding", "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501),
    ("coding with parameter", "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", 501),
    ("coding with comma", "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n", 501),
    ("empty coding", "Transfer-Encoding:\r\n\r\n0\r\n\r\n", 501),
    ("vertical tab before coding", "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 501),
    ("NUL after coding", "Transfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n", 400),
    ("CR after coding", "Transfer-Encoding: chunked\r\r\n\r\n0\r\n\r\n", 400),
    // Field lines.
    ("space before colon", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    ("tab before colon", "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 400),
    ("folded coding", "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400),
    ("folded field", "X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("leading space", " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("NUL in value", "X: a\0b\r\n\r\n", 400),
    ("CR in value", "X: a\rTransfer-Encoding: chunked\r\n\r\n", 400),
    ("CR as line end", "X: a\r\rGET /", 400),
    ("NUL in name", "X\0: a\r\n\r\n", 400),
    ("no colon", "Transfer-Encoding\r\n\r\n", 400),
    ("empty name", ": chunked\r\n\r\n", 400),
    ("CR line before the end", "X: a\r\n\r\r\n\r\n", 400),
    ("two hosts", "Host: y\r\n\r\n", 400),
    // Chunks.
    ("chunk longer than its size", "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400),
    ("chunk shorter than its size", "Transfer-Encoding: chunked\r\n\r\n5\r\nabc\r\n0\r\n\r\n", 400),
    ("no size", "Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n", 400),
    ("extension without size", "Transfer-Encoding: chunked\r\n\r\n;a\r\n0\r\n\r\n", 400),
    ("signed size", "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n", 400),
    ("negative size", "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", 400),
    ("0x size", "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400),
    ("size with underscore", "Transfer-Encoding: chunked\r\n\r\n1_0\r\nabc\r\n0\r\n\r\n", 400),
    ("size that wraps", "Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n", 400),
    ("size above 63 bits", "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc", 400),
    ("bare LF after size", "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400),
    ("bare LF after extension", "Transfer-Encoding: chunked\r\n\r\n3;a\nabc\r\n0\r\n\r\n", 400),
    ("bare CR in extension", "Transfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc\r\n0\r\n\r\n", 400),
    ("bare LF after data", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n", 400),
    ("any two bytes after data", "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n", 400),
    ("bare LF at the end", "Transfer-Encoding: chunked\r\n\r\n0\r\n\n", 400),
    ("space before size", "Transfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n0\r\n\r\n", 400),
    ("bad trailer", "Transfer-Encoding: chunked\r\n\r\n0\r\nX : a\r\n\r\n", 400),
    ("folded trailer", "Transfer-Encoding: chunked\r\n\r\n0\r\nX: a\r\n b\r\n\r\n", 400),
    ("NUL in trailer", "Transfer-Encoding: chunked\r\n\r\n0\r\nX: a\0\r\n\r\n", 400),
];

#[test]
fn ambiguous_requests_are_refused() {
    for (name, rest, status) in CORPUS {
        let text = format!("POST / HTTP/1.1\r\nHost: x\r\n{rest}");
        assert_eq!(verdict(text.as_bytes()), *status, "{name}");
    }
}

#[test]
fn heads_that_hide_their_framing_are_refused() {
    #[rustfmt::skip]
    let cases = [
        ("chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("unknown coding in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", 400),
        ("no Host", "GET / HTTP/1.1\r\n\r\n", 400),
        ("no Host, absolute", "GET http://a/ HTTP/1.1\r\n\r\n", 400),
        ("folded first line", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400),
        ("version in the target", "GET / HTTP/1.1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("CR in the first line", "GET /\rHTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("CR before LF twice", "GET / HTTP/1.1\r\r\nHost: x\r\n\r\n", 400),
        ("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ];
    for (name, text, status) in cases {
        assert_eq!(verdict(text.as_bytes()), status, "{name}");
    }
}

/// Cases in which we are stricter than hyper, and why.
const STRICTER_THAN_HYPER: &[(&str, &str)] = &[
    (
        "two lengths that agree",
        "RFC 9112 §6.3 lets us refuse; nginx does",
    ),
    (
        "CL.TE",
        "RFC 9112 §6.1: ought to be handled as an error; nginx does",
    ),
    ("TE.CL", "as CL.TE"),
    ("CL.TE, length zero", "as CL.TE"),
    (
        "two codings",
        "chunked must not be applied twice, RFC 9112 §6.1",
    ),
    ("gzip, chunked", "we undo no gzip, so 501"),
    ("chunked twice in a list", "as two codings"),
    (
        "coding with comma",
        "only exactly `chunked` is read the same by everybody",
    ),
    ("two hosts", "RFC 9112 §3.2"),
];

#[tokio::test]
async fn nothing_is_taken_that_hyper_refuses() {
    let mut stricter = Vec::new();
    for (name, rest, status) in CORPUS {
        let text = format!("POST / HTTP/1.1\r\nHost: x\r\n{rest}");
        let hyper_takes = hyper_takes(text.as_bytes()).await;
        assert!(hyper_takes || *status != 200, "{name}: hyper refuses");
        if hyper_takes && *status != 200 {
            stricter.push(*name);
        }
    }
    let listed: Vec<_> = STRICTER_THAN_HYPER.iter().map(|(name, _)| *name).collect();
    assert_eq!(stricter, listed);
}

/// Whether hyper reads `text` as a request with a whole body.
async fn hyper_takes(text: &[u8]) -> bool {
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    client.write_all(text).await.unwrap();
    client.shutdown().await.unwrap();
    let service = service_fn(|request: Request<Incoming>| async {
        let mut response = Response::new(Empty::<Bytes>::new());
        if request.into_body().collect().await.is_err() {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        Ok::<_, Infallible>(response)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .serve_connection(TokioIo::new(server), service);
    // A broken connection shows in the answer, or in there being none.
    let _ = connection.await;
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    answer.starts_with(b"HTTP/1.1 200")
}
