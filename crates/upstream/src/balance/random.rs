//! `random` and `random two least_conn`.
//!
//! Servers are drawn by weight; of two different ones the one with fewer
//! requests in flight for its weight is taken.

use std::hash::{BuildHasher, RandomState};

use super::{MAX_DRAWS, PickRequest, Tier, least_conn};
use crate::peer::Peer;

/// A small generator (xorshift64*): spreads load, keeps no secret.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Seeded by the system.
    pub fn from_system() -> Self {
        Self::seeded(RandomState::new().hash_one(0u8))
    }

    /// Creates a generator from a seed; the same seed gives the same sequence.
    pub fn seeded(seed: u64) -> Self {
        // Zero is the one state that never changes.
        Self(seed.max(1))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}

pub(super) fn pick(
    tier: &Tier,
    peers: &[Peer],
    ask: &PickRequest<'_>,
    random: &mut Random,
) -> Option<usize> {
    let mut draws = draws(tier, peers, ask, random);
    draws.next()
}

pub(super) fn pick_of_two(
    tier: &Tier,
    peers: &[Peer],
    ask: &PickRequest<'_>,
    random: &mut Random,
) -> Option<usize> {
    let mut draws = draws(tier, peers, ask, random);
    let first = draws.next()?;
    let second = draws.find(|server| *server != first)?;
    let (one, two) = (peers.get(first)?, peers.get(second)?);
    let second_is_busier =
        least_conn::load_order(two, one.in_flight, one.share(ask.now), ask.now).is_gt();
    Some(if second_is_busier { first } else { second })
}

/// Servers drawn by weight, those that may be chosen.
fn draws(
    tier: &Tier,
    peers: &[Peer],
    ask: &PickRequest<'_>,
    random: &mut Random,
) -> impl Iterator<Item = usize> {
    (0..=MAX_DRAWS)
        .filter_map(|_| tier.member_at(peers, random.draw()))
        .filter(|server| {
            let peer = peers.get(*server);
            peer.is_some_and(|peer| ask.accepts(*server, peer))
        })
}

#[cfg(test)]
mod tests {
    use super::super::Pick;
    use super::super::tests_support::{Bench, servers};
    use crate::{Method, ServerSpec, TriedSet};

    #[test]
    fn shares_follow_the_weights() {
        let mut bench = Bench::new(Method::Random { two: false }, servers(&[1, 3]));
        let second = (0..4_000).map(|_| bench.run(None, None)).sum::<usize>();
        assert!((2_800..3_200).contains(&second), "{second} of 4000");
    }

    /// upstream_random.t, "random weight"
    #[test]
    fn the_less_loaded_of_two_is_taken() {
        let mut bench = Bench::new(Method::Random { two: true }, servers(&[1, 2]));
        for _ in 0..3 {
            bench.next(&TriedSet::new(), 0);
        }
        let in_flight: Vec<usize> = bench.peers.iter().map(|peer| peer.in_flight).collect();
        assert_eq!(in_flight, [1, 2]);
    }

    /// upstream_random.t, "max_conns" and "max_conns two"
    #[test]
    fn full_servers_are_passed_over() {
        for two in [false, true] {
            let mut list = servers(&[1, 1]);
            list[0].max_conns = 2;
            list[1].max_conns = 1;
            let mut bench = Bench::new(Method::Random { two }, list);
            let none = TriedSet::new();
            for _ in 0..3 {
                assert!(matches!(bench.next(&none, 0), Pick::Server(_)));
            }
            assert_eq!(bench.next(&none, 0), Pick::AllBusy);
            let in_flight: Vec<usize> = bench.peers.iter().map(|peer| peer.in_flight).collect();
            assert_eq!(in_flight, [2, 1]);
        }
    }

    #[test]
    fn a_server_that_is_down_is_never_drawn() {
        let mut list = servers(&[1, 1, 1]);
        list[2] = ServerSpec {
            down: true,
            ..list[2].clone()
        };
        let mut bench = Bench::new(Method::Random { two: false }, list);
        for _ in 0..200 {
            assert_ne!(bench.run(None, None), 2);
        }
    }
}
