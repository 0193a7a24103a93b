//! A scripted upstream over an in-memory stream.

use bytes::Bytes;
use http_client::{
    BodyFraming, BodySource, Error, Event, Exchange, NoBody, RequestSpec, ResponseHead,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};

pub const HEAD_LIMIT_BYTES: usize = 4096;

pub fn spec(method: &str, body: BodyFraming) -> RequestSpec {
    RequestSpec {
        head: Bytes::from(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n")),
        body,
        head_request: method == "HEAD",
        keep_alive: true,
        allow_upgrade: false,
        head_limit_bytes: HEAD_LIMIT_BYTES,
        known_silent: false,
    }
}

/// All that came of a response up to its end.
#[derive(Debug, Default)]
pub struct SeenResponse {
    pub interim: Vec<ResponseHead>,
    pub head: Option<ResponseHead>,
    pub body: Vec<u8>,
    pub trailers: Vec<(Bytes, Bytes)>,
    pub excess_data: Option<String>,
    pub is_reusable: bool,
    pub is_complete: bool,
}

impl SeenResponse {
    /// Takes an event; answers whether more may come.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Interim(head) => self.interim.push(head),
            Event::Head(head) => assert!(self.head.replace(head).is_none(), "two heads"),
            Event::Data(data) => self.body.extend_from_slice(&data),
            Event::Trailers(trailers) => self.trailers = trailers,
            Event::Stderr(text) => panic!("{text:?}"),
            Event::End {
                reusable,
                excess_data,
                ..
            } => {
                self.is_reusable = reusable;
                self.excess_data = excess_data.map(|excess_data| excess_data.to_string());
                self.is_complete = true;
                return false;
            }
        }
        true
    }
}

/// Runs the exchange to its end; an error comes with the events before it.
pub async fn collect<S, B>(exchange: &mut Exchange<S, B>) -> (SeenResponse, Option<Error>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: BodySource,
{
    let mut seen = SeenResponse::default();
    loop {
        match exchange.next().await {
            Ok(Some(event)) => {
                if !seen.take(event) {
                    let after = exchange.next().await.expect("nothing after the end");
                    assert!(after.is_none(), "{after:?} after the end");
                    return (seen, None);
                }
            }
            Ok(None) => return (seen, None),
            Err(error) => {
                assert!(matches!(exchange.next().await, Ok(None)));
                return (seen, Some(error));
            }
        }
    }
}

/// Reads a request head, and not a byte more.
pub async fn read_head(stream: &mut DuplexStream) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a whole head"));
    }
    head
}

pub const PIPE_BYTES: usize = 16 * 1024;

/// Sizes of the pieces that a response comes in.
pub const CUTS: [usize; 4] = [1, 2, 7, 1 << 20];

/// Answers a request of `method` with `wire` in pieces, then closes.
pub async fn answer(
    method: &str,
    wire: &[u8],
    piece_bytes: usize,
) -> (SeenResponse, Option<Error>) {
    let (ours, mut theirs) = duplex(PIPE_BYTES);
    let mut exchange = Exchange::start(ours, spec(method, BodyFraming::None), NoBody);
    let upstream = async {
        read_head(&mut theirs).await;
        for piece in wire.chunks(piece_bytes) {
            // A client that has seen enough hangs up.
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
