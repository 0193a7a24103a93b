//! The certificates of a server, and which of them a client gets.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use certificate_chain::{Passwords, read_key};
use parking_lot::Mutex;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};

use crate::error::SettingsError;
use crate::settings::{Identity, NamedCache, Settings};

/// Certificates by order of preference: those with small keys first, because a signature with
/// RSA costs ten times as much.
pub(crate) struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
    /// Certificates for clients that ask for one of these names.
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
            named: settings
                .named_identities
                .is_some()
                .then(|| Mutex::new(NamedCertificates::new(settings.named_cache))),
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
        let mut named = named.lock();
        let Some(rules) = named.rules else {
            return true;
        };
        let Some(found) = named.by_name.get_mut(name) else {
            return true;
        };
        let since = |time| now.saturating_duration_since(time);
        let is_over = since(found.read_at) >= rules.valid || since(found.used_at) >= rules.inactive;
        found.used_at = now;
        is_over
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
            let keys = NamedKeys {
                keys,
                read_at: now,
                used_at: now,
            };
            named.lock().put(name, keys);
        }
        Ok(())
    }

    /// Forgets the certificates for this name.
    pub(crate) fn forget(&self, name: &str) {
        if let Some(named) = &self.named {
            named.lock().by_name.remove(name);
        }
    }

    fn of_name(&self, name: &str) -> Vec<Arc<CertifiedKey>> {
        let named = self.named.as_ref().map(|named| named.lock());
        let found = named.as_ref().and_then(|named| named.by_name.get(name));
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
        // With a certificate that does not fit, the client learns what it lacks.
        fitting.or(keys.next()).cloned()
    }
}

/// Names whose certificates are in use by handshakes, where none are kept.
const UNCACHED_NAMES: usize = 1000;

/// Certificates by the names that they are for.
struct NamedCertificates {
    by_name: HashMap<String, NamedKeys>,
    rules: Option<NamedCache>,
}

struct NamedKeys {
    keys: Vec<Arc<CertifiedKey>>,
    read_at: Instant,
    used_at: Instant,
}

impl NamedCertificates {
    fn new(rules: Option<NamedCache>) -> NamedCertificates {
        NamedCertificates {
            by_name: HashMap::new(),
            rules,
        }
    }

    /// The one that was used longest ago makes room.
    fn put(&mut self, name: &str, keys: NamedKeys) {
        let most = self.rules.map_or(UNCACHED_NAMES, |rules| rules.names);
        if self.by_name.len() >= most && !self.by_name.contains_key(name) {
            let oldest = self.by_name.iter().min_by_key(|(_, keys)| keys.used_at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.by_name.remove(&oldest);
            }
        }
        self.by_name.insert(name.to_owned(), keys);
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

/// Returns the certificates with their keys, those with small keys first.
fn certified_keys(
    identities: &[Identity],
    passwords: &[u8],
    provider: &CryptoProvider,
) -> Result<Vec<Arc<CertifiedKey>>, SettingsError> {
    let read = |identity| certified_key(identity, passwords, provider).map(Arc::new);
    let mut keys: Vec<Arc<CertifiedKey>> = Vec::new();
    for key in identities.iter().map(read) {
        let key = key?;
        // Like in OpenSSL, the last of several with keys of one kind counts.
        keys.retain(|former| former.key.algorithm() != key.key.algorithm());
        keys.push(key);
    }
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
    let passwords = Passwords {
        lines: passwords,
        directive: "ssl_password_file",
    };
    let key = read_key(&identity.key.pem, passwords).map_err(|error| bad_key(error.to_string()))?;
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_name_that_was_used_longest_ago_makes_room() {
        let start = Instant::now();
        let names = 10;
        let mut named = NamedCertificates::new(Some(NamedCache {
            names,
            valid: Duration::from_secs(60),
            inactive: Duration::from_secs(60),
        }));
        let keys = |nth: usize| NamedKeys {
            keys: Vec::new(),
            read_at: start,
            used_at: start + Duration::from_secs(nth as u64),
        };
        for nth in 0..names {
            named.put(&nth.to_string(), keys(nth));
        }
        // One that is there already takes no room.
        named.put("0", keys(names));
        named.put("new", keys(names + 1));
        assert_eq!(named.by_name.len(), names);
        let has = |name| named.by_name.contains_key(name);
        assert_eq!((has("0"), has("1"), has("new")), (true, false, true));
    }
}
