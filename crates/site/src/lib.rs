//! What a configuration means: `Ast` in, typed [`Site`] out.
//!
//! The directive table (`directives`) says what may stand where; lowering
//! resolves inheritance and defaults, parses templates and compiles patterns,
//! so that a [`Site`] answers every question without a look-up by string.
//! Nothing past this crate sees nginx syntax: another front end could make the
//! same `Site`.

mod check;
pub mod directives;
mod explain;
mod lower;
pub mod model;
mod read;
mod reference;
mod unkeyed_inputs;

pub use explain::{ExplainedDirective, Verdict, explain};
pub use lower::{LowerOptions, lower};
pub use model::*;
#[doc(hidden)]
pub use read::fuzz_read;
pub use read::{Reading, read, read_with};
pub use reference::reference;
pub use unkeyed_inputs::{UnkeyedInputs, unkeyed_inputs};
