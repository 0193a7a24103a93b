//! The servers of a group and their health, which name resolution and health checks change.
//!
//! A `server NAME resolve` line is a source of servers: each answer of the resolver replaces that
//! line's servers by [`Group::set_resolved`]. Servers that stay keep all that is known of them; one
//! that leaves finishes its requests, and its index in the list is used again later. A request that
//! has tried the server that left may pass over the one that took the index: that costs one try,
//! and no more.
//!
//! Health checks report their results by [`Group::set_health`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::balance::Balancer;
use crate::group::{Group, GroupState, hand_over};
use crate::peer::{Health, Peer, Standing};
use crate::spec::ServerSpec;
use crate::{Endpoint, Millis};

/// Servers of one line at most: an answer over TCP could name thousands, and
/// each choice looks at all of them.
const MAX_RESOLVED: usize = 1000;

/// How a health check treats a server that it has not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// `mandatory`: it must pass before it is asked.
    pub mandatory: bool,
    /// `persistent`: unless it was well before a reload.
    pub persistent: bool,
}

impl Watch {
    fn begins_with(self, was_healthy: bool) -> Health {
        if self.mandatory && !(self.persistent && was_healthy) {
            Health::Checking
        } else {
            Health::Healthy
        }
    }
}

impl Group {
    /// Makes `servers` those of the line `source` (any number that names the line for good). Servers
    /// beyond a bound are left out.
    pub fn set_resolved(self: &Arc<Self>, source: usize, servers: Vec<ServerSpec>, now: Millis) {
        let mut state = self.state.lock();
        let now = state.advance(now);
        let mut left: Vec<usize> = state.of_source(source).collect();
        for spec in servers.into_iter().take(MAX_RESOLVED) {
            let stays = left.iter().position(|server| {
                let peer = state.peers.get(*server);
                peer.is_some_and(|peer| {
                    *peer.endpoint == spec.endpoint && peer.is_backup == spec.backup
                })
            });
            match stays.map(|index| left.remove(index)) {
                Some(server) => {
                    if let Some(peer) = state.peers.get_mut(server) {
                        peer.set_weight(spec.weight);
                    }
                }
                None => state.admit(source, spec),
            }
        }
        let mut closed = Vec::new();
        for server in left {
            if let Some(peer) = state.peers.get_mut(server) {
                peer.is_gone = true;
            }
            closed.extend(std::iter::from_fn(|| state.idle.shed(server)));
        }
        self.derive_from_members(&mut state);
        let handovers = self.serve_line(&mut state, now);
        drop(state);
        drop(closed);
        hand_over(handovers);
    }

    /// Begins health checks anew: how each treats servers it has not looked at. `was_healthy` returns
    /// whether a server was well before a reload.
    pub fn watch(&self, watches: Vec<Watch>, was_healthy: impl Fn(&Endpoint) -> bool) {
        let mut state = self.state.lock();
        for peer in &mut state.peers {
            let known = was_healthy(&peer.endpoint);
            peer.watch(
                watches
                    .iter()
                    .map(|watch| watch.begins_with(known))
                    .collect(),
            );
        }
        state.watches = watches;
    }

    /// Notes the result of health check number `check` about `server`, if that is still the one at
    /// `endpoint`.
    pub fn set_health(
        self: &Arc<Self>,
        server: usize,
        endpoint: &Endpoint,
        check: usize,
        health: Health,
        now: Millis,
    ) {
        let mut state = self.state.lock();
        let now = state.advance(now);
        if let Some(peer) = state.peers.get_mut(server)
            && !peer.is_gone
            && *peer.endpoint == *endpoint
        {
            peer.set_health(check, health, now);
        }
        let handovers = self.serve_line(&mut state, now);
        drop(state);
        hand_over(handovers);
    }

    /// Returns the servers that are watched and well, whose state outlives a reload.
    pub fn healthy_endpoints(&self) -> Vec<Endpoint> {
        let state = self.state.lock();
        if state.watches.is_empty() {
            return Vec::new();
        }
        let well = state
            .peers
            .iter()
            .filter(|peer| !peer.is_gone && peer.is_healthy());
        well.map(|peer| Endpoint::clone(&peer.endpoint)).collect()
    }

    /// Computes anew the values derived from the list of servers.
    pub(crate) fn derive_from_members(&self, state: &mut GroupState) {
        let present = state.peers.iter().filter(|peer| !peer.is_gone).count();
        for peer in &mut state.peers {
            peer.set_alone(present == 1);
        }
        state.balancer = Balancer::new(self.method, &state.peers);
        let up = state
            .peers
            .iter()
            .filter(|peer| peer.standing(0) != Standing::Down);
        self.tries.store(up.count(), Ordering::Relaxed);
        state.turns.set_workers(&state.peers);
    }
}

impl GroupState {
    fn of_source(&self, source: usize) -> impl Iterator<Item = usize> {
        let listed = self.peers.iter().enumerate();
        listed
            .filter(move |(_, peer)| !peer.is_gone && peer.source == Some(source))
            .map(|(server, _)| server)
    }

    /// Adds a server, at an index that has become free if there is one.
    fn admit(&mut self, source: usize, spec: ServerSpec) {
        let mut peer = Peer::new(spec);
        peer.source = Some(source);
        let watches = self.watches.iter();
        peer.watch(watches.map(|watch| watch.begins_with(false)).collect());
        let is_free = |peer: &Peer| peer.is_gone && peer.in_flight == 0;
        match self.peers.iter_mut().find(|peer| is_free(peer)) {
            Some(free) => *free = peer,
            None => self.peers.push(peer),
        }
    }
}
