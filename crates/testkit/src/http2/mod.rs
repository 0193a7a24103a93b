//! Clients that speak HTTP/2 with prior knowledge: one over the crate `h2`, an independent
//! implementation, for whole requests, and one that writes frame by frame bytes that no
//! library would send.

mod client;
mod frames;

pub use ::http2::{ErrorCode, FrameKind, PREFACE};
pub use client::{Http2Client, Incoming, Outgoing};
pub use frames::{Frame, FrameClient, Outcome, data, headers, raw_block, reset, window_update};
