//! Facts of a connection, whatever protocol it has.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use rustls::server::ClientHello;
use rustls::{NamedGroup, ProtocolVersion, SupportedCipherSuite};
use tls_server::ClientVerdict;

/// The facts of the connection that a request came on.
#[derive(Debug)]
pub struct ConnectionFacts {
    /// Serial number: `$connection`.
    pub serial: u64,
    /// `None`: a unix socket.
    pub peer: Option<SocketAddr>,
    pub local: LocalAddress,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Unix milliseconds.
    pub accepted_at: u64,
    pub proxy: Option<ProxyAddresses>,
    /// `None`: nothing is encrypted.
    pub tls: Option<Box<TlsFacts>>,
    /// The listener expects TLS, and the client speaks without it.
    pub lacks_tls: bool,
}

/// The result of a TLS handshake.
#[derive(Debug)]
pub struct TlsFacts {
    pub protocol: Option<ProtocolVersion>,
    pub cipher: Option<SupportedCipherSuite>,
    /// The group of the key exchange.
    pub group: Option<NamedGroup>,
    /// The name that the client asked for (RFC 6066 §3).
    pub server_name: Option<String>,
    pub offered: ClientOffer,
    /// The identifier of the session, see [`SessionId`].
    pub session_id: SessionId,
    /// The protocol that was agreed on (RFC 7301).
    pub alpn: Option<Vec<u8>>,
    pub is_resumed: bool,
    /// The client's certificates, its own first.
    pub client_certificates: Vec<CertificateDer<'static>>,
    /// The server's verdict on them.
    pub verdict: ClientVerdict,
}

impl TlsFacts {
    /// Creates facts with nothing but the name that is asked for.
    pub fn of_name(server_name: Option<String>) -> TlsFacts {
        TlsFacts {
            protocol: None,
            cipher: None,
            group: None,
            server_name,
            offered: ClientOffer::default(),
            session_id: SessionId::default(),
            alpn: None,
            is_resumed: false,
            client_certificates: Vec::new(),
            verdict: ClientVerdict::NoCertificate,
        }
    }
}

/// The client's offer in its handshake: numbers of IANA, in the client's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientOffer {
    pub cipher_suites: Box<[u16]>,
    /// Groups for the key exchange.
    pub groups: Box<[u16]>,
}

impl ClientOffer {
    pub fn of(hello: &ClientHello<'_>) -> ClientOffer {
        let suites = hello.cipher_suites().iter();
        let groups = hello.named_groups().unwrap_or_default().iter();
        ClientOffer {
            cipher_suites: suites.map(|suite| u16::from(*suite)).collect(),
            groups: groups.map(|group| u16::from(*group)).collect(),
        }
    }
}

/// The identifier of a session: in TLS 1.2 the one that the server names (RFC 5246 §7.4.1.3), which
/// stays the same when the session is resumed, and is empty if the client keeps the session in
/// a ticket. TLS 1.3 has none: there it is a value that only the two ends can know, and that no
/// other connection has (RFC 8446 §7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionId {
    bytes: [u8; SessionId::MAX_BYTES],
    length: u8,
}

impl SessionId {
    pub const MAX_BYTES: usize = 32;

    /// `None` if there are more bytes than an identifier has.
    pub fn new(id: &[u8]) -> Option<SessionId> {
        let mut bytes = [0; SessionId::MAX_BYTES];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        let length = u8::try_from(id.len()).ok()?;
        Some(SessionId { bytes, length })
    }

    pub fn as_bytes(&self) -> &[u8] {
        let length = usize::from(self.length);
        self.bytes.get(..length).unwrap_or_default()
    }
}

/// The end of a connection that is ours.
#[derive(Debug, Clone)]
pub enum LocalAddress {
    /// TCP or UDP.
    Ip(SocketAddr),
    Unix(PathBuf),
}

/// The addresses and extras of a PROXY protocol header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAddresses {
    pub client: SocketAddr,
    pub server: SocketAddr,
    /// Extras of version 2 beyond addresses: type, length and value, repeated.
    pub extras: Bytes,
}

impl ConnectionFacts {
    /// A connection that was accepted at this time, in Unix milliseconds; nothing is encrypted.
    pub fn new(peer: Option<SocketAddr>, local: LocalAddress, accepted_at: u64) -> ConnectionFacts {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        ConnectionFacts {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed) + 1,
            peer,
            local,
            scheme: "http",
            accepted_at,
            proxy: None,
            tls: None,
            lacks_tls: false,
        }
    }

    /// Returns the end of an error log line that is not about a request.
    pub fn log_context(&self) -> String {
        let client = match self.peer {
            Some(peer) => peer.ip().to_canonical().to_string(),
            None => "unix:".to_owned(),
        };
        format!(", client: {client}, server: {}", self.local)
    }

    /// The port that URLs of this scheme need not name.
    pub fn usual_port(&self) -> u16 {
        match self.scheme {
            "https" => 443,
            _ => 80,
        }
    }
}

impl std::fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LocalAddress::Ip(address) => address.fmt(f),
            LocalAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl LocalAddress {
    /// `None`: a unix socket has none.
    pub fn port(&self) -> Option<u16> {
        match self {
            LocalAddress::Ip(address) => Some(address.port()),
            LocalAddress::Unix(_) => None,
        }
    }
}
