//! The source of the body of a request to an upstream.
//!
//! An exchange pulls parts of a body when the upstream is ready to read them; the storage behind
//! (memory, a file, the client's connection) is the caller's.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;

/// The source of a request body.
pub trait BodySource {
    /// The next part, `None` at the end; not called again after `None` or an
    /// error. Empty parts are skipped.
    ///
    /// # Errors
    ///
    /// An error ends the exchange, which hands it on as [`crate::StreamError::RequestBody`].
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;

    /// Whether it is known already that nothing follows, so that the end may leave
    /// together with the last part.
    fn is_at_end(&self) -> bool {
        false
    }
}

/// A request without a body.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBody;

impl BodySource for NoBody {
    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        Poll::Ready(None)
    }
}

/// A body that is all there.
impl BodySource for Bytes {
    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let all = std::mem::take(self);
        Poll::Ready((!all.is_empty()).then_some(Ok(all)))
    }

    fn is_at_end(&self) -> bool {
        self.is_empty()
    }
}

impl BodySource for tokio::sync::mpsc::Receiver<io::Result<Bytes>> {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.poll_recv(cx)
    }
}

impl<B: BodySource + ?Sized> BodySource for &mut B {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        (**self).poll_data(cx)
    }

    fn is_at_end(&self) -> bool {
        (**self).is_at_end()
    }
}

impl<B: BodySource + ?Sized> BodySource for Box<B> {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        (**self).poll_data(cx)
    }

    fn is_at_end(&self) -> bool {
        (**self).is_at_end()
    }
}
