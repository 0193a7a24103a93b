//! TLS towards upstreams: `https://` in `proxy_pass`.
//!
//! ```text
//! Settings (PEM texts, switches) -> Connector -> connect(stream, name) -> TlsStream
//!                                      │
//!                                   verify: chain, depth, time, revocation, name
//! ```
//!
//! The crate wraps a connected stream; it opens no socket, reads no file and
//! sets no timer (`proxy_connect_timeout` is the caller's). One [`Connector`]
//! per set of `proxy_ssl_*` settings, shared by all threads; the sessions to be
//! resumed live in it. A crate of its own because `upstream` must not know the
//! protocol spoken and TLS takes longest to build. No type of rustls is in the
//! public interface.
//!
//! Differences from nginx: ciphers are rustls's choice; protocols are 1.2 and 1.3; names
//! are matched with the certificate's subjectAltName only (RFC 9525 §2), not with its
//! common name; a trusted certificate need not be a root.

mod connector;
mod error;
mod settings;
mod stream;
mod verify;

pub use certificate_chain::VerifyFault;
pub use connector::Connector;
pub use error::{ConnectError, SettingsError};
pub use settings::{Identity, Protocols, Settings, Verify};
pub use stream::TlsStream;
