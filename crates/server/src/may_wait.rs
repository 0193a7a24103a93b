//! What is usually done at once and sometimes has to wait.

use std::pin::Pin;

/// How far something has come without waiting.
pub enum MayWait<'a, T> {
    Settled(T),
    /// Something has to be waited for. Whoever waits pays for a future of its own: kept in that
    /// of its connection it would cost each of them, the idle ones too, a kilobyte.
    Rest(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> MayWait<'a, T> {
    pub fn rest(rest: impl Future<Output = T> + Send + 'a) -> MayWait<'a, T> {
        MayWait::Rest(Box::pin(rest))
    }

    /// What it comes to, for as long as it takes.
    #[inline]
    pub async fn end(self) -> T {
        match self {
            MayWait::Settled(done) => done,
            MayWait::Rest(rest) => rest.await,
        }
    }
}
