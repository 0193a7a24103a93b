//! Private copies: a bound on how much of a zone one session may take.
//!
//! A response stored for one session carries a group (a hash of the session's identity made by the
//! caller). Each group keeps a bounded number of responses and bytes; past that its oldest
//! responses are removed. The key must hold the whole identity: the group only counts.

use hashbrown::HashMap;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// How much one group may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// The most stored responses per group.
    pub max_responses: usize,
    /// The most bytes per group.
    pub max_bytes: u64,
}

/// The memory of a member in the table below: its entry and a share of its group's.
pub(crate) const MEMBER_BYTES: usize = 2 * size_of::<Member>() + 2 * size_of::<(u64, Group)>();

/// The groups of a zone. The bounds of the zone apply to them: a group lives as long as it has
/// members.
#[derive(Default)]
pub(crate) struct Groups {
    table: Mutex<HashMap<u64, Group, foldhash::quality::RandomState>>,
}

#[derive(Default)]
struct Group {
    /// Oldest first.
    members: VecDeque<Member>,
    bytes: u64,
}

/// One stored response of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The key's hash, to find its shard.
    pub hash: u64,
    /// The id it was stored with.
    pub id: u64,
    /// The bytes counted for it.
    pub size_bytes: u64,
}

impl Groups {
    /// Adds a member and gives those that must go for it: the oldest first, the new one itself
    /// when it is alone too large.
    pub(crate) fn enter(&self, group: u64, member: Member, limits: GroupLimits) -> Vec<Member> {
        let mut table = self.table.lock();
        let group = table.entry(group).or_default();
        group.members.push_back(member);
        group.bytes += member.size_bytes;
        let mut bytes = group.bytes;
        let mut left = group.members.len();
        // They leave the table when the store removes them.
        group
            .members
            .iter()
            .take_while(|oldest| {
                let over = left > limits.max_responses || bytes > limits.max_bytes;
                left -= 1;
                bytes = bytes.saturating_sub(oldest.size_bytes);
                over
            })
            .copied()
            .collect()
    }

    /// A member was removed from the store.
    pub(crate) fn leave(&self, group: u64, id: u64) {
        let mut table = self.table.lock();
        let Some(members) = table.get_mut(&group) else {
            return;
        };
        if let Some(at) = members.members.iter().position(|member| member.id == id)
            && let Some(member) = members.members.remove(at)
        {
            members.bytes = members.bytes.saturating_sub(member.size_bytes);
        }
        if members.members.is_empty() {
            table.remove(&group);
        }
    }

    /// Gives back the memory of the table beyond the groups that there are.
    pub(crate) fn shrink(&self) {
        self.table.lock().shrink_to_fit();
    }
}
