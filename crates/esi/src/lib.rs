//! The language of Edge Side Includes, without input and output
//! (ESI 1.0, <https://www.w3.org/TR/esi-lang/>).
//!
//! ```text
//! page ─► find_tag: where tags stand ─► Tag::parse ─► the caller runs them
//!                                         └► expand, evaluate: variables, conditions
//! ```
//!
//! Supported are `include`, `choose` with `when` and `otherwise`, `try` with `attempt` and
//! `except`, `comment`, `remove`, `vars` and `<!--esi ... -->`. `inline` is not supported: a URL of
//! the site serves the same purpose.

mod expand;
mod expression;
mod scan;
mod tag;

pub use expand::{Escape, Values, expand};
pub use expression::{InvalidExpression, evaluate};
pub use scan::{MAX_TAG_BYTES, MarkupState, TagSearch, find_tag};
pub use tag::{Element, Include, Tag};
