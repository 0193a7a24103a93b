//! Zones: where stored responses are kept, found, counted and let go.
//!
//! A zone is an array of shards, each behind its own lock; a lookup takes one shared lock for the
//! time of a table probe and clones one `Arc`. One counter holds what everything costs: memory is
//! reserved before it is used, evicting as needed, so the budget is never exceeded, not even for a
//! moment. The zone also owns the table of fetches under way ([`crate::collapse`]) and the purge
//! clock ([`crate::purge`]).
//!
//! Lock order: flights, then a shard, then groups or the purge log. Never two shards at once.
//!
//! ```text
//! zone       the shards, the counters, the budget
//!   shard    one index of stored responses, and the order in which they are let go
//!   notes    what is remembered of keys that nothing is stored for
//! sites      what the pages of a site vary on
//! purge_arrivals  whether the application's purges arrive
//! lookup     what is stored for a request
//! inspection what is stored, for people
//! insertion  storing, and what is kept beside a stored response
//! promotion  storing what was kept elsewhere
//! removal    purges and sweeps
//! wanted     the most wanted of what purges have hit
//! ```

mod beside;
mod insertion;
mod inspection;
mod lookup;
mod notes;
mod promotion;
mod purge_arrivals;
mod removal;
mod shard;
mod sites;
#[cfg(test)]
mod tests;
mod wanted;
mod zone;

pub use beside::PurgeListener;
pub use inspection::{InspectedResponse, StoredId, Walk};
pub(crate) use lookup::ResponseWorth;
pub use lookup::{FoundResponse, NotFresh, NotFreshKind};
pub use notes::{Refusal, Sharing};
pub use promotion::{KeptVerdict, Promotion};
pub use purge_arrivals::{AwaitedPurge, PurgeArrivals};
pub use removal::SweepResult;
pub use wanted::{MostWanted, WantedResponse, WantedWalk};
pub use zone::{Stats, Zone, ZoneConfig};
