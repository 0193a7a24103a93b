//! nginx's configuration language: text to [`Ast`], with spans and diagnostics.
//!
//! ```text
//! files --Loader--> Sources --lexer--> tokens --parser--> directives --load--> Ast
//!                                \___________ Diagnostics ___________/
//! ```
//!
//! [`load()`] always returns a tree, and every mistake it found rather than the
//! first. The grammar is nginx's, compared case by case with nginx itself. No
//! directive but `include` means anything here: `site` lowers the tree.

mod ast;
mod diagnostic;
mod format;
mod fuzz;
mod lexer;
mod load;
mod loader;
mod parser;
mod render;
mod source;
pub mod text;
mod value;

pub use ast::{Ast, Directive, Word};
pub use diagnostic::{Diagnostic, Note, Severity, merge_by_cause};
pub use format::{format, reformat};
#[doc(hidden)]
pub use fuzz::fuzz_parse;
pub use load::{
    LoadedConfiguration, MAX_INCLUDE_DEPTH, MAX_INCLUDES, MAX_TOTAL_BYTES, load, load_with_globals,
    parse,
};
pub use loader::{FileLoader, Loader, MemoryLoader};
pub use parser::{MAX_BLOCK_DEPTH, MAX_DIAGNOSTICS};
pub use render::{Style, render};
pub use source::{Origin, Position, Source, SourceId, Sources, Span};
pub use value::{ValueError, did_you_mean, either, parse_duration, parse_on_off, parse_size};
