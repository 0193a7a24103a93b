//! A client that speaks TLS, with the choices a test wants to make: protocol versions, kinds of
//! keys, names of application protocols, a certificate of its own.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion,
    RootCertStore, SignatureScheme, SupportedProtocolVersion,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use crate::client::Client;
use crate::tls::{Authority, Identity};
use crate::wait::TIMEOUT;

/// Connects again and again with the same choices. Clones of it share their sessions.
#[derive(Clone)]
pub struct TlsClient(Arc<ClientConfig>);

/// The offers of a client.
#[derive(Default)]
pub struct Offer<'a> {
    /// None: all.
    pub versions: &'a [&'static SupportedProtocolVersion],
    /// Keys that it can verify signatures of; none: all.
    pub schemes: &'a [SignatureScheme],
    /// The names of ALPN.
    pub protocols: &'a [&'a str],
    pub identity: Option<&'a Identity>,
    /// Remember which sessions may begin with a request.
    pub early_data: bool,
}

/// A connection whose handshake is over.
pub struct TlsConnection {
    pub client: Client,
    pub version: ProtocolVersion,
    /// The protocol that ALPN has chosen.
    pub protocol: Option<String>,
    pub is_resumed: bool,
    /// The server's own.
    pub certificate: CertificateDer<'static>,
}

impl TlsClient {
    /// A client that trusts `authority`.
    ///
    /// # Panics
    /// When rustls takes none of it.
    pub fn new(authority: &Authority, offer: &Offer<'_>) -> TlsClient {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der()).expect("a certificate to trust");
        let versions = match offer.versions {
            [] => rustls::ALL_VERSIONS,
            versions => versions,
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(provider(offer.schemes)))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match offer.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(vec![identity.certificate_der()], identity.key_der())
                .expect("a certificate and its key"),
        };
        config.resumption = Resumption::in_memory_sessions(16);
        config.enable_early_data = offer.early_data;
        let names = offer.protocols.iter();
        config.alpn_protocols = names.map(|name| name.as_bytes().to_vec()).collect();
        TlsClient(Arc::new(config))
    }

    /// Returns the same client without the sessions that it knows.
    pub fn forgetful(&self) -> TlsClient {
        let mut config = ClientConfig::clone(&self.0);
        config.resumption = Resumption::disabled();
        TlsClient(Arc::new(config))
    }

    /// Makes a handshake and asks for `name`.
    ///
    /// # Errors
    /// The handshake failed; see [`alert_of`].
    ///
    /// # Panics
    /// When nothing listens there, or the handshake does not end.
    pub async fn connect(&self, socket: &Path, name: &str) -> io::Result<TlsConnection> {
        let stream = UnixStream::connect(socket).await;
        self.connect_over(stream.expect("the server listens"), name)
            .await
    }

    /// Like [`TlsClient::connect`], over a stream that may have been used already.
    ///
    /// # Errors
    /// The errors of [`TlsClient::connect`].
    ///
    /// # Panics
    /// When the handshake does not end.
    pub async fn connect_over(&self, stream: UnixStream, name: &str) -> io::Result<TlsConnection> {
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let connecting = TlsConnector::from(self.0.clone()).connect(name, stream);
        let connected = tokio::time::timeout(TIMEOUT, connecting).await;
        let stream = connected.expect("the end of the handshake")?;
        let (_, session) = stream.get_ref();
        let certificates = session.peer_certificates().unwrap_or_default();
        let alpn = session.alpn_protocol();
        Ok(TlsConnection {
            version: session.protocol_version().expect("a version"),
            protocol: alpn.map(|name| String::from_utf8_lossy(name).into_owned()),
            is_resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
            certificate: certificates[0].clone().into_owned(),
            client: Client::over(stream),
        })
    }
}

/// A connection that begins with requests, and whose client ends the handshake only on demand.
pub struct EarlyConnection {
    session: ClientConnection,
    stream: UnixStream,
    received: Vec<u8>,
}

impl TlsClient {
    /// The records that a connection begins with: the first message of the handshake, and each of
    /// `pieces` ahead of its end. `None` if there is no session that allows that.
    ///
    /// # Panics
    /// When rustls takes none of it, or nothing listens there.
    pub async fn begin_early(
        &self,
        socket: &Path,
        name: &str,
        pieces: &[&[u8]],
    ) -> Option<(EarlyConnection, Vec<Vec<u8>>)> {
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let mut session = ClientConnection::new(self.0.clone(), name).expect("a session");
        let mut bytes = Vec::new();
        for piece in pieces {
            session.early_data()?.write_all(piece).expect("room");
            while session.wants_write() {
                session.write_tls(&mut bytes).expect("memory");
            }
        }
        let connection = EarlyConnection {
            session,
            stream: UnixStream::connect(socket)
                .await
                .expect("the server listens"),
            received: Vec::new(),
        };
        Some((connection, records(&bytes)))
    }
}

/// TLS records one by one (RFC 8446 §5.1).
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(length) = bytes.get(3..5) {
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (record, rest) = bytes.split_at(5 + length);
        records.push(record.to_vec());
        bytes = rest;
    }
    records
}

impl EarlyConnection {
    /// Sends bytes as they are.
    ///
    /// # Panics
    /// When the server does not take them.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("sent");
    }

    /// Ends the handshake, if that is still to be done, and sends bytes behind it.
    ///
    /// # Panics
    /// When the server does not take them.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.session.writer().write_all(bytes).expect("room");
        let mut records = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut records).expect("memory");
        }
        self.send_raw(&records).await;
    }

    /// Reads until `text` has come, and sends nothing meanwhile; returns everything up to it.
    ///
    /// # Panics
    /// When it does not come, or the server breaks the protocol.
    pub async fn receive_until(&mut self, text: &str) -> String {
        let receiving = async {
            loop {
                let said = String::from_utf8_lossy(&self.received).into_owned();
                if let Some((before, _)) = said.split_once(text) {
                    let end = before.len() + text.len();
                    self.received.drain(..end.min(self.received.len()));
                    return before.to_owned() + text;
                }
                assert!(self.fill().await, "the end came before {text:?}: {said:?}");
            }
        };
        let received = tokio::time::timeout(TIMEOUT, receiving).await;
        received.expect("the text in time")
    }

    /// Reads until the server has sent its part of the handshake, and sends nothing meanwhile.
    ///
    /// # Panics
    /// When it does not, or breaks the protocol.
    pub async fn receive_handshake(&mut self) {
        let receiving = async {
            while self.session.is_handshaking() {
                assert!(self.fill().await, "the end of the connection");
            }
        };
        let received = tokio::time::timeout(TIMEOUT, receiving).await;
        received.expect("the server's part in time");
    }

    /// Whether the server has taken the early data.
    pub fn is_accepted(&self) -> bool {
        self.session.is_early_data_accepted()
    }

    /// Reads the bytes that are there; false at the end.
    async fn fill(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let read = self.stream.read(&mut buffer).await.unwrap_or(0);
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            self.session.read_tls(&mut rest).expect("memory");
            self.session.process_new_packets().expect("TLS");
        }
        // There is more to come, which is no error here.
        let _ = self.session.reader().read_to_end(&mut self.received);
        read > 0
    }
}

/// The alert that a server ended a handshake with.
pub fn alert_of(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

/// The algorithms of rustls, with signatures by `schemes` only.
fn provider(schemes: &[SignatureScheme]) -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    if !schemes.is_empty() {
        let known = provider.signature_verification_algorithms;
        let mapping = known.mapping.iter().copied();
        let chosen: Vec<_> = mapping
            .filter(|(scheme, _)| schemes.contains(scheme))
            .collect();
        provider.signature_verification_algorithms = WebPkiSupportedAlgorithms {
            all: known.all,
            // A few bytes for each such client of a test.
            mapping: chosen.leak(),
        };
    }
    provider
}
