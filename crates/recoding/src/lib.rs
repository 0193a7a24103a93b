//! Bodies in another form on their way to a client: compressed, expanded, or in another charset.
//!
//! ```text
//! Recoder     one body, piece by piece, as it is sent          (recoder.rs, encoder.rs, charset_map.rs)
//! look        a stored response, compressed once and kept so   (stored.rs)
//! kept_file   a file as a stored response, for `look`          (files.rs)
//! ```
//!
//! The crate knows bytes and what is configured of a coding. Which coding a client gets, and what the head then says,
//! is decided by who asks.

mod charset_map;
mod encoder;
mod files;
mod recoder;
mod stored;

pub use charset_map::{Conversions, Transcoder};
pub use files::kept_file;
pub use recoder::{CompressionRatio, Recoder};
pub use stored::{EncodedForm, SettledForm, Wait, coding_name, look};
