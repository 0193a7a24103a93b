//! Frames (RFC 9113 §4 and §6): from bytes to values (`parse.rs`) and back (`write.rs`).
//!
//! This module checks one frame alone: its length, its padding, whether its type may be on
//! stream 0. Its meaning for streams is decided in `connection`.

mod parse;
mod write;

use std::fmt;

pub use parse::{Frame, FrameHeader, PriorityUpdate};
pub(crate) use write::set_frame_length;
pub use write::{
    write_data_header, write_frame_header, write_goaway, write_ping, write_reset, write_settings,
    write_settings_ack, write_window_update,
};

/// Length of a frame header (§4.1).
pub const HEADER_BYTES: usize = 9;
/// The largest payload that every receiver takes (§4.2), and the largest that we take:
/// larger frames would only make read buffers larger.
pub const MAX_FRAME_BYTES: usize = 16_384;

/// Flag of DATA and HEADERS: the stream ends here.
pub const END_STREAM: u8 = 0x1;
/// Flag of SETTINGS and PING: this acknowledges one of ours.
pub const ACK: u8 = 0x1;
/// Flag of HEADERS and CONTINUATION: the field block ends here.
pub const END_HEADERS: u8 = 0x4;
/// Flag of DATA and HEADERS: the payload is padded.
pub const PADDED: u8 = 0x8;
/// Flag of HEADERS: five bytes of the old priority scheme come first.
pub const PRIORITY: u8 = 0x20;

/// The number of a stream; 0 stands for the connection (§5.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u32);

impl StreamId {
    /// The connection itself.
    pub const CONNECTION: Self = StreamId(0);
    /// The largest there can be.
    pub const MAX: Self = StreamId(0x7fff_ffff);

    /// The stream of this number, without the reserved bit.
    pub const fn new(number: u32) -> Self {
        StreamId(number & 0x7fff_ffff)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns whether this is no stream but the connection.
    pub const fn is_connection(self) -> bool {
        self.0 == 0
    }

    /// Returns whether clients open streams of this number.
    pub const fn is_from_client(self) -> bool {
        self.0 % 2 == 1
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The type of a frame (§6, RFC 9218 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A piece of a body.
    Data,
    /// A field block, or its beginning.
    Headers,
    /// The old priority scheme, ignored (§5.3.2).
    Priority,
    /// The end of a stream by an error or by choice.
    ResetStream,
    /// Settings, or their acknowledgement.
    Settings,
    /// Announces a request of the server's; we send none.
    PushPromise,
    /// Asks for an acknowledgement.
    Ping,
    /// No further streams.
    GoAway,
    /// Opens a flow-control window.
    WindowUpdate,
    /// The rest of a field block.
    Continuation,
    /// A new priority for a stream.
    PriorityUpdate,
    /// A type of an extension; such frames are ignored (§5.5).
    Unknown(u8),
}

/// Types and their names, by number.
const KINDS: [(FrameKind, &str); 10] = [
    (FrameKind::Data, "DATA"),
    (FrameKind::Headers, "HEADERS"),
    (FrameKind::Priority, "PRIORITY"),
    (FrameKind::ResetStream, "RST_STREAM"),
    (FrameKind::Settings, "SETTINGS"),
    (FrameKind::PushPromise, "PUSH_PROMISE"),
    (FrameKind::Ping, "PING"),
    (FrameKind::GoAway, "GOAWAY"),
    (FrameKind::WindowUpdate, "WINDOW_UPDATE"),
    (FrameKind::Continuation, "CONTINUATION"),
];
const PRIORITY_UPDATE: u8 = 0x10;

impl FrameKind {
    /// The type of this number.
    pub fn from_number(number: u8) -> Self {
        match KINDS.get(usize::from(number)) {
            Some((kind, _)) => *kind,
            None if number == PRIORITY_UPDATE => FrameKind::PriorityUpdate,
            None => FrameKind::Unknown(number),
        }
    }

    /// Its number.
    pub fn number(self) -> u8 {
        use FrameKind::*;
        match self {
            Data => 0,
            Headers => 1,
            Priority => 2,
            ResetStream => 3,
            Settings => 4,
            PushPromise => 5,
            Ping => 6,
            GoAway => 7,
            WindowUpdate => 8,
            Continuation => 9,
            PriorityUpdate => PRIORITY_UPDATE,
            Unknown(number) => number,
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameKind::PriorityUpdate => f.write_str("PRIORITY_UPDATE"),
            FrameKind::Unknown(number) => write!(f, "unknown (0x{number:x})"),
            kind => match KINDS.get(usize::from(kind.number())) {
                Some((_, name)) => f.write_str(name),
                None => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_number() {
        for number in 0..=255 {
            let kind = FrameKind::from_number(number);
            assert_eq!(kind.number(), number);
            assert_eq!(
                matches!(kind, FrameKind::Unknown(_)),
                number > 9 && number != 0x10
            );
            assert!(!kind.to_string().is_empty());
        }
        assert_eq!(FrameKind::from_number(8).to_string(), "WINDOW_UPDATE");
    }
}
