//! TLS, HTTP/2 and HTTP/3 towards clients: the settings `ssl_*`, `http2*`, `http3*` and `quic_*` of
//! a server.

use std::path::PathBuf;
use std::time::Duration;

use super::template::Template;

/// `ssl_*` of a server. Servers that say the same share one.
// Large: each field is the value of a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// `ssl_certificate` and `ssl_certificate_key`, in order. Empty only with
    /// [`rejects_handshake`](Self::rejects_handshake),
    /// [`named_certificates`](Self::named_certificates) or
    /// [`certificates_of_handshake`](Self::certificates_of_handshake).
    pub certificates: Vec<CertificateFiles>,
    /// Certificates whose files are named after the host that a client asks for.
    pub named_certificates: Vec<NamedCertificateFiles>,
    /// Certificates whose file names have other variables: if there are any, all of this server's.
    pub certificates_of_handshake: Vec<HandshakeCertificate>,
    /// The folder that relative names begin at.
    pub certificate_folder: PathBuf,
    /// `ssl_certificate_cache`, for certificates whose names have variables. `None`: they are read
    /// for each handshake.
    pub certificate_cache: Option<CertificateCache>,
    /// `ssl_certificate_compression`
    pub compresses_certificates: bool,
    /// `ssl_password_file`
    pub password_file: Option<PathBuf>,
    /// `ssl_protocols`: at least one of the two.
    pub tls12: bool,
    pub tls13: bool,
    /// Cipher suites that may be used, in order of preference: `ssl_ciphers`, and for TLS 1.3
    /// `ssl_conf_command Ciphersuites`.
    pub cipher_suites: Vec<CipherSuite>,
    /// `ssl_prefer_server_ciphers`: our order counts, not the client's.
    pub prefers_own_order: bool,
    /// `ssl_ecdh_curve`: in order of preference.
    pub key_exchange_groups: Vec<KeyExchangeGroup>,
    /// `ssl_verify_client`
    pub clients: Option<ClientVerification>,
    /// `ssl_session_cache`
    pub session_cache: TlsSessionCache,
    /// `ssl_session_timeout`
    pub session_timeout: Duration,
    /// `ssl_session_tickets`
    pub tickets: bool,
    /// `ssl_session_ticket_key`: the first one encrypts, all decrypt. Empty: random keys.
    pub ticket_key_files: Vec<PathBuf>,
    /// `ssl_buffer_size`: how much plaintext a record carries at most.
    pub record_bytes: usize,
    /// `ssl_early_data`
    pub early_data: bool,
    /// `ssl_reject_handshake`: a client that asks for this server gets an alert.
    pub rejects_handshake: bool,
}

/// `ssl_certificate_cache`, `proxy_ssl_certificate_cache`: certificates and keys whose names have
/// variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateCache {
    /// Certificates and keys, each counted.
    pub max: usize,
    /// A certificate that was not used for this time is forgotten.
    pub inactive: Duration,
    /// A certificate that was read longer ago than this is read again.
    pub valid: Duration,
}

impl CertificateCache {
    /// The cache without `ssl_certificate_cache`: clients choose names as they like, and reading
    /// costs more than a handshake.
    pub const DEFAULT: CertificateCache = CertificateCache {
        max: 2000,
        inactive: Duration::from_secs(60),
        valid: Duration::from_secs(60),
    };

    /// Returns how many certificates are kept, each with its key.
    pub fn pairs(&self) -> usize {
        (self.max / 2).max(1)
    }
}

/// A certificate with those of its issuers, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    pub chain: PathBuf,
    pub key: PathBuf,
}

/// A certificate and its key with variables: names of files, or `data:` and the text itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeCertificate {
    pub chain: Template,
    pub key: Template,
}

/// A certificate and its key with `$ssl_server_name` in one file name or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCertificateFiles {
    pub chain: NamedFile,
    pub key: NamedFile,
}

/// The path of a file: the name that a client asks for stands between each two of these texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile(Vec<String>);

impl NamedFile {
    /// A path in which `$ssl_server_name` or `${ssl_server_name}` may stand; `None` if
    /// another variable does.
    pub fn new(path: &str) -> Option<NamedFile> {
        const VARIABLE: &str = "${ssl_server_name}";
        const BARE: &str = "$ssl_server_name";
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let (mut texts, mut text, mut rest) = (Vec::new(), String::new(), path);
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            let after = match (from.strip_prefix(VARIABLE), from.strip_prefix(BARE)) {
                (Some(after), _) => after,
                (None, Some(after)) if !after.bytes().next().is_some_and(is_name) => after,
                _ => return None,
            };
            texts.push(std::mem::take(&mut text));
            rest = after;
        }
        texts.push(text + rest);
        Some(NamedFile(texts))
    }

    /// The file for this name.
    pub fn path(&self, server_name: &str) -> PathBuf {
        PathBuf::from(self.0.join(server_name))
    }
}

impl std::fmt::Display for NamedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("$ssl_server_name"))
    }
}

/// `ssl_verify_client` and the settings for verifying certificates of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientVerification {
    pub mode: ClientVerificationMode,
    /// `ssl_client_certificate`: trusted, and named to clients.
    pub named_authorities: Option<PathBuf>,
    /// `ssl_trusted_certificate`: trusted, not named to clients.
    pub other_authorities: Option<PathBuf>,
    /// `ssl_verify_depth`: how many certificates may stand between the client's and a trusted
    /// one.
    pub depth: usize,
    /// `ssl_crl`
    pub crl: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientVerificationMode {
    /// `on`: requests without a good certificate get the status 400.
    Required,
    /// `optional`: a client may have none.
    Optional,
    /// `optional_no_ca`: any certificate is accepted; the upstream verifies it.
    OptionalWithoutAuthority,
}

/// `ssl_session_cache`: where sessions are kept that clients may resume without a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSessionCache {
    /// `off` or `none`: nowhere.
    None,
    /// `builtin:SESSIONS`: this many sessions of this server.
    Builtin { sessions: u64 },
    /// `shared:NAME:SIZE`: all servers that write the name.
    Shared { name: String, bytes: u64 },
}

/// The cipher suites of rustls, those of TLS 1.3 first, each by order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    Tls13Aes256GcmSha384,
    Tls13Aes128GcmSha256,
    Tls13Chacha20Poly1305Sha256,
    EcdheEcdsaAes256GcmSha384,
    EcdheEcdsaAes128GcmSha256,
    EcdheEcdsaChacha20Poly1305,
    EcdheRsaAes256GcmSha384,
    EcdheRsaAes128GcmSha256,
    EcdheRsaChacha20Poly1305,
}

impl CipherSuite {
    pub const ALL: [CipherSuite; 9] = [
        CipherSuite::Tls13Aes256GcmSha384,
        CipherSuite::Tls13Aes128GcmSha256,
        CipherSuite::Tls13Chacha20Poly1305Sha256,
        CipherSuite::EcdheEcdsaAes256GcmSha384,
        CipherSuite::EcdheEcdsaAes128GcmSha256,
        CipherSuite::EcdheEcdsaChacha20Poly1305,
        CipherSuite::EcdheRsaAes256GcmSha384,
        CipherSuite::EcdheRsaAes128GcmSha256,
        CipherSuite::EcdheRsaChacha20Poly1305,
    ];

    /// The number in the registry of IANA.
    pub fn iana_number(self) -> u16 {
        match self {
            CipherSuite::Tls13Aes128GcmSha256 => 0x1301,
            CipherSuite::Tls13Aes256GcmSha384 => 0x1302,
            CipherSuite::Tls13Chacha20Poly1305Sha256 => 0x1303,
            CipherSuite::EcdheEcdsaAes128GcmSha256 => 0xc02b,
            CipherSuite::EcdheEcdsaAes256GcmSha384 => 0xc02c,
            CipherSuite::EcdheRsaAes128GcmSha256 => 0xc02f,
            CipherSuite::EcdheRsaAes256GcmSha384 => 0xc030,
            CipherSuite::EcdheRsaChacha20Poly1305 => 0xcca8,
            CipherSuite::EcdheEcdsaChacha20Poly1305 => 0xcca9,
        }
    }

    /// OpenSSL's name, as in `$ssl_cipher`.
    pub fn openssl_name(self) -> &'static str {
        match self {
            CipherSuite::Tls13Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::Tls13Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::Tls13Chacha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
            CipherSuite::EcdheEcdsaAes256GcmSha384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            CipherSuite::EcdheEcdsaAes128GcmSha256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            CipherSuite::EcdheEcdsaChacha20Poly1305 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            CipherSuite::EcdheRsaAes256GcmSha384 => "ECDHE-RSA-AES256-GCM-SHA384",
            CipherSuite::EcdheRsaAes128GcmSha256 => "ECDHE-RSA-AES128-GCM-SHA256",
            CipherSuite::EcdheRsaChacha20Poly1305 => "ECDHE-RSA-CHACHA20-POLY1305",
        }
    }

    pub fn is_tls13(self) -> bool {
        self.iana_number() >> 8 == 0x13
    }
}

/// The groups for the key exchange that rustls has, by order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyExchangeGroup {
    X25519MlKem768,
    X25519,
    Secp256r1,
    Secp384r1,
}

impl KeyExchangeGroup {
    pub const ALL: [KeyExchangeGroup; 4] = [
        KeyExchangeGroup::X25519MlKem768,
        KeyExchangeGroup::X25519,
        KeyExchangeGroup::Secp256r1,
        KeyExchangeGroup::Secp384r1,
    ];

    /// The number in the registry of IANA.
    pub fn iana_number(self) -> u16 {
        match self {
            KeyExchangeGroup::Secp256r1 => 23,
            KeyExchangeGroup::Secp384r1 => 24,
            KeyExchangeGroup::X25519 => 29,
            KeyExchangeGroup::X25519MlKem768 => 4588,
        }
    }

    /// OpenSSL's name, as in `$ssl_curve`.
    pub fn openssl_name(self) -> &'static str {
        match self {
            KeyExchangeGroup::X25519MlKem768 => "X25519MLKEM768",
            KeyExchangeGroup::X25519 => "X25519",
            KeyExchangeGroup::Secp256r1 => "prime256v1",
            KeyExchangeGroup::Secp384r1 => "secp384r1",
        }
    }
}

/// `http2` and `http2_*` of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http2Settings {
    /// `http2 on`. HTTP/2 is also spoken if [`ListenOptions::http2`] is set.
    ///
    /// [`ListenOptions::http2`]: super::ListenOptions::http2
    pub enabled: bool,
    /// `http2_max_concurrent_streams`
    pub max_concurrent_streams: u32,
    /// `http2_body_preread_size`: a stream's window until the body is read.
    pub body_preread_bytes: u32,
}

/// `http3`, `http3_*` and `quic_*` of a server. Settings of a whole connection are taken from the
/// default server of its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http3Settings {
    /// `http3 on`
    pub enabled: bool,
    /// `http3_max_concurrent_streams`
    pub max_concurrent_streams: u32,
    /// `http3_stream_buffer_size`: how much of a body waits on either way.
    pub stream_buffer_bytes: u32,
    /// `quic_retry on`: a client's address is validated before anything else.
    pub validates_addresses: bool,
    /// `quic_gso on`: the kernel cuts sent data into packets.
    pub segmentation_offload: bool,
    /// `quic_host_key`
    pub host_key_file: Option<PathBuf>,
}
