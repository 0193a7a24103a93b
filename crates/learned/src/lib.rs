//! What a page was made of: whether a change of the database can alter what a statement returned.
//!
//! ```text
//! text ─► tokens: Shape + values ─► sqlparser, once per shape ─► Reading, Effect
//!                                                                   │       │
//!                                  may_alter(Reading, Effect) ◄─────┴───────┘
//! ```
//!
//! The answer errs on one side only: "no" is a proof that the statement would return the same, and
//! whatever is not understood is "yes", or [`NotLearned`] with its reason. Conditions are evaluated
//! over what is known of a row, with the set of truth values that are possible ([`Possible`]).
//! Text, collations and conversions follow the rules in `value.rs`. The crate does no I/O; what is
//! known of tables ([`Schema`]) is told to it.

mod condition;
mod functions;
mod read;
mod schema;
mod session;
mod statement;
mod tokens;
mod value;
mod write;

pub use condition::Possible;
pub use read::{QueryReading, may_alter};
pub use schema::{Column, ColumnDescription, ColumnKind, MOST_TABLES, Schema, Table};
pub use session::Session;
pub use statement::{Effect, MOST_SHAPES, NotLearned, Reading, Shapes, StatementMeaning};
pub use value::Value;
pub use write::{MOST_ROWS, Row, RowChange, TableChange};
