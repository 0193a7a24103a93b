//! Lowers `http3`, `http3_*` and `quic_*`.

use super::Lowering;
use super::level::Level;
use super::values::to_u32;
use crate::directives::constants::*;
use crate::model::*;

/// Below this a stream would stop after each packet.
const MIN_STREAM_BUFFER_BYTES: u64 = 4 << 10;

impl Lowering<'_> {
    pub fn http3(&mut self, level: &Level<'_>) -> Http3Settings {
        let buffer = self.value(level, HTTP3_STREAM_BUFFER_SIZE);
        let host_key = level.find("quic_host_key");
        Http3Settings {
            enabled: self.value(level, HTTP3),
            max_concurrent_streams: to_u32(self.value(level, HTTP3_MAX_CONCURRENT_STREAMS)),
            stream_buffer_bytes: to_u32(buffer.max(MIN_STREAM_BUFFER_BYTES)),
            validates_addresses: self.value(level, QUIC_RETRY),
            segmentation_offload: self.value(level, QUIC_GSO),
            host_key_file: host_key.map(|node| self.path_beside_main_file(node.arg(0))),
        }
    }
}
