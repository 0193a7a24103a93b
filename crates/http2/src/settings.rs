//! SETTINGS (RFC 9113 §6.5): the peer's settings, and ours. Also the settings that the
//! operator may set ([`Settings`]).

use crate::error::ConnectionError;
use crate::flow::{DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES};
use crate::frame::MAX_FRAME_BYTES;

/// Identifiers (§6.5.2, RFC 9218 §2.1).
const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// How a connection behaves, as the operator configured it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many streams a client may have open at a time (`http2_max_concurrent_streams`).
    pub max_concurrent_streams: u32,
    /// How many bytes of a request's body may wait to be consumed
    /// (`http2_body_preread_size`); from 0 to 2^31-1.
    pub stream_window_bytes: u32,
    /// The bytes of all bodies of a connection together, which bounds its memory; from
    /// 65,535, below which no setting can bring it, to 2^31-1.
    pub connection_window_bytes: u32,
    /// The most bytes of body in one DATA frame (`http2_chunk_size`).
    pub chunk_bytes: usize,
    /// Limits for request heads.
    pub head: HeadLimits,
}

impl Default for Settings {
    /// nginx's defaults, but for the window of the connection, which nginx leaves open,
    /// and for the size of chunks, 8 KB there: larger ones cost fewer headers.
    fn default() -> Self {
        Settings {
            max_concurrent_streams: 128,
            stream_window_bytes: 64 * 1024,
            connection_window_bytes: 1024 * 1024,
            chunk_bytes: MAX_FRAME_BYTES,
            head: HeadLimits::default(),
        }
    }
}

impl Settings {
    /// Writes the SETTINGS frame with which the server begins.
    pub(crate) fn announce(&self, out: &mut Vec<u8>) {
        let list_bytes = u32::try_from(self.head.max_list_bytes).unwrap_or(u32::MAX);
        crate::frame::write_settings(
            out,
            &[
                (MAX_CONCURRENT_STREAMS, self.max_concurrent_streams),
                (INITIAL_WINDOW_SIZE, self.stream_window()),
                (MAX_HEADER_LIST_SIZE, list_bytes),
                (NO_RFC7540_PRIORITIES, 1),
            ],
        );
    }

    pub(crate) fn stream_window(&self) -> u32 {
        self.stream_window_bytes.min(MAX_WINDOW_BYTES)
    }

    pub(crate) fn connection_window(&self) -> u32 {
        self.connection_window_bytes
            .clamp(DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES)
    }
}

/// How large a request head may be and which field names count. Source: nginx's
/// `large_client_header_buffers`, `max_headers`, `ignore_invalid_headers` and
/// `underscores_in_headers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The longest field name, and the longest field value.
    pub max_field_bytes: usize,
    /// The bytes of all names and values of a head together, which we also announce as
    /// SETTINGS_MAX_HEADER_LIST_SIZE. The standard counts 32 bytes more for each field; we do
    /// not, so no client that respects the setting is refused.
    pub max_list_bytes: usize,
    /// How many fields a head may have, pseudo-fields not counted.
    pub max_fields: usize,
    /// Leave out fields whose names have bytes other than letters, digits and `-`. When
    /// false they are kept.
    pub ignore_invalid_fields: bool,
    /// Whether `_` counts as valid in field names.
    pub underscores: bool,
}

impl Default for HeadLimits {
    /// nginx's defaults: 4 buffers of 8k, 1000 fields.
    fn default() -> Self {
        HeadLimits {
            max_field_bytes: 8 * 1024,
            max_list_bytes: 32 * 1024,
            max_fields: 1000,
            ignore_invalid_fields: true,
            underscores: false,
        }
    }
}

/// The peer's settings, as far as they concern us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    /// The peer has a table smaller than every decoder's initial one, and waits for a table
    /// size update.
    pub(crate) has_small_table: bool,
    pub(crate) initial_window_bytes: u32,
    pub(crate) max_frame_bytes: usize,
}

impl Default for PeerSettings {
    fn default() -> Self {
        PeerSettings {
            has_small_table: false,
            initial_window_bytes: DEFAULT_WINDOW_BYTES,
            max_frame_bytes: MAX_FRAME_BYTES,
        }
    }
}

impl PeerSettings {
    /// Returns these settings after a SETTINGS frame; nothing has effect when one is wrong.
    /// Settings that we do not know or need are ignored (§6.5.2).
    pub(crate) fn updated(mut self, pairs: &[[u8; 6]]) -> Result<Self, ConnectionError> {
        for &[i1, i0, v3, v2, v1, v0] in pairs {
            let identifier = u16::from_be_bytes([i1, i0]);
            let value = u32::from_be_bytes([v3, v2, v1, v0]);
            let is_valid = match identifier {
                ENABLE_PUSH | NO_RFC7540_PRIORITIES => value <= 1,
                INITIAL_WINDOW_SIZE => value <= MAX_WINDOW_BYTES,
                MAX_FRAME_SIZE => (MAX_FRAME_BYTES as u32..1 << 24).contains(&value),
                _ => true,
            };
            if !is_valid {
                return Err(ConnectionError::InvalidSetting(identifier, value));
            }
            match identifier {
                HEADER_TABLE_SIZE => {
                    self.has_small_table |= (value as usize) < crate::hpack::TABLE_BYTES;
                }
                INITIAL_WINDOW_SIZE => self.initial_window_bytes = value,
                MAX_FRAME_SIZE => self.max_frame_bytes = value as usize,
                _ => {}
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn pair(identifier: u16, value: u32) -> [u8; 6] {
        let ([i1, i0], [v3, v2, v1, v0]) = (identifier.to_be_bytes(), value.to_be_bytes());
        [i1, i0, v3, v2, v1, v0]
    }

    #[test]
    fn the_last_value_of_a_setting_counts() {
        let updated = PeerSettings::default().updated(&[
            pair(0x4, 42),
            pair(0xff, 7),
            pair(0x5, 32_768),
            pair(0x1, 0),
            pair(0x1, 8192),
            pair(0x4, 65_536),
        ]);
        let expected = PeerSettings {
            has_small_table: true,
            initial_window_bytes: 65_536,
            max_frame_bytes: 32_768,
        };
        assert_eq!(updated, Ok(expected));
    }

    #[test]
    fn impossible_values_are_refused_with_the_code_of_the_standard() {
        for (identifier, value, code) in [
            (0x2, 2, ErrorCode::PROTOCOL_ERROR),
            (0x4, 1 << 31, ErrorCode::FLOW_CONTROL_ERROR),
            (0x5, 16_383, ErrorCode::PROTOCOL_ERROR),
            (0x5, 1 << 24, ErrorCode::PROTOCOL_ERROR),
            (0x9, 2, ErrorCode::PROTOCOL_ERROR),
        ] {
            let updated = PeerSettings::default().updated(&[pair(identifier, value)]);
            assert_eq!(
                updated.map_err(|error| error.code()),
                Err(code),
                "{identifier}"
            );
        }
    }
}
