//! Evidence that a page may be shared: the answers to visitors' own requests and to the shared one, and
//! the rule for the next visitor.
//!
//! A visitor's own request runs the application once, and its answer is for that visitor. If such an
//! answer could have been stored, the page may be shareable: the shared request, which [`shared_request`]
//! writes without the parts that are only this visitor's, is made for the next one, and both answers are
//! compared. The same bytes are evidence that nothing that was left out matters; different bytes are a
//! question, which a trial answers.
//!
//! ```text
//! render    an answer as far as it is compared
//! page      the record of one page, and its rules
//! shape     the evidence about pages whose addresses look alike
//! table     the records of all pages, bounded; the visitors whose requests are under way
//! own_run   a visitor's part, and how it ended
//! trial     why two answers differ, found out by trying
//! budget    how many requests trials may cost
//! halves    a bounded map
//! ```
//!
//! A loosened rule (a value does not matter on pages of this shape) needs two pages and two networks, so
//! that it never depends on one visitor's requests. A tightened rule needs one trial.
//!
//! No I/O and no clock: times are arguments.

mod budget;
mod halves;
mod own_run;
mod page;
mod page_name;
mod render;
mod shape;
mod table;
mod trial;
mod zone_budgets;

pub use budget::Budget;
pub use halves::Halves;
pub use own_run::{OwnEnd, OwnRun, Part, TrialOrder};
pub use page::{AnswerOutline, PageFindings, SessionStanding, Standing};
pub use page_name::PageName;
pub use render::{Renderer, Rendering, differ_in_what_stays};
pub use shape::shape_of;
pub use table::{Counts, Evidence};
pub use trial::{Trial, TrialStep, TrialVerdict};
