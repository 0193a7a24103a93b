//! The first bytes of a client that speaks HTTP/2 (RFC 9113 §3.4), so that a plain port
//! can serve both versions ("prior knowledge").

/// The bytes that a client sends before its first frame.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol of a connection by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preface {
    /// They are the preface.
    Complete,
    /// They may become the preface.
    Partial,
    /// They are something else, such as an HTTP/1 request.
    Absent,
}

/// Reads the first bytes of a connection.
///
/// ```
/// use http2::{Preface, read_preface};
/// assert_eq!(read_preface(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n..."), Preface::Complete);
/// assert_eq!(read_preface(b"PRI"), Preface::Partial);
/// assert_eq!(read_preface(b"GET / HTTP/1.1\r\n"), Preface::Absent);
/// ```
pub fn read_preface(bytes: &[u8]) -> Preface {
    if bytes.starts_with(PREFACE) {
        Preface::Complete
    } else if PREFACE.starts_with(bytes) {
        Preface::Partial
    } else {
        Preface::Absent
    }
}
