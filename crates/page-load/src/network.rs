//! Connections as a browser makes them, and one exchange over them.
//!
//! Each exchange is a task that reports its progress by events; `load.rs` decides which requests
//! are sent. Certificates are not verified, as in all of `mayfly bench`.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tls_client::Connector;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use url::Url;

/// Chromium's window, so that a connection's window never limits the measurement.
const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;
/// Bytes of the fields of an answer over HTTP/2, as in Chromium.
const MAX_FIELDS_BYTES: u32 = 256 << 10;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
}

impl Origin {
    pub fn of(url: &Url) -> Origin {
        Origin {
            is_tls: url.scheme() == "https",
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default().unwrap_or(0),
        }
    }
}

/// The sender of requests over a connection.
pub enum Sender {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

/// A connection, or one of the requests at once of a connection of HTTP/2.
pub struct Connection {
    pub sender: Sender,
    /// In the order of being made.
    pub number: usize,
    pub address: IpAddr,
}

impl Connection {
    /// Another use of a connection of HTTP/2.
    pub fn shared(&self) -> Option<Connection> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Connection {
                sender: Sender::Http2(sender.clone()),
                number: self.number,
                address: self.address,
            }),
        }
    }

    pub fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }
}

/// When the steps of a new connection ended.
#[derive(Clone, Copy, Debug)]
pub struct ConnectTimes {
    pub begun: Instant,
    pub resolved: Instant,
    pub connected: Instant,
    /// With TLS, its handshake.
    pub encrypted: Option<Instant>,
}

/// Bytes over all connections of a load, with those of TLS.
#[derive(Debug, Default)]
pub struct Traffic {
    pub received: AtomicU64,
    pub sent: AtomicU64,
}

/// An event of one exchange.
pub enum Event {
    /// A new connection stands; its other uses.
    Connected(ConnectTimes, Option<Connection>),
    /// The request begins to be sent.
    Sending(Instant, (usize, IpAddr)),
    Head(Instant, Box<http::response::Parts>),
    Data(Bytes),
    /// The end, with the connection if it can be used again.
    End(Instant, Option<Connection>),
    Failed(String),
}

/// The channel by which a task sends its events.
pub struct Teller {
    pub id: usize,
    pub events: mpsc::Sender<(usize, Event)>,
}

impl Teller {
    /// Fails only when the load has ended; then this task is aborted as well.
    pub async fn tell(&self, event: Event) {
        let _ = self.events.send((self.id, event)).await;
    }
}

/// A connection to be made.
pub struct Connecting {
    pub origin: Origin,
    pub number: usize,
    pub tls: Connector,
    pub traffic: Arc<Traffic>,
    /// Addresses of this machine and of private networks are refused.
    pub is_public_only: bool,
}

impl Connecting {
    async fn connect(self, teller: &Teller) -> Result<Connection, String> {
        let begun = Instant::now();
        let name = self.origin.host.trim_matches(['[', ']']);
        let addresses = tokio::net::lookup_host((name, self.origin.port)).await;
        let addresses = addresses.map_err(|error| format!("the name is not found: {error}"))?;
        let resolved = Instant::now();
        let mut last = "the name has no address".to_owned();
        let mut stream = None;
        for address in addresses {
            if self.is_public_only && is_private(address.ip()) {
                last = format!("{} is private, and the page's address is not", address.ip());
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(made) => {
                    stream = Some((made, address.ip()));
                    break;
                }
                Err(error) => last = format!("no connection to {address}: {error}"),
            }
        }
        let (stream, address) = stream.ok_or(last)?;
        let connected = Instant::now();
        let _ = stream.set_nodelay(true);
        let counted = CountedStream {
            stream,
            traffic: self.traffic,
        };
        let mut times = ConnectTimes {
            begun,
            resolved,
            connected,
            encrypted: None,
        };
        let sender = if self.origin.is_tls {
            let stream = self.tls.connect(counted, &self.origin.host).await;
            let stream = stream.map_err(|error| format!("TLS: {error}"))?;
            times.encrypted = Some(Instant::now());
            let is_http2 = stream.alpn() == Some(b"h2");
            handshake(stream, is_http2).await?
        } else {
            handshake(counted, false).await?
        };
        let connection = Connection {
            sender,
            number: self.number,
            address,
        };
        let shared = connection.shared();
        teller.tell(Event::Connected(times, shared)).await;
        Ok(connection)
    }
}

async fn handshake<S>(stream: S, is_http2: bool) -> Result<Sender, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(stream);
    if is_http2 {
        let made = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(MAX_FIELDS_BYTES)
            .handshake(stream)
            .await;
        let (sender, connection) = made.map_err(|error| reason(&error))?;
        tokio::spawn(connection);
        return Ok(Sender::Http2(sender));
    }
    let made = http1::Builder::new().handshake(stream).await;
    let (sender, connection) = made.map_err(|error| reason(&error))?;
    tokio::spawn(connection);
    Ok(Sender::Http1(sender))
}

/// The connection for the request of an exchange.
pub enum Way {
    Kept(Connection),
    New(Connecting),
}

/// Sends a request, and reports the answer by events.
pub async fn exchange(
    way: Way,
    request: http::Request<Empty<Bytes>>,
    time: Duration,
    teller: Teller,
) {
    let attempted = tokio::time::timeout(time, attempt(way, request, &teller)).await;
    match attempted {
        Ok(Ok(connection)) => teller.tell(Event::End(Instant::now(), connection)).await,
        Ok(Err(reason)) => teller.tell(Event::Failed(reason)).await,
        Err(_) => {
            let reason = format!("not there after {} s", time.as_secs_f64());
            teller.tell(Event::Failed(reason)).await;
        }
    }
}

async fn attempt(
    way: Way,
    mut request: http::Request<Empty<Bytes>>,
    teller: &Teller,
) -> Result<Option<Connection>, String> {
    let mut connection = match way {
        Way::Kept(connection) => connection,
        Way::New(connecting) => connecting.connect(teller).await?,
    };
    let sending = Event::Sending(Instant::now(), (connection.number, connection.address));
    teller.tell(sending).await;
    let answer = match &mut connection.sender {
        Sender::Http1(sender) => {
            // The request line has the path alone (RFC 9112 §3.2.1); `Host` is among the fields.
            let path = request.uri().path_and_query().cloned();
            *request.uri_mut() = path.map(http::Uri::from).unwrap_or_default();
            sender.send_request(request).await
        }
        Sender::Http2(sender) => {
            request.headers_mut().remove(http::header::HOST);
            *request.version_mut() = http::Version::HTTP_2;
            let ready = sender.ready().await;
            ready.map_err(|error| reason(&error))?;
            sender.send_request(request).await
        }
    };
    let answer = answer.map_err(|error| reason(&error))?;
    let at = Instant::now();
    let (parts, body) = answer.into_parts();
    teller.tell(Event::Head(at, Box::new(parts))).await;
    read(body, teller).await?;
    let is_usable = match &mut connection.sender {
        Sender::Http1(sender) => sender.ready().await.is_ok(),
        // The load has another use of it.
        Sender::Http2(_) => false,
    };
    Ok(is_usable.then_some(connection))
}

async fn read(mut body: Incoming, teller: &Teller) -> Result<(), String> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| reason(&error))?;
        if let Ok(data) = frame.into_data() {
            teller.tell(Event::Data(data)).await;
        }
    }
    Ok(())
}

/// Returns the innermost reason, which names the failure.
fn reason(error: &hyper::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    match error.is_incomplete_message() {
        true => "the connection ended before the answer did".to_owned(),
        false => inner.to_string(),
    }
}

/// Addresses that only this machine, or its network, has.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            let shared = it.octets()[0] == 100 && it.octets()[1] & 0xc0 == 64;
            it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || it.is_unspecified()
                || shared
        }
        IpAddr::V6(it) => {
            it.is_loopback()
                || it.is_unspecified()
                || it.is_unique_local()
                || it.is_unicast_link_local()
        }
    }
}

/// A stream whose bytes are counted.
struct CountedStream {
    stream: TcpStream,
    traffic: Arc<Traffic>,
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let bytes = buffer.filled().len() - before;
        self.traffic
            .received
            .fetch_add(bytes as u64, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.traffic
                .sent
                .fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_a_public_page_must_not_reach_are_known() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("192.168.1.1", true),
            ("169.254.169.254", true),
            ("100.64.0.1", true),
            ("0.0.0.0", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("100.128.0.1", false),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            let parsed = address.parse().expect("an address");
            assert_eq!(is_private(parsed), expected, "{address}");
        }
    }
}
