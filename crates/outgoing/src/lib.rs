//! Connections that the server makes for itself, to services that its administrator has named: issuers of
//! certificates (`acme`) and collectors of traces (`traces`). Visitors' requests go through `upstream`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;

/// The files in which systems keep the authorities they trust.
const SYSTEM_AUTHORITIES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The reason why there is no connection to a service, or no TLS for it.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    #[error("no certificates of authorities are installed (on Debian: ca-certificates)")]
    NoSystemAuthorities,
    #[error("the trusted certificates contain none that can be used")]
    NoUsableAuthority,
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("the name has no address")]
    NoAddress,
    #[error("no connection in time")]
    Timeout,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// TLS that trusts the authorities of a PEM text, or those of the system.
///
/// # Errors
/// The PEM text or the system holds no usable certificate authority.
pub fn tls(trusted: Option<&[u8]>) -> Result<ClientConfig, OutgoingError> {
    let system;
    let pem = match trusted {
        Some(pem) => pem,
        None => {
            let mut files = SYSTEM_AUTHORITIES.iter();
            let found = files.find_map(|file| std::fs::read(file).ok());
            system = found.ok_or(OutgoingError::NoSystemAuthorities)?;
            &system
        }
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(OutgoingError::NoUsableAuthority);
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Connects to the first address of a name that takes a connection. Each is given `time`.
///
/// # Errors
/// The name has no address, or none of them takes a connection: the error of the last one.
pub async fn connect(host: &str, port: u16, time: Duration) -> Result<TcpStream, OutgoingError> {
    let mut last = OutgoingError::NoAddress;
    for address in tokio::net::lookup_host((host, port)).await? {
        match tokio::time::timeout(time, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error.into(),
            Err(_) => last = OutgoingError::Timeout,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_certificates_is_refused() {
        for text in [
            "",
            "no PEM",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let refused = tls(Some(text.as_bytes())).expect_err("nothing is trusted");
            assert_eq!(
                refused.to_string(),
                "the trusted certificates contain none that can be used"
            );
        }
    }

    #[tokio::test]
    async fn the_last_address_says_why_there_is_no_connection() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let time = Duration::from_secs(5);
        connect("127.0.0.1", port, time)
            .await
            .expect("a connection");
        drop(listener);
        let refused = connect("127.0.0.1", port, time)
            .await
            .expect_err("nobody listens")
            .to_string();
        assert!(refused.contains("refused"), "{refused}");
    }
}
