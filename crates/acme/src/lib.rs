//! Issues and renews certificates by ACME (RFC 8555).
//!
//! ```text
//! Issuer, CertificateRequest ─► Renewal ─► issue ─► account, order, challenges, certificate
//!                                  │                    │
//!                               Schedule             Store (folder of the issuer)
//! ```
//!
//! A [`Renewal`] keeps one certificate valid for as long as it runs: it reads the stored one,
//! waits until the certificate is due, gets another one and hands it to the [`Host`], which
//! knows how to answer challenges and who serves. All that has to survive is written to the
//! [`Store`] before the next step needs it, so that a process that ends anywhere goes on from
//! there. Nothing here decides about time by itself: the [`Clock`] can be set.

mod account;
mod certificate;
mod challenge;
mod client;
mod clock;
mod failure;
mod host;
mod issue;
mod machines;
mod renewal;
mod schedule;
mod settings;
mod store;

pub use account::Authority;
pub use certificate::{CertificateError, self_signed, usable};
pub use clock::{Clock, SystemClock};
pub use host::{ChallengeAnswer, Host, Level};
pub use machines::{Machines, MachinesAnswer};
pub use renewal::Renewal;
pub use settings::{
    AccountKey, CertificateRequest, Challenge, ExternalAccount, Issuer, KeyType, Profile,
};
pub use store::{FileNotWritten, Store};
