//! Purges that were published and wait until they hold on all nodes.

use crate::engine::{ConfirmAnswer, ConfirmCall};
use crate::node::Node;
use crate::rule::{Rule, Rules};
use crate::time::BootMillis;

/// A beat of a member that had not applied the entry, and when this node first saw that beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SeenBeat {
    instance: u64,
    beat: u64,
    since: BootMillis,
}

/// How a purge stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum ConfirmationState {
    /// The entry holds on all nodes, and so do all before it: their purges return.
    Confirmed,
    /// Ask again. The entries up to this one hold on all nodes: their purges return.
    Waiting(u64),
    /// The node has to join first, and to ask again then.
    JoinFirst,
    /// The entry is in a log that is no longer in force: publish it again, in the epoch that the node
    /// joins next.
    PublishAgain,
}

/// The newest purge of a node on its way to being confirmed. The others are confirmed on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Confirmation<E> {
    epoch: E,
    entry: u64,
    seen: Vec<SeenBeat>,
}

impl<E: Clone + PartialEq> Confirmation<E> {
    /// For an entry that was published in `epoch`.
    #[must_use]
    pub fn new(epoch: E, entry: u64) -> Confirmation<E> {
        Confirmation {
            epoch,
            entry,
            seen: Vec::new(),
        }
    }

    /// A later purge was published in the same epoch, as this entry. The facts known of the other nodes stay: a
    /// beat whose lease has ended has ended for each entry.
    pub fn raise(&mut self, entry: u64) {
        self.entry = self.entry.max(entry);
    }

    /// The entry that is asked for.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// The call to make now; `None` while nothing may be confirmed in the epoch.
    pub fn call<R: Rules>(&self, node: &Node<E, R>, now: BootMillis) -> Option<ConfirmCall<E>> {
        if now < node.confirms_from() {
            return None;
        }
        let wait = match node.rules().hold(Rule::WaitLongerThanLease) {
            true => node.times().expiry_wait,
            false => node.times().lease,
        };
        let has_expired = |seen: &&SeenBeat| seen.since.plus(wait) <= now;
        let expired = self.seen.iter().filter(has_expired);
        Some(ConfirmCall {
            epoch: self.epoch.clone(),
            entry: self.entry,
            expired: expired.map(|seen| (seen.instance, seen.beat)).collect(),
        })
    }

    /// The call was answered. `is_in_force` is the verdict of a majority on the engine after the answer had come.
    pub fn answered<R: Rules>(
        &mut self,
        answer: &ConfirmAnswer,
        is_in_force: bool,
        node: &Node<E, R>,
        now: BootMillis,
    ) -> ConfirmationState {
        match answer {
            ConfirmAnswer::Yes if is_in_force || !node.rules().hold(Rule::MajorityAfterConfirm) => {
                ConfirmationState::Confirmed
            }
            ConfirmAnswer::Yes | ConfirmAnswer::OtherEpoch => ConfirmationState::PublishAgain,
            ConfirmAnswer::NotMember => ConfirmationState::JoinFirst,
            ConfirmAnswer::Missing(missing) => {
                self.seen
                    .retain(|seen| missing.iter().any(|it| it.instance == seen.instance));
                for it in missing {
                    let seen = self
                        .seen
                        .iter_mut()
                        .find(|seen| seen.instance == it.instance);
                    match seen {
                        Some(seen) if seen.beat == it.beat => {}
                        Some(seen) => (seen.beat, seen.since) = (it.beat, now),
                        None => self.seen.push(SeenBeat {
                            instance: it.instance,
                            beat: it.beat,
                            since: now,
                        }),
                    }
                }
                let counts = is_in_force || !node.rules().hold(Rule::MajorityAfterConfirm);
                let by_all = missing.iter().map(|it| it.position).min();
                ConfirmationState::Waiting(by_all.filter(|_| counts).unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{JoinAnswer, MissingNode};
    use crate::node::JoinEffect;
    use crate::rule::EveryRule;
    use crate::time::LeaseTimes;

    fn at(millis: u64) -> BootMillis {
        BootMillis(millis)
    }

    fn member() -> Node<u8> {
        let times = LeaseTimes {
            lease: 100,
            expiry_wait: 110,
        };
        let mut node = Node::new(times, None, EveryRule);
        let answer = JoinAnswer {
            epoch: 0,
            first: 1,
            tip: 0,
        };
        let effect = node.joined(answer, true, at(0), at(0));
        assert_eq!(effect, JoinEffect::Void { tip: 0 });
        node
    }

    fn missing(beat: u64) -> ConfirmAnswer {
        ConfirmAnswer::Missing(vec![MissingNode {
            instance: 2,
            beat,
            position: 5,
        }])
    }

    #[test]
    fn a_beat_is_taken_for_expired_after_the_wait_on_the_publishers_clock() {
        let node = member();
        let mut purge = Confirmation::new(0, 1);
        let expired = |purge: &Confirmation<u8>, now| purge.call(&node, now).map(|it| it.expired);
        let state = purge.answered(&missing(7), true, &node, at(1000));
        assert_eq!(state, ConfirmationState::Waiting(5));
        assert_eq!(expired(&purge, at(1109)), Some(vec![]));
        assert_eq!(expired(&purge, at(1110)), Some(vec![(2, 7)]));

        let state = purge.answered(&missing(8), true, &node, at(1110));
        assert_eq!(state, ConfirmationState::Waiting(5), "it has renewed");
        assert_eq!(expired(&purge, at(1219)), Some(vec![]));
        assert_eq!(expired(&purge, at(1220)), Some(vec![(2, 8)]));
    }

    #[test]
    fn nothing_is_confirmed_in_a_new_epoch_until_old_leases_have_ended() {
        let node = member();
        let purge = Confirmation::new(0, 1);
        assert_eq!(purge.call(&node, at(109)), None);
        assert!(purge.call(&node, at(110)).is_some());
    }

    #[test]
    fn a_confirmation_by_an_engine_that_is_not_in_force_counts_for_nothing() {
        let node = member();
        let mut purge = Confirmation::new(0, 1);
        let state = purge.answered(&ConfirmAnswer::Yes, false, &node, at(200));
        assert_eq!(state, ConfirmationState::PublishAgain);
        let state = purge.answered(&ConfirmAnswer::NotMember, true, &node, at(200));
        assert_eq!(state, ConfirmationState::JoinFirst);
        let state = purge.answered(&ConfirmAnswer::Yes, true, &node, at(200));
        assert_eq!(state, ConfirmationState::Confirmed);
        let state = purge.answered(&missing(1), false, &node, at(200));
        assert_eq!(state, ConfirmationState::Waiting(0));
    }

    #[test]
    fn what_is_known_of_a_beat_stays_when_a_later_entry_is_asked_for() {
        let node = member();
        let mut purge = Confirmation::new(0, 1);
        let _ = purge.answered(&missing(7), true, &node, at(1000));
        purge.raise(9);
        let call = purge.call(&node, at(1110)).unwrap();
        assert_eq!((call.entry, call.expired), (9, vec![(2, 7)]));
    }
}
