//! `ip_hash`: the same client goes to the same server.
//!
//! The key is the first three octets of an IPv4 address or a whole IPv6
//! address; nginx's constants, so that a site that moves to Mayfly keeps its
//! clients where their sessions are. Servers that are down keep their share of
//! the table, and a client of theirs draws again.

use std::net::IpAddr;

use super::{MAX_DRAWS, PickRequest, Tier};
use crate::TriedSet;
use crate::peer::Peer;

const SEED: u64 = 89;
const FACTOR: u64 = 113;
const MODULUS: u64 = 6271;

pub(super) fn pick(tier: &Tier, peers: &[Peer], ask: &PickRequest<'_>) -> Option<usize> {
    let mut hash = SEED;
    draw(tier, peers, ask, || {
        hash = rehash(hash, ask.client_addr);
        hash
    })
}

fn rehash(hash: u64, client_addr: Option<IpAddr>) -> u64 {
    let step = |hash: u64, octet: &u8| (hash * FACTOR + u64::from(*octet)) % MODULUS;
    match client_addr {
        Some(IpAddr::V4(address)) => address.octets()[..3].iter().fold(hash, step),
        Some(IpAddr::V6(address)) => address.octets().iter().fold(hash, step),
        None => [0; 3].iter().fold(hash, step),
    }
}

/// Draws points until one belongs to a server that may be chosen.
///
/// nginx carries its last hash from one attempt of a request to the next. We
/// begin anew and pass over the servers tried: the first meeting with each of
/// them was an attempt's result, so it does not count as a fruitless draw.
pub(super) fn draw(
    tier: &Tier,
    peers: &[Peer],
    ask: &PickRequest<'_>,
    mut point: impl FnMut() -> u64,
) -> Option<usize> {
    let mut met = TriedSet::new();
    let mut fruitless = 0;
    while fruitless <= MAX_DRAWS {
        let server = tier.member_at(peers, point())?;
        if ask.accepts(server, peers.get(server)?) {
            return Some(server);
        }
        if ask.tried.contains(server) && !met.contains(server) {
            met.insert(server);
        } else {
            fruitless += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{Bench, servers};
    use crate::Method;

    /// upstream_ip_hash.t: thirty networks over two and three servers.
    #[test]
    fn networks_spread_evenly() {
        for (weights, expected) in [(&[1, 1][..], vec![15, 15]), (&[1, 1, 1], vec![10; 3])] {
            let mut bench = Bench::new(Method::IpHash, servers(weights));
            let mut counts = vec![0; weights.len()];
            for net in 1..=30 {
                counts[bench.run(Some([127, 0, net, 2].into()), None)] += 1;
            }
            assert_eq!(counts, expected);
        }
    }

    #[test]
    fn the_last_octet_of_ipv4_does_not_matter_but_that_of_ipv6_does() {
        let mut bench = Bench::new(Method::IpHash, servers(&[1; 7]));
        let v4: Vec<usize> = (0..50)
            .map(|host| bench.run(Some([10, 1, 2, host].into()), None))
            .collect();
        assert!(v4.iter().all(|server| *server == v4[0]));
        let v6: Vec<usize> = (0..50u16)
            .map(|host| bench.run(Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, host].into()), None))
            .collect();
        assert!(v6.iter().any(|server| *server != v6[0]));
    }
}
