//! Lowers `http2` and `http2_*`.

use super::Lowering;
use super::level::Level;
use super::values::{to_u32, to_usize};
use crate::directives::constants::*;
use crate::model::*;

/// The largest frame, and so the largest chunk (RFC 9113 §4.2).
const MAX_FRAME_BYTES: u64 = (1 << 24) - 1;
/// The largest window of a stream (RFC 9113 §6.9.1).
const MAX_WINDOW_BYTES: u64 = (1 << 31) - 1;
/// The minimum of `http2_recv_buffer_size` in nginx.
const MIN_RECEIVE_BUFFER_BYTES: u64 = 32;

impl Lowering<'_> {
    pub fn http2(&mut self, level: &Level<'_>) -> Http2Settings {
        let preread = self.value(level, HTTP2_BODY_PREREAD_SIZE);
        if preread > MAX_WINDOW_BYTES
            && let Some(node) = level.find("http2_body_preread_size")
        {
            let message = format!("the maximum body buffer size is {MAX_WINDOW_BYTES}");
            self.error(node.arg(0).span, message);
        }
        Http2Settings {
            enabled: self.value(level, HTTP2),
            max_concurrent_streams: to_u32(self.value(level, HTTP2_MAX_CONCURRENT_STREAMS)),
            body_preread_bytes: to_u32(preread.min(MAX_WINDOW_BYTES)),
        }
    }

    pub fn http2_chunk(&mut self, level: &Level<'_>) -> usize {
        let bytes = self.value(level, HTTP2_CHUNK_SIZE);
        to_usize(bytes.clamp(1, MAX_FRAME_BYTES))
    }

    pub fn http2_receive_buffer(&mut self, http: &Level<'_>) -> usize {
        let bytes = self.value(http, HTTP2_RECV_BUFFER_SIZE);
        if bytes < MIN_RECEIVE_BUFFER_BYTES
            && let Some(node) = http.find("http2_recv_buffer_size")
        {
            let expected = format!("expected at least {MIN_RECEIVE_BUFFER_BYTES}");
            self.refuse(node.arg(0).span, "value is too small", expected);
        }
        to_usize(bytes)
    }
}
