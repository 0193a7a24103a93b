//! An encrypted stream.
//!
//! Written bytes are held until they make a record, so [`AsyncWrite`]'s flush matters. An end
//! that the peer did not announce (close_notify) is an error of kind `UnexpectedEof`: a body that
//! ends with the connection may have been cut (RFC 9112 §9.8).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream as Inner;

/// A stream after the handshake.
#[derive(Debug)]
pub struct TlsStream<S> {
    // Boxed: with its buffers it is large, and it is moved about.
    inner: Box<Inner<S>>,
}

impl<S> TlsStream<S> {
    pub(crate) fn new(inner: Inner<S>) -> Self {
        TlsStream {
            inner: Box::new(inner),
        }
    }

    /// The stream below.
    pub fn lower(&self) -> &S {
        self.inner.get_ref().0
    }

    /// The stream below, to be exchanged for another handle of the same
    /// connection. Reading or writing it breaks the encrypted one.
    pub fn lower_mut(&mut self) -> &mut S {
        self.inner.get_mut().0
    }

    /// Has the upstream sent bytes that are not read yet, or closed the connection? Between two
    /// requests it should have done neither.
    pub fn has_unread(&mut self) -> bool {
        let session = self.inner.get_mut().1;
        match session.process_new_packets() {
            Ok(state) => state.plaintext_bytes_to_read() > 0 || state.peer_has_closed(),
            Err(_) => true,
        }
    }

    /// Returns the name that `$ssl_protocol` would have.
    pub fn protocol(&self) -> &'static str {
        match self.inner.get_ref().1.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "",
        }
    }

    /// The protocol that the peer chose of those that were offered.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.inner.get_ref().1.alpn_protocol()
    }

    /// Returns whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.inner.get_ref().1.handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_shutdown(cx)
    }
}
