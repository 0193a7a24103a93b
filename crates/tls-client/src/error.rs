//! Errors before a byte of HTTP is exchanged, in nginx's words. The caller adds
//! ` while SSL handshaking to upstream`.

use std::fmt;
use std::io;

use certificate_chain::VerifyFault;

/// Settings that cannot be used. The caller, which read the files, names the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// No certificate in `proxy_ssl_trusted_certificate`, or a bad one.
    Trusted(String),
    /// `proxy_ssl_crl`.
    Crl(String),
    /// `proxy_ssl_certificate`.
    Certificate(String),
    /// `proxy_ssl_certificate_key`: none, encrypted, of an unknown kind, or not
    /// the certificate's.
    Key(String),
    /// `proxy_ssl_protocols` leaves none that we speak.
    NoProtocol,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Trusted(why) => write!(f, "cannot load trusted certificates: {why}"),
            SettingsError::Crl(why) => write!(f, "cannot load certificate revocation list: {why}"),
            SettingsError::Certificate(why) => write!(f, "cannot load certificate: {why}"),
            SettingsError::Key(why) => write!(f, "cannot load certificate key: {why}"),
            SettingsError::NoProtocol => f.write_str("no protocol of TLSv1.2 and TLSv1.3 is left"),
        }
    }
}

impl std::error::Error for SettingsError {}

/// Why there is no encrypted connection.
#[derive(Debug)]
pub enum ConnectError {
    /// The upstream's certificate is not to be trusted.
    Verify(VerifyFault),
    /// The certificate is good, but for another name.
    NameMismatch(String),
    /// The upstream hung up.
    Closed,
    /// The stream failed.
    Io(io::Error),
    /// The two sides did not agree, or the upstream does not speak TLS.
    Handshake(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Verify(fault) => {
                write!(f, "upstream SSL certificate verify error: ({fault})")
            }
            ConnectError::NameMismatch(name) => {
                write!(f, "upstream SSL certificate does not match \"{name}\"")
            }
            ConnectError::Closed => f.write_str("peer closed connection in SSL handshake"),
            ConnectError::Io(error) => write!(f, "SSL_do_handshake() failed ({error})"),
            ConnectError::Handshake(why) => write!(f, "SSL_do_handshake() failed ({why})"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Verify(fault) => Some(fault),
            ConnectError::Io(error) => Some(error),
            _ => None,
        }
    }
}
