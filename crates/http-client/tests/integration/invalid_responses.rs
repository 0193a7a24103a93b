//! Responses that are invalid, truncated, or merely odd. For each: what the caller
//! sees, however the bytes are cut. Only a complete response may end.

use bytes::Bytes;
use http_client::{BodyFraming, Error, Exchange, NoBody, READ_BUFFER_BYTES};
use tokio::io::{AsyncWriteExt, duplex};
use tokio::sync::mpsc;

use crate::scripted_upstream::{HEAD_LIMIT_BYTES, Seen, collect, read_head, spec};

const PIPE_BYTES: usize = 16 * 1024;

/// Answers a request of `method` with `wire` in pieces, then closes.
async fn answer(method: &str, wire: &[u8], piece_bytes: usize) -> (Seen, Option<Error>) {
    let (ours, mut theirs) = duplex(PIPE_BYTES);
    let mut exchange = Exchange::start(ours, spec(method, BodyFraming::None), NoBody);
    let upstream = async {
        read_head(&mut theirs).await;
        for piece in wire.chunks(piece_bytes) {
            // Whoever has seen enough hangs up.
            if theirs.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(theirs);
    };
    let client = async {
        let seen = collect(&mut exchange).await;
        drop(exchange);
        seen
    };
    tokio::join!(upstream, client).1
}

const CUTS: [usize; 4] = [1, 2, 7, 1 << 20];

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
    let cases: &[Case] = &[
        (
            "plain",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            200,
            "abc",
            true,
            "",
        ),
        (
            "bare LF",
            "GET",
            "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
            200,
            "abc",
            true,
            "",
        ),
        (
            "no reason",
            "GET",
            "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n",
            404,
            "",
            true,
            "",
        ),
        (
            "no length",
            "GET",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            200,
            "abc",
            false,
            "",
        ),
        (
            "no length, no body",
            "GET",
            "HTTP/1.1 200 OK\r\n\r\n",
            200,
            "",
            false,
            "",
        ),
        (
            "close",
            "GET",
            "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\na",
            200,
            "a",
            false,
            "",
        ),
        (
            "1.0",
            "GET",
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
            200,
            "a",
            false,
            "",
        ),
        (
            "1.0 kept",
            "GET",
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na",
            200,
            "a",
            true,
            "",
        ),
        (
            "1.0 chunked",
            "GET",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            200,
            "a",
            false,
            "",
        ),
        (
            "chunked",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n",
            200,
            "abcd",
            true,
            "",
        ),
        (
            "odd fields",
            "GET",
            "HTTP/1.1 200 OK\r\nX_y.@z: 1\r\n\r\n",
            200,
            "",
            false,
            "",
        ),
        (
            "interim first",
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \nLink: </a>\n\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            200,
            "a",
            true,
            "",
        ),
        (
            "204 with a length",
            "GET",
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
            204,
            "",
            true,
            "",
        ),
        (
            "304 with a length",
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            304,
            "",
            true,
            "",
        ),
        (
            "HEAD",
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            200,
            "",
            true,
            "",
        ),
        (
            "HEAD, chunked",
            "HEAD",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            200,
            "",
            true,
            "",
        ),
        (
            "no data at all where none is due",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            200,
            "",
            true,
            "",
        ),
        // In one piece only: a byte that comes later is the next taker's find.
        (
            "more than its length",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef",
            200,
            "abc",
            false,
            more,
        ),
        (
            "more than no length",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nabc",
            200,
            "",
            false,
            more,
        ),
        (
            "more after the last chunk",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n1\r\n",
            200,
            "a",
            false,
            "upstream sent data after final chunk",
        ),
        (
            "HEAD with a body",
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            200,
            "",
            false,
            "upstream sent a body with a response that has none",
        ),
        (
            "304 with a body",
            "GET",
            "HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\nabc",
            304,
            "",
            false,
            "upstream sent a body with a response that has none",
        ),
        (
            "two responses",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb",
            200,
            "a",
            false,
            more,
        ),
    ];
    for &(name, method, wire, status, body, is_reusable, excess_data) in cases {
        for cut in CUTS {
            let (seen, error) = answer(method, wire.as_bytes(), cut).await;
            assert!(seen.is_complete, "{name} by {cut}: {error:?}");
            let seen_status = seen.head.as_ref().map(|head| head.status);
            assert_eq!(seen_status, Some(status), "{name} by {cut}");
            assert_eq!(seen.body, body.as_bytes(), "{name} by {cut}");
            if excess_data.is_empty() || cut > wire.len() {
                assert_eq!(seen.is_reusable, is_reusable, "{name} by {cut}");
                assert_eq!(
                    seen.excess_data.as_deref().unwrap_or(""),
                    excess_data,
                    "{name} by {cut}"
                );
            }
        }
    }
}

#[tokio::test]
async fn incomplete_and_ambiguous_responses_never_end() {
    let closed = "upstream prematurely closed connection";
    // Quoted is as much of the line as has come.
    let invalid_line = "upstream sent invalid header: \"";
    // Name, method, response, whether a head came, words for the log.
    type Case = (&'static str, &'static str, &'static str, bool, &'static str);
    let cases: &[Case] = &[
        ("nothing", "GET", "", false, closed),
        ("half a status line", "GET", "HTTP/1.1 20", false, closed),
        (
            "a head that breaks off",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
            false,
            closed,
        ),
        (
            "a field line that breaks off",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Len",
            false,
            closed,
        ),
        (
            "interim responses only",
            "GET",
            "HTTP/1.1 103 x\r\n\r\n",
            false,
            closed,
        ),
        (
            "100 only",
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\n",
            false,
            closed,
        ),
        (
            "101 that nobody asked for",
            "GET",
            "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
            false,
            "upstream switched protocols although nobody asked for it",
        ),
        (
            "a length too long",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSHORT",
            true,
            "upstream prematurely closed connection after 5 of 100 bytes of the response body",
        ),
        (
            "a length and no body",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
            true,
            "upstream prematurely closed connection after 0 of 100 bytes of the response body",
        ),
        (
            "a chunk that breaks off",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nunfinished",
            true,
            "upstream prematurely closed connection after 10 bytes of the response body",
        ),
        (
            "no last chunk",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
            true,
            "upstream prematurely closed connection after 1 bytes of the response body",
        ),
        (
            "no end of trailers",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n",
            true,
            "upstream prematurely closed connection after 1 bytes of the response body",
        ),
        (
            "a chunk longer than its size",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
            true,
            "upstream sent invalid chunked response: chunk data longer than its size after 1 bytes",
        ),
        (
            "a chunk size that is none",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\na\r\n0\r\n\r\n",
            true,
            "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "a negative chunk size",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
            true,
            "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "a chunk size beyond numbers",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na\r\n",
            true,
            "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "a plain body called chunked",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n<html>",
            true,
            "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "two lengths",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 3\r\n\r\nabc",
            false,
            "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        (
            "the same length twice",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            false,
            "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        (
            "a list of lengths",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
            false,
            "upstream sent invalid \"Content-Length\" header",
        ),
        (
            "a signed length",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
            false,
            "upstream sent invalid \"Content-Length\" header",
        ),
        (
            "two lengths for HEAD",
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 3\r\n\r\n",
            false,
            "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        (
            "a length beside a coding",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            false,
            "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
        ),
        (
            "an unknown coding",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            false,
            "upstream sent unknown \"Transfer-Encoding\": \"gzip, chunked\"",
        ),
        (
            "two codings",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            false,
            "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        (
            "a folded line",
            "GET",
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\nabc",
            false,
            invalid_line,
        ),
        (
            "a space before the colon",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc",
            false,
            invalid_line,
        ),
        (
            "a NUL",
            "GET",
            "HTTP/1.1 200 OK\r\nA: \0\r\n\r\nabc",
            false,
            invalid_line,
        ),
        (
            "no status line",
            "GET",
            "<html>\r\n\r\n</html>",
            false,
            "upstream sent no valid HTTP/1.0 header",
        ),
        (
            "another protocol",
            "GET",
            "SSH-2.0-OpenSSH_9.2\r\n",
            false,
            "upstream sent no valid HTTP/1.0 header",
        ),
        (
            "HTTP/2",
            "GET",
            "\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\x04",
            false,
            "upstream sent no valid HTTP/1.0 header",
        ),
        (
            "a status of two digits",
            "GET",
            "HTTP/1.1 20 OK\r\n\r\n",
            false,
            "upstream sent no valid HTTP/1.0 header",
        ),
        (
            "a broken response after 100",
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nabc\r\n\r\n",
            false,
            "upstream sent no valid HTTP/1.0 header",
        ),
    ];
    for &(name, method, wire, has_head, words) in cases {
        for cut in CUTS {
            let (seen, error) = answer(method, wire.as_bytes(), cut).await;
            assert!(!seen.is_complete, "{name} by {cut} ended");
            let error = error.unwrap_or_else(|| panic!("{name} by {cut}: no error"));
            assert_eq!(seen.head.is_some(), has_head, "{name} by {cut}");
            let said = error.to_string();
            match words == invalid_line {
                true => assert!(said.starts_with(words), "{name} by {cut}: {said}"),
                false => assert_eq!(said, words, "{name} by {cut}"),
            }
            assert_eq!(
                error.before_first_byte(),
                wire.is_empty(),
                "{name} by {cut}"
            );
            assert_eq!(
                matches!(error, Error::Truncated { .. }),
                has_head && words.starts_with(closed),
                "{name} by {cut}"
            );
        }
    }
}

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
    for (name, start, again, words) in [
        (
            "one field without end",
            "HTTP/1.1 200 OK\r\nA: ",
            "bbbbbbbbbbbbbbbb",
            too_big,
        ),
        (
            "a name without end",
            "HTTP/1.1 200 OK\r\n",
            "aaaaaaaaaaaaaaaa",
            too_big,
        ),
        (
            "fields without end",
            "HTTP/1.1 200 OK\r\n",
            "A: bbbbbbbbbbbbbbb\r\n",
            too_big,
        ),
        ("a reason without end", "HTTP/1.1 200 ", "OK", too_big),
        ("spaces", "HTTP/1.1 ", "          ", too_big),
        (
            "trailers without end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "A: b\r\n",
            "upstream sent invalid chunked response: invalid trailer after 0 bytes",
        ),
        (
            "interim responses without end",
            "",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "upstream sent too many informational responses",
        ),
        (
            "chunk extensions without end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "upstream sent invalid chunked response: invalid chunk extension after 0 bytes",
        ),
    ] {
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

#[tokio::test]
async fn data_before_the_request_is_refused() {
    let (ours, mut theirs) = duplex(PIPE_BYTES);
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    theirs.write_all(wire).await.expect("room");
    let mut exchange = Exchange::start(ours, spec("GET", BodyFraming::None), NoBody);
    let (seen, error) = collect(&mut exchange).await;
    assert!(seen.head.is_none());
    let error = error.expect("an error");
    assert_eq!(error.to_string(), "upstream sent data before the request");
    assert!(error.before_first_byte(), "another may be asked");
    assert_eq!(exchange.sent_bytes(), 0);
}

#[tokio::test]
async fn an_answer_before_the_whole_request_is_taken_but_the_connection_is_not_kept() {
    let (ours, mut theirs) = duplex(PIPE_BYTES);
    let (_body, source) = mpsc::channel::<std::io::Result<Bytes>>(1);
    let mut exchange = Exchange::start(ours, spec("POST", BodyFraming::Length(5)), source);
    let upstream = async {
        read_head(&mut theirs).await;
        let wire = b"HTTP/1.1 413 Too Large\r\nContent-Length: 1\r\n\r\na";
        theirs.write_all(wire).await.expect("room");
    };
    let (_, (seen, error)) = tokio::join!(upstream, collect(&mut exchange));
    assert!(seen.is_complete, "{error:?}");
    assert_eq!(seen.head.expect("a head").status, 413);
    assert!(!seen.is_reusable);
    assert!(!exchange.is_request_sent());
    assert!(exchange.into_stream().is_none());
}

#[tokio::test]
async fn a_failing_stream_truncates_even_a_body_without_length() {
    use failing::FailingStream;
    for (name, wire, words) in [
        (
            "nothing yet",
            "",
            "recv() failed (104: Connection reset by peer)",
        ),
        (
            "within the head",
            "HTTP/1.1 200 OK\r\n",
            "recv() failed (104: Connection reset by peer)",
        ),
        (
            "no length",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            "recv() failed (104: Connection reset by peer) after 3 bytes of the response body",
        ),
        (
            "a length",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            "recv() failed (104: Connection reset by peer) after 3 of 9 bytes of the response body",
        ),
    ] {
        let stream = FailingStream::new(wire);
        let mut exchange = Exchange::start(stream, spec("GET", BodyFraming::None), NoBody);
        let (seen, error) = collect(&mut exchange).await;
        assert!(!seen.is_complete, "{name}");
        let error = error.expect(name);
        assert_eq!(error.to_string(), words, "{name}");
        assert_eq!(error.before_first_byte(), wire.is_empty(), "{name}");
    }
}

/// A stream that takes everything, gives some bytes once it was asked, and is
/// then reset.
mod failing {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    pub struct FailingStream {
        wire: &'static [u8],
        was_asked: bool,
    }

    impl FailingStream {
        pub fn new(wire: &'static str) -> Self {
            FailingStream {
                wire: wire.as_bytes(),
                was_asked: false,
            }
        }
    }

    impl AsyncRead for FailingStream {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if !self.was_asked {
                return Poll::Pending;
            }
            if self.wire.is_empty() {
                return Poll::Ready(Err(io::Error::from_raw_os_error(104)));
            }
            buffer.put_slice(self.wire);
            self.wire = b"";
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for FailingStream {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.was_asked = true;
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
}
