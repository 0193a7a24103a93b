//! Where the commands of SSI and ESI stand in a page, whole or as it arrives. What they cause is the server's.
//!
//! A body is read as it comes. Of a stored one, where the commands stand is kept beside it, so
//! that a hit does not search through the page.

mod esi_language;
mod language;
pub mod places;
mod scanner;
pub mod ssi;

pub use esi_language::Esi;
pub use language::{CommandSearch, KEPT_ESI, KEPT_SSI, Language};
pub use scanner::{Scanner, Token};
pub use ssi::Ssi;
