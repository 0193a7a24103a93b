//! `bench-visitors http1|http2|http3 ADDRESS PATH SECONDS [--tls] [--keepers N] [--judge FILE]`: visitors of a
//! page, who ask at a steady rate whatever becomes of the server, half over connections that they
//! keep, half over new ones; or N who keep theirs, alone. How long an answer took is measured from
//! the moment when it was due to be asked for. The words of the answers' `X-Cache` are counted. A request that
//! the server has not begun, since it ends the connection with a GOAWAY, is sent once more over a new one, as
//! browsers do. SIGINT ends it early.
//!
//! With `--judge`, PATH is that of pages by number (`/p/` for `/p/7`). FILE has four bytes for each page: the version that an
//! answer has at least, since what is older was purged. A page consists of lines `page 7 version 12 ...`.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

const USAGE: &str = "usage: bench-visitors http1|http2|http3 ADDRESS PATH SECONDS [--tls] [--keepers N] [--judge FILE]";
const NAME: &str = "bench.example";
/// Visitors who keep their connection, and how often each of them asks.
const KEEPERS: u32 = 20;
const KEEPER_PAUSE: Duration = Duration::from_millis(100);
/// How often each of those asks who are alone: they look for failures, and put little load on the machine.
const ALONE_PAUSE: Duration = Duration::from_millis(250);
/// Visitors who connect anew each time.
const NEWCOMERS: u32 = 10;
const NEWCOMER_PAUSE: Duration = Duration::from_millis(200);
/// A visitor without an answer by then leaves.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// In the file of versions, for each page.
const VERSION_BYTES: u64 = 4;
/// Codes of HTTP/3 (RFC 9114 §8.1): the connection ends without an error; nothing was done for the
/// request.
const H3_NO_ERROR: u64 = 0x100;
const H3_REQUEST_REJECTED: u64 = 0x10b;

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
    keepers: u32,
    /// How often each of the keepers asks.
    pause: Duration,
    newcomers: u32,
    judge: Option<Judge>,
    /// SIGINT has come: they stop, and tell what they counted.
    is_over: AtomicBool,
}

/// Knows which version of each page was purged.
struct Judge {
    purged: File,
    pages: u64,
    /// Counts what was asked for.
    asked: AtomicU64,
}

/// A page that is asked for.
struct AskedPage {
    path: String,
    /// Its number, and the version that an answer has at least.
    judged: Option<(u64, u32)>,
}

enum PageVerdict {
    Good,
    Old,
    Torn,
}

/// A connection of a visitor.
enum Visit {
    Http1(Box<dyn Transport>),
    Http2(SendRequest<Bytes>),
    Http3(quinn::Connection),
}

/// Words of `X-Cache`.
const WORDS: [&str; 7] = [
    "HIT",
    "MISS",
    "EXPIRED",
    "UPDATING",
    "STALE",
    "REVALIDATED",
    "BYPASS",
];
const FIELD: &str = "x-cache";

/// The facts about an answer, with its body if that is judged.
struct AnswerFacts {
    cache: Option<&'static str>,
    may_keep: bool,
    /// The body of the answer, where it is judged.
    body: Vec<u8>,
}

/// Counts of the answers to some visitors.
#[derive(Default)]
struct AnswerCounts {
    took: Vec<Duration>,
    failed: u64,
    /// Answers only to the second try, over a new connection.
    again: u64,
    /// By the word of `X-Cache`.
    cache: BTreeMap<&'static str, u64>,
    /// Why the others failed.
    reasons: BTreeMap<String, u64>,
    /// Pages that were older than what was purged when they were asked for, and pages that were not whole.
    old: u64,
    torn: u64,
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
    let alone = rest.iter().position(|word| word == "--keepers");
    let (keepers, pause, newcomers) = match alone {
        Some(at) => (rest.get(at + 1).ok_or(USAGE)?.parse()?, ALONE_PAUSE, 0),
        None => (KEEPERS, KEEPER_PAUSE, NEWCOMERS),
    };
    let judge = rest.iter().position(|word| word == "--judge");
    let judge = judge
        .map(|at| Judge::new(rest.get(at + 1).ok_or(USAGE)?))
        .transpose()?;
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
        keepers,
        pause,
        newcomers,
        judge,
        is_over: AtomicBool::new(false),
    })
}

/// Returns the counts of the visitors who keep their connection, and of those who come anew.
async fn visit(site: Arc<Site>) -> Result<(AnswerCounts, AnswerCounts), Failure> {
    let began = Instant::now();
    let start = |count: u32, pause: Duration, keeps: bool| {
        let visitors = (0..count).map(|number| {
            let first = began + pause * number / count;
            tokio::spawn(visitor(site.clone(), first, pause, keeps))
        });
        visitors.collect::<Vec<_>>()
    };
    let of_signal = site.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            of_signal.is_over.store(true, Ordering::Relaxed);
        }
    });
    let keepers = start(site.keepers, site.pause, true);
    let newcomers = start(site.newcomers, NEWCOMER_PAUSE, false);
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
        all.again += told.again;
        for (word, count) in told.cache {
            *all.cache.entry(word).or_default() += count;
        }
        for (reason, count) in told.reasons {
            *all.reasons.entry(reason).or_default() += count;
        }
        all.old += told.old;
        all.torn += told.torn;
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
        if site.is_over.load(Ordering::Relaxed) {
            break;
        }
        let page = site.next_page();
        let asking = ask(&site, &page.path, kept.take(), &mut told.again);
        match tokio::time::timeout(ANSWER_DEADLINE, asking).await {
            Ok(Ok((visit, answer))) => {
                if let Some(word) = answer.cache {
                    *told.cache.entry(word).or_default() += 1;
                }
                match page.verdict(&answer.body) {
                    PageVerdict::Good => {}
                    PageVerdict::Old => told.old += 1,
                    PageVerdict::Torn => told.torn += 1,
                }
                kept = (keeps && answer.may_keep).then_some(visit);
            }
            Ok(Err(error)) => told.fail(error.to_string()),
            Err(_) => told.fail("no answer in time".to_owned()),
        }
        told.took.push(due.elapsed());
        due += pause;
    }
    told
}

/// Asks over the connection that was kept, or over a new one; gives what can be used again.
async fn ask(
    site: &Site,
    path: &str,
    kept: Option<Visit>,
    again: &mut u64,
) -> Result<(Visit, AnswerFacts), Failure> {
    if let Some(mut visit) = kept {
        match visit.ask(site, path).await {
            Ok(answer) => return Ok((visit, answer)),
            Err(error) if was_not_begun(&*error) => *again += 1,
            Err(error) => return Err(error),
        }
    }
    let mut visit = site.connect().await?;
    let answer = visit.ask(site, path).await?;
    Ok((visit, answer))
}

impl Visit {
    async fn ask(&mut self, site: &Site, path: &str) -> Result<AnswerFacts, Failure> {
        match self {
            Visit::Http1(stream) => ask_http1(stream, path).await,
            Visit::Http2(sender) => ask_http2(sender, site, path).await,
            Visit::Http3(connection) => {
                let request = quic::request(NAME, path);
                let answer = quic::answer(connection, &request).await?;
                let says = |word: &&&str| answer.has_field(FIELD, word);
                Ok(AnswerFacts {
                    cache: WORDS.iter().find(says).copied(),
                    may_keep: true,
                    body: answer.body(),
                })
            }
        }
    }
}

/// Does the server say that the request may be sent again (RFC 9113 §8.7, RFC 9114 §5.2)?
fn was_not_begun(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<h2::Error>() {
        return matches!(
            (error.is_go_away(), error.reason()),
            (true, Some(h2::Reason::NO_ERROR)) | (_, Some(h2::Reason::REFUSED_STREAM))
        );
    }
    let is_ended = |lost: &quinn::ConnectionError| {
        matches!(lost, quinn::ConnectionError::ApplicationClosed(close)
            if close.error_code.into_inner() == H3_NO_ERROR)
    };
    let rejected = |code: &quinn::VarInt| code.into_inner() == H3_REQUEST_REJECTED;
    if let Some(error) = error.downcast_ref::<quinn::ReadError>() {
        return match error {
            quinn::ReadError::Reset(code) => rejected(code),
            quinn::ReadError::ConnectionLost(lost) => is_ended(lost),
            _ => false,
        };
    }
    if let Some(error) = error.downcast_ref::<quinn::WriteError>() {
        return match error {
            quinn::WriteError::Stopped(code) => rejected(code),
            quinn::WriteError::ConnectionLost(lost) => is_ended(lost),
            _ => false,
        };
    }
    error
        .downcast_ref::<quinn::ConnectionError>()
        .is_some_and(is_ended)
}

impl Judge {
    fn new(path: &str) -> Result<Judge, Failure> {
        let purged = File::open(path)?;
        Ok(Judge {
            pages: purged.metadata()?.len() / VERSION_BYTES,
            purged,
            asked: AtomicU64::new(0),
        })
    }

    /// The next page in turn, and the version that an answer has at least if it is asked for now.
    fn next(&self) -> (u64, u32) {
        let page = self.asked.fetch_add(1, Ordering::Relaxed) % self.pages.max(1);
        let mut version = [0; VERSION_BYTES as usize];
        // A version that cannot be read stays 0: any version is accepted then.
        let _ = self
            .purged
            .read_exact_at(&mut version, page * VERSION_BYTES);
        (page, u32::from_le_bytes(version))
    }
}

impl AskedPage {
    fn verdict(&self, body: &[u8]) -> PageVerdict {
        let Some((page, at_least)) = self.judged else {
            return PageVerdict::Good;
        };
        let mut versions = body.split_inclusive(|byte| *byte == b'\n').map(|line| {
            let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
            let rest = line.strip_prefix(&format!("page {page} version "))?;
            rest.split(' ').next()?.parse::<u32>().ok()
        });
        match versions.next().flatten() {
            Some(version) if versions.all(|it| it == Some(version)) => match version < at_least {
                true => PageVerdict::Old,
                false => PageVerdict::Good,
            },
            _ => PageVerdict::Torn,
        }
    }
}

impl Site {
    /// Returns the page that is asked for next.
    fn next_page(&self) -> AskedPage {
        let judged = self.judge.as_ref().map(Judge::next);
        let path = match judged {
            Some((page, _)) => format!("{}{page}", self.path),
            None => self.path.clone(),
        };
        AskedPage { path, judged }
    }

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

/// The word that a field's value begins with, in any case.
fn word_of(value: Option<&str>) -> Option<&'static str> {
    let value = value?.split_ascii_whitespace().next()?;
    let same = |word: &&&str| word.eq_ignore_ascii_case(value);
    WORDS.iter().find(same).copied()
}

async fn ask_http1(stream: &mut Box<dyn Transport>, path: &str) -> Result<AnswerFacts, Failure> {
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
    Ok(AnswerFacts {
        cache: word_of(head.split("\r\nx-cache: ").nth(1)),
        may_keep: !head.contains("\r\nconnection: close\r\n"),
        body: received.split_off(head_bytes),
    })
}

async fn ask_http2(
    sender: &mut SendRequest<Bytes>,
    site: &Site,
    path: &str,
) -> Result<AnswerFacts, Failure> {
    let scheme = if site.tls.is_some() { "https" } else { "http" };
    let request = Request::get(format!("{scheme}://{NAME}{path}")).body(())?;
    *sender = sender.clone().ready().await?;
    let (response, _) = sender.send_request(request, true)?;
    let response = response.await?;
    if response.status() != 200 {
        return Err("the answer is no 200".into());
    }
    let field = response.headers().get(FIELD);
    let cache = word_of(field.and_then(|value| value.to_str().ok()));
    let (mut stream, mut body) = (response.into_body(), Vec::new());
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len())?;
    }
    Ok(AnswerFacts {
        cache,
        may_keep: true,
        body,
    })
}

impl AnswerCounts {
    fn fail(&mut self, reason: String) {
        self.failed += 1;
        *self.reasons.entry(reason).or_default() += 1;
    }

    fn json(&self) -> String {
        let mut histogram = Histogram::default();
        for took in &self.took {
            histogram.add(*took);
        }
        let cache: Vec<String> = self
            .cache
            .iter()
            .map(|(word, count)| format!("\"{word}\": {count}"))
            .collect();
        let reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, count)| format!("{reason:?}: {count}"))
            .collect();
        let milliseconds = |took: Duration| took.as_secs_f64() * 1000.0;
        format!(
            "{{\"asked\": {}, \"failed\": {}, \"old\": {}, \"torn\": {}, \"reasons\": {{{}}}, \"again\": {}, \"cache\": {{{}}}, \"p50_ms\": {:.3}, \"p99_ms\": {:.3}, \"longest_ms\": {:.3}}}",
            histogram.total(),
            self.failed,
            self.old,
            self.torn,
            reasons.join(", "),
            self.again,
            cache.join(", "),
            milliseconds(histogram.percentile(0.5)),
            milliseconds(histogram.percentile(0.99)),
            milliseconds(histogram.longest()),
        )
    }
}
