//! The interface to the server that uses the certificates and answers challenges.

use std::future::Future;
use std::pin::Pin;

/// The answer that a challenge expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChallengeAnswer {
    /// `/.well-known/acme-challenge/TOKEN` on port 80 has this content.
    Http { token: String, content: String },
    /// The certificate for `name` where a client asks for the protocol `acme-tls/1`: chain and
    /// key as PEM.
    Tls { name: String, pem: String },
}

/// The level of a message in the error log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Notice,
    Warn,
    Error,
}

/// A server.
pub trait Host: Send + Sync + 'static {
    /// Gives this answer from now on. Resolves when it is in force.
    fn present(&self, answer: ChallengeAnswer) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Forgets it again.
    fn withdraw(&self, answer: &ChallengeAnswer);
    /// There is a new certificate: chain and key as PEM.
    fn install(&self, file_stem: &str, pem: Vec<u8>);
    fn log(&self, level: Level, message: String);
}
