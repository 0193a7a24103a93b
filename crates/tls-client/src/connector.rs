//! Compiles the settings, and performs the handshake.

use std::io;
use std::sync::Arc;

use certificate_chain::{Passwords, VerifyFault, read_key};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, IpAddr, Ipv4Addr, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig, version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::error::{ConnectError, SettingsError};
use crate::settings::{Identity, Settings};
use crate::stream::TlsStream;
use crate::verify::{TrustAnyone, Verifier};

/// Sessions kept for resumption, by name: more than an operator has upstreams.
const KEPT_SESSIONS: usize = 256;

/// Encrypts connections under one set of [`Settings`]. Cheap to clone.
#[derive(Clone)]
pub struct Connector {
    tls: TlsConnector,
    verifies: bool,
}

impl Connector {
    /// Reads the settings' certificates.
    ///
    /// # Errors
    ///
    /// [`SettingsError`]: the settings that the operator should correct.
    pub fn new(settings: &Settings) -> Result<Connector, SettingsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut versions = Vec::new();
        if settings.protocols.tls12 {
            versions.push(&version::TLS12);
        }
        if settings.protocols.tls13 {
            versions.push(&version::TLS13);
        }
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|_| SettingsError::NoProtocol)?
            .dangerous();
        let builder = match &settings.verify {
            Some(verify) => builder.with_custom_certificate_verifier(Arc::new(Verifier::new(
                verify,
                provider.clone(),
            )?)),
            None => builder.with_custom_certificate_verifier(Arc::new(TrustAnyone {
                provider: provider.clone(),
            })),
        };
        let mut config = match &settings.identity {
            Some(identity) => {
                let own = read_identity(identity, &provider)?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
            }
            None => builder.with_no_client_auth(),
        };
        config.enable_sni = settings.send_name;
        config.alpn_protocols.clone_from(&settings.alpn);
        config.resumption = match settings.reuse_sessions {
            true => Resumption::in_memory_sessions(KEPT_SESSIONS),
            false => Resumption::disabled(),
        };
        Ok(Connector {
            tls: TlsConnector::from(Arc::new(config)),
            verifies: settings.verify.is_some(),
        })
    }

    /// Shakes hands over a connected stream. `name` is `proxy_ssl_name`: the certificate
    /// must be valid for it and it is sent, if these are on. It may carry a port, which
    /// does not count.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    pub async fn connect<S>(&self, stream: S, name: &str) -> Result<TlsStream<S>, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = without_port(name);
        let server_name = match ServerName::try_from(name) {
            Ok(server_name) => server_name.to_owned(),
            Err(_) if self.verifies => return Err(ConnectError::NameMismatch(name.to_owned())),
            // An IP address is never sent as server name, and this one is not compared.
            Err(_) => ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0, 0, 0, 0]))),
        };
        match self.tls.connect(server_name, stream).await {
            Ok(stream) => Ok(TlsStream::new(stream)),
            Err(error) => Err(connect_error(error, name)),
        }
    }
}

fn read_identity(
    identity: &Identity,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, SettingsError> {
    let chain = CertificateDer::pem_slice_iter(&identity.chain_pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| SettingsError::Certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(SettingsError::Certificate(
            "no certificate found".to_owned(),
        ));
    }
    let bad_key = |why: String| SettingsError::Key(why);
    let passwords = Passwords {
        lines: &identity.passwords,
        directive: "proxy_ssl_password_file",
    };
    let key = read_key(&identity.key_pem, passwords).map_err(|error| bad_key(error.to_string()))?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|error| bad_key(error.to_string()))?;
    let certificate = chain.first().map(|first| &first[..]).unwrap_or_default();
    let public_key = key.public_key();
    let own = public_key.as_deref().unwrap_or_default();
    match certificate_chain::has_key(certificate, own) {
        None => Err(SettingsError::Certificate(
            "it is no X.509 certificate".to_owned(),
        )),
        Some(false) if public_key.is_some() => {
            Err(bad_key("it is not the certificate's".to_owned()))
        }
        Some(_) => Ok(CertifiedKey::new(chain, key)),
    }
}

/// `host` of `host`, `host:port`, `[v6]` and `[v6]:port`.
fn without_port(name: &str) -> &str {
    if let Some(bracketed) = name.strip_prefix('[') {
        return bracketed.split(']').next().unwrap_or(name);
    }
    match name.split_once(':') {
        // More colons: a bare IPv6 address.
        Some((host, port)) if !port.contains(':') => host,
        _ => name,
    }
}

/// Unwraps rustls's error from the I/O error of tokio-rustls.
fn connect_error(error: io::Error, name: &str) -> ConnectError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => {
            ConnectError::NameMismatch(name.to_owned())
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other))) => {
            ConnectError::Verify(match other.0.downcast_ref::<VerifyFault>() {
                Some(fault) => fault.clone(),
                None => VerifyFault::Other(other.to_string()),
            })
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::BadSignature)) => {
            ConnectError::Verify(VerifyFault::BadSignature)
        }
        Some(other) => ConnectError::Handshake(other.to_string()),
        None if error.kind() == io::ErrorKind::UnexpectedEof => ConnectError::Closed,
        None => ConnectError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_does_not_count() {
        for (name, host) in [
            ("example.com", "example.com"),
            ("example.com:8443", "example.com"),
            ("127.0.0.1:8443", "127.0.0.1"),
            ("[::1]:8443", "::1"),
            ("[::1]", "::1"),
            ("::1", "::1"),
            ("", ""),
        ] {
            assert_eq!(without_port(name), host, "{name}");
        }
    }
}
