//! The bytes that go out, and that both directions move at once. The streams are small: a side
//! that waited for the other to read first would wait forever.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_client::{BodyFraming, Error, Event, Exchange, NoBody, RequestSpec, Side, StreamError};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::sync::mpsc;

use crate::scripted_upstream::{collect, read_head, spec};

/// Smaller than anything sent through it.
const TINY_PIPE_BYTES: usize = 64;
const BODY_BYTES: usize = 1 << 20;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const REQUEST_HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\n\r\n";

fn parts(parts: &[&'static str]) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(parts.len().max(1));
    for part in parts {
        let part = Bytes::from_static(part.as_bytes());
        sender.try_send(Ok(part)).expect("room");
    }
    receiver
}

/// A stream that notes each write, and answers after the last expected byte.
struct Recorder {
    writes: Arc<Mutex<Vec<String>>>,
    flushes_due: u32,
    answer: &'static [u8],
}

impl AsyncRead for Recorder {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.writes.lock().unwrap().is_empty() || self.flushes_due > 0 {
            return Poll::Pending;
        }
        buffer.put_slice(self.answer);
        self.answer = b"";
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Recorder {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.writes.lock().unwrap().push(text);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        self.poll_write(cx, &all)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.flushes_due > 0 {
            self.flushes_due -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn head_and_first_part_leave_in_one_write() {
    let head = REQUEST_HEAD;
    let cases: &[(&str, BodyFraming, &[&'static str], &[&str])] = &[
        ("no body", BodyFraming::None, &["not asked for"], &[""]),
        ("length", BodyFraming::Length(3), &["abc"], &["abc"]),
        (
            "two parts",
            BodyFraming::Length(3),
            &["a", "", "bc"],
            &["a", "bc"],
        ),
        ("length 0", BodyFraming::Length(0), &[], &[""]),
        (
            "chunks",
            BodyFraming::Chunked,
            &["abc", "d"],
            &["3\r\nabc\r\n", "1\r\nd\r\n", "0\r\n\r\n"],
        ),
        ("no chunk", BodyFraming::Chunked, &[], &["0\r\n\r\n"]),
    ];
    for &(name, framing, body, after_head) in cases {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let stream = Recorder {
            writes: writes.clone(),
            flushes_due: 0,
            answer: OK,
        };
        let mut exchange = Exchange::start(stream, spec("POST", framing), parts(body));
        let (seen, error) = collect(&mut exchange).await;
        assert!(seen.is_reusable, "{name}: {error:?}");
        let writes = writes.lock().unwrap().clone();
        let mut expected: Vec<String> = after_head.iter().map(|part| (*part).to_owned()).collect();
        expected[0].insert_str(0, head);
        assert_eq!(writes, expected, "{name}");
        let sent: usize = writes.iter().map(String::len).sum();
        assert_eq!(exchange.sent_bytes(), sent as u64, "{name}");
    }
}

#[tokio::test]
async fn an_end_that_is_known_leaves_with_the_last_part() {
    let writes = Arc::new(Mutex::new(Vec::new()));
    let stream = Recorder {
        writes: writes.clone(),
        flushes_due: 0,
        answer: OK,
    };
    let body = Bytes::from_static(b"abc");
    let mut exchange = Exchange::start(stream, spec("POST", BodyFraming::Chunked), body);
    let (seen, error) = collect(&mut exchange).await;
    assert!(seen.is_reusable, "{error:?}");
    let expected = format!("{REQUEST_HEAD}3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(*writes.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn what_a_stream_holds_back_is_flushed_before_the_answer_is_awaited() {
    let stream = Recorder {
        writes: Arc::default(),
        flushes_due: 3,
        answer: OK,
    };
    let mut exchange = Exchange::start(stream, spec("GET", BodyFraming::None), NoBody);
    let (seen, error) = collect(&mut exchange).await;
    assert!(seen.is_reusable, "{error:?}");
}

#[tokio::test]
async fn a_body_of_another_length_than_promised_is_an_error_of_the_body() {
    for (name, length, body) in [("short", 5, "abc"), ("long", 2, "abc")] {
        let (ours, mut theirs) = duplex(1024);
        let mut exchange = Exchange::start(
            ours,
            spec("POST", BodyFraming::Length(length)),
            parts(&[body]),
        );
        let (seen, error) = collect(&mut exchange).await;
        assert!(!seen.is_complete, "{name}");
        assert!(
            matches!(error, Some(Error::Stream(StreamError::RequestBody(_)))),
            "{name}: {error:?}"
        );
        drop(exchange);
        let mut arrived = Vec::new();
        theirs.read_to_end(&mut arrived).await.expect("a close");
        let body_bytes = arrived.len().saturating_sub(REQUEST_HEAD.len());
        assert!(body_bytes as u64 <= length, "{name}: more than promised");
    }
}

#[tokio::test]
async fn an_error_of_the_source_ends_the_exchange() {
    let (ours, _theirs) = duplex(1024);
    let (sender, source) = mpsc::channel(1);
    sender
        .try_send(Err(io::ErrorKind::ConnectionAborted.into()))
        .expect("room");
    let mut exchange = Exchange::start(ours, spec("POST", BodyFraming::Chunked), source);
    let (_, error) = collect(&mut exchange).await;
    assert!(
        matches!(error, Some(Error::Stream(StreamError::RequestBody(_)))),
        "{error:?}"
    );
}

/// Echoes the body of a request chunk by chunk, as it comes.
async fn echo(mut stream: DuplexStream) {
    read_head(&mut stream).await;
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await
        .expect("a reader");
    let mut left = BODY_BYTES;
    let mut buffer = [0; 100];
    while left > 0 {
        let read = stream.read(&mut buffer).await.expect("a body");
        let chunk = [format!("{read:x}\r\n").as_bytes(), &buffer[..read], b"\r\n"].concat();
        stream.write_all(&chunk).await.expect("a reader");
        left -= read;
    }
    stream
        .write_all(b"0\r\nX-Sum: 7\r\n\r\n")
        .await
        .expect("a reader");
}

#[tokio::test]
async fn both_directions_move_at_once_and_trailers_are_kept() {
    let body: Bytes = (0..BODY_BYTES).map(|i| (i % 251) as u8).collect();
    let (ours, theirs) = duplex(TINY_PIPE_BYTES);
    let framing = BodyFraming::Length(BODY_BYTES as u64);
    let mut exchange = Exchange::start(ours, spec("POST", framing), body.clone());
    let (_, (seen, error)) = tokio::join!(echo(theirs), collect(&mut exchange));
    assert!(seen.is_reusable, "{error:?}");
    assert!(seen.body == body, "the body came back changed");
    assert_eq!(seen.trailers, [(Bytes::from("X-Sum"), Bytes::from("7"))]);
    assert!(exchange.is_request_sent());
    assert!(exchange.into_stream().is_some());
}

#[tokio::test(start_paused = true)]
async fn next_may_be_dropped_and_called_again() {
    let body: Bytes = (0..BODY_BYTES / 16).map(|i| (i % 251) as u8).collect();
    let (ours, theirs) = duplex(TINY_PIPE_BYTES);
    let framing = BodyFraming::Length(body.len() as u64);
    let mut exchange = Exchange::start(ours, spec("POST", framing), body.clone());
    let upstream = tokio::spawn(async move {
        let mut theirs = theirs;
        read_head(&mut theirs).await;
        let mut arrived = vec![0; BODY_BYTES / 16];
        for part in arrived.chunks_mut(512) {
            theirs.read_exact(part).await.expect("a body");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for byte in OK {
            theirs.write_u8(*byte).await.expect("a reader");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        arrived
    });
    let mut drops = 0;
    let mut got = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(3), exchange.next()).await {
            Err(_) => drops += 1,
            Ok(Ok(Some(Event::Data(data)))) => got.extend_from_slice(&data),
            Ok(Ok(Some(Event::End { reusable, .. }))) => break assert!(reusable),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => panic!("{error}"),
        }
    }
    assert!(drops > 100, "{drops}");
    assert_eq!(got, b"ok");
    assert!(upstream.await.expect("no panic") == body);
}

#[tokio::test]
async fn interim_responses_are_events_except_100() {
    let (ours, mut theirs) = duplex(1024);
    let mut exchange = Exchange::start(ours, spec("GET", BodyFraming::None), NoBody);
    let upstream = async {
        read_head(&mut theirs).await;
        let wire = [
            &b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \nLink: </a>\n\nHTTP/1.1 102 x\r\n\r\n"[..],
            OK,
        ];
        theirs.write_all(&wire.concat()).await.expect("room");
    };
    let (_, (seen, error)) = tokio::join!(upstream, collect(&mut exchange));
    assert!(seen.is_reusable, "{error:?}");
    let statuses: Vec<u16> = seen.interim.iter().map(|head| head.status).collect();
    assert_eq!(statuses, [103, 102]);
    assert_eq!(seen.interim[0].fields[0].1, "</a>");
}

async fn upgrade(
    allow_upgrade: bool,
) -> (Option<bool>, Option<(DuplexStream, Bytes)>, DuplexStream) {
    let (ours, mut theirs) = duplex(1024);
    let spec = RequestSpec {
        allow_upgrade,
        ..spec("GET", BodyFraming::None)
    };
    let mut exchange = Exchange::start(ours, spec, NoBody);
    let upstream = async {
        read_head(&mut theirs).await;
        let wire = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhandshaked";
        theirs.write_all(wire).await.expect("room");
        theirs
    };
    let (theirs, (seen, error)) = tokio::join!(upstream, collect(&mut exchange));
    assert_eq!(seen.body, b"");
    assert!(!seen.is_reusable);
    let is_upgrade = seen.head.map(|head| head.is_upgrade);
    assert_eq!(is_upgrade.is_some(), error.is_none(), "{error:?}");
    (is_upgrade, exchange.into_tunnel(), theirs)
}

#[tokio::test]
async fn an_upgrade_that_was_asked_for_becomes_a_tunnel_with_what_was_read() {
    let (is_upgrade, tunnel, mut theirs) = upgrade(true).await;
    assert_eq!(is_upgrade, Some(true));
    let (mut stream, read) = tunnel.expect("a tunnel");
    assert_eq!(read, "handshaked");
    stream.write_all(b"ping").await.expect("room");
    let mut arrived = [0; 4];
    theirs.read_exact(&mut arrived).await.expect("a ping");
    assert_eq!(&arrived, b"ping");
}

#[tokio::test]
async fn an_upgrade_that_nobody_asked_for_is_an_error() {
    let (is_upgrade, tunnel, _) = upgrade(false).await;
    assert_eq!(is_upgrade, None);
    assert!(tunnel.is_none());
}

#[tokio::test]
async fn an_upgrade_before_the_whole_request_is_an_error() {
    let (ours, mut theirs) = duplex(1024);
    let (_body, source) = mpsc::channel::<io::Result<Bytes>>(1);
    let spec = RequestSpec {
        allow_upgrade: true,
        ..spec("POST", BodyFraming::Chunked)
    };
    let mut exchange = Exchange::start(ours, spec, source);
    let upstream = async {
        read_head(&mut theirs).await;
        let wire = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n";
        theirs.write_all(wire).await.expect("room");
    };
    let (_, (seen, error)) = tokio::join!(upstream, collect(&mut exchange));
    assert!(seen.head.is_none());
    assert!(error.is_some_and(|error| error.is_invalid_head()));
    assert!(exchange.into_tunnel().is_none());
}

#[tokio::test]
async fn a_body_is_known_to_be_here_once_all_of_it_came_with_the_head() {
    for (wire, is_here) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", false),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            false,
        ),
    ] {
        let (ours, mut theirs) = duplex(1024);
        let mut exchange = Exchange::start(ours, spec("GET", BodyFraming::None), NoBody);
        assert!(!exchange.is_whole_body_here());
        let answering = async {
            read_head(&mut theirs).await;
            theirs.write_all(wire.as_bytes()).await.expect("room");
        };
        let (event, ()) = tokio::join!(exchange.next(), answering);
        assert!(matches!(event, Ok(Some(Event::Head(_)))), "{wire}");
        assert_eq!(exchange.is_whole_body_here(), is_here, "{wire}");
    }
}

#[tokio::test]
async fn a_stream_known_to_be_silent_is_not_looked_at_before_the_request() {
    let (ours, mut theirs) = duplex(1024);
    theirs.write_all(OK).await.expect("room");
    let spec = RequestSpec {
        known_silent: true,
        ..spec("GET", BodyFraming::None)
    };
    let mut exchange = Exchange::start(ours, spec, NoBody);
    let (seen, error) = collect(&mut exchange).await;
    assert!(seen.is_complete, "{error:?}");
    assert!(exchange.sent_bytes() > 0);
}

#[tokio::test]
async fn an_upstream_that_stops_reading_may_still_answer() {
    let (ours, theirs) = duplex(TINY_PIPE_BYTES);
    let (ours_read, _ours_write) = tokio::io::split(ours);
    let (_, mut theirs_write) = tokio::io::split(theirs);
    let stream = tokio::io::join(ours_read, BrokenWriter);
    let mut exchange = Exchange::start(
        stream,
        spec("POST", BodyFraming::Length(5)),
        Bytes::from_static(b"12345"),
    );
    // Refused while sending; the answer comes all the same.
    assert!(
        tokio::time::timeout(Duration::ZERO, exchange.next())
            .await
            .is_err()
    );
    theirs_write.write_all(OK).await.expect("room");
    let (seen, error) = collect(&mut exchange).await;
    assert!(seen.is_complete, "{error:?}");
    assert!(!seen.is_reusable);
}

#[tokio::test]
async fn a_refused_request_without_an_answer_is_the_error_of_the_write() {
    let stream = tokio::io::join(tokio::io::empty(), BrokenWriter);
    let mut exchange = Exchange::start(stream, spec("GET", BodyFraming::None), NoBody);
    let (_, error) = collect(&mut exchange).await;
    let error = error.expect("an error");
    assert!(error.before_first_byte());
    assert!(
        matches!(
            error,
            Error::Stream(StreamError::Io {
                side: Side::Write,
                ..
            })
        ),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "writev() failed (32: Broken pipe)");
}

/// The writing end of a connection whose reader has gone.
struct BrokenWriter;

impl AsyncWrite for BrokenWriter {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::Error::from_raw_os_error(32)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
