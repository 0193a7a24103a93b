//! Errors that end a connection or a stream, who did wrong, and the words for the log.
//!
//! Three kinds, after RFC 9113 §5.4 and §8.1.1: an error of the connection (GOAWAY, then
//! the end), an error of one stream (RST_STREAM, the others go on), and a request that
//! cannot be served, which is answered with a status (`request_error.rs`).

use std::fmt;

use crate::bounds::Flood;
use crate::frame::{FrameKind, StreamId};
use crate::hpack::HpackError;

/// An error code of RFC 9113 §7. A peer may send one that has no name; it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Not an error: a graceful end.
    pub const NO_ERROR: Self = ErrorCode(0x0);
    /// A rule of the protocol was broken.
    pub const PROTOCOL_ERROR: Self = ErrorCode(0x1);
    /// We failed.
    pub const INTERNAL_ERROR: Self = ErrorCode(0x2);
    /// More was sent than a window allowed, or a window grew too large.
    pub const FLOW_CONTROL_ERROR: Self = ErrorCode(0x3);
    /// Settings were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = ErrorCode(0x4);
    /// A frame came on a stream that was closed.
    pub const STREAM_CLOSED: Self = ErrorCode(0x5);
    /// A frame had an impossible length.
    pub const FRAME_SIZE_ERROR: Self = ErrorCode(0x6);
    /// Nothing was done about the request; it may be sent again.
    pub const REFUSED_STREAM: Self = ErrorCode(0x7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = ErrorCode(0x8);
    /// The state of field compression is lost.
    pub const COMPRESSION_ERROR: Self = ErrorCode(0x9);
    /// The connection made for CONNECT broke.
    pub const CONNECT_ERROR: Self = ErrorCode(0xa);
    /// The peer makes more work than is reasonable.
    pub const ENHANCE_YOUR_CALM: Self = ErrorCode(0xb);
    /// The transport is not secure enough.
    pub const INADEQUATE_SECURITY: Self = ErrorCode(0xc);
    /// HTTP/1.1 is wanted instead.
    pub const HTTP_1_1_REQUIRED: Self = ErrorCode(0xd);

    /// The name in the standard.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code 0x{:x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a connection ends. `Display` is the log sentence. A GOAWAY with
/// [`ConnectionError::code`] is among the output when one of these is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The bytes at the start are not the preface (§3.4).
    #[error("client sent invalid HTTP/2 preface")]
    InvalidPreface,
    /// A frame longer than SETTINGS_MAX_FRAME_SIZE (§4.2).
    #[error("client sent {0} frame of {1} bytes, above the limit")]
    FrameTooLarge(FrameKind, u32),
    /// A frame with a length that its type cannot have (§4.2).
    #[error("client sent {0} frame with incorrect length {1}")]
    InvalidLength(FrameKind, u32),
    /// A frame of a stream on stream 0, or the reverse (§6).
    #[error("client sent {0} frame with incorrect stream {1}")]
    InvalidStream(FrameKind, StreamId),
    /// Padding longer than the frame (§6.1).
    #[error("client sent {0} frame with incorrect padding")]
    InvalidPadding(FrameKind),
    /// A setting with a value that it cannot have (§6.5.2): identifier and value.
    #[error("client sent SETTINGS frame with value {1} for setting {0}")]
    InvalidSetting(u16, u32),
    /// Another frame where CONTINUATION had to come (§6.10).
    #[error("client sent {0} frame while CONTINUATION was expected")]
    ExpectedContinuation(FrameKind),
    /// CONTINUATION where no field block was open (§6.10).
    #[error("client sent unexpected CONTINUATION frame for stream {0}")]
    UnexpectedContinuation(StreamId),
    /// PUSH_PROMISE, which no client may send (§8.4).
    #[error("client sent PUSH_PROMISE frame")]
    PushPromise,
    /// A request on a stream number that is even, or below one already used (§5.1.1).
    #[error("client sent HEADERS frame with incorrect stream {0}")]
    InvalidNewStream(StreamId),
    /// A frame for a stream that was never opened (§5.1).
    #[error("client sent {0} frame for idle stream {1}")]
    IdleStream(FrameKind, StreamId),
    /// A field block for a stream that is closed (§5.1).
    #[error("client sent {0} frame for closed stream {1}")]
    ClosedStream(FrameKind, StreamId),
    /// More DATA than the window of the connection allowed (§6.9.1).
    #[error("client violated connection flow control")]
    WindowExceeded,
    /// WINDOW_UPDATE by zero for the connection (§6.9).
    #[error("client sent WINDOW_UPDATE frame with incorrect increment 0")]
    ZeroWindowUpdate,
    /// The window of the connection, or SETTINGS_INITIAL_WINDOW_SIZE for one of its
    /// streams, came above 2^31-1 (§6.9.1, §6.9.2).
    #[error("client grew a flow-control window above its maximum")]
    WindowOverflow,
    /// A field block that does not decode (§4.3).
    #[error("client sent invalid field block: {0}")]
    Compression(HpackError),
    /// A field block far above the limit for heads.
    #[error("client sent too large field block")]
    FieldBlockTooLarge,
    /// More of something than `bounds.rs` allows.
    #[error("http2 flood detected: {0}")]
    Flood(Flood),
}

impl ConnectionError {
    /// The code that the GOAWAY frame has.
    pub fn code(&self) -> ErrorCode {
        use ConnectionError::*;
        match self {
            FrameTooLarge(..) | InvalidLength(..) => ErrorCode::FRAME_SIZE_ERROR,
            InvalidSetting(id, _) if *id == crate::settings::INITIAL_WINDOW_SIZE => {
                ErrorCode::FLOW_CONTROL_ERROR
            }
            WindowExceeded | WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            ClosedStream(..) => ErrorCode::STREAM_CLOSED,
            Compression(_) => ErrorCode::COMPRESSION_ERROR,
            FieldBlockTooLarge | Flood(_) => ErrorCode::ENHANCE_YOUR_CALM,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

impl From<HpackError> for ConnectionError {
    fn from(error: HpackError) -> Self {
        ConnectionError::Compression(error)
    }
}

/// A client's error with one stream. It was answered with RST_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// A frame after END_STREAM, or on a closed stream (§5.1).
    #[error("client sent {0} frame after the end of its stream")]
    Closed(FrameKind),
    /// PRIORITY with an impossible length (§6.3).
    #[error("client sent PRIORITY frame with incorrect length")]
    InvalidPriority,
    /// A stream that depends on itself (RFC 7540 §5.3.1).
    #[error("client sent a stream that depends on itself")]
    SelfDependency,
    /// More DATA than the window of the stream allowed (§6.9.1).
    #[error("client violated flow control of a stream")]
    WindowExceeded,
    /// WINDOW_UPDATE by zero (§6.9).
    #[error("client sent WINDOW_UPDATE frame with incorrect increment 0")]
    ZeroWindowUpdate,
    /// The window came above 2^31-1 (§6.9.1).
    #[error("client grew the window of a stream above its maximum")]
    WindowOverflow,
    /// A request that turned out malformed after its answer had begun (§8.1.1).
    #[error("client sent a malformed request")]
    Malformed,
    /// More streams at a time than SETTINGS_MAX_CONCURRENT_STREAMS (§5.1.2).
    #[error("concurrent streams exceeded")]
    Refused,
}

impl StreamError {
    /// The code that the RST_STREAM frame has.
    pub fn code(self) -> ErrorCode {
        use StreamError::*;
        match self {
            Closed(_) => ErrorCode::STREAM_CLOSED,
            InvalidPriority => ErrorCode::FRAME_SIZE_ERROR,
            WindowExceeded | WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            SelfDependency | ZeroWindowUpdate | Malformed => ErrorCode::PROTOCOL_ERROR,
            Refused => ErrorCode::REFUSED_STREAM,
        }
    }
}

/// An error while a frame is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    Connection(ConnectionError),
    Stream(StreamId, StreamError),
}

impl From<ConnectionError> for FrameError {
    fn from(error: ConnectionError) -> Self {
        FrameError::Connection(error)
    }
}

impl From<HpackError> for FrameError {
    fn from(error: HpackError) -> Self {
        FrameError::Connection(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_shown_with_the_names_of_the_standard() {
        assert_eq!(ErrorCode::NO_ERROR.to_string(), "NO_ERROR");
        assert_eq!(ErrorCode(0xb).to_string(), "ENHANCE_YOUR_CALM");
        assert_eq!(ErrorCode(0xd), ErrorCode::HTTP_1_1_REQUIRED);
        assert_eq!(ErrorCode(0xd).to_string(), "HTTP_1_1_REQUIRED");
        assert_eq!(ErrorCode(0xe).to_string(), "error code 0xe");
    }
}
