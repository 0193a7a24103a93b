//! What is known of a connection, whatever is spoken on it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use rustls::{NamedGroup, ProtocolVersion, SupportedCipherSuite};
use tls_server::ClientVerdict;

/// What is known of the connection that a request came on.
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

/// What a TLS handshake came to.
#[derive(Debug)]
pub struct TlsFacts {
    pub protocol: Option<ProtocolVersion>,
    pub cipher: Option<SupportedCipherSuite>,
    /// Of the key exchange.
    pub group: Option<NamedGroup>,
    /// The name that the client asked for (RFC 6066 §3).
    pub server_name: Option<String>,
    /// The protocol that was agreed on (RFC 7301).
    pub alpn: Option<Vec<u8>>,
    pub is_resumed: bool,
    /// What the client showed, its own certificate first.
    pub client_certificates: Vec<CertificateDer<'static>>,
    /// What that is worth to the server.
    pub verdict: ClientVerdict,
}

/// The end of a connection that is ours.
#[derive(Debug, Clone)]
pub enum LocalAddress {
    /// TCP or UDP.
    Ip(SocketAddr),
    Unix(PathBuf),
}

/// What the PROXY protocol said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAddresses {
    pub client: SocketAddr,
    pub server: SocketAddr,
    /// What version 2 says beyond addresses: type, length and value, repeated.
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

    /// What stands behind a message of the error log that is about no request.
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
