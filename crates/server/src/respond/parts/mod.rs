//! Pages that are put together from parts: the common code of SSI and ESI.
//!
//! ```text
//! stored body ──► places where its commands stand ┐
//! body that arrives ──► Scanner ──────────────────┴─► Source ─► text and commands
//!
//! a command that includes a part ─► Asked: the part's request, its answer
//! ```
//!
//! The total cost of a page's parts is bounded (`exchange/page_budget.rs`), and a part for which an
//! upstream works is read by a task of its own (`body_ahead.rs`).
//!
//! A body is read as it comes. The positions of commands in a stored body are kept beside it, so that
//! a hit does not search through the page.

mod asked;
mod body_ahead;
#[cfg(test)]
mod simulation;
mod source;

pub use asked::{Late, RequestedPart, answer, is_refused, next_bytes, page, take_bytes};
pub use body_ahead::{counted, read_ahead};
pub use source::Source;

/// Requests within requests, whatever the language: deeper than this is a cycle.
pub const MAX_DEPTH: u8 = 20;
