//! Decides by RFC 9111 whether responses may be stored and reused, and stores them.
//!
//! ```text
//!   CacheKey ──► Zone::find ──► Fresh | NotFresh(Stale | VaryMiss | Miss | NotShareable)
//!                                          │       │       │         └── Zone::detached
//!                                          │       └───────┴── Zone::collapse ──► Lead | Follow | Fresh | Alone
//!                                          └── Zone::refresh ──► Leader
//!   Leader ──► decide(..) ──► publish_head ──► ArrivingResponse ──► complete ──► stored
//!   stored ──► encoded(coding) ──► Ready | Useless | Busy | Absent(Claim) ──► attach
//! ```
//!
//! Opens no socket, reads no clock ([`Millis`] is an argument), knows no configuration syntax and no upstream
//! protocol. The fetch belongs to the cache: the client that caused it reads along like the others.

pub mod body;
pub mod collapse;
pub mod encoded;
pub mod fields;
mod flight;
pub mod freshness;
pub mod guard;
mod held_lock;
pub mod key;
pub mod memory_file;
pub mod outcome;
mod policy;
pub mod private;
pub mod purge;
mod reason;
pub mod record;
mod size_class;
pub mod stale;
pub mod storability;
pub mod store;
pub mod stored;
pub mod tier;
pub mod time;
pub mod vary;

#[cfg(test)]
mod testing;

pub use body::Body;
pub use collapse::{
    AloneReason, ArrivingResponse, FlightEnd, Follower, FollowerOutcome, Join, JoinRequest,
    LaterJoin, Leader, Progress, PushResult, Reader, TruncatedResponse, Urgency, WaitingRequest,
};
pub use encoded::{Claim, EncodedForms, EncodedLookup, Encoding, PendingForm};
pub use fields::{Field, KnownField, NoFields, RequestFields, StoredFields, is_html};
pub use freshness::{CacheControl, LifetimeSource};
pub use guard::{Guard, GuardVerdict};
pub use key::{CacheKey, KeyRef};
pub use memory_file::MemoryFile;
pub use outcome::{Forward, Outcome, ServedFrom, UpstreamCacheStatus};
pub use policy::{IgnoreFields, Methods, Policy, StatusSet, ValidRule};
pub use private::GroupLimits;
pub use purge::{
    LabelNames, OwnedPurgeTarget, Pattern, PurgeMode, PurgeResult, PurgeTarget, Stamp, Tags,
    TooManyTags,
};
pub use reason::{DecidedBy, Reason};
pub use stale::{StaleBounds, StaleInfo, StaleReason, StaleRule, UseStale, may_serve_stale};
pub use storability::{RequestFacts, ResponseFacts, Storable, decide};
pub use store::{
    AwaitedPurge, FoundResponse, InspectedResponse, KeptVerdict, MostWanted, NotFresh,
    NotFreshKind, Promotion, PurgeArrivals, PurgeListener, Refusal, Sharing, Stats, StoredId,
    SweepResult, Walk, WantedResponse, WantedWalk, Zone, ZoneConfig,
};
pub use stored::{ResponseHead, StoredHead, StoredResponse};
pub use tier::{FilePart, Tier, TierBody, TierFuture, TierLook, TierPage};
pub use time::{Millis, RoughSpan};
pub use vary::{ONE_COOKIE, VaryKey, VarySpec};
