//! The calls of a node to the engine, with their answers. `tests/model/engine.rs` defines the meaning of each
//! as a value; the scripts that run in a real engine do the same.
//!
//! The epoch names one life of one log: an engine that restarts, or that another takes over from,
//! has another one. Log entries are counted from 1 without gaps, so that a reader sees if one is
//! missing.

/// `join`: become a member, or come back as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinCall<E> {
    /// Greater than each beat that the node has sent before.
    pub beat: u64,
    /// The epoch of the log that the node has applied, and the position up to which it has.
    pub applied: Option<(E, u64)>,
}

/// The answer of `join`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinAnswer<E> {
    /// The log's epoch.
    pub epoch: E,
    /// The number of the oldest entry that is still there; `tip + 1` where the log is empty.
    pub first: u64,
    /// The number of the newest entry; 0 before the first.
    pub tip: u64,
}

/// `renew`: the lease goes on, and this is how far the node has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RenewCall<E> {
    /// The epoch in which the node is a member.
    pub epoch: E,
    /// Greater than each beat that the node has sent before.
    pub beat: u64,
    /// All entries up to this one have been applied.
    pub position: u64,
}

/// The answer of `renew`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RenewAnswer {
    /// The node is a member, and its beat and position are noted.
    Renewed,
    /// It is no member, or of another epoch: it has to join.
    NotMember,
}

/// The answer of `publish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PublishAnswer {
    /// The number of the (last) entry.
    Published(u64),
    /// The log is of another epoch.
    OtherEpoch,
}

/// `confirm`: has each member applied the log up to an entry?
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConfirmCall<E> {
    /// The epoch in which the entry was published.
    pub epoch: E,
    /// The entry's number.
    pub entry: u64,
    /// Members whose lease has ended if they have not renewed it since: instance and beat.
    pub expired: Vec<(u64, u64)>,
}

/// A member that has not come as far as the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MissingNode {
    /// The number of the node.
    pub instance: u64,
    /// Its last beat.
    pub beat: u64,
    /// It has applied the log up to here.
    pub position: u64,
}

/// The answer of `confirm`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConfirmAnswer {
    /// Each member has applied the entry, or its lease has ended.
    Yes,
    /// These members have not; all others have.
    Missing(Vec<MissingNode>),
    /// The caller is no member: it has to join.
    NotMember,
    /// The log is of another epoch: the entry has to be published there.
    OtherEpoch,
}
