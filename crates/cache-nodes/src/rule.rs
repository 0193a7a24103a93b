//! The rules that keep the promise, each with a name, so that a model can leave one out and show
//! the effect.

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Stored pages are used only while a lease is held.
    LeaseRequired,
    /// A lease lasts from before `renew` was sent, not from when its answer came.
    LeaseFromSending,
    /// A lease is held once the position has reached the tip that `join` gave.
    LeaseAfterCatchingUp,
    /// The clock is read after the request was read.
    FreshReading,
    /// A publisher waits longer than a lease lasts.
    WaitLongerThanLease,
    /// A beat is taken for expired only if it is still the one that was seen.
    BeatCompared,
    /// A node that sees a new epoch confirms nothing in it until old leases have ended.
    WaitInNewEpoch,
    /// A node without a lease that meets a new epoch lets go of all it has.
    NewEpochVoids,
    /// A node that finds an entry missing in the log lets go of all it has.
    GapVoids,
    /// A fetch that began before a purge is neither stored nor joined after it.
    FetchOutdated,
    /// The pages on disk have seen the purges up to the position on disk.
    PurgesBeforePosition,
    /// At `join`, a majority confirms that the engine is the one in force.
    MajorityAtJoin,
    /// After each `confirm`, a majority confirms the same.
    MajorityAfterConfirm,
    /// After each `renew` was sent, a majority confirms the same.
    MajorityAfterRenew,
    /// `confirm` refuses a caller that is no member: of an engine that lost everything, too.
    ConfirmByMembers,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 15] = [
        Rule::LeaseRequired,
        Rule::LeaseFromSending,
        Rule::LeaseAfterCatchingUp,
        Rule::FreshReading,
        Rule::WaitLongerThanLease,
        Rule::BeatCompared,
        Rule::WaitInNewEpoch,
        Rule::NewEpochVoids,
        Rule::GapVoids,
        Rule::FetchOutdated,
        Rule::PurgesBeforePosition,
        Rule::MajorityAtJoin,
        Rule::MajorityAfterConfirm,
        Rule::MajorityAfterRenew,
        Rule::ConfirmByMembers,
    ];
}

/// The rules that hold.
pub trait Rules {
    fn hold(&self, rule: Rule) -> bool;
}

/// All rules hold: the protocol as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EveryRule;

impl Rules for EveryRule {
    #[inline]
    fn hold(&self, _: Rule) -> bool {
        true
    }
}
