//! The secret of an address that speaks QUIC: it signs tokens that validate addresses, and what
//! tells a client that its connection is gone (RFC 9000 §8.1, §10.3).

use std::sync::LazyLock;

use aws_lc_rs::{hkdf, hmac};
use rustix::rand::GetRandomFlags;

const RANDOM_BYTES: usize = 32;

/// The secret.
#[derive(Clone)]
pub struct HostKey(Vec<u8>);

impl HostKey {
    /// One for as long as this process lives.
    pub fn random() -> HostKey {
        static RANDOM: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let mut bytes = vec![0; RANDOM_BYTES];
            if aws_lc_rs::rand::fill(&mut bytes).is_err() {
                // The kernel's own, which is as good.
                let _ = rustix::rand::getrandom(&mut bytes[..], GetRandomFlags::empty());
            }
            bytes
        });
        HostKey(RANDOM.clone())
    }

    /// That of a file (`quic_host_key`).
    pub fn of(bytes: &[u8]) -> HostKey {
        HostKey(bytes.to_vec())
    }

    pub fn reset_key(&self) -> hmac::Key {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let derived = hmac::sign(&key, b"stateless reset");
        hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
    }

    pub fn token_key(&self) -> hkdf::Prk {
        hkdf::Salt::new(hkdf::HKDF_SHA256, b"address validation token").extract(&self.0)
    }
}
