//! QPACK (RFC 9204): `decode.rs` reads blocks with the dynamic table that the client fills,
//! `encode.rs` writes them with the static table alone.

mod decode;
mod dynamic_table;
mod encode;
mod static_table;

pub use decode::{Block, read_request, read_trailers};
pub use dynamic_table::DynamicTable;
pub use encode::FieldBlock;
