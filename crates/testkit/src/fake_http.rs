//! An HTTP server that sends exactly the bytes of a test, lies included. A handler turns each
//! [`Request`] into a [`Script`]; afterwards the connection is kept for the next request unless
//! the script closes it.
//!
//! Runs on the caller's tokio runtime and stops when dropped.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// More than a test sends.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// A client's request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    /// Request line and fields, as received.
    pub head: String,
    /// Decoded.
    pub body: Bytes,
    /// The first request of this server has 1.
    pub number: usize,
    /// The first connection has 1.
    pub connection: usize,
    /// The address of the client.
    pub peer: SocketAddr,
    /// The TLS of an encrypted connection.
    pub tls: Option<Tls>,
}

/// The client's offers in its handshake.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The name of the server that it wants.
    pub name: Option<String>,
    pub has_certificate: bool,
}

impl Request {
    /// The first value of a field, or the empty string.
    pub fn field(&self, name: &str) -> &str {
        let mut lines = self.head.lines().skip(1);
        lines
            .find_map(|line| {
                let (field, value) = line.split_once(':')?;
                field.eq_ignore_ascii_case(name).then(|| value.trim())
            })
            .unwrap_or("")
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(Bytes),
    WaitFor(Arc<Semaphore>),
    InPiecesOf(usize),
    Echo,
    Close,
    Cut,
}

/// An answer, step by step.
#[derive(Clone, Debug, Default)]
pub struct Script {
    steps: Vec<Step>,
}

impl Script {
    pub fn new() -> Script {
        Script::default()
    }

    /// 200 with these field lines, a length and a body.
    pub fn page(fields: &str, body: impl AsRef<[u8]>) -> Script {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n",
            body.len()
        );
        Script::new().raw(head).raw(body)
    }

    /// Sends bytes as they are.
    pub fn raw(mut self, bytes: impl AsRef<[u8]>) -> Script {
        self.steps
            .push(Step::Send(Bytes::copy_from_slice(bytes.as_ref())));
        self
    }

    /// From here on every write has at most `bytes` bytes.
    pub fn in_pieces_of(mut self, bytes: usize) -> Script {
        self.steps.push(Step::InPiecesOf(bytes.max(1)));
        self
    }

    /// Goes on when a permit of `gate` is free, and consumes it.
    pub fn wait_for(mut self, gate: &Arc<Semaphore>) -> Script {
        self.steps.push(Step::WaitFor(Arc::clone(gate)));
        self
    }

    /// Sends back whatever comes, until the client closes.
    pub fn echo(mut self) -> Script {
        self.steps.push(Step::Echo);
        self
    }

    /// Closes the connection.
    pub fn close(mut self) -> Script {
        self.steps.push(Step::Close);
        self
    }

    /// Closes the connection without a word; where it is encrypted, anybody on the
    /// way could have done so.
    pub fn cut(mut self) -> Script {
        self.steps.push(Step::Cut);
        self
    }
}

type Handler = dyn Fn(&Request) -> Script + Send + Sync;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

struct FakeHttpState {
    acceptor: Option<TlsAcceptor>,
    handler: Box<Handler>,
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// The server. Stops when dropped, and with it all its connections.
pub struct FakeHttp {
    shared: Arc<FakeHttpState>,
    address: SocketAddr,
    acceptor: JoinHandle<()>,
}

impl FakeHttp {
    /// Listens on a free port of the loopback address.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start(handler: impl Fn(&Request) -> Script + Send + Sync + 'static) -> FakeHttp {
        FakeHttp::listen(None, handler).await
    }

    /// Answers with these field lines, and with the request's head as the body.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn showing_requests(fields: &'static str) -> FakeHttp {
        FakeHttp::start(move |request| Script::page(fields, &request.head)).await
    }

    /// Like [`FakeHttp::start`], encrypted.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start_encrypted(
        config: Arc<ServerConfig>,
        handler: impl Fn(&Request) -> Script + Send + Sync + 'static,
    ) -> FakeHttp {
        FakeHttp::listen(Some(TlsAcceptor::from(config)), handler).await
    }

    async fn listen(
        acceptor: Option<TlsAcceptor>,
        handler: impl Fn(&Request) -> Script + Send + Sync + 'static,
    ) -> FakeHttp {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("fake HTTP server listens on a free port");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(FakeHttpState {
            acceptor,
            handler: Box::new(handler),
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        });
        let acceptor = tokio::spawn(accept(listener, Arc::clone(&shared)));
        FakeHttp {
            shared,
            address,
            acceptor,
        }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Requests received so far.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for FakeHttp {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<FakeHttpState>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, peer)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        // Else the second part of an answer waits 40 ms for the client to acknowledge the first.
        let _ = stream.set_nodelay(true);
        let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
        connections.spawn(begin(stream, peer, number, Arc::clone(&shared)));
    }
}

/// Shakes hands where that is asked for. Who does not get past that is not served.
async fn begin(stream: TcpStream, peer: SocketAddr, connection: usize, shared: Arc<FakeHttpState>) {
    let Some(acceptor) = &shared.acceptor else {
        return serve(Box::new(stream), (peer, connection, None), shared).await;
    };
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let session = stream.get_ref().1;
    let tls = Tls {
        name: session.server_name().map(str::to_owned),
        has_certificate: session.peer_certificates().is_some(),
    };
    serve(Box::new(stream), (peer, connection, Some(tls)), shared).await;
}

/// Requests one after the other. A client that closes or breaks the protocol ends it.
async fn serve(
    mut stream: Box<dyn Stream>,
    (peer, connection, tls): (SocketAddr, usize, Option<Tls>),
    shared: Arc<FakeHttpState>,
) {
    let mut buffer = BytesMut::new();
    while let Ok(Some(mut request)) = read_request(&mut stream, &mut buffer).await {
        request.connection = connection;
        request.peer = peer;
        request.tls = tls.clone();
        request.number = shared.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let script = (shared.handler)(&request);
        match play(&mut stream, script).await {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
    }
}

/// Plays a script; returns false when the caller should close the connection.
async fn play(stream: &mut impl Stream, script: Script) -> io::Result<bool> {
    let mut piece = usize::MAX;
    for step in script.steps {
        match step {
            Step::Send(bytes) => {
                for part in bytes.chunks(piece) {
                    stream.write_all(part).await?;
                    stream.flush().await?;
                    tokio::task::yield_now().await;
                }
            }
            Step::InPiecesOf(bytes) => piece = bytes,
            Step::WaitFor(gate) => {
                if let Ok(permit) = gate.acquire().await {
                    permit.forget();
                }
            }
            Step::Echo => {
                let mut space = vec![0; 64 * 1024];
                loop {
                    let read = stream.read(&mut space).await?;
                    if read == 0 {
                        return Ok(false);
                    }
                    stream.write_all(&space[..read]).await?;
                    stream.flush().await?;
                }
            }
            Step::Close => {
                stream.shutdown().await?;
                return Ok(false);
            }
            Step::Cut => return Ok(false),
        }
    }
    Ok(true)
}

async fn read_more(stream: &mut impl Stream, buffer: &mut BytesMut) -> io::Result<()> {
    match stream.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// The next request, its body decoded; `None` when the client closed between two.
async fn read_request(
    stream: &mut impl Stream,
    buffer: &mut BytesMut,
) -> io::Result<Option<Request>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        if buffer.len() > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer.split_to(end)).into_owned();
    let mut words = head.split_whitespace();
    let mut request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        target: words.next().unwrap_or_default().to_owned(),
        body: Bytes::new(),
        number: 0,
        connection: 0,
        peer: SocketAddr::from(([0, 0, 0, 0], 0)),
        tls: None,
        head: head.clone(),
    };
    request.body = if request.field("transfer-encoding") == "chunked" {
        read_chunks(stream, buffer).await?
    } else {
        let length = request.field("content-length").parse().unwrap_or(0);
        while buffer.len() < length {
            read_more(stream, buffer).await?;
        }
        buffer.split_to(length).freeze()
    };
    Ok(Some(request))
}

async fn read_chunks(stream: &mut impl Stream, buffer: &mut BytesMut) -> io::Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let line = loop {
            match buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                Some(at) => break at,
                None => read_more(stream, buffer).await?,
            }
        };
        let size = String::from_utf8_lossy(&buffer[..line]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        buffer.advance(line + 2);
        while buffer.len() < size + 2 {
            read_more(stream, buffer).await?;
        }
        body.extend_from_slice(&buffer.split_to(size));
        buffer.advance(2);
        if size == 0 {
            return Ok(body.freeze());
        }
    }
}
