//! TLS towards clients: the `ssl_*` settings of a server, made ready for handshakes.
//!
//! ```text
//! Settings (PEM texts, switches), Resumption ─> TlsServer ─> config(with_http2) ─> rustls
//!                                                   │
//!                                                   └─> verdict(chain of a client, time)
//! ```
//!
//! The crate opens no socket and reads no file. One [`TlsServer`] for each set of settings, shared
//! by all threads. State that outlives a configuration is the caller's: the keys of tickets
//! ([`TicketKeys`]) and the sessions ([`SessionCache`]). Both may be shared by servers: each
//! session is bound to the certificates of its server and to its demands on clients, so that no
//! session that one server began is resumed by another that would not have accepted the client.
//!
//! Certificates of clients are not judged in the handshake. Like in nginx, a client whose
//! certificate is missing or bad gets a response that explains it; see [`TlsServer::verdict`].

mod certificates;
mod clients;
mod config;
mod error;
pub mod openssl_names;
mod sessions;
mod settings;
mod tickets;

pub use certificate_chain::VerifyFault;
pub use clients::{ClientVerdict, Refusal};
pub use config::{Resumption, TlsServer};
pub use error::SettingsError;
pub use sessions::SessionCache;
pub use settings::{ClientMode, Clients, Identity, NamedCache, PemFile, Settings};
pub use tickets::{TicketKeys, TicketKeysError};
