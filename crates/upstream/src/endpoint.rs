//! Where an upstream server listens, and the byte stream to it.
//!
//! Threads have a runtime each, and a tokio stream belongs to the runtime that
//! made it. So a connection between requests is a [`StdStream`], which belongs
//! to nobody; [`Stream::into_std`] and [`Stream::from_std`] convert.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// The address of an upstream server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A unix socket's path.
    Unix(PathBuf),
    /// An address and port.
    Tcp(SocketAddr),
}

impl Endpoint {
    /// Connects within `timeout` (`fastcgi_connect_timeout`).
    ///
    /// `TimedOut` when it took longer. A unix socket whose backlog is full
    /// fails at once with `WouldBlock`, as with nginx.
    pub async fn connect(&self, timeout: Duration) -> io::Result<Stream> {
        let connecting = async {
            match self {
                Self::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
                Self::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    Ok(Stream::Tcp(stream))
                }
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

/// As nginx shows `$upstream_addr`: `127.0.0.1:9000`, `[::1]:9000`, `unix:/path`.
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
}

impl Stream {
    /// Takes the stream out of this thread's runtime.
    pub fn into_std(self) -> io::Result<StdStream> {
        match self {
            Self::Unix(stream) => stream.into_std().map(StdStream::Unix),
            Self::Tcp(stream) => stream.into_std().map(StdStream::Tcp),
        }
    }

    /// Brings a stream into the runtime of the calling thread.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as everything in `tokio::net` does.
    pub fn from_std(stream: StdStream) -> io::Result<Self> {
        match stream {
            StdStream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream).map(Self::Unix)
            }
            StdStream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream).map(Self::Tcp)
            }
        }
    }
}

/// Runs `$body` with `$stream` bound to the pinned inner stream.
macro_rules! delegate {
    ($self:ident, $stream:ident => $body:expr) => {
        match $self.get_mut() {
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
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(context))
    }
}

/// A connection that belongs to no runtime.
#[derive(Debug)]
pub enum StdStream {
    /// Over a unix socket.
    Unix(std::os::unix::net::UnixStream),
    /// Over TCP.
    Tcp(std::net::TcpStream),
}

impl StdStream {
    /// Is the connection open with nothing to read?
    ///
    /// An idle upstream has nothing to say: its close, an error, or any byte
    /// (the tail of an earlier answer) makes the connection useless. Never blocks.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(
            rustix::net::recv(self, &mut byte, flags),
            Err(rustix::io::Errno::AGAIN)
        )
    }
}

impl AsFd for StdStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
        let stream = endpoint.connect(Duration::from_secs(5)).await.unwrap();
        assert!(stream.is_write_vectored());
        let Stream::Tcp(stream) = stream else {
            panic!("a TCP endpoint gives a TCP stream");
        };
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn a_refused_connection_is_an_error_not_a_timeout() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        drop(listener);
        let error = endpoint.connect(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
