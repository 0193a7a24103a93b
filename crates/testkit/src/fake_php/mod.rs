//! A FastCGI responder that sends exactly the bytes of a test.
//!
//! A test gives a handler, which turns each [`Request`] into a [`Script`]:
//! a list of steps played one after the other. So an answer can be cut at
//! any byte, stopped until the test lets it go on, truncated or made
//! invalid. Connections are served at once, like a PHP-FPM with workers without
//! bound; [`FakePhp::most_at_once`] returns how many were ever needed.
//!
//! Runs on the caller's tokio runtime and stops when dropped. It is
//! strict: requests that break the protocol are dropped and counted by
//! [`FakePhp::faults`].

mod request;
mod script;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

pub use request::Request;
use request::{read_body, read_request};
pub use script::Script;
use script::Step;

type Handler = dyn Fn(&Request) -> Script + Send + Sync;

/// The responder. Stops when dropped, and with it all its connections.
pub struct FakePhp {
    shared: Arc<FakePhpState>,
    address: Address,
    acceptor: JoinHandle<()>,
}

#[derive(Clone)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

struct FakePhpState {
    handler: Box<Handler>,
    /// Whether the handler is asked before the body is read.
    early: bool,
    connections: AtomicUsize,
    requests: AtomicUsize,
    running: AtomicUsize,
    most_at_once: AtomicUsize,
    aborted: AtomicUsize,
    faults: AtomicUsize,
}

impl FakePhp {
    /// The http block of a site with one location, cached in front of this PHP. It listens on
    /// `unix:%%/http`; the field `X-Cache` has the cache status.
    pub fn cached_site(&self, directives: &str) -> String {
        format!(
            "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
             server {{\n listen unix:%%/http;\n server_name site.test;\n location / {{\n\
             fastcgi_pass {};\n fastcgi_param REQUEST_METHOD $request_method;\n\
             fastcgi_param REQUEST_URI $request_uri;\n\
             fastcgi_cache zone;\n fastcgi_cache_key $host$request_uri;\n\
             add_header X-Cache $upstream_cache_status always;\n{directives}\n }}\n}}",
            self.address()
        )
    }

    /// Listens on a free port of the loopback address.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn tcp(handler: impl Fn(&Request) -> Script + Send + Sync + 'static) -> FakePhp {
        FakePhp::start(listen_tcp().await, handler, false)
    }

    /// One whose every response begins with `first`, unless that is empty, and goes on with `second`
    /// when the gate gives it a permit.
    pub async fn gated(first: &'static str, second: &'static str) -> (FakePhp, Arc<Semaphore>) {
        let gate = Arc::new(Semaphore::new(0));
        let held = gate.clone();
        let php = FakePhp::tcp(move |_| {
            let begun = match first {
                "" => Script::new(),
                first => Script::new().stdout(first),
            };
            begun.wait_for(&held).stdout(second)
        });
        (php.await, gate)
    }

    /// Like [`FakePhp::tcp`], but the handler answers as soon as the params
    /// are there. The body is read only by [`Script::read_body`]; a
    /// connection whose script did without is closed.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn tcp_answering_early(
        handler: impl Fn(&Request) -> Script + Send + Sync + 'static,
    ) -> FakePhp {
        FakePhp::start(listen_tcp().await, handler, true)
    }

    /// Listens on a unix socket at `path`, which is removed in the end.
    ///
    /// # Panics
    ///
    /// When it cannot listen, or outside a tokio runtime.
    pub fn unix(
        path: impl AsRef<Path>,
        handler: impl Fn(&Request) -> Script + Send + Sync + 'static,
    ) -> FakePhp {
        let path = path.as_ref().to_owned();
        let listener = UnixListener::bind(&path).expect("fake PHP listens on a unix socket");
        let listening = (Listener::Unix(listener), Address::Unix(path));
        FakePhp::start(listening, handler, false)
    }

    fn start(
        (listener, address): (Listener, Address),
        handler: impl Fn(&Request) -> Script + Send + Sync + 'static,
        early: bool,
    ) -> FakePhp {
        let shared = Arc::new(FakePhpState {
            handler: Box::new(handler),
            early,
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            aborted: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
        });
        let acceptor = tokio::spawn(accept(listener, Arc::clone(&shared)));
        FakePhp {
            shared,
            address,
            acceptor,
        }
    }

    /// Returns the address as an argument of `fastcgi_pass`: `127.0.0.1:PORT` or `unix:PATH`.
    pub fn address(&self) -> String {
        match &self.address {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Requests begun so far.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Requests that are under way.
    pub fn running(&self) -> usize {
        self.shared.running.load(Ordering::SeqCst)
    }

    /// The most requests that were ever under way at the same time.
    pub fn most_at_once(&self) -> usize {
        self.shared.most_at_once.load(Ordering::SeqCst)
    }

    /// Requests whose client closed before the script was through.
    pub fn aborted(&self) -> usize {
        self.shared.aborted.load(Ordering::SeqCst)
    }

    /// Requests that broke the FastCGI protocol. A test expects none.
    pub fn faults(&self) -> usize {
        self.shared.faults.load(Ordering::SeqCst)
    }
}

impl Drop for FakePhp {
    fn drop(&mut self) {
        self.acceptor.abort();
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn listen_tcp() -> (Listener, Address) {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("fake PHP listens on a free port");
    let address = listener.local_addr().expect("a bound socket");
    (Listener::Tcp(listener), Address::Tcp(address))
}

async fn accept(listener: Listener, shared: Arc<FakePhpState>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        let stream: Box<dyn Stream> = match &listener {
            Listener::Tcp(listener) => match listener.accept().await {
                Ok((stream, _)) => Box::new(stream),
                Err(_) => return,
            },
            Listener::Unix(listener) => match listener.accept().await {
                Ok((stream, _)) => Box::new(stream),
                Err(_) => return,
            },
        };
        while connections.try_join_next().is_some() {}
        let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
        connections.spawn(serve(stream, number, Arc::clone(&shared)));
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The state of the connection after a script.
#[derive(PartialEq)]
enum Outcome {
    Kept,
    Closed,
}

/// Requests one after the other, as long as the connection is kept.
async fn serve(mut stream: Box<dyn Stream>, connection: usize, shared: Arc<FakePhpState>) {
    loop {
        let mut request = match read_request(&mut stream, shared.early).await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    shared.faults.fetch_add(1, Ordering::SeqCst);
                }
                return;
            }
        };
        request.connection = connection;
        request.number = shared.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let running = RunningRequest::begin(&shared);
        let script = (shared.handler)(&request).ended();
        let outcome = play(&mut stream, script, shared.early, running).await;
        if outcome.is_err() {
            shared.aborted.fetch_add(1, Ordering::SeqCst);
        }
        if !matches!(outcome, Ok(Outcome::Kept)) || !request.keep_conn {
            return;
        }
    }
}

/// Counts a request as under way.
struct RunningRequest<'a>(&'a FakePhpState);

impl<'a> RunningRequest<'a> {
    fn begin(shared: &'a FakePhpState) -> RunningRequest<'a> {
        let now = shared.running.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_at_once.fetch_max(now, Ordering::SeqCst);
        RunningRequest(shared)
    }
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn play(
    stream: &mut Box<dyn Stream>,
    script: Script,
    mut body_is_unread: bool,
    running: RunningRequest<'_>,
) -> io::Result<Outcome> {
    let mut running = Some(running);
    let mut in_pieces_of = usize::MAX;
    let last = script.steps.len().saturating_sub(1);
    for (index, step) in script.steps.into_iter().enumerate() {
        match step {
            Step::Send(bytes) => {
                if index == last {
                    // The next request may begin once the client has this.
                    running.take();
                }
                for piece in bytes.chunks(in_pieces_of) {
                    stream.write_all(piece).await?;
                    if in_pieces_of != usize::MAX {
                        // Lets the client see the piece alone.
                        tokio::task::yield_now().await;
                    }
                }
            }
            Step::ReadBody => {
                if body_is_unread {
                    read_body(stream).await?;
                    body_is_unread = false;
                }
            }
            Step::WaitFor(gate) => match gate.acquire().await {
                Ok(permit) => permit.forget(),
                // A closed gate is open for all.
                Err(_) => continue,
            },
            Step::InPiecesOf(bytes) => in_pieces_of = bytes,
            Step::Hang => {
                let mut ignored = [0; 4096];
                while stream.read(&mut ignored).await? > 0 {}
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Step::Close => return Ok(Outcome::Closed),
        }
    }
    if body_is_unread {
        return Ok(Outcome::Closed);
    }
    Ok(Outcome::Kept)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use fastcgi::record::protocol_status;
    use fastcgi::{BodySource, Error, Event, Exchange, NoBody, ParamsEncoder, RequestSpec};
    use tokio::net::{TcpStream, UnixStream};
    use tokio::sync::Semaphore;

    use super::*;

    fn spec(uri: &str) -> RequestSpec {
        let mut params = ParamsEncoder::new();
        params.push(b"REQUEST_URI", uri.as_bytes());
        RequestSpec {
            params: params.finish().expect("small params"),
            keep_conn: true,
            head_request: false,
            head_limit_bytes: 4096,
        }
    }

    async fn body_of<S, B>(exchange: &mut Exchange<S, B>) -> Result<String, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
        B: BodySource,
    {
        let mut body = Vec::new();
        while let Some(event) = exchange.next().await? {
            if let Event::Data(data) = event {
                body.extend_from_slice(&data);
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    async fn connect(php: &FakePhp) -> TcpStream {
        TcpStream::connect(php.address()).await.expect("listening")
    }

    #[tokio::test]
    async fn script_is_played_byte_by_byte_and_the_connection_kept() {
        let path = std::env::temp_dir().join(format!("fake-php-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let php = FakePhp::unix(&path, |request| {
            let page = format!(
                "{} {} {}",
                request.param("REQUEST_URI"),
                request.number,
                request.body.len()
            );
            Script::new()
                .in_pieces_of(1)
                .stderr("careful")
                .stdout("A: b\n\n")
                .stdout(page)
        });
        let mut stream = UnixStream::connect(&path).await.expect("listening");
        for number in 1..=2 {
            let body = Bytes::from_static(b"1234");
            let mut exchange = Exchange::start(stream, spec("/page"), body);
            let page = body_of(&mut exchange).await.expect("a page");
            assert_eq!(page, format!("/page {number} 4"));
            stream = exchange.into_stream().expect("kept");
        }
        assert_eq!((php.connections(), php.requests(), php.faults()), (1, 2, 0));
        drop(php);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn gate_holds_answers_and_counts_those_under_way() {
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        let php = FakePhp::tcp(move |_| {
            Script::new()
                .stdout("A: b\n\n")
                .wait_for(&held)
                .stdout("page")
        })
        .await;
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let mut exchange = Exchange::start(connect(&php).await, spec("/"), NoBody);
            let event = exchange.next().await.expect("no error");
            assert!(matches!(event, Some(Event::Head(_))));
            waiting.push(exchange);
        }
        assert_eq!(php.most_at_once(), 3);
        gate.add_permits(3);
        for mut exchange in waiting {
            assert_eq!(body_of(&mut exchange).await.expect("a page"), "page");
        }
        let mut exchange = Exchange::start(connect(&php).await, spec("/"), NoBody);
        gate.add_permits(1);
        body_of(&mut exchange).await.expect("a page");
        assert_eq!((php.requests(), php.most_at_once()), (4, 3));
    }

    #[tokio::test]
    async fn early_answer_may_leave_the_body_unread() {
        let php = FakePhp::tcp_answering_early(|_| Script::page("A: b\r\n", "page")).await;
        let body = Bytes::from(vec![b'u'; 16 << 20]);
        let mut exchange = Exchange::start(connect(&php).await, spec("/"), body);
        assert_eq!(body_of(&mut exchange).await.expect("a page"), "page");
        assert!(exchange.into_stream().is_none());
    }

    #[tokio::test]
    async fn bad_ends_reach_the_client_as_errors() {
        let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
            "/overloaded" => Script::new().end(0, protocol_status::OVERLOADED),
            "/close" => Script::new().close(),
            "/half" => Script::page("A: b\r\n", "half").close(),
            "/short" => Script::page("Content-Length: 9\r\n", "short"),
            _ => Script::new().raw("HTTP/1.1 200 OK\r\n\r\n"),
        })
        .await;
        for (uri, error) in [
            ("/overloaded", "Overloaded"),
            ("/close", "Stream(Closed { before_first_byte: true })"),
            (
                "/half",
                "Truncated { how: ConnectionClosed, received_bytes: 4, expected_bytes: None }",
            ),
            (
                "/short",
                "Truncated { how: RequestEnded, received_bytes: 5, expected_bytes: Some(9) }",
            ),
            ("/http", "Malformed(UnsupportedVersion(72))"),
        ] {
            let mut exchange = Exchange::start(connect(&php).await, spec(uri), NoBody);
            let found = body_of(&mut exchange).await.expect_err(uri);
            assert_eq!(format!("{found:?}"), error, "{uri}");
        }
    }

    #[tokio::test]
    async fn client_that_leaves_is_counted() {
        let php = FakePhp::tcp(|_| Script::new().stdout("A: b\n\n").hang()).await;
        let mut exchange = Exchange::start(connect(&php).await, spec("/"), NoBody);
        let event = exchange.next().await.expect("no error");
        assert!(matches!(event, Some(Event::Head(_))));
        assert_eq!(php.aborted(), 0);
        drop(exchange);
        // Ends only when the responder has noticed.
        while php.aborted() == 0 {
            tokio::task::yield_now().await;
        }
    }
}
