//! Pages that are put together from parts: what SSI and ESI have in common.
//!
//! ```text
//! stored body ──► kept: where its commands stand ─┐
//! body that arrives ──► Scanner ──────────────────┴─► Source ─► text and commands
//!
//! a command that includes a part ─► Asked: the part's request, its answer
//! ```
//!
//! What all parts of a page cost together is bounded (`exchange/page_budget.rs`), and what an upstream
//! works for is read by a task of its own (`body_ahead.rs`).
//!
//! A body is read as it comes. Of a stored one, where the commands stand is kept beside it, so
//! that a hit does not search through the page.

mod asked;
mod body_ahead;
mod kept;
mod scanner;
#[cfg(test)]
mod simulation;
mod source;

pub use asked::{Late, RequestedPart, answer, budget, is_refused, next_bytes, take_bytes};
pub use body_ahead::{counted, read_ahead};
#[cfg(test)]
pub use scanner::Scanner;
pub use scanner::Token;
pub use source::Source;

use std::ops::Range;

use http_cache::Encoding;

/// A command with many long values; what is longer is text that only looks like one.
pub const MAX_COMMAND_BYTES: usize = 16 * 1024;

/// Requests within requests, whatever the language: deeper than this is a cycle.
pub const MAX_DEPTH: u8 = 20;

/// As what the places of commands are kept beside a stored body. Content codings have numbers
/// below these.
pub const KEPT_SSI: Encoding = Encoding(0x8000);
pub const KEPT_ESI: Encoding = Encoding(0x8001);

/// What a search for a command has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandSearch {
    /// A command, from its first byte to behind its last.
    Command(Range<usize>),
    /// None that is whole. One may begin here; it is the length of what was searched where none
    /// does.
    None(usize),
}

/// A language of commands in pages.
pub trait Language: Send + Sync + 'static {
    type Command: Clone + Send + Sync;
    /// What commands before a part of the page say of it.
    type CommandContext: Default + Send + Sync;
    const KEPT_AS: Encoding;

    /// The first command in `bytes`. Nothing after it has been looked at.
    fn find(bytes: &[u8], inside: &mut Self::CommandContext) -> CommandSearch;

    /// Reads what [`find`](Language::find) has found.
    fn parse(command: &[u8]) -> Self::Command;
}
