//! Which stream sends next (RFC 9218 §10).
//!
//! The more urgent streams come first. Responses of one urgency that are not incremental come one
//! after the other in the order of their streams, since half of one is of no use; incremental ones
//! take turns. If there are both kinds, the former take one turn among the latter, so that neither
//! waits for ever.
//!
//! Here are only streams that can send something now. The scheduler knows nothing of
//! windows or bodies: [`Scheduler::next`] returns the stream that sends a frame, and the caller
//! adds the stream again if it has more.

use std::collections::VecDeque;

use crate::frame::StreamId;
use crate::priority::{Priority, URGENCIES};

/// Streams that can send, by urgency.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    classes: [Class; URGENCIES],
    len: usize,
}

/// Streams of one urgency.
#[derive(Debug, Default)]
struct Class {
    /// Not incremental, in the order of their numbers.
    ordered: VecDeque<StreamId>,
    /// Incremental, the next one in front.
    turns: VecDeque<StreamId>,
    /// Whether an incremental stream had the turn before this.
    is_turn_of_ordered: bool,
}

impl Class {
    fn is_empty(&self) -> bool {
        self.ordered.is_empty() && self.turns.is_empty()
    }

    fn next(&mut self) -> Option<StreamId> {
        let takes_ordered =
            self.turns.is_empty() || (self.is_turn_of_ordered && !self.ordered.is_empty());
        self.is_turn_of_ordered = !takes_ordered;
        match takes_ordered {
            true => self.ordered.pop_front(),
            false => self.turns.pop_front(),
        }
    }

    fn remove(&mut self, stream: StreamId) -> bool {
        if let Ok(at) = self.ordered.binary_search(&stream) {
            return self.ordered.remove(at).is_some();
        }
        let at = self.turns.iter().position(|&other| other == stream);
        at.is_some_and(|at| self.turns.remove(at).is_some())
    }
}

impl Scheduler {
    /// Adds a stream that is not there.
    pub(crate) fn add(&mut self, stream: StreamId, priority: Priority) {
        let Some(class) = self.classes.get_mut(usize::from(priority.urgency)) else {
            return;
        };
        self.len += 1;
        if priority.incremental {
            class.turns.push_back(stream);
        } else if class.ordered.back().is_none_or(|&last| last < stream) {
            class.ordered.push_back(stream);
        } else {
            let at = class.ordered.partition_point(|&other| other < stream);
            class.ordered.insert(at, stream);
        }
    }

    /// Takes the stream that sends next.
    pub(crate) fn next(&mut self) -> Option<StreamId> {
        if self.len == 0 {
            return None;
        }
        let class = self.classes.iter_mut().find(|class| !class.is_empty())?;
        self.len -= 1;
        class.next()
    }

    /// Takes a stream out that was added with this priority.
    pub(crate) fn remove(&mut self, stream: StreamId, priority: Priority) {
        let class = self.classes.get_mut(usize::from(priority.urgency));
        if class.is_some_and(|class| class.remove(stream)) {
            self.len -= 1;
        }
    }

    /// Returns whether no stream can send.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn priority(urgency: u8, incremental: bool) -> Priority {
        Priority {
            urgency,
            incremental,
        }
    }

    /// The streams that send, frame by frame. A stream is its number, its urgency, whether it is
    /// incremental, and the number of its frames.
    fn order(streams: &[(u32, u8, bool, u32)]) -> Vec<u32> {
        let mut scheduler = Scheduler::default();
        let mut left = BTreeMap::new();
        for &(number, urgency, incremental, frames) in streams {
            let stream = StreamId::new(number);
            scheduler.add(stream, priority(urgency, incremental));
            left.insert(stream, (frames, priority(urgency, incremental)));
        }
        let mut order = Vec::new();
        while let Some(stream) = scheduler.next() {
            order.push(stream.number());
            let (frames, priority) = left.get_mut(&stream).unwrap();
            *frames -= 1;
            if *frames > 0 {
                scheduler.add(stream, *priority);
            }
        }
        assert!(scheduler.is_empty());
        order
    }

    #[test]
    fn the_more_urgent_come_first() {
        let streams = [
            (1, 3, false, 2),
            (3, 0, false, 2),
            (5, 7, true, 1),
            (7, 1, true, 1),
        ];
        assert_eq!(order(&streams), [3, 3, 7, 1, 1, 5]);
    }

    #[test]
    fn responses_come_one_after_the_other_in_the_order_of_streams() {
        let streams = [(5, 3, false, 2), (1, 3, false, 2), (3, 3, false, 1)];
        assert_eq!(order(&streams), [1, 1, 3, 5, 5]);
    }

    #[test]
    fn incremental_responses_take_turns() {
        let streams = [(1, 3, true, 3), (3, 3, true, 2), (5, 3, true, 1)];
        assert_eq!(order(&streams), [1, 3, 5, 1, 3, 1]);
    }

    #[test]
    fn both_kinds_go_on_beside_each_other() {
        let streams = [
            (1, 3, false, 3),
            (3, 3, false, 1),
            (5, 3, true, 2),
            (7, 3, true, 3),
        ];
        assert_eq!(order(&streams), [5, 1, 7, 1, 5, 1, 7, 3, 7]);
    }

    #[test]
    fn a_stream_can_be_taken_out() {
        let mut scheduler = Scheduler::default();
        for (number, incremental) in [(1, false), (3, false), (5, true), (7, true)] {
            scheduler.add(StreamId::new(number), priority(3, incremental));
        }
        scheduler.remove(StreamId::new(3), priority(3, false));
        scheduler.remove(StreamId::new(5), priority(3, true));
        scheduler.remove(StreamId::new(9), priority(3, true));
        let rest: Vec<u32> = std::iter::from_fn(|| scheduler.next())
            .map(StreamId::number)
            .collect();
        assert_eq!(rest, [7, 1]);
        assert!(scheduler.is_empty());
    }

    proptest! {
        #[test]
        fn everything_is_sent_and_nobody_overtakes_the_more_urgent(
            streams in proptest::collection::vec((0..8u8, any::<bool>(), 1..9u32), 0..40),
        ) {
            let streams: Vec<_> = streams.into_iter().zip(0u32..)
                .map(|((urgency, incremental, frames), nth)| (2 * nth + 1, urgency, incremental, frames))
                .collect();
            let order = order(&streams);
            let urgencies: Vec<u8> =
                order.iter().map(|&number| streams[number as usize / 2].1).collect();
            prop_assert!(urgencies.is_sorted());
            for (number, _, _, frames) in &streams {
                let sent = order.iter().filter(|&other| other == number).count();
                prop_assert_eq!(sent, *frames as usize);
            }
        }

        /// While two incremental streams of one urgency wait, neither sends twice.
        #[test]
        fn shares_are_even(frames in proptest::collection::vec(1..20u32, 2..10)) {
            let streams: Vec<_> = frames.iter().zip(0u32..)
                .map(|(&frames, nth)| (2 * nth + 1, 3, true, frames))
                .collect();
            let mut sent = vec![0u32; streams.len()];
            for number in order(&streams) {
                let nth = number as usize / 2;
                let least = sent.iter().zip(&frames).filter(|(sent, frames)| sent < frames)
                    .map(|(sent, _)| *sent).min().unwrap();
                prop_assert_eq!(sent[nth], least);
                sent[nth] += 1;
            }
        }
    }
}
