//! The state of the bus, for status pages.

use std::fmt;
use std::time::Duration;

use crate::engine::{EngineFacts, Epoch};

/// How things stand.
// Large: numbers and texts that are shown one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusState {
    /// The address of the engine.
    pub engine: String,
    /// Whether there is a connection to the engine.
    pub is_connected: bool,
    /// The milliseconds until the lease ends; negative: the time since its end. `None`: there was none yet.
    pub lease_left: Option<i64>,
    /// Whether it is a member, as far as it knows.
    pub is_member: bool,
    /// The log that it reads.
    pub epoch: Option<Epoch>,
    /// All entries up to this one are applied here.
    pub position: u64,
    /// The newest entry, as of the last renewal.
    pub tip: u64,
    /// The nodes that are members, as of the last renewal.
    pub nodes: u64,
    /// Purges of this node that are not confirmed.
    pub waiting: u64,
    /// Purges of this node that were confirmed.
    pub confirmed: u64,
    /// Purges of other nodes that were applied.
    pub applied: u64,
    /// How often all stored pages were void.
    pub voided: u64,
    /// How often a lease was lost.
    pub leases_lost: u64,
    /// How long the last renewal of the lease took, from the question to the answer.
    pub renewal: Option<Duration>,
    /// The engine's facts about itself.
    pub facts: EngineFacts,
    /// The reason why there is no connection.
    pub trouble: Option<String>,
}

/// An event to be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent {
    /// It is a member, and may use stored pages.
    LeaseHeld,
    /// Stored pages are not used for the time being.
    LeaseLost(Option<String>),
    /// All that was stored is void.
    Void(&'static str),
    /// There is no connection, and it is tried again.
    Trouble(String),
    /// The engine may throw the log away when its memory is full.
    Evicts(String),
    /// A node renews its lease and applies no purges, so that all of them wait for it.
    Stuck(String),
    /// The engine refuses purges when pages have filled its memory.
    FillsUp(String),
}

impl fmt::Display for BusEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BusEvent::LeaseHeld => f.write_str("this node holds a lease: stored pages are used"),
            BusEvent::LeaseLost(None) => {
                f.write_str("this node has lost its lease: stored pages are not used")
            }
            BusEvent::LeaseLost(Some(why)) => {
                write!(
                    f,
                    "this node has lost its lease: stored pages are not used ({why})"
                )
            }
            BusEvent::Void(why) => write!(f, "all stored pages are void: {why}"),
            BusEvent::Trouble(why) => write!(f, "{why}"),
            BusEvent::Evicts(policy) => write!(
                f,
                "the engine has a bound for its memory and throws away what its policy \"{policy}\" says, the log of \
                 purges as well: set maxmemory-policy noeviction"
            ),
            BusEvent::Stuck(node) => write!(
                f,
                "the node of {node} renews its lease and applies no purges: they wait for it. Stop that server, or write \
                 mayfly nodes --expel '{node}'"
            ),
            BusEvent::FillsUp(policy) => write!(
                f,
                "pages are shared, and an engine whose policy is \"{policy}\" refuses purges when pages have filled its \
                 memory: set maxmemory-policy volatile-lru"
            ),
        }
    }
}
