//! A client that speaks TLS, with the choices a test wants to make: protocol versions, kinds of
//! keys, names of application protocols, a certificate of its own.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    AlertDescription, ClientConfig, HandshakeKind, ProtocolVersion, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use crate::client::Client;
use crate::tls::{Authority, Identity};
use crate::wait::TIMEOUT;

/// Connects again and again with the same choices. Clones of it share their sessions.
#[derive(Clone)]
pub struct TlsClient(Arc<ClientConfig>);

/// What a client offers.
#[derive(Default)]
pub struct Offer<'a> {
    /// None: all.
    pub versions: &'a [&'static SupportedProtocolVersion],
    /// Keys that it can verify signatures of; none: all.
    pub schemes: &'a [SignatureScheme],
    /// The names of ALPN.
    pub protocols: &'a [&'a str],
    pub identity: Option<&'a Identity>,
}

/// A connection whose handshake is over.
pub struct TlsConnection {
    pub client: Client,
    pub version: ProtocolVersion,
    /// What ALPN came to.
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
        let names = offer.protocols.iter();
        config.alpn_protocols = names.map(|name| name.as_bytes().to_vec()).collect();
        TlsClient(Arc::new(config))
    }

    /// The same client without the sessions that it knows.
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

    /// The same over a stream on which something may have been said already.
    ///
    /// # Errors
    /// As for [`TlsClient::connect`].
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
