//! The order in which requests are served by servers that take a bounded number of them at once.
//!
//! ```text
//! Visit ─ Clients::assess ─► Turn, Class ─ FairQueue::join ─► next ─► take ─► StartedRequest
//!                                              ▲                                 │
//!                                  Slots ◄─ ConcurrencyLimit ◄── FairQueue::end ─┘
//! ```
//!
//! Requests wait in a line for each [`Class`]. Within a line, turns (a client, a session, clients that
//! behave alike) are ordered by start-time fair queueing (Goyal, Vin, Cheng 1996): the turn whose next
//! request has the lowest start tag goes first, and a request moves the tag of its turn forward by the
//! time that the server worked for it. [`ConcurrencyLimit`] finds how many requests at once are worth
//! while.
//!
//! Nothing here waits, reads a clock, or knows a socket: the time is an argument. All tables are bounded.
//! `docs/design/2026-11-29-fair-turns.md` has the decisions and their reasons.

mod asset_marks;
mod class;
mod clients;
mod crawl_delays;
mod decaying;
mod flow;
mod generations;
mod limit;
mod millis;
mod php_uses;
mod queue;
mod slots;

#[cfg(test)]
mod simulation;

pub use asset_marks::AssetMarks;
pub use class::{
    Class, LINE_NAMES, LINES, MAX_PASSED_OVER, MAX_WAITING_CRAWLERS, MAX_WAITING_IN_BACKGROUND,
    PLACES_OF_SEARCH_ENGINES, fragments_of_client,
};
pub use clients::{
    Assessment, Clients, CrawlerName, NameEvidence, RequestFacts, Turn, TurnKind, Visit, client,
};
pub use crawl_delays::{CrawlDelays, MAX_ROBOTS_BYTES};
pub use flow::TurnUse;
pub use limit::{Concurrency, ConcurrencyLimit, LimitReason, WorkerLoad};
pub use millis::Millis;
pub use php_uses::{PhpUse, UseKind};
pub use queue::{FairQueue, Search, StartedRequest};
pub use slots::Slots;
