//! QPACK (RFC 9204) with the static table alone: `decode.rs` reads blocks, `encode.rs` writes
//! them.

mod decode;
mod encode;
mod static_table;

pub use decode::{Block, read_request, read_trailers};
pub use encode::FieldBlock;
