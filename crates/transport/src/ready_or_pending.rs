//! What is usually done at once and sometimes has to wait.

use std::pin::Pin;

/// How far something has come without waiting.
pub enum ReadyOrPending<'a, T> {
    Ready(T),
    /// The rest has to wait for something, in a future of its own: as part of the connection's
    /// future it would cost each connection, the idle ones too, a kilobyte.
    Pending(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> ReadyOrPending<'a, T> {
    pub fn pending(rest: impl Future<Output = T> + Send + 'a) -> ReadyOrPending<'a, T> {
        ReadyOrPending::Pending(Box::pin(rest))
    }

    /// What it comes to, for as long as it takes.
    #[inline]
    pub async fn end(self) -> T {
        match self {
            ReadyOrPending::Ready(done) => done,
            ReadyOrPending::Pending(rest) => rest.await,
        }
    }
}
