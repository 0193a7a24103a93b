//! The meaning of a configuration: a syntax tree (`Ast`) in, a typed [`Site`] out.
//!
//! ```text
//! text --nginx_conf--> Ast --check--> Nodes --lower--> Site
//! ```
//!
//! `directives` lists which directives may be written where. `check` compares a tree with it.
//! `lower` resolves inheritance and defaults, parses values and compiles patterns. So a
//! [`Site`] (`model`) answers every question without looking up a name. Nothing after this
//! crate sees nginx's syntax: another language could be lowered into the same `Site`.

mod check;
pub mod directives;
mod explain;
mod hazards;
mod lower;
pub mod model;
mod own_files;
mod read;
mod reference;
mod unkeyed_inputs;

pub use explain::{ExplainedDirective, Verdict, explain};
pub use hazards::{
    Hazard, HazardEdit, HazardRule, HazardSeverity, RULES as HAZARD_RULES, edited, hazards,
};
pub use lower::{LowerOptions, lower};
pub use model::*;
pub use own_files::OwnFiles;
#[doc(hidden)]
pub use read::fuzz_read;
pub use read::{ReadConfiguration, read, read_with};
pub use reference::reference;
pub use unkeyed_inputs::{UnkeyedInputs, unkeyed_inputs};
