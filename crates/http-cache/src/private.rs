//! Private copies: a bound on how much of a zone one session may take.
//!
//! A response stored for one session carries a group (a hash of the session's identity made by the
//! caller). Each group keeps a bounded number of responses and bytes; past that the
//! responses that were used longest ago are removed. The key must hold the whole identity: the group only counts.

use crate::time::Millis;
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
    /// Adds a member.
    pub(crate) fn enter(&self, group: u64, member: Member) {
        let mut table = self.table.lock();
        let group = table.entry(group).or_default();
        group.members.push_back(member);
        group.bytes += member.size_bytes;
    }

    /// Returns the members that must go: those used longest ago first, the newest itself when it is alone too large. Call it
    /// without a lock of a shard, since `last_used` takes one.
    pub(crate) fn surplus(
        &self,
        group: u64,
        limits: GroupLimits,
        last_used: impl Fn(&Member) -> Millis,
    ) -> Vec<Member> {
        let (members, mut bytes) = {
            let table = self.table.lock();
            let is_over = |group: &&Group| {
                group.members.len() > limits.max_responses || group.bytes > limits.max_bytes
            };
            match table.get(&group).filter(is_over) {
                Some(group) => (group.members.clone(), group.bytes),
                None => return Vec::new(),
            }
        };
        let mut left = members.len();
        let mut members: Vec<_> = members.into_iter().map(|it| (last_used(&it), it)).collect();
        // Of those that were used at one time, the oldest goes first.
        members.sort_by_key(|(used, _)| *used);
        // They leave the table when the store removes them.
        members
            .into_iter()
            .map(|(_, member)| member)
            .take_while(|member| {
                let over = left > limits.max_responses || bytes > limits.max_bytes;
                left -= 1;
                bytes = bytes.saturating_sub(member.size_bytes);
                over
            })
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
