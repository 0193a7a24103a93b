//! HPACK (RFC 7541), the compression of field blocks: a decoder with the peer's dynamic
//! table (`decode.rs`, `table.rs`), and an encoder without one (`encode.rs`).
//!
//! The encoder keeps no state on purpose. Its blocks depend on no connection, so that the
//! block of a stored response is made once and copied for each hit; and two blocks behind
//! each other are a block. The savings of a dynamic table were measured with
//! `benches/connection.rs`; see the head of `encode.rs`.
//!
//! Invariant: no block costs more than linear time, and the memory that one keeps (the
//! dynamic table) is bounded by [`TABLE_BYTES`].

mod decode;
mod encode;
pub mod huffman;
pub mod integer;
mod static_table;
mod table;

pub use decode::{BlockReader, DecodedField, Decoder};
pub(crate) use encode::{put_field, put_no_table, put_status};
pub use table::Table;

/// The size of the dynamic table that the peer's encoder may use: the default of
/// SETTINGS_HEADER_TABLE_SIZE, which we do not change.
pub const TABLE_BYTES: usize = 4096;

/// The bytes that RFC 7541 §4.1 adds to the length of each field.
pub const FIELD_OVERHEAD_BYTES: usize = 32;

/// Why a field block does not decode. All of these lose the state of compression, so
/// that the connection must end (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// An integer longer than any that could be meant (RFC 7541 §5.1).
    #[error("integer too large")]
    IntegerTooLarge,
    /// The block ends within a field.
    #[error("block ends within a field")]
    Truncated,
    /// Index 0, or one beyond both tables (§2.3.3, §6.1).
    #[error("invalid table index {0}")]
    InvalidIndex(u32),
    /// An unassigned Huffman code, the end-of-string symbol, or wrong padding (§5.2).
    #[error("invalid Huffman code")]
    InvalidHuffman,
    /// A table size above the one that we allow (§6.3).
    #[error("table size update to {0}, above the limit")]
    TableTooLarge(u32),
    /// A change of the table size behind a field (§4.2).
    #[error("table size update behind a field")]
    LateTableSize,
}
