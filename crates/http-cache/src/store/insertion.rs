//! Storing a response, with what has to leave for it; and counting what is kept beside a stored
//! response: encoded forms, files.

use super::promotion::KeptVerdict;
use super::shard;
use super::zone::Zone;
use crate::encoded::{EncodedForms, FormsHome};
use crate::key::KeyRef;
use crate::memory_file::Room;
use crate::private::Member;
use crate::purge::LabelNames;
use crate::purge::labels::NoRoom;
use crate::reason::Reason;
use crate::stored::StoredResponse;
use crate::time::Millis;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, Weak};

/// The source of a response that is to be stored.
#[derive(Clone, Copy)]
pub(super) enum Arrival<'a> {
    /// From the upstream.
    Fetched,
    /// A response that was kept elsewhere, with the verdict of the purges.
    Returned {
        names: &'a LabelNames<'a>,
        verdict: KeptVerdict,
    },
}

/// Why a response was not stored.
#[derive(Debug)]
pub(super) enum NotInserted {
    /// What is stored is newer.
    Newer,
    Because(Reason),
}

impl From<Reason> for NotInserted {
    fn from(reason: Reason) -> NotInserted {
        NotInserted::Because(reason)
    }
}

impl Zone {
    /// Stores a complete response that can be purged by its key alone.
    ///
    /// # Errors
    /// Too large, no room, purged since its stamp, or a response that was asked for later is stored.
    pub fn insert(
        &self,
        key: &KeyRef<'_>,
        response: StoredResponse,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, Reason> {
        self.insert_named(key, response, &LabelNames::default(), now)
    }

    /// Stores a complete response, which is purged by these labels from now on. (Leaders of
    /// [`Zone::collapse`] do this by themselves.)
    ///
    /// # Errors
    /// As for [`Zone::insert`].
    pub fn insert_named(
        &self,
        key: &KeyRef<'_>,
        response: StoredResponse,
        names: &LabelNames<'_>,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, Reason> {
        let stored = self.insert_arrived(key, response, names, Arrival::Fetched, now);
        let stored = stored.map_err(|why| match why {
            NotInserted::Because(reason) => reason,
            NotInserted::Newer => Reason::Superseded,
        })?;
        if let Some(tier) = self.tier() {
            tier.note_stored(key, &stored, now);
        }
        Ok(stored)
    }

    /// Stores a complete response, wherever it comes from.
    pub(super) fn insert_arrived(
        &self,
        key: &KeyRef<'_>,
        mut response: StoredResponse,
        names: &LabelNames<'_>,
        arrival: Arrival<'_>,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, NotInserted> {
        if response.body.len() > self.config.max_response_bytes {
            return Err(Reason::TooLarge.into());
        }
        let labels = self.labels.enter(names, response.stamp.0, self);
        let labels = labels.map_err(|NoRoom| Reason::NoRoom)?;
        response.labels = labels.clone();
        if response.guard().is_some() {
            self.purges.begin_guarding();
        }
        let stamp = response.stamp.0;
        let stored = self.insert_labelled(key, response, arrival, now);
        if stored.is_err() {
            self.labels.leave(&labels, stamp, self);
        }
        stored
    }

    /// Stores a response whose labels are counted already.
    fn insert_labelled(
        &self,
        key: &KeyRef<'_>,
        response: StoredResponse,
        arrival: Arrival<'_>,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, NotInserted> {
        let cost = shard::cost_bytes(key.bytes().len(), &response);
        if !self.reserve(cost) {
            return Err(Reason::NoRoom.into());
        }
        let home: Weak<dyn FormsHome> = self.me.clone();
        response.set_home(home, key.hash());
        let (block, response) = response.laid_out(key.bytes());
        let response = Arc::new(response);
        let cell = self.cell(key.hash());
        let id = self.next_id.fetch_add(1, Relaxed);
        let member = Member {
            hash: key.hash(),
            id,
            size_bytes: cost,
        };
        let bounded_group = response
            .group()
            .filter(|_| self.config.group_limits.is_some());
        let displaced = {
            let mut shard = cell.shard.write();
            // Under the lock: a purge that is not written down yet will find what we store.
            let refusal = match arrival {
                Arrival::Fetched if self.is_outdated(key, &response) => Some(Reason::Purged.into()),
                Arrival::Fetched if shard.has_later(key, &response, now) => {
                    Some(NotInserted::Newer)
                }
                Arrival::Fetched => None,
                Arrival::Returned { .. } if shard.has_newer(key, &response) => {
                    Some(NotInserted::Newer)
                }
                Arrival::Returned { names, verdict } => {
                    let facts = (response.head.status, response.stamp);
                    let is_same = self.judge_kept(key, names, facts) == verdict;
                    (!is_same).then_some(Reason::Purged.into())
                }
            };
            if let Some(refusal) = refusal {
                drop(shard);
                self.release(cost);
                return Err(refusal);
            }
            if let Some(group) = bounded_group {
                self.groups.enter(group, member);
            }
            let stored = (block, Arc::clone(&response));
            self.responses.fetch_add(1, Relaxed);
            cell.generation.fetch_add(1, Release);
            shard.insert(key, stored, id, now, self.config.max_variants)
        };
        self.counters
            .variants_dropped
            .fetch_add(displaced.dropped_variants, Relaxed);
        displaced.gone.iter().for_each(|gone| self.count_gone(gone));
        if displaced.uncounted_bytes > 0 {
            self.count_file(&response, member, displaced.uncounted_bytes);
        }
        if let Some((group, limits)) = bounded_group.zip(self.config.group_limits) {
            let last_used = |member: &Member| {
                let shard = self.cell(member.hash).shard.read();
                shard.last_used(member.hash, member.id).unwrap_or(Millis(0))
            };
            for member in self.groups.surplus(group, limits, last_used) {
                self.remove(member);
            }
        }
        cell.notes.lock().forget_refusal(key.hash());
        self.counters.stored.fetch_add(1, Relaxed);
        Ok(response)
    }

    /// Has a purge hit the response since its fetch began?
    fn is_outdated(&self, key: &KeyRef<'_>, response: &StoredResponse) -> bool {
        let stamp = response.stamp;
        self.purges.is_outdated(key, b"", stamp)
            || self.purges.are_outdated(&response.labels, stamp)
    }

    fn remove(&self, member: Member) {
        let mut shard = self.cell(member.hash).shard.write();
        let gone = shard.remove_id(member.hash, member.id);
        drop(shard);
        gone.iter().for_each(|gone| self.count_gone(gone));
    }

    /// Counts the file that a response brought along; one that there is no room for leaves again.
    fn count_file(&self, response: &StoredResponse, member: Member, bytes: u64) {
        let forms = &response.encoded_forms;
        let counted = self.count_beside(member.hash, forms, bytes, &mut |_| ());
        if counted.is_none() {
            self.remove(member);
        }
    }
}

impl FormsHome for Zone {
    fn attach(
        &self,
        hash: u64,
        forms: &Arc<EncodedForms>,
        bytes: u64,
        put: &mut dyn FnMut(),
    ) -> Option<bool> {
        let kept = self.count_beside(hash, forms, bytes, &mut |_| put());
        if kept == Some(true) {
            self.counters.encoded.fetch_add(1, Relaxed);
        }
        kept
    }

    fn count_beside(
        &self,
        hash: u64,
        forms: &Arc<EncodedForms>,
        bytes: u64,
        put: &mut dyn FnMut(bool),
    ) -> Option<bool> {
        // May let the response itself go.
        if !self.reserve(bytes) {
            return None;
        }
        let mut shard = self.cell(hash).shard.write();
        let is_here = shard.add_form(hash, forms, bytes);
        put(is_here);
        drop(shard);
        if !is_here {
            self.release(bytes);
        }
        Some(is_here)
    }

    fn take_file_room(&self, bytes: u64) -> Option<Room> {
        Room::take(&self.file_bytes, bytes, self.config.memory_budget_bytes)
    }
}
