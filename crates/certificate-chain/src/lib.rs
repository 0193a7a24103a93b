//! Verifies chains of certificates, of upstreams and of clients.
//!
//! ```text
//! Trust (PEM texts, depth) -> ChainVerifier -> verify(chain, time) -> Ok or VerifyFault
//! ```
//!
//! [`ChainVerifier`] builds the chain with webpki (time, signatures, purpose, constraints,
//! revocation) and bounds its depth as OpenSSL counts it. A certificate that is itself among the
//! trusted ones needs no chain, just its time. The caller compares names. The crate reads no file
//! and no clock. [`Description`] is the content of a certificate, for logs and applications.

mod authority;
mod description;
mod fault;
mod key;
mod validity;
mod verifier;
mod version1;

pub use description::{Description, has_key};
pub use fault::VerifyFault;
pub use key::{KeyError, Passwords, is_encrypted_key, read_key};
pub use validity::Validity;
pub use verifier::{ChainVerifier, Purpose, Trust, TrustError};
pub use version1::Version1;
