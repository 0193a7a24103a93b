//! Clients of HTTP/3: requests by the crates `quinn` and `h3`, which know nothing of the server's
//! own codec; and requests of any bytes whatever.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3_quinn::{BidiStream, OpenStreams};
use http::{HeaderMap, Request};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, VarInt};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::client::Reply;
use crate::tls::{Authority, Identity};
use crate::wait::TIMEOUT;

/// Connects again and again with the same choices.
pub struct QuicClient {
    endpoint: Endpoint,
    config: ClientConfig,
}

/// A connection of HTTP/3.
pub struct Http3Client {
    pub connection: Connection,
    sender: SendRequest<OpenStreams, Bytes>,
    driver: JoinHandle<h3::error::ConnectionError>,
    name: String,
}

impl Drop for Http3Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A request that was begun, and its response.
pub struct Exchange(RequestStream<BidiStream<Bytes>, Bytes>);

/// A response whose body has ended, and the data behind it.
pub struct WholeReply {
    pub reply: Reply,
    pub trailers: Vec<(String, String)>,
}

impl QuicClient {
    /// One that trusts `authority` and offers these names of ALPN.
    ///
    /// # Panics
    /// When rustls takes none of it.
    pub fn new(authority: &Authority, protocols: &[&str], identity: Option<&Identity>) -> Self {
        QuicClient::with_provider(
            aws_lc_rs::default_provider(),
            authority,
            protocols,
            identity,
        )
    }

    fn with_provider(
        provider: CryptoProvider,
        authority: &Authority,
        protocols: &[&str],
        identity: Option<&Identity>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der()).expect("a certificate to trust");
        let builder = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(vec![identity.certificate_der()], identity.key_der())
                .expect("a certificate and its key"),
        };
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        config.enable_early_data = true;
        let crypto = QuicClientConfig::try_from(config).expect("TLS 1.3");
        let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address"));
        QuicClient {
            endpoint: endpoint.expect("a socket"),
            config: ClientConfig::new(Arc::new(crypto)),
        }
    }

    /// Lets the server send no more than `bytes` of each response before they are read.
    pub fn set_stream_window(&mut self, bytes: u32) {
        let mut transport = quinn::TransportConfig::default();
        transport.stream_receive_window(bytes.into());
        self.config.transport_config(Arc::new(transport));
    }

    /// The first packets of `count` connections whose handshakes are abandoned: each a whole
    /// ClientHello that asks for `name`.
    ///
    /// # Panics
    /// When they cannot be made.
    pub async fn first_packets(authority: &Authority, name: &str, count: usize) -> Vec<Vec<u8>> {
        let mut provider = aws_lc_rs::default_provider();
        // Keys that leave room for the rest in one packet.
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
        let quic = QuicClient::with_provider(provider, authority, &["h3"], None);
        let sink = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let at = sink.local_addr().expect("an address");
        let (mut connecting, mut seen) = (Vec::new(), HashSet::new());
        let (mut packets, mut packet) = (Vec::new(), [0; 2048]);
        while packets.len() < count {
            let begun = quic.endpoint.connect_with(quic.config.clone(), at, name);
            connecting.push(begun.expect("a name and an address"));
            loop {
                let length = sink.recv(&mut packet).await.expect("a packet");
                // Others are sent again by and by.
                if seen.insert(destination(&packet[..length])) {
                    packets.push(packet[..length].to_vec());
                    break;
                }
            }
        }
        packets
    }

    /// Goes on from another port, as a client does whose address has changed.
    ///
    /// # Panics
    /// When the system gives no other port.
    pub fn move_away(&self) {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        self.endpoint.rebind(socket).expect("another socket");
    }

    /// Makes a handshake.
    ///
    /// # Errors
    /// It failed.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn connect(&self, at: SocketAddr, name: &str) -> Result<Connection, ConnectionError> {
        let connecting = self.endpoint.connect_with(self.config.clone(), at, name);
        let connecting = connecting.expect("a name and an address");
        let connected = tokio::time::timeout(TIMEOUT, connecting).await;
        connected.expect("the end of the handshake")
    }

    /// Makes a handshake and begins to speak HTTP/3.
    ///
    /// # Panics
    /// When the server does not.
    pub async fn http3(&self, at: SocketAddr, name: &str) -> Http3Client {
        let connection = self.connect(at, name).await.expect("a handshake");
        let begun = h3::client::new(h3_quinn::Connection::new(connection.clone()));
        let (mut driver, sender) = begun.await.expect("HTTP/3");
        let driver =
            tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
        Http3Client {
            connection,
            sender,
            driver,
            name: name.to_owned(),
        }
    }
}

/// The connection id that a packet with a long header is for (RFC 9000 §17.2).
///
/// # Panics
/// When the packet is cut short.
pub fn destination(packet: &[u8]) -> Vec<u8> {
    let length = usize::from(packet[5]);
    packet[6..6 + length].to_vec()
}

/// The server's own certificate.
///
/// # Panics
/// When the server has shown no certificate.
pub fn certificate_of(connection: &Connection) -> CertificateDer<'static> {
    let identity = connection.peer_identity().expect("an identity");
    let chain = identity.downcast::<Vec<CertificateDer<'static>>>();
    chain.expect("certificates")[0].clone()
}

impl Http3Client {
    /// Begins a request.
    ///
    /// # Errors
    /// The connection takes none.
    ///
    /// # Panics
    /// When it is no request.
    pub async fn begin(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Exchange, h3::error::StreamError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.name));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        let mut sender = self.sender.clone();
        Ok(Exchange(sender.send_request(request).await?))
    }

    /// A whole request and its whole response.
    ///
    /// # Errors
    /// There is no response.
    pub async fn try_ask(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<WholeReply, h3::error::StreamError> {
        let mut exchange = self.begin(method, path, fields).await?;
        if let Some(body) = body {
            // The response may come before all of it was taken.
            let _ = exchange.send(Bytes::copy_from_slice(body)).await;
        }
        exchange.finish().await;
        exchange.reply().await
    }

    /// Like [`Self::try_ask`], for a request that must get a response.
    ///
    /// # Panics
    /// When there is no response.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Reply {
        let asked = self.try_ask(method, path, fields, body).await;
        asked.expect("a response").reply
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], None).await
    }

    /// Waits until the connection has ended; how the server closed it.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn ended(self) -> ConnectionError {
        let ended = tokio::time::timeout(TIMEOUT, self.connection.closed()).await;
        ended.expect("an end in time")
    }
}

impl Exchange {
    /// Sends bytes of the body.
    ///
    /// # Errors
    /// The server wants no more of it.
    pub async fn send(&mut self, bytes: Bytes) -> Result<(), h3::error::StreamError> {
        self.0.send_data(bytes).await
    }

    /// Sends trailers.
    ///
    /// # Panics
    /// When they cannot be sent.
    pub async fn send_trailers(&mut self, name: &'static str, value: &'static str) {
        let mut trailers = HeaderMap::new();
        trailers.insert(name, value.parse().expect("a value"));
        self.0.send_trailers(trailers).await.expect("trailers");
    }

    /// The request is whole.
    pub async fn finish(&mut self) {
        let _ = self.0.finish().await;
    }

    /// The client wants nothing more of it.
    pub fn cancel(&mut self) {
        self.0.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
        self.0.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED);
    }

    /// The head of the next response, an informational one or the last.
    ///
    /// # Errors
    /// The stream or the connection ended before the head.
    ///
    /// # Panics
    /// When it does not come.
    pub async fn head(&mut self) -> Result<Reply, h3::error::StreamError> {
        let response = tokio::time::timeout(TIMEOUT, self.0.recv_response()).await;
        let response = response.expect("a response in time")?;
        Ok(Reply {
            status: response.status().as_u16(),
            fields: texts(response.headers()),
            body: Vec::new(),
            is_complete: false,
        })
    }

    /// Some of the body; `None` at its end.
    ///
    /// # Errors
    /// It is cut off.
    ///
    /// # Panics
    /// When it does not come.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, h3::error::StreamError> {
        let piece = tokio::time::timeout(TIMEOUT, self.0.recv_data()).await;
        let piece = piece.expect("a piece in time")?;
        Ok(piece.map(|mut piece| piece.copy_to_bytes(piece.remaining())))
    }

    /// The whole response.
    ///
    /// # Errors
    /// The stream or the connection ended before the end of the response.
    pub async fn reply(&mut self) -> Result<WholeReply, h3::error::StreamError> {
        let mut reply = self.head().await?;
        while (100..200).contains(&reply.status) {
            reply = self.head().await?;
        }
        while let Some(piece) = self.piece().await? {
            reply.body.extend_from_slice(&piece);
        }
        reply.is_complete = true;
        let trailers = self.0.recv_trailers().await?;
        Ok(WholeReply {
            reply,
            trailers: trailers.as_ref().map(texts).unwrap_or_default(),
        })
    }
}

fn texts(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    fields
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}

/// A frame of HTTP/3, of any type and with any payload of less than 16 KB.
pub fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap_or(0x3fff) | 0x4000;
    [&[kind], &length.to_be_bytes()[..], payload].concat()
}

/// A HEADERS frame with these very fields: literals, which are not checked.
pub fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0, 0];
    for (name, value) in fields {
        put_text(&mut block, 0x20, 3, name.as_bytes());
        put_text(&mut block, 0, 7, value.as_bytes());
    }
    frame(1, &block)
}

/// RFC 9204 §4.1.1 and §4.1.2, without Huffman codes.
fn put_text(out: &mut Vec<u8>, pattern: u8, prefix_bits: u32, text: &[u8]) {
    let most = (1 << prefix_bits) - 1;
    match text.len() {
        length if length < most => out.push(pattern | length as u8),
        length => {
            out.push(pattern | most as u8);
            let mut left = length - most;
            while left >= 0x80 {
                out.push(left as u8 | 0x80);
                left >>= 7;
            }
            out.push(left as u8);
        }
    }
    out.extend_from_slice(text);
}

/// The result of a stream of any bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response with this status.
    Status(u16),
    /// The stream was reset with this code.
    Reset(u64),
    /// The connection was closed with this code.
    Closed(u64),
}

/// Opens a stream, sends these bytes and its end, and reads the result.
///
/// # Panics
/// When nothing does.
pub async fn ask_raw(connection: &Connection, bytes: &[u8]) -> Outcome {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    // The server may have had enough already.
    let _ = send.write_all(bytes).await;
    let _ = send.finish();
    let read = tokio::time::timeout(TIMEOUT, receive.read_to_end(1 << 20)).await;
    let error = match read.expect("an answer in time") {
        Ok(response) => return Outcome::Status(status_of(&response)),
        Err(quinn::ReadToEndError::Read(error)) => error,
        Err(quinn::ReadToEndError::TooLong) => panic!("too long a response"),
    };
    match error {
        quinn::ReadError::Reset(code) => Outcome::Reset(VarInt::into_inner(code)),
        quinn::ReadError::ConnectionLost(ConnectionError::ApplicationClosed(close)) => {
            Outcome::Closed(VarInt::into_inner(close.error_code))
        }
        error => panic!("{error}"),
    }
}

/// The status at the front of a response, which the server encodes in one of two ways: a field
/// of the static table, or a literal.
fn status_of(response: &[u8]) -> u16 {
    let (first, second) = (response.first(), response.get(1));
    assert_eq!(first, Some(&1), "a HEADERS frame");
    let length_bytes = if second.is_some_and(|byte| byte & 0xc0 == 0x40) {
        2
    } else {
        1
    };
    let block = &response[1 + length_bytes + 2..];
    match block[0] {
        0xd9 => 200,
        0xda => 304,
        0xdb => 404,
        0xff => match block[1] + 63 {
            64 => 204,
            65 => 206,
            66 => 302,
            67 => 400,
            68 => 403,
            69 => 421,
            70 => 425,
            _ => 500,
        },
        _ => {
            // Literal with the name's index; digits are no shorter in Huffman codes.
            let digits = &block[block.len().min(2)..];
            let text = digits.get(1..4).unwrap_or_default();
            String::from_utf8_lossy(text).parse().unwrap_or(0)
        }
    }
}
