//! The cost of an exchange in reads, writes and times that its task is polled, for each
//! protocol: more of any than here is a step back.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::scripted::{Calls, ScriptedStream, Step};
use bytes::Bytes;
use upstream_exchange::{BodySource, NoBody};

/// The counts of an exchange.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    reads: usize,
    writes: usize,
    polls: usize,
}

fn cost(reads: usize, writes: usize, polls: usize) -> Cost {
    Cost {
        reads,
        writes,
        polls,
    }
}

/// A body that comes in parts, each after the task has waited for it.
struct Parts {
    left: usize,
    is_next_here: bool,
}

const PART_BYTES: usize = 40_000;

impl BodySource for Parts {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut self.is_next_here, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_next_here = false;
        self.left -= 1;
        Poll::Ready(Some(Ok(Bytes::from(vec![b'b'; PART_BYTES]))))
    }
}

fn parts(count: usize) -> Parts {
    Parts {
        left: count,
        is_next_here: false,
    }
}

/// How often a future is polled until it is done.
fn run<T>(future: impl Future<Output = T>) -> (T, usize) {
    let mut future = pin!(future);
    for polls in 1..10_000 {
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(done) = polled {
            return (done, polls);
        }
    }
    panic!("the exchange does not end");
}

/// Runs an exchange to its end and counts; the stream must be free for the next one.
macro_rules! cost_of {
    ($exchange:expr, $end:pat) => {{
        let mut exchange = $exchange;
        let ((), polls) = run(async {
            loop {
                match exchange.next().await.expect("no failure") {
                    Some($end) => break,
                    Some(_) => {}
                    None => panic!("no end"),
                }
            }
        });
        let Calls { reads, writes } = exchange.into_stream().expect("reusable").calls;
        Cost {
            reads,
            writes,
            polls,
        }
    }};
}

fn stream(answer: Vec<Step>) -> ScriptedStream {
    ScriptedStream {
        script: answer.into(),
        ..ScriptedStream::default()
    }
}

/// A stream that takes 16 KB with every other write and answers in pieces of 8 KB, some of which
/// must be waited for.
fn slow_stream(answer: &[u8]) -> ScriptedStream {
    let pieces = answer.chunks(8192).enumerate().flat_map(|(nth, piece)| {
        let waits = nth.is_multiple_of(3).then_some(Step::Waits);
        let arrives = Step::Arrives(Bytes::copy_from_slice(piece));
        waits.into_iter().chain([arrives])
    });
    ScriptedStream {
        script: pieces.collect(),
        write_bytes: 16 * 1024,
        waits_in_between: true,
        ..ScriptedStream::default()
    }
}

fn arrives(answer: &[u8]) -> Vec<Step> {
    vec![Step::Waits, Step::Arrives(Bytes::copy_from_slice(answer))]
}

mod fastcgi_exchange {
    use super::*;
    use fastcgi::record::{kind, put_end_request, put_stream};
    use fastcgi::{Event, Exchange, ParamsEncoder, RequestSpec};

    fn spec() -> RequestSpec {
        let mut params = ParamsEncoder::new();
        params.push(b"SCRIPT_FILENAME", b"/srv/index.php");
        RequestSpec {
            params: params.finish().expect("small"),
            keep_conn: true,
            head_request: false,
            head_limit_bytes: 8192,
        }
    }

    fn answer(body_bytes: usize) -> Vec<u8> {
        let mut answer = bytes::BytesMut::new();
        put_stream(
            &mut answer,
            kind::STDOUT,
            b"Content-Type: text/html\r\n\r\n",
        );
        for part in vec![b'x'; body_bytes].chunks(16 * 1024) {
            put_stream(&mut answer, kind::STDOUT, part);
        }
        put_end_request(&mut answer, 0, 0);
        answer.to_vec()
    }

    #[test]
    fn a_page() {
        let exchange = Exchange::start(stream(arrives(&answer(1000))), spec(), NoBody);
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(2, 1, 2));
    }

    #[test]
    fn an_upload_with_a_long_answer() {
        let exchange = Exchange::start(slow_stream(&answer(200_000)), spec(), parts(5));
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(38, 26, 10));
    }
}

mod http_exchange {
    use super::*;
    use http_client::{BodyFraming, Event, Exchange, RequestSpec};

    fn spec(head: &'static str, body: BodyFraming) -> RequestSpec {
        RequestSpec {
            head: Bytes::from_static(head.as_bytes()),
            body,
            head_request: false,
            keep_alive: true,
            allow_upgrade: false,
            head_limit_bytes: 8192,
            known_silent: true,
        }
    }

    fn answer(body_bytes: usize) -> Vec<u8> {
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\n\r\n");
        answer.extend(std::iter::repeat_n('x', body_bytes));
        answer.into()
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    #[test]
    fn a_page() {
        let spec = spec(GET, BodyFraming::None);
        let exchange = Exchange::start(stream(arrives(&answer(1000))), spec, NoBody);
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(2, 1, 2));
    }

    #[test]
    fn a_page_from_a_connection_that_is_looked_at_first() {
        let spec = RequestSpec {
            known_silent: false,
            ..spec(GET, BodyFraming::None)
        };
        let mut answer = arrives(&answer(1000));
        answer.insert(0, Step::Waits);
        let exchange = Exchange::start(stream(answer), spec, NoBody);
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(3, 1, 2));
    }

    #[test]
    fn a_question_with_its_body_at_hand() {
        let spec = spec(POST, BodyFraming::Chunked);
        let body = Bytes::from_static(b"question");
        let exchange = Exchange::start(stream(arrives(&answer(1000))), spec, body);
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(2, 1, 2));
    }

    #[test]
    fn an_upload_with_a_long_answer() {
        let spec = spec(POST, BodyFraming::Chunked);
        let exchange = Exchange::start(slow_stream(&answer(200_000)), spec, parts(5));
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(36, 32, 10));
    }

    #[test]
    fn a_body_of_known_length() {
        let spec = spec(POST, BodyFraming::Length(5 * PART_BYTES as u64));
        let exchange = Exchange::start(slow_stream(&answer(200_000)), spec, parts(5));
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(36, 30, 10));
    }
}

mod memcached_exchange {
    use super::*;
    use memcached::{Event, Exchange, RequestSpec};

    fn spec() -> RequestSpec {
        RequestSpec {
            key: Bytes::from_static(b"k"),
            head_limit_bytes: 100,
        }
    }

    fn answer(value_bytes: usize) -> Vec<u8> {
        let mut answer = format!("VALUE k 0 {value_bytes}\r\n");
        answer.extend(std::iter::repeat_n('x', value_bytes));
        answer.push_str("\r\nEND\r\n");
        answer.into()
    }

    #[test]
    fn a_value() {
        let exchange = Exchange::start(stream(arrives(&answer(1000))), spec(), NoBody);
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(2, 1, 2));
    }

    #[test]
    fn a_long_value() {
        let exchange = Exchange::start(slow_stream(&answer(200_000)), spec(), NoBody);
        assert_eq!(cost_of!(exchange, Event::End { .. }), cost(38, 2, 10));
    }
}
