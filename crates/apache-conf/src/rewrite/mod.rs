//! mod_rewrite as a program of `if`, `set`, `rewrite` and `return` in a server, where these run in the order in which they
//! are written, once for each request and once more after `try_files`, `index` and `error_page`.
//!
//! Each rule is translated whole or not at all. A rule with one condition is an `if`; with several, a variable is set and
//! taken back by each condition that does not hold, since an `if` holds no other.

mod captures;
mod condition;
mod emit;
mod expansion;
mod front;
mod lines;
mod rule;
mod target;

pub use emit::{RewriteProgram, RewriteSection, argument};
pub use expansion::{environment, field_variable};
pub use front::FrontController;
pub use rule::{Condition, Rule, status};
