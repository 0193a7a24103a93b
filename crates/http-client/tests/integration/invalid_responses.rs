//! Responses that are invalid or truncated. Each case has the events that the caller sees,
//! however the bytes are cut. Only a complete response may end.

use bytes::Bytes;
use http_client::{BodyFraming, Error, Exchange, NoBody};
use tokio::io::{AsyncWriteExt, duplex};
use tokio::sync::mpsc;

use crate::scripted_upstream::{CUTS, PIPE_BYTES, answer, collect, read_head, spec};

#[tokio::test]
async fn incomplete_and_ambiguous_responses_never_end() {
    let closed = "upstream prematurely closed connection";
    // Quoted is as much of the line as has come.
    let invalid_line = "upstream sent invalid header: \"";
    // Name, method, response, whether a head came, words for the log.
    type Case = (&'static str, &'static str, &'static str, bool, &'static str);
    #[rustfmt::skip]
    let cases: &[Case] = &[
        ("nothing", "GET", "", false, closed),
        ("half a status line", "GET", "HTTP/1.1 20", false, closed),
        ("a head that is truncated", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", false, closed),
        ("a field line that is truncated", "GET", "HTTP/1.1 200 OK\r\nContent-Len", false, closed),
        ("interim responses only", "GET", "HTTP/1.1 103 x\r\n\r\n", false, closed),
        ("100 only", "GET", "HTTP/1.1 100 Continue\r\n\r\n", false, closed),
        (
            "101 that nobody asked for", "GET", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", false,
            "upstream switched protocols although nobody asked for it",
        ),
        (
            "a length too long", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSHORT", true,
            "upstream prematurely closed connection after 5 of 100 bytes of the response body",
        ),
        (
            "a length and no body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", true,
            "upstream prematurely closed connection after 0 of 100 bytes of the response body",
        ),
        (
            "a chunk that is truncated", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nunfinished", true,
            "upstream prematurely closed connection after 10 bytes of the response body",
        ),
        (
            "no last chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", true,
            "upstream prematurely closed connection after 1 bytes of the response body",
        ),
        (
            "no end of trailers", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n", true,
            "upstream prematurely closed connection after 1 bytes of the response body",
        ),
        (
            "a chunk longer than its size", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", true,
            "upstream sent invalid chunked response: chunk data longer than its size after 1 bytes",
        ),
        (
            "a chunk size that is none", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\na\r\n0\r\n\r\n", true,
            "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "a negative chunk size", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n", true,
            "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "a chunk size beyond numbers", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na\r\n", true,
            "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "a plain body called chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n<html>",
            true, "upstream sent invalid chunked response: invalid chunk size after 0 bytes",
        ),
        (
            "two lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 3\r\n\r\nabc", false,
            "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        (
            "the same length twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            false, "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        (
            "a list of lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", false,
            "upstream sent invalid \"Content-Length\" header",
        ),
        (
            "a signed length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", false,
            "upstream sent invalid \"Content-Length\" header",
        ),
        (
            "two lengths for HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 3\r\n\r\n",
            false, "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        (
            "a length beside a coding", "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false,
            "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
        ),
        (
            "an unknown coding", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            false, "upstream sent unknown \"Transfer-Encoding\": \"gzip, chunked\"",
        ),
        (
            "two codings", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false,
            "upstream sent duplicate \"Content-Length\" or \"Transfer-Encoding\" header",
        ),
        ("a folded line", "GET", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\nabc", false, invalid_line),
        (
            "a space before the colon", "GET", "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc", false,
            invalid_line,
        ),
        ("a NUL", "GET", "HTTP/1.1 200 OK\r\nA: \0\r\n\r\nabc", false, invalid_line),
        ("no status line", "GET", "<html>\r\n\r\n</html>", false, "upstream sent no valid HTTP/1.0 header"),
        ("another protocol", "GET", "SSH-2.0-OpenSSH_9.2\r\n", false, "upstream sent no valid HTTP/1.0 header"),
        (
            "HTTP/2", "GET", "\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\x04", false,
            "upstream sent no valid HTTP/1.0 header",
        ),
        (
            "a status of two digits", "GET", "HTTP/1.1 20 OK\r\n\r\n", false,
            "upstream sent no valid HTTP/1.0 header",
        ),
        (
            "a broken response after 100", "GET", "HTTP/1.1 100 Continue\r\n\r\nabc\r\n\r\n", false,
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

#[tokio::test]
async fn an_upstream_that_speaks_first_is_not_believed() {
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
