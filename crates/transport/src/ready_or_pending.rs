//! Results that are usually there at once and sometimes have to be waited for.

use std::pin::Pin;

/// A future in memory of its own, made where it stays: as an argument of `Box::pin` all of it would be
/// copied, some kilobytes where it asks an upstream.
#[inline]
pub fn made_in_box<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}

/// How far something has come without waiting.
pub enum ReadyOrPending<'a, T> {
    Ready(T),
    /// The rest has to wait for something, in a future of its own: as part of the connection's
    /// future it would cost each connection, the idle ones too, a kilobyte.
    Pending(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> ReadyOrPending<'a, T> {
    #[inline]
    pub fn pending<F: Future<Output = T> + Send + 'a>(
        rest: impl FnOnce() -> F,
    ) -> ReadyOrPending<'a, T> {
        ReadyOrPending::Pending(made_in_box(rest))
    }

    /// Waits for the result.
    #[inline]
    pub async fn end(self) -> T {
        match self {
            ReadyOrPending::Ready(done) => done,
            ReadyOrPending::Pending(rest) => rest.await,
        }
    }
}
