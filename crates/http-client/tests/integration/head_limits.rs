//! How large the head of a response may be.

use http_client::{BodyFraming, Error, Exchange, NoBody, READ_BUFFER_BYTES};
use tokio::io::{AsyncWriteExt, duplex};

use crate::scripted_upstream::{
    CUTS, HEAD_LIMIT_BYTES, PIPE_BYTES, answer, collect, read_head, spec,
};

/// Sends `start`, then `again` for as long as anybody reads.
async fn endless(start: &str, again: &[u8]) -> (Error, u64) {
    let (ours, mut theirs) = duplex(PIPE_BYTES);
    let mut exchange = Exchange::start(ours, spec("GET", BodyFraming::None), NoBody);
    let upstream = async {
        read_head(&mut theirs).await;
        let mut sending = theirs.write_all(start.as_bytes()).await;
        while sending.is_ok() {
            sending = theirs.write_all(again).await;
        }
    };
    let client = async {
        let (_, error) = collect(&mut exchange).await;
        (error.expect("an error"), exchange.received_bytes())
    };
    tokio::select! {
        () = upstream => panic!("the exchange hung up first"),
        seen = client => seen,
    }
}

#[tokio::test]
async fn endless_heads_are_given_up_within_a_buffer() {
    let most_bytes = (HEAD_LIMIT_BYTES + READ_BUFFER_BYTES) as u64;
    let too_big = "upstream sent too big header: more than 4096 bytes";
    #[rustfmt::skip]
    let cases = [
        ("one field without end", "HTTP/1.1 200 OK\r\nA: ", "bbbbbbbbbbbbbbbb", too_big),
        ("a name without end", "HTTP/1.1 200 OK\r\n", "aaaaaaaaaaaaaaaa", too_big),
        ("fields without end", "HTTP/1.1 200 OK\r\n", "A: bbbbbbbbbbbbbbb\r\n", too_big),
        ("a reason without end", "HTTP/1.1 200 ", "OK", too_big),
        ("spaces", "HTTP/1.1 ", "          ", too_big),
        (
            "trailers without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n",
            "upstream sent invalid chunked response: invalid trailer after 0 bytes",
        ),
        (
            "interim responses without end", "", "HTTP/1.1 100 Continue\r\n\r\n",
            "upstream sent too many informational responses",
        ),
        (
            "chunk extensions without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "upstream sent invalid chunked response: invalid chunk extension after 0 bytes",
        ),
    ];
    for (name, start, again, words) in cases {
        let (error, received_bytes) = endless(start, again.as_bytes()).await;
        assert_eq!(error.to_string(), words, "{name}");
        assert!(received_bytes <= most_bytes, "{name}: {received_bytes}");
    }
}

#[tokio::test]
async fn a_head_of_exactly_the_limit_is_taken() {
    let start = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: ";
    for (over, fits) in [(0, true), (1, false)] {
        let filler = HEAD_LIMIT_BYTES - start.len() - "\r\n\r\n".len() + over;
        let wire = format!("{start}{}\r\n\r\nx", "b".repeat(filler));
        for cut in CUTS {
            let (seen, error) = answer("GET", wire.as_bytes(), cut).await;
            assert_eq!(seen.is_complete, fits, "{over} by {cut}: {error:?}");
            let is_too_large = matches!(error, Some(Error::HeadTooLarge { .. }));
            assert_eq!(is_too_large, !fits, "{over} by {cut}");
        }
    }
}

#[tokio::test]
async fn a_head_larger_than_the_read_buffer_is_read_when_the_limit_allows() {
    let filler = "b".repeat(2 * READ_BUFFER_BYTES);
    let wire = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: {filler}\r\n\r\nx");
    let (ours, mut theirs) = duplex(PIPE_BYTES);
    let mut exchange = Exchange::start(
        ours,
        http_client::RequestSpec {
            head_limit_bytes: 4 * READ_BUFFER_BYTES,
            ..spec("GET", BodyFraming::None)
        },
        NoBody,
    );
    let upstream = async {
        read_head(&mut theirs).await;
        theirs.write_all(wire.as_bytes()).await.expect("a reader");
    };
    let (_, (seen, error)) = tokio::join!(upstream, collect(&mut exchange));
    assert!(seen.is_complete, "{error:?}");
}
