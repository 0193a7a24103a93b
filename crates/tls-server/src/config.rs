//! Compiles the settings into rustls's configuration, in three forms: with HTTP/2, without, and for
//! HTTP/3.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::digest;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustls::compress::{CertCompressor, CompressionFailed, CompressionLevel};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{NoClientAuth, NoServerSessionStorage, StoresServerSessions};
use rustls::{CertificateCompressionAlgorithm, NamedGroup, ServerConfig, version};

use crate::certificates::Certificates;
use crate::clients::{ClientChainVerifier, ClientVerdict, PossessionVerifier, Refusal};
use crate::error::SettingsError;
use crate::sessions::{SessionCache, Sessions};
use crate::settings::{Clients, Identity, Settings};
use crate::tickets::{NoTickets, TicketKeys, Ticketer};

/// The names in ALPN, as nginx has them.
const HTTP3_PROTOCOL: &[u8] = b"h3";
const HTTP2_PROTOCOL: &[u8] = b"h2";
const HTTP1_PROTOCOLS: [&[u8]; 3] = [b"http/1.1", b"http/1.0", b"http/0.9"];
/// The bytes of a record beside its plaintext that rustls counts.
const RECORD_HEAD_BYTES: usize = 5;
/// A record's plaintext at most (RFC 8446 §5.1), and at least in rustls.
const MAX_RECORD_BYTES: usize = 16 << 10;
const MIN_RECORD_BYTES: usize = 32;
/// The size of one record: a request without a body fits.
const MAX_EARLY_DATA_BYTES: u32 = 16 << 10;
/// The sessions kept with `ssl_early_data on` and no `ssl_session_cache`.
const SESSIONS_FOR_EARLY_DATA: u64 = 20 * 1024;

/// A digest that makes a session of one server worthless to another: of its certificates and of its
/// demands on clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context(pub(crate) [u8; 32]);

/// How sessions are resumed. Its content outlives a configuration.
#[derive(Clone, Debug, Default)]
pub struct Resumption {
    /// `ssl_session_tickets on`
    pub tickets: Option<Arc<TicketKeys>>,
    /// `ssl_session_cache`
    pub cache: Option<Arc<SessionCache>>,
}

/// The TLS of a server, ready for handshakes.
#[derive(Debug)]
pub struct TlsServer {
    with_http2: Arc<ServerConfig>,
    without_http2: Arc<ServerConfig>,
    for_http3: Arc<ServerConfig>,
    client_chains: Option<ClientChainVerifier>,
    certificates: Arc<Certificates>,
}

impl TlsServer {
    /// Reads the certificates and puts everything together.
    ///
    /// # Errors
    ///
    /// [`SettingsError`]: the settings that the operator should correct.
    pub fn new(settings: &Settings, resumption: Resumption) -> Result<TlsServer, SettingsError> {
        let provider = Arc::new(provider_of(settings));
        let certificates = Arc::new(Certificates::new(settings, provider.clone())?);
        let context = context_of(&certificates, settings);
        let mut versions = Vec::new();
        if settings.tls13 {
            versions.push(&version::TLS13);
        }
        if settings.tls12 {
            versions.push(&version::TLS12);
        }
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|error| SettingsError::NothingLeft(error.to_string()))?;
        let builder = match &settings.clients {
            Some(clients) => builder
                .with_client_cert_verifier(Arc::new(PossessionVerifier::new(clients, provider)?)),
            None => builder.with_client_cert_verifier(Arc::new(NoClientAuth)),
        };
        let mut config = builder.with_cert_resolver(certificates.clone());
        config.ignore_client_order = settings.prefers_own_order;
        if settings.compresses_certificates {
            config.cert_compressors = vec![&Zlib as &dyn CertCompressor];
        }
        if settings.record_bytes < MAX_RECORD_BYTES {
            let bytes = settings.record_bytes.max(MIN_RECORD_BYTES);
            config.max_fragment_size = Some(bytes + RECORD_HEAD_BYTES);
        }
        resume(&mut config, settings, resumption, context);
        let client_chains = settings.clients.as_ref().map(ClientChainVerifier::new);
        let mut with_http2 = config.clone();
        let mut for_http3 = config.clone();
        for_http3.alpn_protocols = vec![HTTP3_PROTOCOL.to_vec()];
        // Early data is refused in HTTP/3, since it can be replayed (RFC 9001 §9.2).
        for_http3.max_early_data_size = 0;
        for_http3.send_half_rtt_data = false;
        config.alpn_protocols = HTTP1_PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        with_http2.alpn_protocols = [HTTP2_PROTOCOL]
            .iter()
            .chain(&HTTP1_PROTOCOLS)
            .map(|name| name.to_vec())
            .collect();
        Ok(TlsServer {
            with_http2: Arc::new(with_http2),
            without_http2: Arc::new(config),
            for_http3: Arc::new(for_http3),
            client_chains: client_chains.transpose()?,
            certificates,
        })
    }

    /// Are there certificates that any client may get?
    pub fn has_unnamed_certificates(&self) -> bool {
        self.certificates.has_unnamed()
    }

    /// With [`Settings::named_identities`]: are the certificates for this name to be read, because
    /// they are not there, or were read a minute ago?
    pub fn lacks(&self, name: &str, now: Instant) -> bool {
        self.certificates.lacks(name, now)
    }

    /// Clients that ask for `name` get these certificates from now on. Others of the same name are
    /// replaced; beyond a thousand names, the ones that were read longest ago make room.
    ///
    /// # Errors
    ///
    /// [`SettingsError`]: the settings that the operator should correct. Former ones are kept.
    pub fn put(
        &self,
        name: &str,
        identities: &[Identity],
        now: Instant,
    ) -> Result<(), SettingsError> {
        self.certificates.put(name, identities, now)
    }

    /// There are no certificates for this name any more.
    pub fn forget(&self, name: &str) {
        self.certificates.forget(name);
    }

    /// Returns the configuration for a handshake in which a client may choose HTTP/2, or may not.
    pub fn config(&self, with_http2: bool) -> &Arc<ServerConfig> {
        match with_http2 {
            true => &self.with_http2,
            false => &self.without_http2,
        }
    }

    /// Returns the configuration for a handshake of QUIC. Without TLS 1.3 among the settings it
    /// cannot be made.
    pub fn http3_config(&self) -> &Arc<ServerConfig> {
        &self.for_http3
    }

    /// Are clients asked for a certificate?
    pub fn asks_clients(&self) -> bool {
        self.client_chains.is_some()
    }

    /// Returns the verdict on the certificate that a client has shown. To be asked once for each
    /// connection, after the handshake.
    pub fn verdict(&self, chain: Option<&[CertificateDer<'_>]>, now: UnixTime) -> ClientVerdict {
        match &self.client_chains {
            Some(verifier) => verifier.verdict(chain, now),
            None => ClientVerdict::NoCertificate,
        }
    }

    /// Returns why all requests are refused, if they are.
    pub fn refusal(&self, verdict: &ClientVerdict) -> Option<Refusal> {
        self.client_chains.as_ref()?.refusal(verdict)
    }
}

/// `ssl_certificate_compression on` (RFC 8879). rustls keeps the compressed certificate.
#[derive(Debug)]
struct Zlib;

impl CertCompressor for Zlib {
    fn compress(
        &self,
        input: Vec<u8>,
        _level: CompressionLevel,
    ) -> Result<Vec<u8>, CompressionFailed> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        let written = encoder.write_all(&input).and_then(|()| encoder.finish());
        written.map_err(|_| CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zlib
    }
}

/// rustls's algorithms, as far as the settings have them and in their order.
fn provider_of(settings: &Settings) -> CryptoProvider {
    let mut provider = provider::default_provider();
    let suites = provider::ALL_CIPHER_SUITES;
    let named = settings.cipher_suites.iter().filter_map(|number| {
        let mut suites = suites.iter();
        suites.find(|suite| u16::from(suite.suite()) == *number)
    });
    provider.cipher_suites = named.copied().collect();
    let groups = provider::ALL_KX_GROUPS;
    let named = settings.key_exchange_groups.iter().filter_map(|number| {
        let mut groups = groups.iter();
        groups.find(|group| group.name() == NamedGroup::from(*number))
    });
    provider.kx_groups = named.copied().collect();
    provider
}

fn resume(
    config: &mut ServerConfig,
    settings: &Settings,
    resumption: Resumption,
    context: Context,
) {
    let lifetime = settings.session_timeout;
    let mut cache = resumption.cache;
    config.ticketer = match resumption.tickets {
        // A ticket could be used twice, and early data with it (RFC 8446 §8.1).
        Some(keys) if !settings.early_data => Arc::new(Ticketer {
            keys,
            context,
            lifetime,
        }),
        _ => Arc::new(NoTickets),
    };
    if settings.early_data {
        config.max_early_data_size = MAX_EARLY_DATA_BYTES;
        // Early data is answered early.
        config.send_half_rtt_data = true;
        let new = || Arc::new(SessionCache::of_sessions(SESSIONS_FOR_EARLY_DATA));
        cache = Some(cache.unwrap_or_else(new));
    }
    let storage: Arc<dyn StoresServerSessions> = match cache {
        Some(cache) => Arc::new(Sessions {
            cache,
            context,
            lifetime,
        }),
        None => Arc::new(NoServerSessionStorage {}),
    };
    config.session_storage = storage;
}

fn context_of(certificates: &Certificates, settings: &Settings) -> Context {
    let mut digest = digest::Context::new(&digest::SHA256);
    let mut add = |bytes: &[u8]| {
        digest.update(&(bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    for leaf in certificates.leaves() {
        add(leaf);
    }
    if let Some(named) = &settings.named_identities {
        add(named.as_bytes());
    }
    if let Some(clients) = &settings.clients {
        let Clients {
            mode,
            named_authorities,
            other_authorities,
            depth,
            crl,
        } = clients;
        add(&[*mode as u8 + 1]);
        add(&(*depth as u64).to_be_bytes());
        for file in [named_authorities, other_authorities, crl] {
            add(file.as_ref().map_or(&[], |file| &file.pem));
        }
    }
    let mut context = [0; 32];
    context.copy_from_slice(digest.finish().as_ref());
    Context(context)
}
