//! The TLS handshake of QUIC (RFC 9001). Like over TCP, certificate and rules are chosen when
//! the client has sent the name it wants (RFC 6066 §3), for which quinn's own session has no
//! place: this one waits for the whole ClientHello, asks, and then leaves everything to
//! rustls.

use std::any::Any;
use std::io::{self, Cursor};
use std::sync::Arc;

use quinn::ConnectionId;
use quinn::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{Side, TransportError, TransportErrorCode};
use rustls::quic::{Connection, KeyChange, Secrets, ServerConnection, Suite, Version};
use rustls::server::{Acceptor, ResolvesServerCertUsingSni};
use rustls::{CommonState, ServerConfig};

use crate::facts::{ClientOffer, SessionId, TlsFacts};
use crate::handshake;

/// Returns the rules for the name that a client asks for; `None` if it is not served.
pub type ConfigChooser = Arc<dyn Fn(Option<&str>) -> Option<Arc<ServerConfig>> + Send + Sync>;

/// The alerts that we send by ourselves (RFC 8446 §6.2).
const DECODE_ERROR: u8 = 50;
const INTERNAL_ERROR: u8 = 80;
const UNRECOGNIZED_NAME: u8 = 112;
/// A ClientHello is a message of type 1 with a length of three bytes (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
const MESSAGE_HEAD_BYTES: usize = 4;
/// The longest ClientHello: as much as quinn itself would buffer.
const MAX_HELLO_BYTES: usize = 16 * 1024;

/// The keys that a handshake needs before the server's name is known.
#[derive(Clone)]
pub struct InitialCrypto {
    suite: Suite,
    /// Has the keys that are public: those of Initial and Retry packets (RFC 9001 §5.2, §5.8).
    known: Arc<QuicServerConfig>,
}

impl InitialCrypto {
    /// # Errors
    /// The provider of algorithms lacks one that QUIC needs.
    pub fn new() -> io::Result<InitialCrypto> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(|suite| suite.quic_suite())
            .ok_or_else(|| io::Error::other("no cipher suite for the first packets of QUIC"))?;
        let config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        let known =
            QuicServerConfig::with_initial(Arc::new(config), suite).map_err(io::Error::other)?;
        Ok(InitialCrypto {
            suite,
            known: Arc::new(known),
        })
    }
}

/// How the handshake of one connection is made.
pub struct HandshakeConfig {
    pub initial: InitialCrypto,
    pub choose: ConfigChooser,
}

impl crypto::ServerConfig for HandshakeConfig {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        self.initial.known.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.initial.known.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        // quinn asks only for versions that `initial_keys` knows.
        let version = match version {
            0xff00_001d..=0xff00_0020 => Version::V1Draft,
            _ => Version::V1,
        };
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        Box::new(Session {
            version,
            suite: self.initial.suite,
            state: HandshakeState::Hello {
                config: self,
                parameters: encoded,
                received: Vec::new(),
            },
            next_secrets: None,
            has_reported: false,
        })
    }
}

/// The TLS of one connection.
struct Session {
    version: Version,
    suite: Suite,
    state: HandshakeState,
    next_secrets: Option<Secrets>,
    /// quinn knows that the handshake has come to something.
    has_reported: bool,
}

enum HandshakeState {
    /// The ClientHello is not whole.
    Hello {
        config: Arc<HandshakeConfig>,
        parameters: Vec<u8>,
        received: Vec<u8>,
    },
    Chosen {
        connection: Box<Connection>,
        asked: Hello,
    },
    Failed,
}

/// The parts of a ClientHello that rustls does not keep.
#[derive(Clone)]
struct Hello {
    server_name: Option<String>,
    offered: ClientOffer,
}

fn alert(code: u8, reason: impl Into<String>) -> TransportError {
    TransportError {
        code: TransportErrorCode::crypto(code),
        frame: None,
        reason: reason.into(),
    }
}

/// Reads a whole ClientHello.
fn read_hello(hello: &[u8]) -> Result<Hello, TransportError> {
    let mut acceptor = Acceptor::default();
    // TLS over TCP sends it in records, which QUIC does without.
    let length = u16::try_from(hello.len()).unwrap_or(u16::MAX).to_be_bytes();
    let record = [&[22, 3, 1, length[0], length[1]], hello].concat();
    let failed = |error: &dyn std::fmt::Display| alert(DECODE_ERROR, error.to_string());
    acceptor
        .read_tls(&mut Cursor::new(record))
        .map_err(|error| failed(&error))?;
    match acceptor.accept() {
        Ok(Some(accepted)) => {
            let hello = accepted.client_hello();
            Ok(Hello {
                server_name: hello.server_name().map(str::to_owned),
                offered: ClientOffer::of(&hello),
            })
        }
        Ok(None) => Err(alert(DECODE_ERROR, "no ClientHello")),
        Err((error, _)) => Err(failed(&error)),
    }
}

impl HandshakeState {
    /// Takes bytes of the ClientHello; once it is whole, chooses by it.
    fn choose(&mut self, bytes: &[u8], version: Version) -> Result<(), TransportError> {
        let HandshakeState::Hello {
            config,
            parameters,
            received,
        } = self
        else {
            return Ok(());
        };
        received.extend_from_slice(bytes);
        let Some(&[kind, high, middle, low]) = received.first_chunk::<MESSAGE_HEAD_BYTES>() else {
            return Ok(());
        };
        let length = u32::from_be_bytes([0, high, middle, low]) as usize + MESSAGE_HEAD_BYTES;
        if kind != CLIENT_HELLO || length > MAX_HELLO_BYTES {
            return Err(alert(DECODE_ERROR, "no ClientHello"));
        }
        let Some(hello) = received.get(..length) else {
            return Ok(());
        };
        let asked = read_hello(hello)?;
        let Some(rules) = (config.choose)(asked.server_name.as_deref()) else {
            return Err(alert(UNRECOGNIZED_NAME, "handshake rejected"));
        };
        let parameters = std::mem::take(parameters);
        let connection = ServerConnection::new(rules, version, parameters)
            .map_err(|error| alert(INTERNAL_ERROR, error.to_string()))?;
        let mut connection = Box::new(Connection::Server(connection));
        let read = connection.read_hs(received);
        read.map_err(|error| failed(&connection, &error))?;
        *self = HandshakeState::Chosen { connection, asked };
        Ok(())
    }
}

fn failed(connection: &Connection, error: &rustls::Error) -> TransportError {
    let code = connection.alert().map_or(INTERNAL_ERROR, u8::from);
    alert(code, error.to_string())
}

impl Session {
    fn connection(&self) -> Option<&Connection> {
        match &self.state {
            HandshakeState::Chosen { connection, .. } => Some(connection),
            HandshakeState::Hello { .. } | HandshakeState::Failed => None,
        }
    }
}

/// One direction's keys for packets, and for their headers.
fn keys(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        },
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        keys(self.suite.keys(dst_cid, side, self.version))
    }

    /// [`TlsFacts`]
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let HandshakeState::Chosen { connection, asked } = &self.state else {
            return None;
        };
        let state: &CommonState = connection;
        let Hello {
            server_name,
            offered,
        } = asked.clone();
        let mut facts: TlsFacts = handshake::facts(state, server_name, offered);
        let id = connection.export_keying_material(
            [0; SessionId::MAX_BYTES],
            handshake::SESSION_ID_LABEL,
            None,
        );
        // Not before the end of the handshake.
        let id = id.ok().and_then(|bytes| SessionId::new(&bytes));
        facts.session_id = id.unwrap_or_default();
        self.has_reported.then(|| Box::new(facts) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.connection().is_none_or(|it| it.is_handshaking())
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        match &mut self.state {
            HandshakeState::Hello { .. } => {
                if let Err(error) = self.state.choose(bytes, self.version) {
                    self.state = HandshakeState::Failed;
                    return Err(error);
                }
            }
            HandshakeState::Chosen { connection, .. } => {
                let read = connection.read_hs(bytes);
                read.map_err(|error| failed(connection, &error))?;
            }
            HandshakeState::Failed => return Err(alert(DECODE_ERROR, "the handshake has failed")),
        }
        if !self.has_reported && self.connection().is_some() {
            self.has_reported = true;
            return Ok(true);
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let encoded = self
            .connection()
            .and_then(|it| it.quic_transport_parameters());
        let Some(mut encoded) = encoded else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(Side::Server, &mut encoded)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let HandshakeState::Chosen { connection, .. } = &mut self.state else {
            return None;
        };
        match connection.write_hs(out)? {
            KeyChange::Handshake { keys: new } => Some(keys(new)),
            KeyChange::OneRtt { keys: new, next } => {
                self.next_secrets = Some(next);
                Some(keys(new))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    /// Only clients get Retry packets.
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let connection = self.connection().ok_or(ExportKeyingMaterialError)?;
        connection
            .export_keying_material(output, label, Some(context))
            .map(|_| ())
            .map_err(|_| ExportKeyingMaterialError)
    }
}
