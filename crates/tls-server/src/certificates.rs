//! The certificates of a server, and which of them a client gets.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};

use crate::error::SettingsError;
use crate::key::read_key;
use crate::settings::{Identity, Settings};

/// Certificates for single names are as good as when they were read for so long.
const NAMED_LIFETIME: Duration = Duration::from_secs(60);
/// Names whose certificates are kept at most.
const NAMED_MAX: usize = 1000;

/// Certificates by order of preference: those with small keys first, because a signature with
/// RSA costs ten times as much.
pub(crate) struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
    /// For clients that ask for one of these names.
    named: Option<Mutex<NamedCertificates>>,
    passwords: Vec<u8>,
    provider: Arc<CryptoProvider>,
    /// The suites of TLS 1.2 that the server has.
    tls12_suites: Vec<CipherSuite>,
    has_tls13: bool,
}

impl Certificates {
    pub(crate) fn new(
        settings: &Settings,
        provider: Arc<CryptoProvider>,
    ) -> Result<Certificates, SettingsError> {
        let suites = provider.cipher_suites.iter();
        Ok(Certificates {
            keys: certified_keys(&settings.identities, &settings.passwords, &provider)?,
            named: settings.named_identities.is_some().then(Mutex::default),
            passwords: settings.passwords.clone(),
            tls12_suites: suites
                .filter(|suite| suite.tls13().is_none())
                .map(|suite| suite.suite())
                .collect(),
            has_tls13: settings.tls13,
            provider,
        })
    }

    /// Are there certificates for every name?
    pub(crate) fn has_unnamed(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Are the certificates for this name to be read?
    pub(crate) fn lacks(&self, name: &str, now: Instant) -> bool {
        let Some(named) = &self.named else {
            return false;
        };
        let named = named.lock();
        let found = named.0.get(name);
        found.is_none_or(|found| now.saturating_duration_since(found.read_at) >= NAMED_LIFETIME)
    }

    /// Keeps the certificates for a name, in the place of former ones.
    pub(crate) fn put(
        &self,
        name: &str,
        identities: &[Identity],
        now: Instant,
    ) -> Result<(), SettingsError> {
        let keys = certified_keys(identities, &self.passwords, &self.provider)?;
        if let Some(named) = &self.named {
            named.lock().put(name, NamedKeys { keys, read_at: now });
        }
        Ok(())
    }

    /// Forgets the certificates for this name.
    pub(crate) fn forget(&self, name: &str) {
        if let Some(named) = &self.named {
            named.lock().0.remove(name);
        }
    }

    fn of_name(&self, name: &str) -> Vec<Arc<CertifiedKey>> {
        let named = self.named.as_ref().map(|named| named.lock());
        let found = named.as_ref().and_then(|named| named.0.get(name));
        found.map(|found| found.keys.clone()).unwrap_or_default()
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
        let named = hello.server_name().map(|name| self.of_name(name));
        let named = named.unwrap_or_default();
        let mut keys = named.iter().chain(&self.keys);
        let fitting = keys.clone().find(|key| {
            key.key.choose_scheme(schemes).is_some() && self.fits_suites(key, hello.cipher_suites())
        });
        // With one that does not fit, the client is told what it lacks.
        fitting.or(keys.next()).cloned()
    }
}

/// Certificates by the names that they are for.
#[derive(Default)]
struct NamedCertificates(HashMap<String, NamedKeys>);

struct NamedKeys {
    keys: Vec<Arc<CertifiedKey>>,
    read_at: Instant,
}

impl NamedCertificates {
    /// The one that was read longest ago makes room.
    fn put(&mut self, name: &str, keys: NamedKeys) {
        if self.0.len() >= NAMED_MAX && !self.0.contains_key(name) {
            let oldest = self.0.iter().min_by_key(|(_, keys)| keys.read_at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(name.to_owned(), keys);
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

/// Those with small keys first.
fn certified_keys(
    identities: &[Identity],
    passwords: &[u8],
    provider: &CryptoProvider,
) -> Result<Vec<Arc<CertifiedKey>>, SettingsError> {
    let read = |identity| certified_key(identity, passwords, provider).map(Arc::new);
    let mut keys = identities.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    keys.sort_by_key(|key| key.key.algorithm() == SignatureAlgorithm::RSA);
    Ok(keys)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_read_longest_ago_makes_room() {
        let start = Instant::now();
        let mut named = NamedCertificates::default();
        let keys = |nth: usize| NamedKeys {
            keys: Vec::new(),
            read_at: start + Duration::from_secs(nth as u64),
        };
        for nth in 0..NAMED_MAX {
            named.put(&nth.to_string(), keys(nth));
        }
        // One that is there already takes no room.
        named.put("0", keys(NAMED_MAX));
        named.put("new", keys(NAMED_MAX + 1));
        assert_eq!(named.0.len(), NAMED_MAX);
        let has = |name| named.0.contains_key(name);
        assert_eq!((has("0"), has("1"), has("new")), (true, false, true));
    }
}
