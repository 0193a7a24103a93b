//! Bodies in another form on their way to a client: compressed, expanded, in another charset, or with strings replaced.
//!
//! ```text
//! Recoder       one body, piece by piece, as it is sent          (recoder.rs, encoder.rs, charset_map.rs)
//! Substitution  strings of a body replaced as it is sent       (substitution.rs)
//! RecodedBody, SubstitutedBody  a body around another one      (bodies.rs)
//! look          a stored response, compressed once and kept so   (stored.rs)
//! kept_file     a file as a stored response, for `look`          (files.rs)
//! ```
//!
//! The crate knows bytes and the configuration of a coding. The caller decides which coding a client gets, and the
//! head's fields.

mod bodies;
mod charset_map;
mod encoder;
mod files;
mod recoder;
mod stored;
mod substitution;

pub use bodies::{RecodedBody, SubstitutedBody};
pub use charset_map::{Conversions, Transcoder};
pub use files::kept_file;
pub use recoder::{CompressionRatio, Recoder};
pub use stored::{EncodedForm, SettledForm, Wait, coding_name, look};
pub use substitution::{Substitution, SubstitutionStep};
