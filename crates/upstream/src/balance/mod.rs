//! Choosing a server, as nginx chooses.
//!
//! One file per method. All share the shape: look at the servers that may be
//! asked now, choose one, fall back to round robin when the method finds none,
//! then to the backup servers. A request that has come to a backup server
//! stays with those.

mod hash;
mod ip_hash;
mod least_conn;
#[cfg(test)]
mod nginx_sequences;
mod random;
mod round_robin;

use std::net::IpAddr;

use crate::peer::{Peer, Standing};
use crate::spec::{GroupSpec, Method, SpecError};
use crate::{Millis, TriedSet};

pub(crate) use random::Random;

/// Draws of the hashing and random methods before round robin decides.
/// nginx's bound, and part of its mapping of keys to servers.
const MAX_DRAWS: usize = 20;

/// The largest sum of weights for methods that keep a table per unit of
/// weight: 160 points of 16 bytes each make it 160 MB, far above any use.
const MAX_CONSISTENT_WEIGHT: u64 = 65_536;

/// One request's question.
#[derive(Debug)]
pub(crate) struct PickRequest<'a> {
    pub client_addr: Option<IpAddr>,
    pub hash_key: Option<&'a [u8]>,
    pub tried: &'a TriedSet,
    pub now: Millis,
}

impl PickRequest<'_> {
    /// May this server be chosen for this request?
    fn accepts(&self, server: usize, peer: &Peer) -> bool {
        !self.tried.contains(server) && peer.standing(self.now) == Standing::Ready
    }
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// This one.
    Server(usize),
    /// Some server would be asked if it had room.
    AllBusy,
    /// The servers not yet tried have failed.
    NoneLive,
    /// All servers that are not down were tried.
    Exhausted,
}

/// The servers of equal rank, as indices into the group's peers.
#[derive(Debug)]
struct Tier {
    members: Vec<usize>,
    total_weight: u64,
}

impl Tier {
    fn new(peers: &[Peer], backup: bool) -> Self {
        let listed = peers.iter().enumerate();
        let of_this_rank = listed.filter(|(_, peer)| !peer.is_gone && peer.is_backup == backup);
        let (members, weights): (Vec<usize>, Vec<u64>) = of_this_rank
            .map(|(server, peer)| (server, peer.weight.unsigned_abs()))
            .unzip();
        Self {
            total_weight: weights.into_iter().sum(),
            members,
        }
    }

    /// The members that may be chosen for `ask`.
    fn candidates<'a>(
        &'a self,
        peers: &'a [Peer],
        ask: &'a PickRequest<'_>,
    ) -> impl Iterator<Item = (usize, &'a Peer)> {
        self.members
            .iter()
            .filter_map(|server| Some((*server, peers.get(*server)?)))
            .filter(|(server, peer)| ask.accepts(*server, peer))
    }

    /// The member that owns point `at` when all weights are laid end to end.
    fn member_at(&self, peers: &[Peer], at: u64) -> Option<usize> {
        let mut left = at % self.total_weight.max(1);
        for server in &self.members {
            let weight = peers.get(*server)?.weight as u64;
            if left < weight {
                return Some(*server);
            }
            left -= weight;
        }
        None
    }
}

/// A method with its tables.
#[derive(Debug)]
enum Chooser {
    RoundRobin,
    LeastConn,
    IpHash,
    Hash,
    Consistent(hash::Continuum),
    Random { two: bool },
}

/// The chooser of a group's servers.
#[derive(Debug)]
pub(crate) struct Balancer {
    chooser: Chooser,
    primary: Tier,
    backup: Tier,
}

impl Balancer {
    /// Are there servers enough, and not too many for the method's tables?
    pub fn check(spec: &GroupSpec) -> Result<(), SpecError> {
        if spec.is_dynamic {
            return Ok(());
        }
        if spec.servers.is_empty() {
            return Err(SpecError::NoServers);
        }
        let primary = spec.servers.iter().filter(|server| !server.backup);
        let weights = primary.map(|server| u64::from(server.weight.max(1)));
        let total: u64 = weights.sum();
        if total == 0 {
            return Err(SpecError::NoPrimaryServers);
        }
        let is_table = spec.method == Method::Hash { consistent: true };
        if is_table && spec.servers.len() > 1 && total > MAX_CONSISTENT_WEIGHT {
            return Err(SpecError::WeightsTooLarge {
                total,
                limit: MAX_CONSISTENT_WEIGHT,
            });
        }
        Ok(())
    }

    /// Creates a balancer for the servers as they are now.
    pub fn new(method: Method, peers: &[Peer]) -> Self {
        let primary = Tier::new(peers, false);
        let backup = Tier::new(peers, true);
        let chooser = match method {
            // A lone server needs no choosing.
            _ if primary.members.len() + backup.members.len() == 1 => Chooser::RoundRobin,
            Method::RoundRobin => Chooser::RoundRobin,
            Method::LeastConn => Chooser::LeastConn,
            Method::IpHash => Chooser::IpHash,
            Method::Hash { consistent: false } => Chooser::Hash,
            Method::Hash { consistent: true } => {
                let members = primary
                    .members
                    .iter()
                    .filter_map(|server| peers.get(*server));
                Chooser::Consistent(hash::Continuum::new(members, primary.total_weight))
            }
            Method::Random { two } => Chooser::Random { two },
        };
        Self {
            chooser,
            primary,
            backup,
        }
    }

    /// Chooses a server. Its slot is not taken yet: see `Peer::begin`.
    pub fn pick(&self, peers: &mut [Peer], ask: &PickRequest<'_>, random: &mut Random) -> Pick {
        let on_backups = self.is_on_backups(ask.tried);
        let found = if on_backups {
            None
        } else {
            self.pick_primary(peers, ask, random)
        };
        match found.or_else(|| self.pick_backup(peers, ask)) {
            Some(server) => Pick::Server(server),
            None => self.diagnose(peers, ask, on_backups),
        }
    }

    fn pick_primary(
        &self,
        peers: &mut [Peer],
        ask: &PickRequest<'_>,
        random: &mut Random,
    ) -> Option<usize> {
        let tier = &self.primary;
        let by_method = match &self.chooser {
            Chooser::RoundRobin => None,
            Chooser::LeastConn => return least_conn::pick(tier, peers, ask),
            Chooser::IpHash => ip_hash::pick(tier, peers, ask),
            Chooser::Hash => hash::pick(tier, peers, ask),
            Chooser::Consistent(continuum) => continuum.pick(tier, peers, ask),
            Chooser::Random { two: false } => random::pick(tier, peers, ask, random),
            Chooser::Random { two: true } => random::pick_of_two(tier, peers, ask, random),
        };
        by_method.or_else(|| round_robin::pick(tier, peers, ask))
    }

    fn pick_backup(&self, peers: &mut [Peer], ask: &PickRequest<'_>) -> Option<usize> {
        match self.chooser {
            Chooser::LeastConn => least_conn::pick(&self.backup, peers, ask),
            _ => round_robin::pick(&self.backup, peers, ask),
        }
    }

    fn is_on_backups(&self, tried: &TriedSet) -> bool {
        let mut backups = self.backup.members.iter();
        backups.any(|server| tried.contains(*server))
    }

    /// Why was nothing found?
    fn diagnose(&self, peers: &[Peer], ask: &PickRequest<'_>, on_backups: bool) -> Pick {
        let primary = if on_backups {
            &[][..]
        } else {
            &self.primary.members[..]
        };
        let mut verdict = Pick::Exhausted;
        let mut any_tried = false;
        for server in primary.iter().chain(&self.backup.members) {
            if ask.tried.contains(*server) {
                any_tried = true;
                continue;
            }
            match peers.get(*server).map(|peer| peer.standing(ask.now)) {
                Some(Standing::Busy) => return Pick::AllBusy,
                Some(Standing::Failed | Standing::Checking | Standing::Unhealthy) => {
                    verdict = Pick::NoneLive;
                }
                _ => {}
            }
        }
        if any_tried { verdict } else { Pick::NoneLive }
    }
}

#[cfg(test)]
pub(crate) mod tests_support {
    //! A tier with its peers, and the sequence of servers it answers with.

    use super::*;
    use crate::peer::Outcome;
    use crate::{Endpoint, ServerSpec};

    pub struct Bench {
        pub balancer: Balancer,
        pub peers: Vec<Peer>,
        pub random: Random,
    }

    pub fn server(port: u16) -> ServerSpec {
        ServerSpec::new(Endpoint::Tcp(([127, 0, 0, 1], port).into()))
    }

    pub fn servers(weights: &[u32]) -> Vec<ServerSpec> {
        (8081..)
            .zip(weights)
            .map(|(port, weight)| ServerSpec {
                weight: *weight,
                ..server(port)
            })
            .collect()
    }

    impl Bench {
        pub fn new(method: Method, servers: Vec<ServerSpec>) -> Self {
            let spec = GroupSpec {
                servers,
                method,
                ..GroupSpec::single("u", Endpoint::Unix("/a".into()))
            };
            Balancer::check(&spec).unwrap();
            let mut peers: Vec<Peer> = spec.servers.into_iter().map(Peer::new).collect();
            let is_alone = peers.len() == 1;
            peers.iter_mut().for_each(|peer| peer.set_alone(is_alone));
            Self {
                balancer: Balancer::new(method, &peers),
                peers,
                random: Random::seeded(1),
            }
        }

        pub fn ask(&mut self, ask: &PickRequest<'_>) -> Pick {
            let pick = self.balancer.pick(&mut self.peers, ask, &mut self.random);
            if let Pick::Server(server) = pick {
                self.peers[server].begin(ask.now);
            }
            pick
        }

        pub fn next(&mut self, tried: &TriedSet, now: Millis) -> Pick {
            self.ask(&PickRequest {
                client_addr: None,
                hash_key: None,
                tried,
                now,
            })
        }

        /// One request that begins and ends well at once.
        pub fn run(&mut self, client_addr: Option<IpAddr>, hash_key: Option<&[u8]>) -> usize {
            let pick = self.ask(&PickRequest {
                client_addr,
                hash_key,
                tried: &TriedSet::new(),
                now: 0,
            });
            let Pick::Server(server) = pick else {
                panic!("no server: {pick:?}");
            };
            self.peers[server].end(Outcome::Success, 0);
            server
        }
    }
}
