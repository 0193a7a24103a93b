//! The certificates of a server, and which of them a client gets.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};

use crate::error::SettingsError;
use crate::key::read_key;
use crate::settings::Identity;

/// Certificates by order of preference: those with small keys first, because a signature with
/// RSA costs ten times as much.
pub(crate) struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
    /// The suites of TLS 1.2 that the server has.
    tls12_suites: Vec<CipherSuite>,
    has_tls13: bool,
}

impl Certificates {
    pub(crate) fn new(
        identities: &[Identity],
        passwords: &[u8],
        provider: &CryptoProvider,
        has_tls13: bool,
    ) -> Result<Certificates, SettingsError> {
        let read = |identity| certified_key(identity, passwords, provider).map(Arc::new);
        let mut keys = identities.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        keys.sort_by_key(|key| key.key.algorithm() == SignatureAlgorithm::RSA);
        let suites = provider.cipher_suites.iter();
        Ok(Certificates {
            keys,
            tls12_suites: suites
                .filter(|suite| suite.tls13().is_none())
                .map(|suite| suite.suite())
                .collect(),
            has_tls13,
        })
    }

    /// The server's own certificates, without those of the issuers.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.keys.iter().filter_map(|key| key.cert.first())
    }

    /// Can a handshake with a client of these suites use the key?
    fn fits_suites(&self, key: &CertifiedKey, offered: &[CipherSuite]) -> bool {
        // In TLS 1.3, suites say nothing about keys.
        let offers_tls13 = offered.iter().any(|suite| u16::from(*suite) >> 8 == 0x13);
        if self.has_tls13 && offers_tls13 {
            return true;
        }
        let is_rsa = key.key.algorithm() == SignatureAlgorithm::RSA;
        let mut common = self.tls12_suites.iter().filter(|it| offered.contains(it));
        common.any(|suite| is_for_rsa(*suite) == is_rsa)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let mut fitting = self.keys.iter().filter(|key| {
            key.key.choose_scheme(schemes).is_some() && self.fits_suites(key, hello.cipher_suites())
        });
        // With one that does not fit, the client is told what it lacks.
        fitting.next().or(self.keys.first()).cloned()
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

fn is_for_rsa(suite: CipherSuite) -> bool {
    use CipherSuite::{
        TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    };
    [
        TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ]
    .contains(&suite)
}

fn certified_key(
    identity: &Identity,
    passwords: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, SettingsError> {
    let bad_chain = |why: String| SettingsError::Certificate {
        file: identity.chain.name.clone(),
        why,
    };
    let bad_key = |why: String| SettingsError::Key {
        file: identity.key.name.clone(),
        why,
    };
    let chain = CertificateDer::pem_slice_iter(&identity.chain.pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad_chain(error.to_string()))?;
    if chain.is_empty() {
        return Err(bad_chain("no certificate found".to_owned()));
    }
    let key = read_key(&identity.key.pem, passwords).map_err(bad_key)?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|error| bad_key(error.to_string()))?;
    let certificate = chain.first().map(|first| &first[..]).unwrap_or_default();
    let public_key = key.public_key();
    let own = public_key.as_deref().unwrap_or_default();
    match certificate_chain::has_key(certificate, own) {
        None => Err(bad_chain("it is no X.509 certificate".to_owned())),
        Some(false) if public_key.is_some() => Err(SettingsError::KeyMismatch {
            file: identity.key.name.clone(),
        }),
        Some(_) => Ok(CertifiedKey::new(chain, key)),
    }
}
