//! How commands speak with a running server: JSON over HTTP on a unix socket that only its account
//! may connect to.
//!
//! ```text
//! POST /1/purge     PurgeRequest  ─► 200 PurgeReport, or 4xx/5xx Refusal
//! POST /1/warm      WarmRequest   ─► 200 WarmReport, or 4xx/5xx Refusal
//! POST /1/page      WarmRequest   ─► 200 with the content of the page, or 4xx/5xx Refusal
//! POST /1/explain   ExplainRequest ─► 200 Explanation, or 4xx/5xx Refusal
//! POST /1/search    SearchRequest ─► 200 FoundEntries, or 4xx/5xx Refusal
//! POST /1/entry     EntryRequest  ─► 200 Entry, or 4xx/5xx Refusal
//! POST /1/reload    nothing       ─► 200 CommandReport, or 4xx/5xx Refusal; as well /1/reopen,
//!                                    /1/quit, /1/stop
//! GET  /1/version                 ─► 200 Version
//! GET  /1/numbers                 ─► 200 Snapshot of crates/numbers
//! GET  /1/pages                   ─► 200 Pages of crates/numbers
//! GET  /1/history?since=MS        ─► 200 HistoryReport of crates/numbers: looks after that moment
//! ```
//!
//! The number at the beginning of each path is the version of this interface. Within a version,
//! answers may gain fields: clients skip fields that they do not know.
//!
//! [`socket`] makes the socket, [`server`] answers on it, [`client`] asks. A [`server::Handler`]
//! carries out the requests: nothing here knows the cache.

pub mod client;
pub mod command;
pub mod dashboard_request;
pub mod entries;
pub mod explain;
pub mod purge;
pub mod refusal;
pub mod server;
pub mod socket;
pub mod version;
pub mod warm;

pub use client::ClientError;
pub use command::{Command, CommandReport};
pub use entries::{Entry, EntryRequest, Form, FoundEntries, SearchRequest};
pub use explain::{ExplainRequest, Explanation};
pub use purge::{PurgeReport, PurgeRequest, TargetKind, TargetReport, ZoneReport};
pub use refusal::Refusal;
pub use server::{Caller, Handler};
pub use version::{VERSION, Version};
pub use warm::{WarmReport, WarmRequest, WarmResult};
