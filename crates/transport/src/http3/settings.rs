//! How HTTP/3 is spoken on an address.

use std::time::Duration;

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct Settings {
    pub max_concurrent_streams: u32,
    /// `http3_stream_buffer_size`
    pub stream_buffer_bytes: u32,
    /// `quic_retry on`
    pub validates_addresses: bool,
    /// `quic_gso on`
    pub segmentation_offload: bool,
    /// How long a client may be silent altogether.
    pub idle_timeout: Duration,
    /// How long the handshake may take, and then the first request.
    pub first_request_timeout: Duration,
    pub head: http2::HeadLimits,
}
