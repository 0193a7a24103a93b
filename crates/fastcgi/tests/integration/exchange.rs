//! The exchange over an in-memory stream, against a responder written out in each test. The streams
//! are small: a side that waited for the other to read first would wait forever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fastcgi::record::{self, HEADER_BYTES, RecordHeader, kind};
use fastcgi::{
    BodySource, Error, Event, Exchange, NoBody, ParamsEncoder, RequestSpec, Side, StreamError,
    Truncation,
};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::sync::mpsc;

/// Smaller than anything sent through it.
const TINY_PIPE_BYTES: usize = 64;
const BODY_BYTES: usize = 1 << 20;

fn spec(keep_conn: bool) -> RequestSpec {
    let mut params = ParamsEncoder::new();
    params.push(b"REQUEST_METHOD", b"GET");
    RequestSpec {
        params: params.finish().expect("small params"),
        keep_conn,
        head_request: false,
        head_limit_bytes: 4096,
    }
}

async fn read_record(stream: &mut DuplexStream) -> io::Result<(RecordHeader, Vec<u8>)> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).await?;
    let header = RecordHeader::decode(header);
    let mut content = vec![0; usize::from(header.content_bytes)];
    stream.read_exact(&mut content).await?;
    Ok((header, content))
}

/// Reads a request to the end of STDIN; the body.
async fn read_request(stream: &mut DuplexStream) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let (header, content) = read_record(stream).await.expect("a record");
        if header.kind == kind::STDIN {
            if content.is_empty() {
                return body;
            }
            body.extend_from_slice(&content);
        }
    }
}

fn answer(stdout: &[u8]) -> BytesMut {
    let mut wire = BytesMut::new();
    record::put_stream(&mut wire, kind::STDOUT, stdout);
    record::put_end_request(&mut wire, 0, 0);
    wire
}

struct CollectedResponse {
    body: Vec<u8>,
    reusable: bool,
}

async fn collect<B>(exchange: &mut Exchange<DuplexStream, B>) -> Result<CollectedResponse, Error>
where
    B: BodySource,
{
    let mut body = Vec::new();
    while let Some(event) = exchange.next().await? {
        match event {
            Event::Data(data) => body.extend_from_slice(&data),
            Event::End { reusable, .. } => return Ok(CollectedResponse { body, reusable }),
            _ => {}
        }
    }
    panic!("the events stopped without an end");
}

/// With the clock paused, time passes only when everybody waits: a deadlock
/// fails at once.
async fn no_deadlock<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3600), work)
        .await
        .expect("nobody waits forever")
}

/// Takes every write whole and notes it; never has anything to read.
#[derive(Default)]
struct WriteRecorder(Vec<Vec<u8>>);

impl AsyncWrite for WriteRecorder {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.push(bytes.to_vec());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = slices
            .iter()
            .map(|slice| &slice[..])
            .collect::<Vec<_>>()
            .concat();
        let length = write.len();
        self.0.push(write);
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for WriteRecorder {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

async fn poll_once<S, B>(exchange: &mut Exchange<S, B>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: BodySource,
{
    tokio::select! {
        biased;
        _ = exchange.next() => panic!("nobody answered"),
        () = std::future::ready(()) => {}
    }
}

#[tokio::test]
async fn small_request_is_one_write() {
    for (body, stdin) in [
        (Bytes::new(), &b""[..]),
        (
            Bytes::from_static(b"a=1"),
            b"\x01\x05\x00\x01\x00\x03\x00\x00a=1",
        ),
    ] {
        let mut writes = WriteRecorder::default();
        let mut exchange = Exchange::start(&mut writes, spec(true), body);
        poll_once(&mut exchange).await;
        assert!(exchange.is_request_sent());
        let sent_bytes = exchange.sent_bytes();
        drop(exchange);
        let expected = [
            &record::BEGIN_REQUEST_KEEP_CONN[..],
            spec(true).params.as_records(),
            stdin,
            &record::STDIN_END,
        ]
        .concat();
        assert_eq!(sent_bytes, expected.len() as u64);
        assert_eq!(writes.0, [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn answer_larger_than_the_pipe_before_the_body_is_read_does_not_deadlock() {
    let (client, mut server) = duplex(TINY_PIPE_BYTES);
    let page = vec![b'p'; BODY_BYTES];
    tokio::spawn(async move {
        let mut wire = b"A: b\n\n".to_vec();
        wire.extend_from_slice(&page);
        server.write_all(&answer(&wire)).await.expect("sent");
        std::future::pending::<()>().await;
    });
    let body = Bytes::from(vec![b'u'; BODY_BYTES]);
    let mut exchange = Exchange::start(client, spec(true), body);
    let got = no_deadlock(collect(&mut exchange)).await.expect("complete");
    assert_eq!(got.body.len(), BODY_BYTES);
    assert!(!got.reusable, "half a request is still in it");
}

#[tokio::test(start_paused = true)]
async fn echo_of_a_large_body_flows_both_ways_at_once() {
    let (client, mut server) = duplex(TINY_PIPE_BYTES);
    tokio::spawn(async move {
        let mut head = BytesMut::new();
        record::put_stream(&mut head, kind::STDOUT, b"Content-Type: a\n\n");
        server.write_all(&head).await.expect("sent");
        loop {
            let (header, content) = read_record(&mut server).await.expect("a record");
            let mut out = BytesMut::new();
            match (header.kind, content.is_empty()) {
                (kind::STDIN, true) => {
                    record::put_end_request(&mut out, 0, 0);
                    server.write_all(&out).await.expect("sent");
                    return;
                }
                (kind::STDIN, false) => {
                    record::put_stream(&mut out, kind::STDOUT, &content);
                    server.write_all(&out).await.expect("sent");
                }
                _ => {}
            }
        }
    });
    let (parts, body) = mpsc::channel(1);
    let upload: Vec<u8> = (0..BODY_BYTES).map(|i| (i % 251) as u8).collect();
    let sent = upload.clone();
    tokio::spawn(async move {
        // Parts below, at and above the size of a record.
        let mut rest = Bytes::from(sent);
        for size in [0, 1, 1000, 65_528, 65_529, 200_000].into_iter().cycle() {
            if rest.is_empty() {
                return;
            }
            let part = rest.split_to(rest.len().min(size));
            parts.send(Ok(part)).await.expect("taken");
        }
    });
    let mut exchange = Exchange::start(client, spec(true), body);
    let got = no_deadlock(collect(&mut exchange)).await.expect("complete");
    assert!(got.body == upload, "the body came back as it went");
    assert!(got.reusable);
    assert!(exchange.into_stream().is_some());
}

#[tokio::test(start_paused = true)]
async fn next_may_be_dropped_at_any_wait() {
    let (client, mut server) = duplex(7);
    tokio::spawn(async move {
        let body = read_request(&mut server).await;
        let wire = answer(&[b"A: b\n\n", &body[..]].concat());
        for byte in wire.chunks(1) {
            server.write_all(byte).await.expect("sent");
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
    });
    let upload = Bytes::from(vec![b'u'; 3000]);
    let mut exchange = Exchange::start(client, spec(true), upload.clone());
    let mut body = Vec::new();
    let reusable = no_deadlock(async {
        loop {
            let event = tokio::select! {
                biased;
                event = exchange.next() => event,
                () = tokio::task::yield_now() => continue,
            };
            match event.expect("no error").expect("an end") {
                Event::Data(data) => body.extend_from_slice(&data),
                Event::End { reusable, .. } => return reusable,
                _ => {}
            }
        }
    })
    .await;
    assert_eq!(body, upload);
    assert!(reusable);
    assert!(exchange.next().await.expect("over").is_none());
}

#[tokio::test]
async fn kept_connection_carries_the_next_request() {
    let (client, mut server) = duplex(4096);
    let responder = tokio::spawn(async move {
        for page in ["first", "second"] {
            read_request(&mut server).await;
            let wire = answer(format!("A: b\n\n{page}").as_bytes());
            server.write_all(&wire).await.expect("sent");
        }
        server
    });
    let mut stream = Some(client);
    for page in ["first", "second"] {
        let client = stream.take().expect("a reusable connection");
        let mut exchange = Exchange::start(client, spec(true), NoBody);
        let got = collect(&mut exchange).await.expect("complete");
        assert_eq!(got.body, page.as_bytes());
        stream = exchange.into_stream();
    }
    drop(responder.await);
}

#[tokio::test]
async fn connection_is_not_given_back_unless_clean() {
    let leftover = [&answer(b"A: b\n\n")[..], b"x"].concat();
    for (name, keep_conn, wire) in [
        ("not asked to stay", false, answer(b"A: b\n\n").to_vec()),
        ("bytes after the end", true, leftover),
    ] {
        let (client, mut server) = duplex(4096);
        server.write_all(&wire).await.expect("sent");
        let mut exchange = Exchange::start(client, spec(keep_conn), NoBody);
        let got = collect(&mut exchange).await.expect("complete");
        assert!(!got.reusable, "{name}");
        assert!(exchange.into_stream().is_none(), "{name}");
    }
    // An answer to half a request: the body never comes.
    let (client, mut server) = duplex(4096);
    let (_parts, body) = mpsc::channel(1);
    server.write_all(&answer(b"A: b\n\n")).await.expect("sent");
    let mut exchange = Exchange::start(client, spec(true), body);
    let got = collect(&mut exchange).await.expect("complete");
    assert!(!got.reusable);
    assert!(exchange.into_stream().is_none());
}

#[tokio::test]
async fn complete_answer_counts_although_php_closed_without_reading() {
    let (client, mut server) = duplex(4096);
    server
        .write_all(&answer(b"A: b\n\npage"))
        .await
        .expect("sent");
    drop(server);
    let body = Bytes::from(vec![b'u'; BODY_BYTES]);
    let mut exchange = Exchange::start(client, spec(true), body);
    let got = collect(&mut exchange).await.expect("complete");
    assert_eq!(got.body, b"page");
    assert!(!got.reusable);
}

#[tokio::test]
async fn errors_say_whether_anything_had_arrived() {
    // Closed at once: writing fails.
    let (client, server) = duplex(4096);
    drop(server);
    let mut exchange = Exchange::start(client, spec(true), NoBody);
    let error = exchange.next().await.expect_err("closed");
    assert!(error.before_first_byte());
    assert!(matches!(
        error,
        Error::Stream(StreamError::Io {
            side: Side::Write,
            ..
        })
    ));
    assert!(exchange.next().await.expect("over").is_none());

    // Closed after the request was taken, with and without a first byte.
    for (sent, before_first_byte) in [(&b""[..], true), (b"\x01", false)] {
        let (client, mut server) = duplex(4096);
        let mut exchange = Exchange::start(client, spec(true), NoBody);
        let responder = async {
            read_request(&mut server).await;
            server.write_all(sent).await.expect("sent");
            drop(server);
        };
        let (result, ()) = tokio::join!(exchange.next(), responder);
        let error = result.expect_err("closed");
        assert!(
            matches!(error, Error::Stream(StreamError::Closed { .. })),
            "{error:?}"
        );
        assert_eq!(error.before_first_byte(), before_first_byte);
    }
}

#[tokio::test]
async fn response_cut_in_its_body_is_truncated() {
    let (client, mut server) = duplex(4096);
    let mut exchange = Exchange::start(client, spec(true), NoBody);
    let responder = async {
        read_request(&mut server).await;
        let mut wire = BytesMut::new();
        record::put_stream(&mut wire, kind::STDOUT, b"A: b\n\nhalf a pa");
        server.write_all(&wire).await.expect("sent");
        drop(server);
    };
    let (result, ()) = tokio::join!(collect(&mut exchange), responder);
    assert!(matches!(
        result.err(),
        Some(Error::Truncated {
            how: Truncation::ConnectionClosed,
            received_bytes: 9,
            expected_bytes: None,
        })
    ));
    assert!(exchange.into_stream().is_none());
}

#[tokio::test]
async fn failure_of_the_body_source_is_told_from_failures_of_php() {
    let (client, _server) = duplex(4096);
    let (parts, body) = mpsc::channel(1);
    parts
        .send(Err(io::ErrorKind::UnexpectedEof.into()))
        .await
        .expect("room");
    let mut exchange = Exchange::start(client, spec(true), body);
    let error = exchange.next().await.expect_err("the client went away");
    assert!(
        matches!(error, Error::Stream(StreamError::RequestBody(_))),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_ahead_of_a_slow_caller() {
    let (client, mut server) = duplex(1024);
    let responder = tokio::spawn(async move {
        let wire = answer(&[b"A: b\n\n", &vec![b'p'; BODY_BYTES][..]].concat());
        let mut sent = 0;
        while sent < wire.len() {
            let write = server.write(&wire[sent..]);
            match tokio::time::timeout(Duration::from_secs(60), write).await {
                Ok(written) => sent += written.expect("sent"),
                Err(_) => return sent,
            }
        }
        sent
    });
    let mut exchange = Exchange::start(client, spec(true), NoBody);
    let event = exchange.next().await.expect("no error");
    assert!(matches!(event, Some(Event::Head(_))));
    // The caller does not ask for more, so the responder gets stuck.
    let sent = responder.await.expect("no panic");
    assert!(sent < 64 * 1024, "{sent} bytes taken for a head");
    drop(exchange);
}
