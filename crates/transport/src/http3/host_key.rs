//! The secret of an address that speaks QUIC: it signs tokens that validate addresses, and stateless resets for
//! clients whose connection is gone (RFC 9000 §8.1, §10.3).

use std::sync::OnceLock;

use aws_lc_rs::{hkdf, hmac};
use rustix::rand::GetRandomFlags;

const RANDOM_BYTES: usize = 32;

static PROCESS_SECRET: OnceLock<[u8; RANDOM_BYTES]> = OnceLock::new();

/// The secret of this process.
pub fn process_secret() -> [u8; RANDOM_BYTES] {
    *PROCESS_SECRET.get_or_init(random_bytes)
}

/// Takes the secret of a process whose place this one takes, so that clients' tokens stay valid. Has no effect
/// once there is one.
pub fn inherit(secret: [u8; RANDOM_BYTES]) {
    let _ = PROCESS_SECRET.set(secret);
}

pub fn random_bytes() -> [u8; RANDOM_BYTES] {
    let mut bytes = [0; RANDOM_BYTES];
    if aws_lc_rs::rand::fill(&mut bytes).is_err() {
        // The kernel's own, which is as good.
        let _ = rustix::rand::getrandom(&mut bytes[..], GetRandomFlags::empty());
    }
    bytes
}

/// The secret.
#[derive(Clone)]
pub struct HostKey(Vec<u8>);

impl HostKey {
    /// One for as long as this process lives, and those that take its place.
    pub fn random() -> HostKey {
        HostKey(process_secret().to_vec())
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
