//! Finds the commands of SSI and ESI in a page, whole or as it arrives. The server carries them out.
//!
//! A body is read as it comes. The places of the commands in a stored one are kept beside it, so that a hit
//! does not search through the page.

mod esi_language;
mod language;
pub mod places;
mod scanner;
pub mod ssi;

pub use esi_language::Esi;
pub use language::{CommandSearch, KEPT_ESI, KEPT_SSI, Language};
pub use scanner::{Scanner, Token};
pub use ssi::Ssi;
