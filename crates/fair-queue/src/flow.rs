//! The state of one turn in one line: its waiting requests, those under way, and the PHP time it has
//! used.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Millis;
use crate::clients::{RequestFacts, Turn, TurnKind};
use crate::php_uses::UsedTime;

/// A request costs at most this much, and at least one millisecond: tags grow with every request, and
/// a connection that stays open for hours does not end the turns of its client.
pub(crate) const MAX_COST: u64 = 60_000;

/// The position of a turn in its line: by start tag, then newcomers behind others, then by used PHP time,
/// then by age. A storm from many addresses is one of newcomers, and all of these have the same tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub tag: u64,
    pub is_newcomer: bool,
    pub used: u64,
    pub ticket: u64,
    pub turn: u64,
}

/// A request that waits in a turn.
#[derive(Debug)]
pub(crate) struct QueuedRequest<T> {
    pub ticket: u64,
    /// [`Turn::rank`](crate::Turn)
    pub rank: u32,
    pub request: RequestFacts,
    pub waiter: T,
}

/// One turn in one line.
#[derive(Debug)]
pub(crate) struct Flow<T> {
    pub kind: TurnKind,
    pub is_newcomer: bool,
    /// The page of its latest request and the program that asked.
    pub latest: Arc<str>,
    /// Its waiting requests, by rank and then in the order of arrival.
    pub waiters: VecDeque<QueuedRequest<T>>,
    /// The position of the turn's first waiting request.
    pub place: Option<Place>,
    /// The start tag of its next request, if the line has not come further.
    pub finish: u64,
    pub in_flight: usize,
    /// The mean cost of the turn's requests, in milliseconds; 0: not known.
    mean_cost: f64,
    used: UsedTime,
}

impl<T> Flow<T> {
    pub fn new(kind: TurnKind, turn: &Turn) -> Self {
        Self {
            kind,
            is_newcomer: !turn.is_known,
            latest: turn.request.latest.clone(),
            waiters: VecDeque::new(),
            place: None,
            finish: 0,
            in_flight: 0,
            mean_cost: 0.0,
            used: UsedTime::default(),
        }
    }

    /// Returns the expected cost of the turn's next request, in milliseconds.
    pub fn expected_cost(&self, mean_of_all: f64) -> u64 {
        let mean = match self.mean_cost > 0.0 {
            true => self.mean_cost,
            false => mean_of_all,
        };
        (mean as u64).clamp(1, MAX_COST)
    }

    /// A request of it has ended.
    pub fn note_cost(&mut self, cost: u64, now: Millis) {
        let cost = cost as f64;
        self.mean_cost = match self.mean_cost > 0.0 {
            true => self.mean_cost * 0.75 + cost * 0.25,
            false => cost,
        };
        self.used.add(cost, now);
    }

    /// Milliseconds that it has used in the last minute.
    pub fn used(&self, now: Millis) -> f64 {
        self.used.minute_ms(now)
    }

    /// Whether it has nothing waiting, nothing under way, and no use worth to be remembered.
    pub fn is_idle(&self, virtual_time: u64, now: Millis) -> bool {
        self.waiters.is_empty()
            && self.in_flight == 0
            && self.finish <= virtual_time
            && self.used(now) < 1.0
    }

    /// For the operator.
    pub fn describe(&self, line: usize, now: Millis) -> TurnUse {
        TurnUse {
            kind: self.kind.clone(),
            latest: self.latest.clone(),
            line,
            waiting: self.waiters.len(),
            in_flight: self.in_flight,
            minute_ms: self.used(now),
            hour_ms: self.used.hour_ms(now),
        }
    }
}

/// The use of PHP by one turn, for the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnUse {
    /// The owner of the turn.
    pub kind: TurnKind,
    /// The page of its latest request and the program that asked.
    pub latest: Arc<str>,
    /// The line of its class.
    pub line: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Requests under way.
    pub in_flight: usize,
    /// Milliseconds of PHP in the last minute.
    pub minute_ms: f64,
    /// And in the last hour.
    pub hour_ms: f64,
}
