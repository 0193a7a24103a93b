//! Errors in settings, in nginx's words.

use std::fmt;

/// Settings that cannot be used, with the name of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// `ssl_certificate`
    Certificate { file: String, why: String },
    /// `ssl_certificate_key`: none, encrypted without a password, or of an unknown kind.
    Key { file: String, why: String },
    /// The key is not the certificate's.
    KeyMismatch { file: String },
    /// `ssl_client_certificate` or `ssl_trusted_certificate`
    Authorities { file: String, why: String },
    /// `ssl_crl`
    Crl { file: String, why: String },
    /// Protocols, ciphers and groups that leave no handshake possible.
    NothingLeft(String),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Certificate { file, why } => {
                write!(f, "cannot load certificate \"{file}\": {why}")
            }
            SettingsError::Key { file, why } => {
                write!(f, "cannot load certificate key \"{file}\": {why}")
            }
            SettingsError::KeyMismatch { file } => write!(
                f,
                "SSL_CTX_use_PrivateKey(\"{file}\") failed (key values mismatch)"
            ),
            SettingsError::Authorities { file, why } => {
                write!(
                    f,
                    "SSL_CTX_load_verify_locations(\"{file}\") failed ({why})"
                )
            }
            SettingsError::Crl { file, why } => {
                write!(f, "X509_load_crl_file(\"{file}\") failed ({why})")
            }
            SettingsError::NothingLeft(why) => {
                write!(f, "no handshake is possible with these ssl settings: {why}")
            }
        }
    }
}

impl std::error::Error for SettingsError {}
