//! Mayfly's numbers about itself: one table, and the forms in which they are shown.
//!
//! ```text
//!   table ──┬──► Snapshot ──┬──► JSON (control socket, dashboard, `mayfly top`)
//!           │               ├──► OpenMetrics and Prometheus text (`metrics;`)
//!           │               └──► History: the last hour, for plots
//!           └──► docs/metrics.md
//! ```
//!
//! [`table::TABLE`] defines each number: its name, its labels and its unit are written there and
//! nowhere else. This crate does not know who counts: the server fills a [`Snapshot`] on request.

mod definition;
mod exposition;
mod history;
mod reference;
mod snapshot;
pub mod table;
mod tally;
mod top;

pub use definition::{Definition, Label, NumberKind, Unit, Values};
pub use exposition::{open_metrics, prometheus_text};
pub use history::{EVERY_MS, History, HistoryReport, KEPT_POINTS};
pub use reference::reference;
pub use snapshot::{Distribution, Labels, Series, Snapshot, Value};
pub use table::Number;
pub use tally::{WaitTally, bucket};
pub use top::{Pages, Top, TopEntry, first_of};
