//! A node on the bus: the purges it has applied, and until when it may use its stored pages.

use crate::engine::{JoinAnswer, JoinCall, RenewAnswer, RenewCall};
use crate::rule::{EveryRule, Rule, Rules};
use crate::time::{BootMillis, LeaseTimes};

/// The log that a node has applied, and the position up to which it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AppliedPurges<E> {
    /// The log's epoch.
    pub epoch: E,
    /// All entries up to this one have been applied, or all that was stored before is void.
    pub position: u64,
}

/// The fate of a node's stored pages when it has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum JoinEffect {
    /// They stay: the log has the purges since then.
    Keep,
    /// They are void, and so are fetches under way. Call [`Node::has_applied`] with the tip then.
    Void {
        /// The log's newest entry.
        tip: u64,
    },
    /// The engine is not the one in force: leave it, and join another.
    Leave,
}

/// The effect of an entry on the node that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum LogEntryEffect {
    /// Apply it, then call [`Node::has_applied`].
    Apply,
    /// Entries are missing before it: let go of all that is stored, of fetches under way too, apply
    /// it, then call [`Node::has_applied`].
    VoidAndApply,
    /// It was applied before.
    Known,
}

/// Until when stored pages may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Lease {
    until: BootMillis,
    /// A lease that begins once the position has reached the second number.
    after_catching_up: Option<(BootMillis, u64)>,
}

/// A node. It joins under an instance number of its own, chosen at random at each start, so that
/// no two lives are taken for one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node<E, R = EveryRule> {
    rules: R,
    times: LeaseTimes,
    beat: u64,
    applied: Option<AppliedPurges<E>>,
    /// The stored pages have missed purges, and are about to be removed.
    is_stored_void: bool,
    is_member: bool,
    lease: Lease,
    /// The epoch that it saw last, and when this life of it first did.
    seen_epoch: Option<(E, BootMillis)>,
}

impl<E: Clone + PartialEq, R: Rules> Node<E, R> {
    /// A node that has not joined. `applied` is the position on its disk up to which the pages there
    /// have seen purges.
    #[must_use]
    pub fn new(times: LeaseTimes, applied: Option<AppliedPurges<E>>, rules: R) -> Node<E, R> {
        Node {
            rules,
            times,
            beat: 0,
            applied,
            is_stored_void: false,
            is_member: false,
            lease: Lease::default(),
            seen_epoch: None,
        }
    }

    /// The rules that hold for it.
    pub fn rules(&self) -> &R {
        &self.rules
    }

    /// Its two times.
    pub fn times(&self) -> LeaseTimes {
        self.times
    }

    pub fn applied(&self) -> Option<&AppliedPurges<E>> {
        self.applied.as_ref()
    }

    /// Returns the purges applied to all stored pages; `None` also while void pages are not yet removed.
    pub fn applied_to_stored(&self) -> Option<&AppliedPurges<E>> {
        self.applied.as_ref().filter(|_| !self.is_stored_void)
    }

    /// The epoch in which it is a member.
    pub fn epoch(&self) -> Option<&E> {
        let applied = self.applied.as_ref().filter(|_| self.is_member);
        applied.map(|applied| &applied.epoch)
    }

    /// Until when no purge is confirmed in the epoch: leases of an epoch before may run until then.
    pub fn confirms_from(&self) -> BootMillis {
        match &self.seen_epoch {
            Some((_, at)) if self.rules.hold(Rule::WaitInNewEpoch) => {
                at.plus(self.times.expiry_wait)
            }
            _ => BootMillis(0),
        }
    }

    /// Whether stored pages, and fetches that have begun, may be used. `now` is a reading of the clock
    /// made after the request was read: a thread that was stopped in between must see that time has
    /// passed.
    pub fn may_use(&self, now: BootMillis) -> bool {
        now < self.lease.until || !self.rules.hold(Rule::LeaseRequired)
    }

    /// Returns the time until which [`Node::may_use`] is true, as things stand.
    pub fn lease_until(&self) -> BootMillis {
        self.lease.until
    }

    /// The call by which it joins. Read the clock before you send it.
    pub fn join(&mut self) -> JoinCall<E> {
        self.beat += 1;
        let applied = self.applied.as_ref();
        JoinCall {
            beat: self.beat,
            applied: applied.map(|it| (it.epoch.clone(), it.position)),
        }
    }

    /// The node has joined. `sent_at` is from before the call was sent; `is_in_force` is the verdict of
    /// a majority on the engine after the answer had come.
    pub fn joined(
        &mut self,
        answer: JoinAnswer<E>,
        is_in_force: bool,
        sent_at: BootMillis,
        now: BootMillis,
    ) -> JoinEffect {
        self.is_member = is_in_force || !self.rules.hold(Rule::MajorityAtJoin);
        if !self.is_member {
            return JoinEffect::Leave;
        }
        let known = self.applied.as_ref().filter(|it| it.epoch == answer.epoch);
        let known = known.map(|applied| applied.position);
        let seen = self.seen_epoch.as_ref();
        if seen.is_none_or(|(epoch, _)| *epoch != answer.epoch) {
            self.seen_epoch = Some((answer.epoch.clone(), now));
        }
        let (position, keeps) = match known {
            Some(position) => {
                let is_whole = position + 1 >= answer.first && position <= answer.tip;
                (position, is_whole || !self.rules.hold(Rule::GapVoids))
            }
            // While its lease runs, nothing can have been confirmed without it, so that each purge it
            // lacks is still to come. It reads the log from the beginning, which must be there.
            None => {
                let has_lease = now < self.lease.until && answer.first == 1;
                let keeps = has_lease || !self.rules.hold(Rule::NewEpochVoids);
                (0, keeps)
            }
        };
        self.applied = Some(AppliedPurges {
            epoch: answer.epoch,
            position,
        });
        self.lease.after_catching_up = Some((sent_at.plus(self.times.lease), answer.tip));
        self.begin_lease();
        self.is_stored_void |= !keeps;
        match self.is_stored_void {
            true => JoinEffect::Void { tip: answer.tip },
            false => JoinEffect::Keep,
        }
    }

    /// The call by which the node renews its lease and reports its position; `None` if it is no member.
    /// Read the clock before you send it.
    pub fn renew(&mut self) -> Option<RenewCall<E>> {
        let applied = self.applied.as_ref().filter(|_| self.is_member)?;
        self.beat += 1;
        Some(RenewCall {
            epoch: applied.epoch.clone(),
            beat: self.beat,
            position: applied.position,
        })
    }

    /// The renewal was answered. `sent_at` is from before the call was sent; `is_in_force` is the
    /// verdict of a majority on the engine after it was sent.
    pub fn renewed(
        &mut self,
        epoch: &E,
        answer: RenewAnswer,
        is_in_force: bool,
        sent_at: BootMillis,
        now: BootMillis,
    ) {
        if self.epoch() != Some(epoch) {
            return;
        }
        let is_in_force = is_in_force || !self.rules.hold(Rule::MajorityAfterRenew);
        if answer == RenewAnswer::NotMember || !is_in_force {
            self.leave();
            return;
        }
        let from = match self.rules.hold(Rule::LeaseFromSending) {
            true => sent_at,
            false => now,
        };
        let until = from.plus(self.times.lease);
        match &mut self.lease.after_catching_up {
            Some((later, _)) => *later = until.max(*later),
            None => self.lease.until = until.max(self.lease.until),
        }
    }

    /// Ends the node's membership, since its connection was lost or the engine does not list it. Its lease ends in its own
    /// time.
    pub fn leave(&mut self) {
        self.is_member = false;
        self.lease.after_catching_up = None;
    }

    /// Returns the effect of an entry that the node read.
    pub fn entry(&self, number: u64) -> LogEntryEffect {
        let position = self.applied.as_ref().map_or(0, |applied| applied.position);
        match number {
            _ if number <= position => LogEntryEffect::Known,
            _ if number == position + 1 || !self.rules.hold(Rule::GapVoids) => {
                LogEntryEffect::Apply
            }
            _ => LogEntryEffect::VoidAndApply,
        }
    }

    /// All entries up to this one have been applied, or pages stored before are void.
    pub fn has_applied(&mut self, number: u64) {
        if let Some(applied) = &mut self.applied {
            applied.position = applied.position.max(number);
        }
        self.is_stored_void = false;
        self.begin_lease();
    }

    /// Begins the lease that was given at `join`, once the node has caught up.
    fn begin_lease(&mut self) {
        let position = self.applied.as_ref().map_or(0, |applied| applied.position);
        let must_catch_up = self.rules.hold(Rule::LeaseAfterCatchingUp);
        let begun = self
            .lease
            .after_catching_up
            .take_if(|(_, tip)| position >= *tip || !must_catch_up);
        if let Some((until, _)) = begun {
            self.lease.until = until.max(self.lease.until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: LeaseTimes = LeaseTimes {
        lease: 100,
        expiry_wait: 110,
    };

    fn at(millis: u64) -> BootMillis {
        BootMillis(millis)
    }

    fn answer(epoch: u8, first: u64, tip: u64) -> JoinAnswer<u8> {
        JoinAnswer { epoch, first, tip }
    }

    /// A member since 1,000, with all entries up to 5 applied.
    fn member() -> Node<u8> {
        let applied = AppliedPurges {
            epoch: 0,
            position: 5,
        };
        let mut node = Node::new(TIMES, Some(applied), EveryRule);
        node.join();
        let effect = node.joined(answer(0, 1, 5), true, at(1000), at(1010));
        assert_eq!(effect, JoinEffect::Keep);
        node
    }

    #[test]
    fn a_lease_lasts_from_before_the_call_was_sent() {
        let mut node = member();
        assert!(node.may_use(at(1099)) && !node.may_use(at(1100)));
        node.renew();
        node.renewed(&0, RenewAnswer::Renewed, true, at(1050), at(1090));
        assert!(node.may_use(at(1149)) && !node.may_use(at(1150)));
    }

    #[test]
    fn a_lease_begins_once_the_node_has_caught_up() {
        let mut node: Node<u8> = Node::new(TIMES, None, EveryRule);
        node.join();
        let effect = node.joined(answer(0, 1, 2), true, at(1000), at(1000));
        assert_eq!(effect, JoinEffect::Void { tip: 2 });
        assert!(!node.may_use(at(1001)));
        assert_eq!(node.applied_to_stored(), None);
        node.has_applied(1);
        assert_eq!(node.applied_to_stored().map(|it| it.position), Some(1));
        assert!(!node.may_use(at(1001)));
        node.renew();
        node.renewed(&0, RenewAnswer::Renewed, true, at(1050), at(1060));
        assert!(!node.may_use(at(1061)));
        node.has_applied(2);
        assert!(node.may_use(at(1149)) && !node.may_use(at(1150)));
    }

    #[test]
    fn an_engine_that_is_not_in_force_gives_no_lease() {
        let mut node: Node<u8> = Node::new(TIMES, None, EveryRule);
        node.join();
        let effect = node.joined(answer(0, 1, 0), false, at(1000), at(1000));
        assert_eq!(effect, JoinEffect::Leave);
        assert!(!node.may_use(at(1001)) && node.renew().is_none());

        let mut node = member();
        node.renew();
        node.renewed(&0, RenewAnswer::Renewed, false, at(1090), at(1095));
        assert!(node.may_use(at(1099)) && !node.may_use(at(1100)));
        assert_eq!(node.epoch(), None);
    }

    #[test]
    fn a_node_that_comes_back_keeps_its_pages_if_the_log_is_whole() {
        let rejoins = [
            ("nothing new", answer(0, 1, 5), JoinEffect::Keep),
            ("entries to read", answer(0, 6, 9), JoinEffect::Keep),
            ("a gap", answer(0, 7, 9), JoinEffect::Void { tip: 9 }),
            (
                "a shorter log",
                answer(0, 1, 4),
                JoinEffect::Void { tip: 4 },
            ),
            (
                "another epoch",
                answer(1, 1, 5),
                JoinEffect::Void { tip: 5 },
            ),
        ];
        for (what, answer, expected) in rejoins {
            let mut node = member();
            node.leave();
            node.join();
            let effect = node.joined(answer, true, at(5000), at(5000));
            assert_eq!(effect, expected, "{what}");
        }
    }

    #[test]
    fn in_a_new_epoch_a_node_with_a_lease_keeps_its_pages_and_reads_from_the_beginning() {
        let rejoin = |first| {
            let mut node = member();
            node.leave();
            node.join();
            let effect = node.joined(answer(1, first, 3), true, at(1050), at(1060));
            (effect, node)
        };
        let (effect, node) = rejoin(1);
        assert_eq!(effect, JoinEffect::Keep);
        assert_eq!(node.applied().map(|it| it.position), Some(0));
        assert!(node.may_use(at(1099)), "the old lease");
        assert!(!node.may_use(at(1100)), "it has not caught up");
        assert_eq!(node.confirms_from(), at(1170));
        assert_eq!(rejoin(2).0, JoinEffect::Void { tip: 3 });
    }

    #[test]
    fn an_entry_that_does_not_follow_voids_what_is_stored() {
        let node = member();
        assert_eq!(node.entry(5), LogEntryEffect::Known);
        assert_eq!(node.entry(6), LogEntryEffect::Apply);
        assert_eq!(node.entry(7), LogEntryEffect::VoidAndApply);
    }

    #[test]
    fn a_late_answer_of_another_epoch_changes_nothing() {
        let mut node = member();
        node.renewed(&7, RenewAnswer::Renewed, true, at(1090), at(1095));
        assert!(!node.may_use(at(1100)));
        node.renewed(&7, RenewAnswer::NotMember, true, at(1090), at(1095));
        assert_eq!(node.epoch(), Some(&0));
    }
}
