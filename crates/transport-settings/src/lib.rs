//! Settings of connections, as plain values: addresses, bounds of heads and bodies, timeouts.
//!
//! `site` fills them in when a configuration is read, and `transport` obeys them without knowing where they were
//! written. So neither of the two imports the other.

mod proxy_extra;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use proxy_extra::ProxyExtra;

/// An address that clients connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    /// QUIC.
    Udp(SocketAddr),
    Unix(PathBuf),
}

/// Limits on the request head. They are needed before the location is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadSettings {
    /// `client_header_buffer_size`, in bytes.
    pub buffer_bytes: u64,
    /// `large_client_header_buffers`.
    pub large_buffers: usize,
    pub large_buffer_bytes: u64,
    /// `client_header_timeout`.
    pub timeout: Duration,
    /// `max_headers`.
    pub max_fields: usize,
    /// `ignore_invalid_headers`.
    pub ignore_invalid: bool,
    /// `underscores_in_headers`.
    pub underscores: bool,
}

/// How the body of a request is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodySettings {
    /// `client_max_body_size` in bytes; 0: unlimited.
    pub max_bytes: u64,
    /// `client_body_buffer_size`: kept in memory up to here.
    pub buffer_bytes: u64,
    pub timeout: Duration,
    pub temp_path: PathBuf,
    pub in_file_only: InFileOnly,
    /// A file has a name as long as the request lasts, for `$request_body_file`.
    pub has_name: bool,
}

/// `client_body_in_file_only`: whether each body is a file, and whether that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFileOnly {
    Off,
    Clean,
    On,
}

/// How long a connection is kept and waited for, and how it ends.
// Large: directives that do not depend on each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// `keepalive_timeout`; zero: connections are not kept.
    pub keepalive_timeout: Duration,
    /// `keepalive_min_timeout`: a graceful stop closes no connection that was idle for less.
    pub keepalive_min_timeout: Duration,
    /// Second argument: sent as `Keep-Alive: timeout=N`.
    pub keepalive_header: Option<Duration>,
    pub keepalive_requests: u64,
    pub keepalive_time: Duration,
    /// `keepalive_disable`
    pub disable_msie6: bool,
    pub disable_safari: bool,
    pub send_timeout: Duration,
    pub lingering_close: LingeringClose,
    pub lingering_time: Duration,
    pub lingering_timeout: Duration,
    /// `http2_chunk_size`: the most that one DATA frame carries.
    pub http2_chunk_bytes: usize,
    pub reset_timedout: bool,
    pub chunked_transfer_encoding: bool,
}

/// `lingering_close`: whether the client is read on after the last response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LingeringClose {
    Off,
    On,
    Always,
}
