//! Errors in settings, in nginx's words.

/// Settings that cannot be used, with the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// `ssl_certificate`
    #[error("cannot load certificate \"{file}\": {why}")]
    Certificate { file: String, why: String },
    /// `ssl_certificate_key`: none, encrypted without a password, or of an unknown kind.
    #[error("cannot load certificate key \"{file}\": {why}")]
    Key { file: String, why: String },
    /// The key is not the certificate's.
    #[error("SSL_CTX_use_PrivateKey(\"{file}\") failed (key values mismatch)")]
    KeyMismatch { file: String },
    /// `ssl_client_certificate` or `ssl_trusted_certificate`
    #[error("SSL_CTX_load_verify_locations(\"{file}\") failed ({why})")]
    Authorities { file: String, why: String },
    /// `ssl_crl`
    #[error("X509_load_crl_file(\"{file}\") failed ({why})")]
    Crl { file: String, why: String },
    /// Protocols, ciphers and groups that leave no handshake possible.
    #[error("no handshake is possible with these ssl settings: {0}")]
    NothingLeft(String),
}
