//! Connections that the server makes for itself, to services that its administrator has named: issuers of
//! certificates (`acme`) and collectors of traces (`traces`). Visitors' requests go through `upstream`.

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

/// TLS that trusts the authorities of a PEM text, or those of the system.
///
/// # Errors
/// The PEM text or the system holds no usable certificate authority; the text is for a log.
pub fn tls(trusted: Option<&[u8]>) -> Result<ClientConfig, String> {
    let system;
    let pem = match trusted {
        Some(pem) => pem,
        None => {
            let mut files = SYSTEM_AUTHORITIES.iter();
            system = files.find_map(|file| std::fs::read(file).ok()).ok_or(
                "no certificates of authorities are installed (on Debian: ca-certificates)",
            )?;
            &system
        }
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err("the trusted certificates contain none that can be used".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Connects to the first address of a name that takes a connection. Each is given `time`.
///
/// # Errors
/// The name has no address, or none of them takes a connection: the error of the last one.
pub async fn connect(host: &str, port: u16, time: Duration) -> Result<TcpStream, String> {
    let addresses = tokio::net::lookup_host((host, port)).await;
    let mut last = "the name has no address".to_owned();
    for address in addresses.map_err(|error| error.to_string())? {
        match tokio::time::timeout(time, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => last = "no connection in time".to_owned(),
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
                refused,
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
            .expect_err("nobody listens");
        assert!(refused.contains("refused"), "{refused}");
    }
}
