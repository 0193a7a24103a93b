//! Streams that fail: the same for each protocol.

use std::io::ErrorKind;

use crate::scripted::{ScriptedStream, Step};
use bytes::Bytes;
use upstream_exchange::{NoBody, Side, StreamError};

/// The outcome of an exchange.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// A whole response; was the connection given back?
    Complete { is_reusable: bool },
    /// No head, since this direction failed.
    Failed { side: Side, before_first_byte: bool },
    /// No head, since the upstream closed.
    Closed { before_first_byte: bool },
    /// A head, and not all that belongs behind it.
    Truncated,
}

/// Runs an exchange of the protocol to its end.
macro_rules! outcome_of {
    ($protocol:ident, $spec:expr, $stream:expr) => {{
        let mut exchange = $protocol::Exchange::start($stream, $spec, NoBody);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            loop {
                match exchange.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        let is_reusable = exchange.into_stream().is_some();
                        break Outcome::Complete { is_reusable };
                    }
                    Err($protocol::Error::Stream(StreamError::Io {
                        side,
                        before_first_byte,
                        ..
                    })) => {
                        break Outcome::Failed {
                            side,
                            before_first_byte,
                        };
                    }
                    Err($protocol::Error::Stream(StreamError::Closed { before_first_byte })) => {
                        break Outcome::Closed { before_first_byte };
                    }
                    Err($protocol::Error::Truncated { .. }) => break Outcome::Truncated,
                    Err(error) => panic!("{error}"),
                }
            }
        })
    }};
}

fn fastcgi(stream: ScriptedStream) -> Outcome {
    let spec = fastcgi::RequestSpec {
        params: fastcgi::ParamsEncoder::new().finish().expect("small"),
        keep_conn: true,
        head_request: false,
        head_limit_bytes: 1000,
    };
    outcome_of!(fastcgi, spec, stream)
}

fn fastcgi_answer() -> Bytes {
    let mut answer = bytes::BytesMut::new();
    fastcgi::record::put_stream(&mut answer, fastcgi::record::kind::STDOUT, b"A: b\n\nbody");
    fastcgi::record::put_end_request(&mut answer, 0, 0);
    answer.freeze()
}

fn http_client(stream: ScriptedStream) -> Outcome {
    let spec = http_client::RequestSpec {
        head: Bytes::from_static(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        body: http_client::BodyFraming::None,
        head_request: false,
        keep_alive: true,
        allow_upgrade: false,
        head_limit_bytes: 1000,
        known_silent: true,
    };
    outcome_of!(http_client, spec, stream)
}

fn http_answer() -> Bytes {
    Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
}

fn memcached(stream: ScriptedStream) -> Outcome {
    let spec = memcached::RequestSpec {
        key: Bytes::from_static(b"k"),
        head_limit_bytes: 1000,
    };
    outcome_of!(memcached, spec, stream)
}

fn memcached_answer() -> Bytes {
    Bytes::from_static(b"VALUE k 0 4\r\nbody\r\nEND\r\n")
}

#[test]
fn a_failed_stream_is_told_with_its_side_unless_the_response_is_there() {
    type Run = fn(ScriptedStream) -> Outcome;
    let protocols: [(&str, Run, Bytes, usize); 3] = [
        ("fastcgi", fastcgi, fastcgi_answer(), 16),
        ("http", http_client, http_answer(), 40),
        ("memcached", memcached, memcached_answer(), 15),
    ];
    for (name, run, answer, within_body) in protocols {
        let within_head = 5;
        let arrives = |bytes: usize| Step::Arrives(answer.slice(..bytes));
        let resets = || Step::Fails(ErrorKind::ConnectionReset);
        let failed = |side, before_first_byte| Outcome::Failed {
            side,
            before_first_byte,
        };
        #[rustfmt::skip]
        let cases = [
            ("whole", vec![arrives(answer.len())], None, Outcome::Complete { is_reusable: true }),
            (
                "not read, answered", vec![Step::Waits, arrives(answer.len())], Some(0),
                Outcome::Complete { is_reusable: false },
            ),
            ("not read, reset", vec![resets()], Some(0), failed(Side::Write, true)),
            ("not read, closed", vec![], Some(0), failed(Side::Write, true)),
            ("reset at once", vec![resets()], None, failed(Side::Read, true)),
            ("reset within the head", vec![arrives(within_head), resets()], None, failed(Side::Read, false)),
            ("closed at once", vec![], None, Outcome::Closed { before_first_byte: true }),
            (
                "closed within the head", vec![arrives(within_head)], None,
                Outcome::Closed { before_first_byte: false },
            ),
            ("reset within the body", vec![arrives(within_body), resets()], None, Outcome::Truncated),
            ("closed within the body", vec![arrives(within_body)], None, Outcome::Truncated),
        ];
        for (what, script, broken_after, outcome) in cases {
            let stream = ScriptedStream {
                script: script.into(),
                broken_after,
                ..ScriptedStream::default()
            };
            assert_eq!(run(stream), outcome, "{name}: {what}");
        }
    }
}
