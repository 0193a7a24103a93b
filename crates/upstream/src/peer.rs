//! One server as the group sees it: limits, requests in flight, failures.
//!
//! The group's lock guards it; nothing here waits or reads a clock. The rules
//! are nginx's: `max_fails` failures within `fail_timeout` make a server
//! unavailable for `fail_timeout`; then one request probes it, and the others
//! stay away until it has answered or another `fail_timeout` has passed.

use std::sync::Arc;

use crate::spec::ServerSpec;
use crate::{Endpoint, Millis};

/// How a request at a server ended, as far as the server's health goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It answered.
    Success,
    /// It could not be reached, broke off, timed out, or sent a response that the
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
    /// Its first health check is not over (`mandatory`).
    Checking,
    /// A health check reports that it is not well.
    Unhealthy,
    /// Marked `down`.
    Down,
}

/// The state of a server in one health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing yet, and it must not be asked before.
    Checking,
    /// All is well, as far as is known.
    Healthy,
    /// It did not pass.
    Unhealthy,
}

/// Turns are counted in thousandths of a unit of weight, so that a server of
/// weight one can grow slowly as well.
pub(crate) const SHARES_PER_WEIGHT: i64 = 1000;

// Large: settings of `server` and results of requests; both are read by each choice,
// under one lock.
#[derive(Debug)]
pub(crate) struct Peer {
    pub endpoint: Arc<Endpoint>,
    /// The endpoint's text, made once.
    pub address: Arc<str>,
    pub name: String,
    /// The line whose name it was found under; `None`: written as an address.
    pub source: Option<usize>,
    /// It left the group; its index is free once nothing is in flight.
    pub is_gone: bool,
    pub weight: i64,
    /// `None`: no limit.
    pub max_conns: Option<usize>,
    max_fails: u32,
    fail_timeout: Millis,
    slow_start: Millis,
    pub is_backup: bool,
    is_down: bool,
    /// The group has no other server, so failures are not counted.
    is_alone: bool,
    /// The state in each of the group's health checks.
    checks: Vec<Health>,
    /// When it came back from failure and began to grow.
    back_since: Option<Millis>,

    pub in_flight: usize,
    pub fails: u32,
    /// When it last failed.
    failed_at: Millis,
    /// When its failures were last looked at: a failure, or the first request
    /// of a new `fail_timeout`.
    checked_at: Millis,
    /// The weight without the part that failures took; grows back by one per round.
    effective_weight: i64,
    /// Round robin's running balance.
    pub current_weight: i64,
}

impl Peer {
    pub fn new(spec: ServerSpec) -> Self {
        let weight = i64::from(spec.weight.max(1));
        Self {
            address: spec.endpoint.to_string().into(),
            endpoint: Arc::new(spec.endpoint),
            name: spec.name,
            source: None,
            is_gone: false,
            weight,
            max_conns: (spec.max_conns != 0).then_some(spec.max_conns),
            max_fails: spec.max_fails,
            fail_timeout: spec.fail_timeout.as_millis() as Millis,
            slow_start: spec.slow_start.as_millis() as Millis,
            is_backup: spec.backup,
            is_down: spec.down,
            is_alone: false,
            checks: Vec::new(),
            back_since: None,
            in_flight: 0,
            fails: 0,
            failed_at: 0,
            checked_at: 0,
            effective_weight: weight,
            current_weight: 0,
        }
    }

    pub fn standing(&self, now: Millis) -> Standing {
        if self.is_out() {
            Standing::Down
        } else if self.checks.contains(&Health::Unhealthy) {
            Standing::Unhealthy
        } else if self.checks.contains(&Health::Checking) {
            Standing::Checking
        } else if self.has_failed(now) {
            Standing::Failed
        } else if self.is_full() {
            Standing::Busy
        } else {
            Standing::Ready
        }
    }

    /// Marked `down`, or no longer in the group.
    pub fn is_out(&self) -> bool {
        self.is_down || self.is_gone
    }

    pub fn is_full(&self) -> bool {
        self.max_conns.is_some_and(|limit| self.in_flight >= limit)
    }

    fn has_failed(&self, now: Millis) -> bool {
        self.is_worn_out() && now.saturating_sub(self.checked_at) <= self.fail_timeout
    }

    /// Did it fail as often as it may?
    fn is_worn_out(&self) -> bool {
        !self.is_alone && self.max_fails != 0 && self.fails >= self.max_fails
    }

    /// Notes whether the group has no other server.
    pub fn set_alone(&mut self, is_alone: bool) {
        self.is_alone = is_alone;
    }

    /// Returns its weight now, in shares, without the part that `slow_start` still holds
    /// back.
    pub fn share(&self, now: Millis) -> i64 {
        self.grown(self.weight, now)
    }

    fn grown(&self, weight: i64, now: Millis) -> i64 {
        let full = weight * SHARES_PER_WEIGHT;
        match self.back_since {
            Some(since) if now.saturating_sub(since) < self.slow_start => {
                let part = i128::from(full) * i128::from(now.saturating_sub(since))
                    / i128::from(self.slow_start.max(1));
                // At most `full`. One share is left, or it would never be asked.
                i64::try_from(part).unwrap_or(full).max(1)
            }
            _ => full,
        }
    }

    /// Makes it begin small again, if it is of that kind.
    fn come_back(&mut self, now: Millis) {
        self.back_since = (self.slow_start != 0).then_some(now);
    }

    /// Begins to be watched by these checks, each with its known state.
    pub fn watch(&mut self, checks: Vec<Health>) {
        self.checks = checks;
    }

    /// Has no check anything against it?
    pub fn is_healthy(&self) -> bool {
        self.checks.iter().all(|health| *health == Health::Healthy)
    }

    /// Notes the result of `check`.
    pub fn set_health(&mut self, check: usize, health: Health, now: Millis) {
        let was_healthy = self.is_healthy();
        let Some(known) = self.checks.get_mut(check) else {
            return;
        };
        let was_unhealthy = *known == Health::Unhealthy;
        *known = health;
        if was_unhealthy && !was_healthy && self.is_healthy() {
            self.fails = 0;
            self.effective_weight = self.weight;
            self.come_back(now);
        }
    }

    /// Changes the weight of a server that stays.
    pub fn set_weight(&mut self, weight: u32) {
        let weight = i64::from(weight.max(1));
        if weight != self.weight {
            self.weight = weight;
            self.effective_weight = weight;
        }
    }

    /// One step of smooth weighted round robin; returns the shares that took part.
    pub fn advance(&mut self, now: Millis) -> i64 {
        let taking_part = self.grown(self.effective_weight, now);
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
            Outcome::Success if self.failed_at < self.checked_at => {
                if self.is_worn_out() {
                    self.come_back(now);
                }
                self.fails = 0;
            }
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
        Peer::new(spec)
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
        let shares: Vec<i64> = (0..6).map(|_| peer.advance(100_000)).collect();
        assert_eq!(shares, [2_000, 3_000, 4_000, 5_000, 6_000, 6_000]);
    }

    #[test]
    fn a_server_that_comes_back_grows_to_its_weight_within_slow_start() {
        let spec = ServerSpec {
            weight: 2,
            slow_start: Duration::from_secs(20),
            ..ServerSpec::new(Endpoint::Unix("/a".into()))
        };
        let mut peer = Peer::new(spec);
        assert_eq!(peer.share(0), 2_000, "it starts out grown");
        run(&mut peer, Outcome::Failure, 100_000);
        run(&mut peer, Outcome::Success, 110_001);
        let shares = [0, 5_000, 10_000, 19_990, 20_000, 90_000];
        let shares = shares.map(|after| peer.share(110_001 + after));
        assert_eq!(shares, [1, 500, 1_000, 1_999, 2_000, 2_000]);
        // A failure that does not wear it out changes nothing.
        peer.max_fails = 2;
        run(&mut peer, Outcome::Failure, 200_000);
        run(&mut peer, Outcome::Success, 210_001);
        assert_eq!(peer.share(210_001), 2_000);
    }

    #[test]
    fn one_check_that_fails_is_enough_and_all_must_pass() {
        let mut peer = peer(1, 1);
        peer.slow_start = 1_000;
        peer.watch(vec![Health::Healthy, Health::Checking]);
        assert_eq!(peer.standing(0), Standing::Checking);
        peer.set_health(1, Health::Healthy, 0);
        assert_eq!(peer.standing(0), Standing::Ready);
        assert_eq!(peer.share(0), 1_000, "a first check is no recovery");
        for check in [0, 1] {
            peer.set_health(check, Health::Unhealthy, 10);
            assert_eq!(peer.standing(10), Standing::Unhealthy);
        }
        peer.set_health(0, Health::Healthy, 20);
        assert_eq!(peer.standing(20), Standing::Unhealthy);
        peer.set_health(1, Health::Healthy, 30);
        assert_eq!(peer.standing(30), Standing::Ready);
        assert_eq!(peer.share(530), 500, "and then slowly");
        peer.set_health(2, Health::Unhealthy, 40);
        assert!(peer.is_healthy(), "a check of another time");
    }
}
