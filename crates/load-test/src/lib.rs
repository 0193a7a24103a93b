//! Load from one client, measured as visitors would feel it.
//!
//! ```text
//! Plan ─► schedule: when is a request due? ─► run: visitors ask, each over connections of its own
//!                                              │ due, sent, done, answer
//!                                              ▼
//!                                           Recorder ─► Report ─► text, JSON, HTML
//! ```
//!
//! In the open model requests are due at fixed times, whether or not the server keeps up, and latency
//! counts from the moment when a request was due: the delays that a stalled server caused to those who
//! came meanwhile are in the percentiles (no coordinated omission). In the closed model each visitor
//! asks again when it has its answer, which measures how much a server can do, and not how long
//! visitors wait.
//!
//! Every request that became due is counted once: as an answer, or as an error with its kind.

pub mod answer;
pub mod html;
mod plan;
mod record;
mod replay;
mod report;
mod run;
mod schedule;
mod visitor;

pub use plan::{Load, Plan, PlanError, Settings};
pub use record::{Live, Recorder};
pub use replay::{Replay, ReplayError};
pub use report::{Comparison, Latency, Report};
pub use run::{Stop, run};
