//! Lowers `http3`, `http3_*` and `quic_*`.

use super::Lowering;
use super::level::Level;
use super::values::to_u32;
use crate::model::*;

/// Below this a stream would stop after each packet.
const MIN_STREAM_BUFFER_BYTES: u64 = 4 << 10;

impl Lowering<'_> {
    pub fn http3(&mut self, level: &Level<'_>) -> Http3Settings {
        let buffer = self.size(level, "http3_stream_buffer_size", 64 << 10);
        let host_key = level.find("quic_host_key");
        Http3Settings {
            enabled: self.flag(level, "http3", true),
            max_concurrent_streams: to_u32(self.number(level, "http3_max_concurrent_streams", 128)),
            stream_buffer_bytes: to_u32(buffer.max(MIN_STREAM_BUFFER_BYTES)),
            validates_addresses: self.flag(level, "quic_retry", false),
            segmentation_offload: self.flag(level, "quic_gso", true),
            host_key_file: host_key.map(|node| self.path_beside_main_file(node.arg(0))),
        }
    }
}
