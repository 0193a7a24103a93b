//! The `proxy_ssl_*` directives of one location, files already read.

/// How connections to upstreams are encrypted. [`Settings::default`] has
/// nginx's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The settings of `proxy_ssl_verify on`. `None`: any certificate will do.
    pub verify: Option<Verify>,
    /// `proxy_ssl_certificate`: shown when the upstream asks for one.
    pub identity: Option<Identity>,
    /// `proxy_ssl_protocols`.
    pub protocols: Protocols,
    /// `proxy_ssl_server_name`: send the name (SNI, RFC 6066 §3).
    pub send_name: bool,
    /// `proxy_ssl_session_reuse`.
    pub reuse_sessions: bool,
    /// Protocols that are offered (ALPN, RFC 7301), the most wanted first. An upstream is offered none.
    pub alpn: Vec<Vec<u8>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            verify: None,
            identity: None,
            protocols: Protocols::default(),
            send_name: false,
            reuse_sessions: true,
            alpn: Vec::new(),
        }
    }
}

/// The settings for verifying an upstream's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// `proxy_ssl_trusted_certificate`: PEM. Authorities, or the upstream's own
    /// self-signed certificate.
    pub trusted_pem: Vec<u8>,
    /// `proxy_ssl_verify_depth`: how many certificates may stand between the
    /// upstream's and a trusted one. nginx's default is 1.
    pub depth: usize,
    /// `proxy_ssl_crl`: PEM, a list for each authority of the chain.
    pub crl_pem: Option<Vec<u8>>,
}

/// Our own certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// `proxy_ssl_certificate`: PEM, ours first, then intermediate ones.
    pub chain_pem: Vec<u8>,
    /// `proxy_ssl_certificate_key`: PEM.
    pub key_pem: Vec<u8>,
    /// `proxy_ssl_password_file`: a password in each line.
    pub passwords: Vec<u8>,
}

/// Keys do not belong into logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// Versions that may be spoken; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    pub tls12: bool,
    pub tls13: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        Protocols {
            tls12: true,
            tls13: true,
        }
    }
}
