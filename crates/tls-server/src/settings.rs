//! The `ssl_*` directives of one server, files already read.

use std::fmt;
use std::time::Duration;

/// A file in PEM format, with its name for messages.
#[derive(Clone, PartialEq, Eq)]
pub struct PemFile {
    pub name: String,
    pub pem: Vec<u8>,
}

/// Keys do not belong into logs.
impl fmt::Debug for PemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PemFile")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// How connections of clients are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `ssl_certificate` and `ssl_certificate_key`. Without any, every handshake fails.
    pub identities: Vec<Identity>,
    /// There are certificates for single names as well, see [`put`](crate::TlsServer::put): a
    /// text that differs for each set of them.
    pub named_identities: Option<String>,
    /// How long those are kept; `None`: they are read for each handshake.
    pub named_cache: Option<NamedCache>,
    /// `ssl_certificate_compression`
    pub compresses_certificates: bool,
    /// `ssl_password_file`: one password in each line.
    pub passwords: Vec<u8>,
    /// `ssl_protocols`: at least one of the two.
    pub tls12: bool,
    pub tls13: bool,
    /// Numbers of IANA, in order of preference. Suites that rustls does not have are left out.
    pub cipher_suites: Vec<u16>,
    /// `ssl_prefer_server_ciphers`
    pub prefers_own_order: bool,
    /// `ssl_ecdh_curve`: numbers of IANA, in order of preference.
    pub key_exchange_groups: Vec<u16>,
    /// `ssl_verify_client`
    pub clients: Option<Clients>,
    /// `ssl_session_timeout`
    pub session_timeout: Duration,
    /// `ssl_buffer_size`: how much plaintext a record carries at most.
    pub record_bytes: usize,
    /// `ssl_early_data`
    pub early_data: bool,
}

/// How long certificates for single names are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCache {
    pub names: usize,
    /// The time since they were read.
    pub valid: Duration,
    /// The time since they were used.
    pub inactive: Duration,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate first, then those of its issuers.
    pub chain: PemFile,
    pub key: PemFile,
}

/// The settings for verifying certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    pub mode: ClientMode,
    /// `ssl_client_certificate`: trusted, and named to clients.
    pub named_authorities: Option<PemFile>,
    /// `ssl_trusted_certificate`: trusted, not named to clients.
    pub other_authorities: Option<PemFile>,
    /// `ssl_verify_depth`
    pub depth: usize,
    /// `ssl_crl`
    pub crl: Option<PemFile>,
}

/// `ssl_verify_client`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMode {
    /// `on`: without a good certificate there is no response but an error.
    Required,
    /// `optional`: a client may have none.
    Optional,
    /// `optional_no_ca`: the certificate need not be signed by a trusted authority.
    OptionalWithoutAuthority,
}
