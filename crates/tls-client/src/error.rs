//! Errors before a byte of HTTP is exchanged, in nginx's words. The caller adds
//! ` while SSL handshaking to upstream`.

use std::io;

use certificate_chain::VerifyFault;

/// Settings that cannot be used. The caller, which read the files, names the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No certificate in `proxy_ssl_trusted_certificate`, or a bad one.
    #[error("cannot load trusted certificates: {0}")]
    Trusted(String),
    /// `proxy_ssl_crl`.
    #[error("cannot load certificate revocation list: {0}")]
    Crl(String),
    /// `proxy_ssl_certificate`.
    #[error("cannot load certificate: {0}")]
    Certificate(String),
    /// `proxy_ssl_certificate_key`: none, encrypted, of an unknown kind, or not
    /// the certificate's.
    #[error("cannot load certificate key: {0}")]
    Key(String),
    /// `proxy_ssl_protocols` leaves none that we speak.
    #[error("no protocol of TLSv1.2 and TLSv1.3 is left")]
    NoProtocol,
}

/// Why there is no encrypted connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The upstream's certificate is not to be trusted.
    #[error("upstream SSL certificate verify error: ({0})")]
    Verify(#[source] VerifyFault),
    /// The certificate is good, but for another name.
    #[error("upstream SSL certificate does not match \"{0}\"")]
    NameMismatch(String),
    /// The upstream hung up.
    #[error("peer closed connection in SSL handshake")]
    Closed,
    /// The stream failed.
    #[error("SSL_do_handshake() failed ({0})")]
    Io(#[source] io::Error),
    /// The two sides did not agree, or the upstream does not speak TLS.
    #[error("SSL_do_handshake() failed ({0})")]
    Handshake(String),
}
