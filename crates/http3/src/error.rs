//! The reasons why a connection ends, and their codes for the peer (RFC 9114 §8.1, RFC
//! 9204 §6).

/// The error code of a CONNECTION_CLOSE, a RESET_STREAM or a STOP_SENDING frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u64);

impl Code {
    pub const NO_ERROR: Code = Code(0x100);
    pub const GENERAL_PROTOCOL_ERROR: Code = Code(0x101);
    pub const INTERNAL_ERROR: Code = Code(0x102);
    pub const STREAM_CREATION_ERROR: Code = Code(0x103);
    pub const CLOSED_CRITICAL_STREAM: Code = Code(0x104);
    pub const FRAME_UNEXPECTED: Code = Code(0x105);
    pub const FRAME_ERROR: Code = Code(0x106);
    pub const EXCESSIVE_LOAD: Code = Code(0x107);
    pub const SETTINGS_ERROR: Code = Code(0x109);
    pub const MISSING_SETTINGS: Code = Code(0x10a);
    pub const REQUEST_REJECTED: Code = Code(0x10b);
    pub const REQUEST_CANCELLED: Code = Code(0x10c);
    pub const REQUEST_INCOMPLETE: Code = Code(0x10d);
    pub const MESSAGE_ERROR: Code = Code(0x10e);
    pub const QPACK_DECOMPRESSION_FAILED: Code = Code(0x200);
    pub const QPACK_ENCODER_STREAM_ERROR: Code = Code(0x201);
    pub const QPACK_DECODER_STREAM_ERROR: Code = Code(0x202);
}

/// An offence that ends the connection. `Display` is the log sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("client {reason}")]
pub struct Error {
    /// For the peer.
    pub code: Code,
    /// The client's offence, in words for the log.
    pub reason: &'static str,
}

impl Error {
    pub(crate) fn new(code: Code, reason: &'static str) -> Error {
        Error { code, reason }
    }
}
