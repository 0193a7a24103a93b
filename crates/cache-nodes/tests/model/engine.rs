//! The engine as a value, which defines the meaning of each call.

use std::collections::VecDeque;

use cache_nodes::{
    ConfirmAnswer, ConfirmCall, JoinAnswer, JoinCall, MissingNode, PublishAnswer, RenewAnswer,
    RenewCall, Rule, Rules,
};

/// The result of reading after a position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReadAnswer<P> {
    /// The next entry that is there, with its number.
    Entry(u64, P),
    /// No entry has followed yet.
    Nothing,
    /// The log is of another epoch.
    OtherEpoch,
}

/// A member as the engine knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Member {
    instance: u64,
    beat: u64,
    position: u64,
}

/// The state of an engine for one bus: the log and the members. All of it is there, or none: the
/// epoch, the members and the tip are fields of one hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Engine<E, P> {
    /// `None` until the first node joins, and after everything was lost.
    epoch: Option<E>,
    entries: VecDeque<P>,
    tip: u64,
    members: Vec<Member>,
}

impl<E: Clone + PartialEq, P: Clone> Default for Engine<E, P> {
    fn default() -> Engine<E, P> {
        Engine::new()
    }
}

impl<E: Clone + PartialEq, P: Clone> Engine<E, P> {
    /// An engine that knows nothing of the bus.
    #[must_use]
    pub fn new() -> Engine<E, P> {
        Engine {
            epoch: None,
            entries: VecDeque::new(),
            tip: 0,
            members: Vec::new(),
        }
    }

    /// The number of the newest entry.
    #[must_use]
    pub fn tip(&self) -> u64 {
        self.tip
    }

    fn first(&self) -> u64 {
        self.tip + 1 - self.entries.len() as u64
    }

    fn is_of(&self, epoch: &E) -> bool {
        self.epoch.as_ref() == Some(epoch)
    }

    /// Makes the node a member. Its position counts if it is of this epoch; otherwise the node has
    /// to read from the beginning, or reports at its next `renew` that it needs nothing of it. If
    /// there is no log yet, `new_epoch` becomes its epoch.
    pub fn join(&mut self, instance: u64, call: &JoinCall<E>, new_epoch: E) -> JoinAnswer<E> {
        let epoch = self.epoch.get_or_insert(new_epoch).clone();
        let applied = call.applied.as_ref();
        let position = applied.filter(|(of, _)| *of == epoch);
        let position = position.map_or(0, |&(_, position)| position);
        self.members.retain(|member| member.instance != instance);
        self.members.push(Member {
            instance,
            beat: call.beat,
            position,
        });
        self.members.sort_by_key(|member| member.instance);
        JoinAnswer {
            epoch,
            first: self.first(),
            tip: self.tip,
        }
    }

    /// Notes beat and position of a member.
    pub fn renew(&mut self, instance: u64, call: &RenewCall<E>) -> RenewAnswer {
        let is_current = self.is_of(&call.epoch);
        let mut members = self.members.iter_mut();
        let member = members.find(|member| member.instance == instance && member.beat < call.beat);
        match member.filter(|_| is_current) {
            Some(member) => {
                member.beat = call.beat;
                member.position = call.position;
                RenewAnswer::Renewed
            }
            None => RenewAnswer::NotMember,
        }
    }

    /// Appends an entry.
    pub fn publish(&mut self, epoch: &E, purge: P) -> PublishAnswer {
        if !self.is_of(epoch) {
            return PublishAnswer::OtherEpoch;
        }
        self.entries.push_back(purge);
        self.tip += 1;
        PublishAnswer::Published(self.tip)
    }

    /// The entry that follows `position`, or the oldest that is there if that was removed.
    #[must_use]
    pub fn read(&self, epoch: &E, position: u64) -> ReadAnswer<P> {
        if !self.is_of(epoch) {
            return ReadAnswer::OtherEpoch;
        }
        let number = (position + 1).max(self.first());
        let entry = self.entries.get((number - self.first()) as usize);
        match entry {
            Some(purge) => ReadAnswer::Entry(number, purge.clone()),
            None => ReadAnswer::Nothing,
        }
    }

    /// Answers whether all members have come as far as the entry; those whose lease has ended are
    /// members no longer.
    pub fn confirm(
        &mut self,
        instance: u64,
        call: &ConfirmCall<E>,
        rules: &impl Rules,
    ) -> ConfirmAnswer {
        if self.epoch.is_some() && !self.is_of(&call.epoch) {
            return ConfirmAnswer::OtherEpoch;
        }
        // If everything was lost there are no members, and "each has applied it" holds for an
        // empty list.
        let is_member = self.members.iter().any(|it| it.instance == instance);
        if !is_member && rules.hold(Rule::ConfirmByMembers) {
            return ConfirmAnswer::NotMember;
        }
        let has_expired = |member: &Member| {
            call.expired.iter().any(|&(instance, beat)| {
                let is_same_beat = beat == member.beat || !rules.hold(Rule::BeatCompared);
                instance == member.instance && is_same_beat
            })
        };
        self.members
            .retain(|member| member.position >= call.entry || !has_expired(member));
        let missing: Vec<_> = self
            .members
            .iter()
            .filter(|member| member.position < call.entry)
            .map(|member| MissingNode {
                instance: member.instance,
                beat: member.beat,
                position: member.position,
            })
            .collect();
        match missing.is_empty() {
            true => ConfirmAnswer::Yes,
            false => ConfirmAnswer::Missing(missing),
        }
    }

    /// Removes the oldest entry.
    pub fn trim(&mut self) {
        self.entries.pop_front();
    }

    /// Everything is lost (`FLUSHDB`, a start without data).
    pub fn lose_all(&mut self) {
        *self = Engine::new();
    }

    /// Returns the state that a replica takes over: a beginning of the log, and all members or
    /// none.
    #[must_use]
    pub fn fail_over(&self, epoch: E, tip: u64, keeps_members: bool) -> Engine<E, P> {
        let mut replica = self.clone();
        while replica.tip > tip && !replica.entries.is_empty() {
            replica.entries.pop_back();
            replica.tip -= 1;
        }
        replica.epoch = self.epoch.as_ref().map(|_| epoch);
        if !keeps_members {
            replica.members.clear();
        }
        replica
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache_nodes::{BootMillis, Confirmation, ConfirmationState, EveryRule, LeaseTimes, Node};

    fn joined(engine: &mut Engine<u8, char>, instance: u64) {
        let call = JoinCall {
            beat: 1,
            applied: None,
        };
        engine.join(instance, &call, 0);
    }

    fn renew(beat: u64, position: u64) -> RenewCall<u8> {
        RenewCall {
            epoch: 0,
            beat,
            position,
        }
    }

    fn confirm(entry: u64, expired: &[(u64, u64)]) -> ConfirmCall<u8> {
        ConfirmCall {
            epoch: 0,
            entry,
            expired: expired.to_vec(),
        }
    }

    #[test]
    fn an_entry_is_confirmed_once_all_members_have_come_as_far() {
        let mut engine = Engine::new();
        joined(&mut engine, 1);
        joined(&mut engine, 2);
        assert_eq!(engine.publish(&0, 'a'), PublishAnswer::Published(1));
        engine.renew(1, &renew(2, 1));
        let missing = vec![MissingNode {
            instance: 2,
            beat: 1,
            position: 0,
        }];
        let answer = engine.confirm(1, &confirm(1, &[]), &EveryRule);
        assert_eq!(answer, ConfirmAnswer::Missing(missing));
        engine.renew(2, &renew(2, 1));
        let answer = engine.confirm(1, &confirm(1, &[]), &EveryRule);
        assert_eq!(answer, ConfirmAnswer::Yes);
    }

    #[test]
    fn a_member_with_an_expired_beat_is_removed_unless_it_has_renewed() {
        let mut engine = Engine::new();
        joined(&mut engine, 1);
        joined(&mut engine, 2);
        engine.publish(&0, 'a');
        engine.renew(1, &renew(2, 1));
        engine.renew(2, &renew(3, 0));
        let of_old_beat = engine.confirm(1, &confirm(1, &[(2, 1)]), &EveryRule);
        assert!(matches!(of_old_beat, ConfirmAnswer::Missing(_)));
        let of_last_beat = engine.confirm(1, &confirm(1, &[(2, 3)]), &EveryRule);
        assert_eq!(of_last_beat, ConfirmAnswer::Yes);
        assert_eq!(engine.renew(2, &renew(4, 1)), RenewAnswer::NotMember);
    }

    #[test]
    fn callers_that_are_no_members_and_other_epochs_are_refused() {
        let mut engine = Engine::new();
        joined(&mut engine, 2);
        engine.publish(&0, 'a');
        let answer = engine.confirm(1, &confirm(1, &[]), &EveryRule);
        assert_eq!(answer, ConfirmAnswer::NotMember);
        let mut replica = engine.fail_over(1, 1, true);
        assert_eq!(replica.publish(&0, 'b'), PublishAnswer::OtherEpoch);
        assert_eq!(replica.read(&0, 0), ReadAnswer::OtherEpoch);
        let answer = replica.confirm(1, &confirm(1, &[]), &EveryRule);
        assert_eq!(answer, ConfirmAnswer::OtherEpoch);
    }

    #[test]
    fn a_beat_that_is_not_greater_renews_nothing() {
        let mut engine: Engine<u8, char> = Engine::new();
        joined(&mut engine, 1);
        assert_eq!(engine.renew(1, &renew(1, 0)), RenewAnswer::NotMember);
        assert_eq!(engine.renew(1, &renew(2, 0)), RenewAnswer::Renewed);
    }

    #[test]
    fn a_reader_whose_next_entry_was_removed_gets_the_oldest_that_is_left() {
        let mut engine = Engine::new();
        joined(&mut engine, 9);
        for purge in ['a', 'b', 'c'] {
            engine.publish(&0, purge);
        }
        engine.trim();
        assert_eq!(engine.read(&0, 0), ReadAnswer::Entry(2, 'b'));
        assert_eq!(engine.read(&0, 3), ReadAnswer::Nothing);
        let call = JoinCall {
            beat: 1,
            applied: None,
        };
        let answer = engine.join(1, &call, 0);
        assert_eq!((answer.first, answer.tip), (2, 3));
    }

    #[test]
    fn an_engine_that_lost_everything_confirms_nothing_until_a_node_joins() {
        let mut engine = Engine::new();
        joined(&mut engine, 1);
        engine.publish(&0, 'a');
        engine.lose_all();
        let answer = engine.confirm(1, &confirm(1, &[]), &EveryRule);
        assert_eq!(answer, ConfirmAnswer::NotMember);
        assert_eq!(engine.publish(&0, 'a'), PublishAnswer::OtherEpoch);
        assert_eq!(engine.renew(1, &renew(2, 1)), RenewAnswer::NotMember);
        let call = JoinCall {
            beat: 3,
            applied: Some((0, 1)),
        };
        let answer = engine.join(1, &call, 5);
        assert_eq!((answer.epoch, answer.tip), (5, 0));
        let answer = engine.confirm(1, &confirm(1, &[]), &EveryRule);
        assert_eq!(answer, ConfirmAnswer::OtherEpoch);
    }

    #[test]
    fn a_replica_has_a_beginning_of_the_log() {
        let mut engine = Engine::new();
        joined(&mut engine, 9);
        for purge in ['a', 'b', 'c'] {
            engine.publish(&0, purge);
        }
        let mut replica = engine.fail_over(1, 1, false);
        assert_eq!(replica.publish(&1, 'x'), PublishAnswer::Published(2));
        assert_eq!(replica.read(&1, 1), ReadAnswer::Entry(2, 'x'));
    }

    #[test]
    fn the_entries_that_a_waiting_one_confirms_are_those_that_would_be_confirmed_alone() {
        let times = LeaseTimes {
            lease: 100,
            expiry_wait: 110,
        };
        let mut node = Node::new(times, None, EveryRule);
        let first = JoinAnswer {
            epoch: 0,
            first: 1,
            tip: 0,
        };
        let _ = node.joined(first, true, BootMillis(0), BootMillis(0));
        for positions in [[3, 5, 9], [0, 9, 9], [9, 9, 8], [4, 4, 4]] {
            let mut engine = Engine::<u8, char>::new();
            for (instance, position) in (1..).zip(positions) {
                let (beat, applied) = (1, None);
                engine.join(instance, &JoinCall { beat, applied }, 0);
                let (epoch, beat) = (0, 2);
                engine.renew(
                    instance,
                    &RenewCall {
                        epoch,
                        beat,
                        position,
                    },
                );
            }
            let mut ask = |entry| {
                let mut purge = Confirmation::new(0, entry);
                let call = purge.call(&node, BootMillis(500)).unwrap();
                let answer = engine.confirm(1, &call, &EveryRule);
                purge.answered(&answer, true, &node, BootMillis(500))
            };
            let ConfirmationState::Waiting(by_all) = ask(10) else {
                panic!("{positions:?}");
            };
            for entry in 1..10 {
                let alone = ask(entry) == ConfirmationState::Confirmed;
                assert_eq!(alone, entry <= by_all, "{positions:?} {entry}");
            }
        }
    }
}
