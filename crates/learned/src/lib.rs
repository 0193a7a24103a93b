//! The statements of a page: whether a change of the database can alter the results that they returned.
//!
//! ```text
//! text ─► tokens: Shape + values ─► sqlparser, once per shape ─► Reading, Effect
//!                                                                   │       │
//!                                  may_alter(Reading, Effect) ◄─────┴───────┘
//!
//! statements of a page ─► PageRecord ─► Index ◄─ Effect of each write
//!                                         └─► Suspicion of a page
//! ```
//!
//! The answer errs on one side only: "no" is a proof that the statement would return the same, and
//! whatever is not understood is "yes", or [`NotLearned`] with its reason. Conditions are evaluated
//! over what is known of a row, with the set of truth values that are possible ([`Possible`]).
//! Text, collations and conversions follow the rules in `value.rs`. The crate does no I/O; the caller
//! passes what is known of tables ([`Schema`]).

mod any_address;
mod arguments;
mod condition;
mod functions;
mod fuzz;
mod index;
mod moment;
mod not_learned;
mod page;
mod postgres;
mod postings;
mod read;
mod row;
mod run_again;
mod schema;
mod schema_builder;
mod schema_queries;
mod session;
mod statement;
mod tokens;
mod value;
mod write;

pub use any_address::lookups_by_any_address;
pub use condition::Possible;
#[doc(hidden)]
pub use fuzz::fuzz_statements;
pub use index::{
    Index, MAX_PAGES, MAX_RECENT_WRITES, NoisyStatement, StatementToRun, Suspicion, SuspicionCause,
};
pub use not_learned::NotLearned;
pub use page::{MAX_RECORD_BYTES, MAX_STATEMENTS, PageRecord, SeenStatement};
pub use postgres::{PostgresQuery, PostgresSchemaBuilder};
pub use read::{QueryReading, may_alter};
pub use row::{Effect, MAX_CHANGES, Row, RowChange, TableChange, Transaction};
pub use run_again::{RunAgain, RunIn, RunText};
pub use schema::{Column, ColumnDescription, ColumnKind, MAX_TABLES, Schema, Table, TableNumber};
pub use schema_builder::SchemaBuilder;
pub use schema_queries::SchemaQuery;
pub use session::{Session, changes_plain_modes};
pub use statement::{MAX_SHAPES, Reading, Shapes, StatementMeaning};
pub use tokens::STACK_BYTES;
pub use value::Value;
pub use write::MAX_ROWS;
