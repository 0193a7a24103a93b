//! Responses that are odd, but harmless: they are complete, however the bytes are cut.

use crate::scripted_upstream::{CUTS, answer};

#[tokio::test]
async fn odd_but_harmless_responses_are_complete() {
    // Name, method, response, status, body, reusable, words about excess data.
    type Case = (
        &'static str,
        &'static str,
        &'static str,
        u16,
        &'static str,
        bool,
        &'static str,
    );
    let more = "upstream sent more data than specified in \"Content-Length\" header";
    #[rustfmt::skip]
    let cases: &[Case] = &[
        ("plain", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true, ""),
        ("bare LF", "GET", "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", 200, "abc", true, ""),
        ("no reason", "GET", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", 404, "", true, ""),
        ("no length", "GET", "HTTP/1.1 200 OK\r\n\r\nabc", 200, "abc", false, ""),
        ("no length, no body", "GET", "HTTP/1.1 200 OK\r\n\r\n", 200, "", false, ""),
        (
            "close", "GET", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\na", 200, "a",
            false, "",
        ),
        ("1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, "a", false, ""),
        (
            "1.0 kept", "GET", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na", 200, "a",
            true, "",
        ),
        (
            "1.0 chunked", "GET",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            200, "a", false, "",
        ),
        (
            "chunked", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n", 200, "abcd",
            true, "",
        ),
        ("odd fields", "GET", "HTTP/1.1 200 OK\r\nX_y.@z: 1\r\n\r\n", 200, "", false, ""),
        (
            "interim first", "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \nLink: </a>\n\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            200, "a", true, "",
        ),
        ("204 with a length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 204, "", true, ""),
        ("304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "", true, ""),
        ("HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, "", true, ""),
        ("HEAD, chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", true, ""),
        (
            "no data at all where none is due", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "",
            true, "",
        ),
        // In one piece only: a byte that comes later is the next taker's find.
        (
            "more than its length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", 200, "abc", false,
            more,
        ),
        ("more than no length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nabc", 200, "", false, more),
        (
            "more after the last chunk", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n1\r\n", 200, "a", false,
            "upstream sent data after final chunk",
        ),
        (
            "HEAD with a body", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "", false,
            "upstream sent a body with a response that has none",
        ),
        (
            "304 with a body", "GET", "HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\nabc", 304, "", false,
            "upstream sent a body with a response that has none",
        ),
        (
            "two responses", "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb", 200, "a",
            false, more,
        ),
    ];
    for &(name, method, wire, status, body, is_reusable, excess) in cases {
        for cut in CUTS {
            let (seen, error) = answer(method, wire.as_bytes(), cut).await;
            assert!(seen.is_complete, "{name} by {cut}: {error:?}");
            let seen_status = seen.head.as_ref().map(|head| head.status);
            assert_eq!(seen_status, Some(status), "{name} by {cut}");
            assert_eq!(seen.body, body.as_bytes(), "{name} by {cut}");
            if excess.is_empty() || cut > wire.len() {
                assert_eq!(seen.is_reusable, is_reusable, "{name} by {cut}");
                assert_eq!(
                    seen.excess_data.as_deref().unwrap_or(""),
                    excess,
                    "{name} by {cut}"
                );
            }
        }
    }
}
