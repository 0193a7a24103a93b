//! One server as the group sees it: limits, requests in flight, failures.
//!
//! The group's lock guards it; nothing here waits or reads a clock. The rules
//! are nginx's: `max_fails` failures within `fail_timeout` make a server
//! unavailable for `fail_timeout`; then one request probes it, and the others
//! stay away until it has answered or another `fail_timeout` has passed.

use crate::spec::ServerSpec;
use crate::{Endpoint, Millis};

/// How a request at a server ended, as far as the server's health goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It answered.
    Success,
    /// It could not be reached, broke off, timed out, or sent what the
    /// `*_next_upstream` directive names as a failure.
    Failure,
    /// Nothing was learnt: the client left, the lease was dropped.
    #[default]
    Neutral,
}

/// May this server be asked now, and if not, why?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Ready,
    /// `max_conns` requests are in flight.
    Busy,
    /// It failed too often lately.
    Failed,
    /// Marked `down`.
    Down,
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub endpoint: Endpoint,
    pub name: String,
    pub weight: i64,
    /// `None`: no limit.
    pub max_conns: Option<usize>,
    max_fails: u32,
    fail_timeout: Millis,
    pub is_backup: bool,
    is_down: bool,

    pub in_flight: usize,
    pub fails: u32,
    /// When it last failed.
    failed_at: Millis,
    /// When its failures were last looked at: a failure, or the first request
    /// of a new `fail_timeout`.
    checked_at: Millis,
    /// The weight less what failures took; grows back by one per round.
    effective_weight: i64,
    /// Round robin's running balance.
    pub current_weight: i64,
}

impl Peer {
    /// `alone`: the group has no other server, so failures are not counted.
    pub fn new(spec: ServerSpec, alone: bool) -> Self {
        let weight = i64::from(spec.weight.max(1));
        Self {
            endpoint: spec.endpoint,
            name: spec.name,
            weight,
            max_conns: (spec.max_conns != 0).then_some(spec.max_conns),
            max_fails: if alone { 0 } else { spec.max_fails },
            fail_timeout: spec.fail_timeout.as_millis() as Millis,
            is_backup: spec.backup,
            is_down: spec.down,
            in_flight: 0,
            fails: 0,
            failed_at: 0,
            checked_at: 0,
            effective_weight: weight,
            current_weight: 0,
        }
    }

    pub fn standing(&self, now: Millis) -> Standing {
        if self.is_down {
            Standing::Down
        } else if self.has_failed(now) {
            Standing::Failed
        } else if self.is_full() {
            Standing::Busy
        } else {
            Standing::Ready
        }
    }

    pub fn is_full(&self) -> bool {
        self.max_conns.is_some_and(|limit| self.in_flight >= limit)
    }

    fn has_failed(&self, now: Millis) -> bool {
        self.max_fails != 0
            && self.fails >= self.max_fails
            && now.saturating_sub(self.checked_at) <= self.fail_timeout
    }

    /// One step of smooth weighted round robin; returns the weight that took part.
    pub fn advance(&mut self) -> i64 {
        let taking_part = self.effective_weight;
        self.current_weight += taking_part;
        if self.effective_weight < self.weight {
            self.effective_weight += 1;
        }
        taking_part
    }

    /// A request goes to this server. When its `fail_timeout` is over, this
    /// request is the one that probes it.
    pub fn begin(&mut self, now: Millis) {
        self.in_flight += 1;
        if now.saturating_sub(self.checked_at) > self.fail_timeout {
            self.checked_at = now;
        }
    }

    pub fn end(&mut self, outcome: Outcome, now: Millis) {
        debug_assert!(self.in_flight > 0, "a request ended that never began");
        self.in_flight = self.in_flight.saturating_sub(1);
        match outcome {
            Outcome::Failure => self.count_failure(now),
            Outcome::Success if self.failed_at < self.checked_at => self.fails = 0,
            Outcome::Success | Outcome::Neutral => {}
        }
    }

    fn count_failure(&mut self, now: Millis) {
        self.fails = self.fails.saturating_add(1);
        self.failed_at = now;
        self.checked_at = now;
        if self.max_fails != 0 {
            let penalty = self.weight / i64::from(self.max_fails);
            self.effective_weight = (self.effective_weight - penalty).max(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn peer(weight: u32, max_fails: u32) -> Peer {
        let spec = ServerSpec {
            weight,
            max_fails,
            fail_timeout: Duration::from_secs(10),
            ..ServerSpec::new(Endpoint::Unix("/a".into()))
        };
        Peer::new(spec, false)
    }

    fn run(peer: &mut Peer, outcome: Outcome, now: Millis) {
        peer.begin(now);
        peer.end(outcome, now);
    }

    #[test]
    fn the_last_allowed_failure_makes_a_server_unavailable_for_fail_timeout() {
        let mut peer = peer(1, 3);
        for now in [100_000, 100_001] {
            run(&mut peer, Outcome::Failure, now);
            assert_eq!(peer.standing(now), Standing::Ready);
        }
        run(&mut peer, Outcome::Failure, 100_002);
        assert_eq!(peer.standing(110_002), Standing::Failed);
        assert_eq!(peer.standing(110_003), Standing::Ready);
    }

    #[test]
    fn one_request_probes_a_server_that_comes_back() {
        let mut peer = peer(1, 1);
        run(&mut peer, Outcome::Failure, 100_000);
        peer.begin(110_001);
        assert_eq!(peer.standing(110_001), Standing::Failed, "others stay away");
        peer.end(Outcome::Success, 110_050);
        assert_eq!(peer.standing(110_050), Standing::Ready);
        assert_eq!(peer.fails, 0);
    }

    #[test]
    fn a_probe_that_taught_nothing_leaves_the_server_unavailable() {
        let mut peer = peer(1, 1);
        run(&mut peer, Outcome::Failure, 100_000);
        run(&mut peer, Outcome::Neutral, 110_001);
        assert_eq!(peer.standing(110_002), Standing::Failed);
        assert_eq!(peer.standing(120_002), Standing::Ready, "the next probe");
    }

    #[test]
    fn a_success_within_fail_timeout_does_not_forget_failures() {
        let mut peer = peer(1, 2);
        run(&mut peer, Outcome::Failure, 100_000);
        run(&mut peer, Outcome::Success, 100_500);
        run(&mut peer, Outcome::Failure, 101_000);
        assert_eq!(peer.standing(101_001), Standing::Failed);
    }

    #[test]
    fn failures_lower_the_weight_which_grows_back_round_by_round() {
        let mut peer = peer(6, 3);
        run(&mut peer, Outcome::Failure, 100_000);
        run(&mut peer, Outcome::Failure, 100_000);
        let weights: Vec<i64> = (0..6).map(|_| peer.advance()).collect();
        assert_eq!(weights, [2, 3, 4, 5, 6, 6]);
    }
}
