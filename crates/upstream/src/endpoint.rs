//! The address of an upstream server, and the byte stream to it.
//!
//! Threads have a runtime each, and a tokio stream belongs to the runtime that
//! made it. So a connection between requests is a [`StdStream`], which any thread
//! may take up: [`Stream::park`], [`Stream::from_std`]. It stays registered where
//! it was last used, as the next request most often comes there; elsewhere it is
//! registered anew. That of an encrypted connection keeps its session; only the
//! socket below is exchanged.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::net::RecvFlags;
use tls_client::{ConnectError, Connector, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

/// The address of an upstream server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A unix socket's path.
    Unix(PathBuf),
    /// An address and port.
    Tcp(SocketAddr),
}

/// The local end of connections. A unix socket has nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalEnd {
    /// The source address (`*_bind`); port 0: any. `None`: the system chooses.
    pub address: Option<SocketAddr>,
    /// The kernel probes idle connections (`*_socket_keepalive`).
    pub probes: bool,
}

/// A connection could not come from the address it should: no fault of the server's.
#[derive(Debug, thiserror::Error)]
#[error("bind({address}) failed: {error}")]
pub struct BindError {
    /// The address as nginx shows it: without a port where none was asked for.
    pub address: String,
    /// The error of the system.
    #[source]
    pub error: io::Error,
}

impl LocalEnd {
    /// Connects from here.
    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = match to {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if self.probes {
            socket.set_keepalive(true)?;
        }
        if let Some(address) = self.address {
            socket.bind(address).map_err(|error| {
                let address = match address.port() {
                    0 => address.ip().to_string(),
                    _ => address.to_string(),
                };
                io::Error::other(BindError { address, error })
            })?;
        }
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Endpoint {
    /// Connects within `timeout` (`fastcgi_connect_timeout`).
    ///
    /// `TimedOut` when it took longer, a [`BindError`] inside of `Other` when
    /// the local address could not be had. A unix socket whose backlog is full
    /// fails at once with `WouldBlock`, as with nginx.
    pub async fn connect(&self, local: LocalEnd, timeout: Duration) -> io::Result<Stream> {
        let connecting = async {
            match self {
                Self::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
                Self::Tcp(address) => local.connect(*address).await.map(Stream::Tcp),
            }
        };
        match tokio::time::timeout(timeout, connecting).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "connecting took longer than the timeout",
            )),
        }
    }
}

/// Formats the address like nginx's `$upstream_addr`: `127.0.0.1:9000`, `[::1]:9000`,
/// `unix:/path`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// A connection in use, registered with the runtime of its thread.
#[derive(Debug)]
pub enum Stream {
    /// Over a unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
    /// Encrypted, over one of the others.
    Tls(TlsStream<Box<Stream>>),
    /// Below [`StdStream::Tls`] only: the socket is between two runtimes.
    Parked(Option<Box<StdStream>>),
}

impl Stream {
    /// Shakes hands with a server whose certificate must be for `name`, see
    /// [`Connector::connect`].
    pub async fn encrypt(self, connector: &Connector, name: &str) -> Result<Self, ConnectError> {
        connector.connect(Box::new(self), name).await.map(Self::Tls)
    }

    /// The process that listens on the unix socket, as far as it is known here.
    pub fn peer_process(&self) -> Option<u32> {
        match self {
            Self::Unix(stream) => u32::try_from(stream.peer_cred().ok()?.pid()?).ok(),
            _ => None,
        }
    }

    /// Lays the stream aside, still registered with this thread's runtime: taken
    /// up there, it is ready to be written to without a system call.
    ///
    /// # Errors
    /// The errors of [`Self::into_std`].
    pub fn park(self) -> io::Result<StdStream> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => Ok(StdStream::Registered(Home::here(), self)),
            Self::Tls(_) | Self::Parked(_) => self.into_std(),
        }
    }

    /// Has its runtime, which must be the calling thread's, heard nothing of it?
    fn seems_quiet(&self) -> bool {
        // The next read registers its own waker.
        let mut nobody = Context::from_waker(Waker::noop());
        match self {
            Self::Unix(stream) => stream.poll_read_ready(&mut nobody).is_pending(),
            Self::Tcp(stream) => stream.poll_read_ready(&mut nobody).is_pending(),
            Self::Tls(_) | Self::Parked(_) => false,
        }
    }

    /// Takes the stream out of this thread's runtime.
    ///
    /// # Errors
    /// Also when an encrypted stream holds bytes that are not read yet.
    pub fn into_std(self) -> io::Result<StdStream> {
        match self {
            Self::Unix(stream) => stream.into_std().map(StdStream::Unix),
            Self::Tcp(stream) => stream.into_std().map(StdStream::Tcp),
            Self::Tls(mut stream) => {
                // It would be taken for the beginning of the next answer.
                if stream.has_unread() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let lower = std::mem::replace(&mut **stream.lower_mut(), Self::Parked(None));
                **stream.lower_mut() = Self::Parked(Some(Box::new(lower.into_std()?)));
                Ok(StdStream::Tls(stream))
            }
            Self::Parked(Some(stream)) => Ok(*stream),
            Self::Parked(None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Brings a stream into the runtime of the calling thread.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as everything in `tokio::net` does.
    pub fn from_std(stream: StdStream) -> io::Result<Self> {
        match stream {
            StdStream::Registered(home, stream) if home == Home::here() => Ok(stream),
            StdStream::Registered(_, stream) => Self::from_std(stream.into_std()?),
            StdStream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream).map(Self::Unix)
            }
            StdStream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream).map(Self::Tcp)
            }
            StdStream::Tls(mut stream) => {
                let lower = std::mem::replace(&mut **stream.lower_mut(), Self::Parked(None));
                **stream.lower_mut() = Self::from_std(lower.into_std()?)?;
                Ok(Self::Tls(stream))
            }
        }
    }
}

/// The thread whose runtime a stream is registered with. A thread has one runtime
/// for as long as it serves, and asking tokio for its name would touch a count that
/// it shares with every timer and task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home(u64);

impl Home {
    /// The calling thread.
    fn here() -> Home {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static HERE: Home = Home(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        HERE.with(|here| *here)
    }
}

/// Runs `$body` with `$stream` bound to the pinned inner stream.
macro_rules! delegate {
    ($self:ident, $stream:ident => $body:expr) => {
        match $self.get_mut() {
            Stream::Tls(inner) => {
                let $stream = Pin::new(inner);
                $body
            }
            Stream::Parked(_) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Stream::Unix(inner) => {
                let $stream = Pin::new(inner);
                $body
            }
            Stream::Tcp(inner) => {
                let $stream = Pin::new(inner);
                $body
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Parked(_) => false,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(context))
    }
}

/// A connection between requests.
#[derive(Debug)]
pub enum StdStream {
    /// Over either, known to the runtime it was last used in.
    Registered(Home, Stream),
    /// Over a unix socket.
    Unix(std::os::unix::net::UnixStream),
    /// Over TCP.
    Tcp(std::net::TcpStream),
    /// Encrypted; the socket below is parked.
    Tls(TlsStream<Box<Stream>>),
}

impl StdStream {
    /// The stream in the runtime of the calling thread, if it is open with nothing to
    /// read. `trusting`: the state that this runtime has last seen is enough, which costs
    /// no system call and misses bytes that came since the runtime last asked for events.
    pub fn take_up(self, trusting: bool) -> Option<Stream> {
        match self {
            Self::Registered(home, stream)
                if trusting && home == Home::here() && stream.seems_quiet() =>
            {
                Some(stream)
            }
            other if other.is_quiet() => Stream::from_std(other).ok(),
            _ => None,
        }
    }

    /// Is the connection open with nothing to read?
    ///
    /// An idle upstream has nothing to say: its close, an error, or any byte
    /// (the tail of an earlier answer) makes the connection useless. Never blocks.
    pub fn is_quiet(&self) -> bool {
        let socket = match self {
            Self::Registered(_, Stream::Unix(stream)) => stream.as_fd(),
            Self::Registered(_, Stream::Tcp(stream)) => stream.as_fd(),
            Self::Registered(_, Stream::Tls(_) | Stream::Parked(_)) => return false,
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
            // Nothing is decrypted while parked, so looking at the socket is enough.
            Self::Tls(stream) => match &**stream.lower() {
                Stream::Parked(Some(lower)) => return lower.is_quiet(),
                _ => return false,
            },
        };
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(
            rustix::net::recv(socket, &mut byte, flags),
            Err(rustix::io::Errno::AGAIN)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::mpsc;

    #[test]
    fn endpoints_are_shown_as_upstream_addr_shows_them() {
        let cases = [
            (
                Endpoint::Tcp("127.0.0.1:9000".parse().unwrap()),
                "127.0.0.1:9000",
            ),
            (Endpoint::Tcp("[::1]:9000".parse().unwrap()), "[::1]:9000"),
            (
                Endpoint::Unix("/run/php/fpm.sock".into()),
                "unix:/run/php/fpm.sock",
            ),
        ];
        for (endpoint, shown) in cases {
            assert_eq!(endpoint.to_string(), shown);
        }
    }

    #[test]
    fn only_an_open_silent_connection_is_quiet() {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let ours = StdStream::Unix(ours);
        assert!(ours.is_quiet());
        theirs.write_all(b"x").unwrap();
        assert!(!ours.is_quiet(), "a byte waits");

        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(theirs);
        assert!(!StdStream::Unix(ours).is_quiet(), "closed by the peer");
    }

    #[tokio::test]
    async fn tcp_connections_send_small_writes_at_once() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let stream = endpoint
            .connect(LocalEnd::default(), Duration::from_secs(5))
            .await
            .unwrap();
        assert!(stream.is_write_vectored());
        let Stream::Tcp(stream) = stream else {
            panic!("a TCP endpoint gives a TCP stream");
        };
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn a_connection_has_the_local_end_that_was_asked_for() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        for (address, from, probes) in [
            (None, "127.0.0.1", false),
            (Some("127.0.0.2:0"), "127.0.0.2", true),
        ] {
            let local = LocalEnd {
                address: address.map(|text| text.parse().unwrap()),
                probes,
            };
            let stream = endpoint.connect(local, Duration::from_secs(5)).await;
            let Ok(Stream::Tcp(stream)) = stream else {
                panic!("a TCP endpoint gives a TCP stream");
            };
            let (_accepted, peer) = listener.accept().await.unwrap();
            assert_eq!(peer.ip().to_string(), from);
            let keeps = rustix::net::sockopt::socket_keepalive(&stream).unwrap();
            assert_eq!(keeps, probes);
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_had_is_told_from_a_server_that_is_down() {
        let endpoint = Endpoint::Tcp("127.0.0.1:9".parse().unwrap());
        // TEST-NET-1 (RFC 5737) is not assigned; a family of its own cannot connect.
        for (address, shown) in [
            ("192.0.2.1:0", "192.0.2.1"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("[::1]:0", "::1"),
        ] {
            let local = LocalEnd {
                address: Some(address.parse().unwrap()),
                probes: false,
            };
            let failed = endpoint.connect(local, Duration::from_secs(5)).await;
            let error = failed.unwrap_err().downcast::<BindError>().unwrap();
            assert_eq!(error.address, shown);
        }
    }

    /// A server that encrypts, echoes the bytes it reads, and ends its thread when the
    /// client hangs up.
    fn encrypting_echo() -> (SocketAddr, std::thread::JoinHandle<()>) {
        use std::io::Read;
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["a".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let echo = std::thread::spawn(move || {
            let session = rustls::ServerConnection::new(config.into()).unwrap();
            let mut stream = rustls::StreamOwned::new(session, listener.accept().unwrap().0);
            let mut buffer = [0; 64];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                stream.write_all(&buffer[..read]).unwrap();
            }
        });
        (address, echo)
    }

    #[test]
    fn an_encrypted_connection_moves_between_runtimes() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (address, echo) = encrypting_echo();
        let connector = Connector::new(&tls_client::Settings::default()).unwrap();
        let run = |future: Pin<Box<dyn Future<Output = StdStream>>>| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(future)
        };
        async fn ask(mut stream: Stream, read_bytes: usize) -> io::Result<StdStream> {
            stream.write_all(b"ping").await.unwrap();
            stream.flush().await.unwrap();
            let mut answer = vec![0; read_bytes];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, b"ping"[..read_bytes]);
            stream.into_std()
        }
        let mut parked = run(Box::pin(async move {
            let stream = Endpoint::Tcp(address)
                .connect(LocalEnd::default(), Duration::from_secs(5))
                .await
                .unwrap();
            let stream = stream.encrypt(&connector, "a").await.unwrap();
            ask(stream, 4).await.unwrap()
        }));
        for _ in 0..3 {
            assert!(parked.is_quiet());
            parked = run(Box::pin(async move {
                ask(Stream::from_std(parked).unwrap(), 4).await.unwrap()
            }));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let half_read = runtime.block_on(async { ask(Stream::from_std(parked).unwrap(), 2).await });
        assert!(half_read.is_err(), "kept with half an answer in it");
        echo.join().unwrap();
    }

    /// A thread with a runtime, as those of the server.
    struct Worker {
        jobs: mpsc::Sender<Job>,
        thread: std::thread::JoinHandle<()>,
    }

    type Job = Box<dyn FnOnce(&tokio::runtime::Runtime) + Send>;

    impl Worker {
        fn start() -> Worker {
            let (jobs, inbox) = mpsc::channel::<Job>();
            let thread = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                for job in inbox {
                    job(&runtime);
                }
            });
            Worker { jobs, thread }
        }

        /// Runs `job` there and waits for its result.
        fn run<F: Future<Output = StdStream>>(
            &self,
            job: impl FnOnce() -> F + Send + 'static,
        ) -> StdStream {
            let (done, result) = mpsc::channel();
            let job: Job = Box::new(move |runtime| done.send(runtime.block_on(job())).unwrap());
            self.jobs.send(job).unwrap();
            result.recv().unwrap()
        }

        fn end(self) {
            drop(self.jobs);
            self.thread.join().unwrap();
        }
    }

    #[test]
    fn a_parked_connection_is_taken_up_where_it_was_and_elsewhere() {
        use std::io::Read;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let echo = std::thread::spawn(move || {
            let mut byte = [0];
            while theirs.read_exact(&mut byte).is_ok() {
                theirs.write_all(&byte).unwrap();
            }
        });
        let (here, there) = (Worker::start(), Worker::start());
        let mut parked = StdStream::Unix(ours);
        for (worker, was_there) in [
            (&here, false),
            (&here, true),
            (&there, false),
            (&there, true),
            (&here, false),
        ] {
            parked = worker.run(move || async move {
                assert!(parked.is_quiet());
                let is_home = match &parked {
                    StdStream::Registered(home, stream) => {
                        *home == Home::here() && stream.seems_quiet()
                    }
                    _ => false,
                };
                assert_eq!(is_home, was_there);
                let mut stream = parked.take_up(true).unwrap();
                stream.write_all(b"x").await.unwrap();
                // With room for more, so that the runtime knows that it has all.
                let mut bytes = [0; 8];
                assert_eq!(stream.read(&mut bytes).await.unwrap(), 1);
                assert_eq!(bytes[0], b'x');
                stream.park().unwrap()
            });
        }
        // A thread that ended takes nothing with it.
        here.end();
        parked = there.run(move || async move {
            let mut stream = Stream::from_std(parked).unwrap();
            stream.write_all(b"x").await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'x');
            stream.park().unwrap()
        });
        there.end();
        drop(parked);
        echo.join().unwrap();
    }

    #[tokio::test]
    async fn a_refused_connection_is_an_error_not_a_timeout() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        drop(listener);
        let error = endpoint
            .connect(LocalEnd::default(), Duration::from_secs(5))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
