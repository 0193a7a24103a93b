//! `bench-visitors http1|http2|http3 ADDRESS PATH SECONDS [--tls]`: visitors of a page, who ask at
//! a steady rate whatever becomes of the server, half over connections that they keep, half over
//! new ones. How long an answer took is measured from the moment when it was due to be asked for.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bench_tools::latency::Histogram;
use bench_tools::quic::{self, Failure};
use bench_tools::tls;
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use quinn::{Endpoint, TransportConfig};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

const USAGE: &str = "usage: bench-visitors http1|http2|http3 ADDRESS PATH SECONDS [--tls]";
const NAME: &str = "bench.example";
/// Visitors who keep their connection, and how often each of them asks.
const KEEPERS: u32 = 20;
const KEEPER_PAUSE: Duration = Duration::from_millis(100);
/// Visitors who connect anew each time.
const NEWCOMERS: u32 = 10;
const NEWCOMER_PAUSE: Duration = Duration::from_millis(200);
/// A visitor without an answer by then leaves.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

#[derive(Clone, Copy)]
enum Protocol {
    Http1,
    Http2,
    Http3,
}

struct Site {
    protocol: Protocol,
    at: SocketAddr,
    path: String,
    tls: Option<TlsConnector>,
    endpoint: Option<Endpoint>,
    ends_at: Instant,
}

/// A connection of a visitor.
enum Visit {
    Http1(Box<dyn Transport>),
    Http2(SendRequest<Bytes>),
    Http3(quinn::Connection),
}

/// What came of the requests of some visitors.
#[derive(Default)]
struct AnswerCounts {
    took: Vec<Duration>,
    failed: u64,
    reason: Option<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let told = match runtime {
        Ok(runtime) => runtime.block_on(async { visit(Arc::new(site(&words)?)).await }),
        Err(error) => Err(error.into()),
    };
    match told {
        Ok((kept, new)) => {
            println!("{{\"kept\": {}, \"new\": {}}}", kept.json(), new.json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-visitors: {error}");
            ExitCode::FAILURE
        }
    }
}

fn site(words: &[String]) -> Result<Site, Failure> {
    let [protocol, at, path, seconds, rest @ ..] = words else {
        return Err(USAGE.into());
    };
    let protocol = match protocol.as_str() {
        "http1" => Protocol::Http1,
        "http2" => Protocol::Http2,
        "http3" => Protocol::Http3,
        _ => return Err(USAGE.into()),
    };
    let alpn: &[u8] = match protocol {
        Protocol::Http1 => b"http/1.1",
        Protocol::Http2 | Protocol::Http3 => b"h2",
    };
    let has_tls = rest.iter().any(|word| word == "--tls");
    let tls = has_tls.then(|| tls::client(alpn)).transpose()?;
    let endpoint = match protocol {
        Protocol::Http3 => Some(quic::endpoint(TransportConfig::default())?),
        Protocol::Http1 | Protocol::Http2 => None,
    };
    Ok(Site {
        protocol,
        at: at.parse()?,
        path: path.clone(),
        tls: tls.map(|config| TlsConnector::from(Arc::new(config))),
        endpoint,
        ends_at: Instant::now() + Duration::try_from_secs_f64(seconds.parse()?)?,
    })
}

/// What became of those who keep their connection, and of those who come anew.
async fn visit(site: Arc<Site>) -> Result<(AnswerCounts, AnswerCounts), Failure> {
    let began = Instant::now();
    let start = |count: u32, pause: Duration, keeps: bool| {
        let visitors = (0..count).map(|number| {
            let first = began + pause * number / count;
            tokio::spawn(visitor(site.clone(), first, pause, keeps))
        });
        visitors.collect::<Vec<_>>()
    };
    let keepers = start(KEEPERS, KEEPER_PAUSE, true);
    let newcomers = start(NEWCOMERS, NEWCOMER_PAUSE, false);
    Ok((together(keepers).await?, together(newcomers).await?))
}

async fn together(
    visitors: Vec<tokio::task::JoinHandle<AnswerCounts>>,
) -> Result<AnswerCounts, Failure> {
    let mut all = AnswerCounts::default();
    for visitor in visitors {
        let told = visitor.await?;
        all.took.extend(told.took);
        all.failed += told.failed;
        all.reason = all.reason.or(told.reason);
    }
    Ok(all)
}

/// Asks each `pause`. A request that is late because the one before it was still waited for counts
/// from when it was due.
async fn visitor(site: Arc<Site>, first: Instant, pause: Duration, keeps: bool) -> AnswerCounts {
    let mut told = AnswerCounts::default();
    let mut kept = None;
    let mut due = first;
    while due < site.ends_at {
        tokio::time::sleep_until(due).await;
        let asked = tokio::time::timeout(ANSWER_DEADLINE, ask(&site, kept.take())).await;
        match asked {
            Ok(Ok(visit)) => kept = keeps.then_some(visit),
            Ok(Err(error)) => told.fail(error.to_string()),
            Err(_) => told.fail("no answer in time".to_owned()),
        }
        told.took.push(due.elapsed());
        due += pause;
    }
    told
}

/// Asks over this connection or a new one, which can be used again.
async fn ask(site: &Site, visit: Option<Visit>) -> Result<Visit, Failure> {
    let mut visit = match visit {
        Some(visit) => visit,
        None => site.connect().await?,
    };
    match &mut visit {
        Visit::Http1(stream) => ask_http1(stream, &site.path).await?,
        Visit::Http2(sender) => ask_http2(sender, site).await?,
        Visit::Http3(connection) => {
            quic::get(connection, &quic::request(NAME, &site.path)).await?;
        }
    }
    Ok(visit)
}

impl Site {
    async fn connect(&self) -> Result<Visit, Failure> {
        if let Some(endpoint) = &self.endpoint {
            return Ok(Visit::Http3(quic::connect(endpoint, self.at, NAME).await?));
        }
        let stream = TcpStream::connect(self.at).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Transport> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(ServerName::try_from(NAME)?, stream).await?),
        };
        match self.protocol {
            Protocol::Http1 => Ok(Visit::Http1(stream)),
            Protocol::Http2 | Protocol::Http3 => {
                let (sender, connection) = h2::client::handshake(stream).await?;
                tokio::spawn(connection);
                Ok(Visit::Http2(sender))
            }
        }
    }
}

async fn ask_http1(stream: &mut Box<dyn Transport>, path: &str) -> Result<(), Failure> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut received = Vec::new();
    let head_bytes = loop {
        if stream.read_buf(&mut received).await? == 0 {
            return Err("the connection ended".into());
        }
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&received[..head_bytes]).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err("the answer is no 200".into());
    }
    let length = head.split("content-length:").nth(1);
    let length: usize = length
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .parse()?;
    while received.len() < head_bytes + length {
        if stream.read_buf(&mut received).await? == 0 {
            return Err("the connection ended".into());
        }
    }
    Ok(())
}

async fn ask_http2(sender: &mut SendRequest<Bytes>, site: &Site) -> Result<(), Failure> {
    let scheme = if site.tls.is_some() { "https" } else { "http" };
    let request = Request::get(format!("{scheme}://{NAME}{}", site.path)).body(())?;
    *sender = sender.clone().ready().await?;
    let (response, _) = sender.send_request(request, true)?;
    let response = response.await?;
    if response.status() != 200 {
        return Err("the answer is no 200".into());
    }
    let mut body = response.into_body();
    while let Some(piece) = body.data().await {
        let count = piece?.len();
        body.flow_control().release_capacity(count)?;
    }
    Ok(())
}

impl AnswerCounts {
    fn fail(&mut self, reason: String) {
        self.failed += 1;
        self.reason.get_or_insert(reason);
    }

    fn json(&self) -> String {
        let mut histogram = Histogram::default();
        for took in &self.took {
            histogram.add(*took);
        }
        let milliseconds = |took: Duration| took.as_secs_f64() * 1000.0;
        format!(
            "{{\"asked\": {}, \"failed\": {}, \"reason\": {:?}, \"p50_ms\": {:.3}, \"p99_ms\": {:.3}, \"longest_ms\": {:.3}}}",
            histogram.total(),
            self.failed,
            self.reason.as_deref().unwrap_or_default(),
            milliseconds(histogram.percentile(0.5)),
            milliseconds(histogram.percentile(0.99)),
            milliseconds(histogram.longest()),
        )
    }
}
