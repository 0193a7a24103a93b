//! What Mayfly knows about itself: one table of numbers, and the forms in which they are shown.
//!
//! ```text
//!   table ──┬──► Snapshot ──┬──► JSON (control socket, dashboard, `mayfly top`)
//!           │               ├──► OpenMetrics and Prometheus text (`metrics;`)
//!           │               └──► History: the last hour, for plots
//!           └──► docs/metrics.md
//! ```
//!
//! [`table::TABLE`] has one definition for each number. A name, a label or a unit is written there
//! and nowhere else. Who counts is not known here: the server fills a [`Snapshot`] when somebody asks.

mod definition;
mod exposition;
mod history;
mod reference;
mod snapshot;
pub mod table;
mod tally;
mod top;

pub use definition::{Definition, Kind, Label, Unit, Values};
pub use exposition::{open_metrics, prometheus_text};
pub use history::{EVERY_MS, History, HistoryReport, KEPT_POINTS};
pub use reference::reference;
pub use snapshot::{Distribution, Labels, Series, Snapshot, Value};
pub use table::Number;
pub use tally::{WaitTally, bucket};
pub use top::{Pages, Top, TopEntry, first_of};
