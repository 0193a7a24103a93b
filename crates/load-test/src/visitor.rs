//! A visitor: connections of its own, perhaps cookies, one request after the other.

use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::answer::{Reader, Response};
use crate::plan::{Origin, Plan};
use crate::record::{Failure, Outcome};

/// Takes most pages with one read.
const RECEIVE_BYTES: usize = 32 << 10;
/// Cookies that a visitor keeps.
const MAX_COOKIES: usize = 64;

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A request that is due.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub request: usize,
    pub due: Instant,
}

struct Connection {
    stream: Box<dyn Stream>,
    reader: Reader,
}

/// A simulated visitor, which sends requests.
pub struct Visitor {
    /// One for each origin.
    connections: Vec<Option<Connection>>,
    /// With the origin that set it.
    cookies: Vec<(usize, String)>,
    asked: u32,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl Visitor {
    pub fn new(plan: &Plan) -> Visitor {
        Visitor {
            connections: plan.origins.iter().map(|_| None).collect(),
            cookies: Vec::new(),
            asked: 0,
            buffer: vec![0; RECEIVE_BYTES],
            out: Vec::new(),
        }
    }

    /// Asks, and waits for the answer until `deadline`.
    pub async fn ask(
        &mut self,
        plan: &Plan,
        job: Job,
        began: Instant,
        deadline: Instant,
    ) -> Outcome {
        if plan
            .settings
            .requests_per_visitor
            .is_some_and(|most| self.asked >= most)
        {
            // Another visitor comes in this one's stead.
            self.connections.iter_mut().for_each(|it| *it = None);
            self.cookies.clear();
            self.asked = 0;
        }
        self.asked = self.asked.saturating_add(1);
        let sent = Instant::now();
        let limit = (sent + plan.settings.timeout).min(deadline);
        let exchange = self.exchange(plan, job.request);
        let result = match tokio::time::timeout_at(limit.into(), exchange).await {
            Ok(result) => result,
            Err(_) => Err(Failure::Timeout),
        };
        let now = Instant::now();
        let request = plan.requests.get(job.request);
        if let (Err(_), Some(request)) = (&result, request)
            && let Some(connection) = self.connections.get_mut(request.origin)
        {
            *connection = None;
        }
        Outcome {
            url: request.map_or(0, |it| it.url),
            due: job.due.saturating_duration_since(began),
            latency: now.saturating_duration_since(job.due),
            service: now.saturating_duration_since(sent),
            result,
        }
    }

    async fn exchange(&mut self, plan: &Plan, number: usize) -> Result<Response, Failure> {
        let request = plan.requests.get(number).ok_or(Failure::NotAsked)?;
        let origin = plan.origins.get(request.origin).ok_or(Failure::NotAsked)?;
        self.out.clear();
        self.out.extend_from_slice(&request.bytes);
        self.put_cookies(request.origin);
        self.out.extend_from_slice(b"\r\n");
        let connection = self.connections.get_mut(request.origin);
        let kept = connection.and_then(Option::take);
        let mut is_kept = kept.is_some();
        let mut connection = match kept {
            Some(kept) => kept,
            None => connect(origin, plan, request.is_head).await?,
        };
        if is_kept {
            connection.reader.answers_head(request.is_head);
        }
        let answer = loop {
            match once(&mut connection, &self.out, &mut self.buffer).await {
                // The server closed a kept connection while this was on its way: nothing was answered.
                Err(Failure::Closed) if is_kept && !connection.reader.is_within_answer() => {
                    is_kept = false;
                    connection = connect(origin, plan, request.is_head).await?;
                }
                result => break result?,
            }
        };
        for cookie in connection.reader.take_cookies() {
            self.keep_cookie(request.origin, cookie);
        }
        if !answer.closes
            && let Some(free) = self.connections.get_mut(request.origin)
        {
            *free = Some(connection);
        }
        Ok(answer)
    }

    fn put_cookies(&mut self, origin: usize) {
        let mut own = self.cookies.iter().filter(|(of, _)| *of == origin);
        if let Some((_, first)) = own.next() {
            self.out.extend_from_slice(b"Cookie: ");
            self.out.extend_from_slice(first.as_bytes());
            for (_, cookie) in own {
                self.out.extend_from_slice(b"; ");
                self.out.extend_from_slice(cookie.as_bytes());
            }
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// A cookie of the same name is replaced.
    fn keep_cookie(&mut self, origin: usize, cookie: String) {
        if cookie.chars().any(char::is_control) {
            return;
        }
        let name = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
        let new = name(&cookie);
        self.cookies
            .retain(|(of, kept)| *of != origin || name(kept) != new);
        if self.cookies.len() < MAX_COOKIES {
            self.cookies.push((origin, cookie));
        }
    }
}

async fn connect(origin: &Origin, plan: &Plan, is_head: bool) -> Result<Connection, Failure> {
    let stream = TcpStream::connect(origin.address).await;
    let stream = stream.map_err(|_| Failure::Connect)?;
    // Without it requests are late; with an error there, nothing is wrong with the connection.
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Stream> = match &origin.tls {
        None => Box::new(stream),
        Some((connector, name)) => {
            let stream = connector.connect(stream, name).await;
            Box::new(stream.map_err(|_| Failure::Tls)?)
        }
    };
    let reader = Reader::new(is_head);
    Ok(Connection {
        stream,
        reader: match plan.settings.cookies {
            true => reader.keeping_cookies(),
            false => reader,
        },
    })
}

async fn once(
    connection: &mut Connection,
    request: &[u8],
    buffer: &mut [u8],
) -> Result<Response, Failure> {
    let Connection { stream, reader } = connection;
    let sent = async {
        stream.write_all(request).await?;
        stream.flush().await
    };
    sent.await.map_err(|_| Failure::Closed)?;
    loop {
        let count = stream.read(buffer).await.unwrap_or(0);
        if count == 0 {
            return reader.end().ok_or(Failure::Closed);
        }
        let bytes = buffer.get(..count).unwrap_or_default();
        if let Some(answer) = reader.take(bytes).map_err(|_| Failure::Broken)? {
            return Ok(answer);
        }
    }
}
