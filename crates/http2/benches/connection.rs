//! Time per request of whole connections, ours beside the `h2` crate doing the same work:
//! heads as a load tool and as a browser send them, answered with 40 bytes and with 21 KB.
//! Both servers read from memory and write into memory; a batch of requests comes with
//! each read. Also time and size of response heads. A plain program: run it with
//! `cargo bench -p http2`.

use std::cell::Cell;
use std::hint::black_box;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http2::frame::{FrameHeader, HEADER_BYTES, write_frame_header, write_window_update};
use http2::{Connection, Event, FieldBlock, FrameKind, HeadBuffer, Output, Settings, StreamId};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Requests on one connection, and with each read.
const REQUESTS: usize = 2000;
const BATCH: usize = 10;
const ROUNDS: usize = 7;

const LOAD_TOOL: &[(&str, &str)] = &[("user-agent", "h2load nghttp2/1.52.0")];
const BROWSER: &[(&str, &str)] = &[
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    ),
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    (
        "cookie",
        "_ga=GA1.1.1234567890.1234567890; session=0123456789abcdef0123456789abcdef",
    ),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "none"),
    ("if-none-match", "\"5f2b-62a1\""),
];
const RESPONSE: &[(&str, &str)] = &[
    ("server", "mayfly"),
    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "max-age=1"),
    ("last-modified", "Sun, 06 Nov 1994 08:49:30 GMT"),
    ("etag", "\"5f2b-62a1\""),
    ("x-cache", "HIT"),
    ("content-length", "21000"),
];

fn main() {
    heads();
    for (client, fields) in [("load tool", LOAD_TOOL), ("browser", BROWSER)] {
        let script = script_of(fields);
        for body_bytes in [40, 21_000] {
            let body = Bytes::from(vec![b'x'; body_bytes]);
            let ours = best(|| serve_ours(&script, &body));
            let theirs = best(|| serve_h2(&script, &body));
            for (name, run) in [("http2", ours), ("h2", theirs)] {
                let time = run.time.as_nanos() / REQUESTS as u128;
                let bytes = run.written / REQUESTS - body_bytes;
                println!(
                    "{client:>10}  {body_bytes:>6} bytes  {name:<6} {time:>6} ns and {bytes:>3} bytes \
                     beside the body, for each request"
                );
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    time: Duration,
    written: usize,
}

fn best<T: Ord>(mut run: impl FnMut() -> T) -> T {
    let first = run();
    (1..ROUNDS).map(|_| run()).fold(first, T::min)
}

/// The client's side of a connection, recorded from `h2`'s client, which knows the dynamic
/// table as well as any: reads of the server, one batch each.
fn script_of(fields: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let local = tokio::task::LocalSet::new();
    let bytes = local.block_on(&runtime.expect("a runtime"), record(fields));
    // The windows of the script are opened for all that is to come.
    let preface = http2::PREFACE.len();
    let mut batches = vec![bytes.get(..preface).expect("a preface").to_vec()];
    let mut rest = bytes.get(preface..).unwrap_or_default();
    let mut heads = 0;
    while let Some(header) = FrameHeader::read(rest) {
        let (frame, after) = rest.split_at(HEADER_BYTES + header.length as usize);
        if header.kind == FrameKind::Headers {
            if heads % BATCH == 0 {
                batches.push(Vec::new());
            }
            heads += 1;
        }
        batches
            .last_mut()
            .expect("a batch")
            .extend_from_slice(frame);
        rest = after;
    }
    let first = batches.first_mut().expect("a batch");
    write_window_update(first, StreamId::CONNECTION, 1 << 30);
    batches
}

async fn record(fields: &[(&str, &str)]) -> Vec<u8> {
    use tokio::io::AsyncReadExt;
    let (mut ours, theirs) = tokio::io::duplex(16 << 20);
    let mut builder = h2::client::Builder::new();
    builder
        .initial_max_send_streams(REQUESTS)
        .initial_window_size(1 << 20);
    let (mut client, connection) = builder.handshake::<_, Bytes>(theirs).await.expect("begins");
    let driver = tokio::task::spawn_local(async move { drop(connection.await) });
    let mut responses = Vec::new();
    for nth in 0..REQUESTS {
        let uri = format!("http://127.0.0.1:8080/news/{}.html", nth % 100);
        let mut request = http::Request::new(());
        *request.uri_mut() = uri.parse().expect("a URI");
        for &(name, value) in fields {
            let value =
                http::HeaderValue::from_static(Box::leak(value.to_owned().into_boxed_str()));
            request.headers_mut().insert(
                http::HeaderName::from_bytes(name.as_bytes()).expect("a name"),
                value,
            );
        }
        responses.push(client.send_request(request, true).expect("sent").0);
        tokio::task::yield_now().await;
    }
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 20];
    let mut heads = 0;
    let mut at = http2::PREFACE.len();
    while heads < REQUESTS {
        let length = ours.read(&mut buffer).await.expect("bytes");
        bytes.extend_from_slice(buffer.get(..length).unwrap_or_default());
        while let Some(header) = bytes.get(at..).and_then(FrameHeader::read)
            && at + HEADER_BYTES + header.length as usize <= bytes.len()
        {
            heads += usize::from(header.kind == FrameKind::Headers);
            at += HEADER_BYTES + header.length as usize;
        }
    }
    driver.abort();
    bytes
}

fn stored_block() -> FieldBlock {
    let mut block = FieldBlock::new();
    for (name, value) in RESPONSE {
        block.put(name, value).expect("a good field");
    }
    block
}

/// Ours: one read, its events, one write for each batch.
fn serve_ours(script: &[Vec<u8>], body: &Bytes) -> Run {
    let block = stored_block();
    let mut written = 0;
    let mut requests = 0;
    let start = Instant::now();
    let mut connection = Connection::new(Settings::default(), start);
    let (mut head, mut output) = (HeadBuffer::new(), Output::new());
    let mut slices = Vec::new();
    for input in script {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let received = connection
                .receive(rest, &mut head, start)
                .expect("no error");
            at += received.consumed;
            match received.event {
                Some(Event::Request { stream, head, .. }) => {
                    black_box(head.field("host"));
                    let mut age = FieldBlock::new();
                    age.put("age", "1").expect("a good field");
                    connection
                        .send_response(stream, 200, &[&block, &age], false)
                        .expect("open");
                    connection
                        .send_body(stream, body.clone(), true)
                        .expect("open");
                    requests += 1;
                }
                Some(_) => {}
                None => break,
            }
        }
        while connection.has_output() {
            connection
                .take_output(&mut output, start)
                .expect("no error");
            slices.clear();
            slices.extend(output.slices().map(|slice| (slice.as_ptr(), slice.len())));
            black_box(&slices);
            written += output.len();
            output.advance(output.len());
        }
        while let Some(notice) = connection.next_notice() {
            black_box(notice);
        }
    }
    let time = start.elapsed();
    assert_eq!(requests, REQUESTS);
    assert!(written > REQUESTS * body.len());
    Run { time, written }
}

/// A socket in memory: gives one batch at a time, and throws away what is written.
struct Script<'a> {
    batches: std::slice::Iter<'a, Vec<u8>>,
    written: &'a Cell<usize>,
    /// The rest of a batch.
    rest: &'a [u8],
    /// Requests that were answered, and that were given.
    answered: &'a Cell<usize>,
    given: usize,
    /// Whether the batch before the first request was given.
    is_opened: bool,
}

impl AsyncRead for Script<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            // Reads nothing until the requests that were read are answered.
            if self.answered.get() < self.given {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.given += if self.is_opened { BATCH } else { 0 };
            self.is_opened = true;
            self.rest = self.batches.next().map_or(&[], Vec::as_slice);
        }
        let (piece, rest) = self.rest.split_at(self.rest.len().min(buffer.remaining()));
        buffer.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.set(self.written.get() + bytes.len());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        self.written.set(self.written.get() + bytes);
        Poll::Ready(Ok(bytes))
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

/// The `h2` crate, answering where it accepts. Its fields are cloned from a map that is
/// ready, as ours are copied from a block.
fn serve_h2(script: &[Vec<u8>], body: &Bytes) -> Run {
    let (written, answered) = (Cell::new(0), Cell::new(0));
    let mut stored = http::HeaderMap::new();
    for (name, value) in RESPONSE {
        stored.insert(*name, http::HeaderValue::from_static(value));
    }
    let socket = Script {
        batches: script.iter(),
        written: &written,
        rest: &[],
        answered: &answered,
        given: 0,
        is_opened: false,
    };
    let start = Instant::now();
    let mut future = Box::pin(async {
        let mut builder = h2::server::Builder::new();
        builder.max_concurrent_streams(128);
        let mut connection = builder.handshake::<_, Bytes>(socket).await.expect("begins");
        while let Some(accepted) =
            std::future::poll_fn(|context| connection.poll_accept(context)).await
        {
            let (request, mut respond) = accepted.expect("no error");
            black_box(request.uri().host());
            let mut response = http::Response::new(());
            *response.headers_mut() = stored.clone();
            response
                .headers_mut()
                .insert("age", http::HeaderValue::from_static("1"));
            let mut stream = respond.send_response(response, false).expect("open");
            stream.send_data(body.clone(), true).expect("open");
            answered.set(answered.get() + 1);
        }
    });
    let mut context = Context::from_waker(Waker::noop());
    while requests_left(&mut future, &mut context) {}
    drop(future);
    let time = start.elapsed();
    assert_eq!(answered.get(), REQUESTS);
    let written = written.get();
    Run { time, written }
}

fn requests_left(
    future: &mut Pin<Box<impl Future<Output = ()>>>,
    context: &mut Context<'_>,
) -> bool {
    future.as_mut().poll(context).is_pending()
}

/// Response heads: ours made anew, ours kept ready; their sizes beside an encoder with a
/// dynamic table.
fn heads() {
    let block = stored_block();
    const CALLS: u32 = 200_000;
    let made = best(|| {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(stored_block().len());
        }
        start.elapsed() / CALLS
    });
    let mut out = Vec::new();
    let copied = best(|| {
        let start = Instant::now();
        for _ in 0..CALLS {
            out.clear();
            write_frame_header(
                &mut out,
                block.len(),
                FrameKind::Headers,
                4,
                StreamId::new(1),
            );
            out.extend_from_slice(black_box(block.as_bytes()));
            black_box(&out);
        }
        start.elapsed() / CALLS
    });
    println!(
        "head of {} fields: {} bytes; made in {} ns, copied in {} ns",
        RESPONSE.len(),
        block.len(),
        made.as_nanos(),
        copied.as_nanos()
    );
}
