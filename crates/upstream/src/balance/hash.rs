//! `hash key` and `hash key consistent`.
//!
//! Plain: `(crc32([REHASH] KEY) >> 16) & 0x7fff`, added up over the draws, as
//! in Cache::Memcached. Consistent: ketama with 160 points per unit of weight,
//! as in Cache::Memcached::Fast; a key belongs to the server of the next point
//! on the circle. An empty key is no key: round robin decides.

use super::{MAX_CONSISTENT_WEIGHT, MAX_DRAWS, PickRequest, Tier, ip_hash, round_robin};
use crate::peer::Peer;

/// Points on the circle per unit of weight.
const POINTS_PER_WEIGHT: u128 = 160;

pub(super) fn pick(tier: &Tier, peers: &[Peer], ask: &PickRequest<'_>) -> Option<usize> {
    let key = key_of(ask)?;
    let mut sum: u32 = 0;
    let mut rehash = 0u32;
    ip_hash::draw(tier, peers, ask, || {
        let mut crc = crc32fast::Hasher::new();
        if rehash > 0 {
            crc.update(rehash.to_string().as_bytes());
        }
        crc.update(key);
        rehash += 1;
        sum = sum.wrapping_add((crc.finalize() >> 16) & 0x7fff);
        u64::from(sum)
    })
}

fn key_of<'a>(ask: &PickRequest<'a>) -> Option<&'a [u8]> {
    ask.hash_key.filter(|key| !key.is_empty())
}

/// The circle of consistent hashing.
#[derive(Debug)]
pub(super) struct Continuum {
    /// Sorted by hash: the point and the index of its name in `names`.
    points: Vec<(u32, u32)>,
    /// Server names, each once: addresses of one host name share their points.
    names: Vec<String>,
}

impl Continuum {
    /// `total_weight`: that of all servers. Beyond the bound, which only servers
    /// that DNS named can pass, all get fewer points in proportion.
    pub fn new<'a>(servers: impl Iterator<Item = &'a Peer>, total_weight: u64) -> Self {
        let scale = |points: u128| {
            points * u128::from(MAX_CONSISTENT_WEIGHT)
                / u128::from(total_weight.max(MAX_CONSISTENT_WEIGHT))
        };
        let mut points = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for server in servers {
            let known = names.iter().position(|name| *name == server.name);
            let index = known.unwrap_or(names.len());
            if known.is_none() {
                names.push(server.name.clone());
            }
            let count = scale(server.weight.unsigned_abs() as u128 * POINTS_PER_WEIGHT);
            let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
            points.extend(
                points_of(&server.name)
                    .take(count)
                    .map(|hash| (hash, index as u32)),
            );
        }
        points.sort_by_key(|(hash, _)| *hash);
        points.dedup_by_key(|(hash, _)| *hash);
        Self { points, names }
    }

    pub fn pick(&self, tier: &Tier, peers: &mut [Peer], ask: &PickRequest<'_>) -> Option<usize> {
        let hash = crc32fast::hash(key_of(ask)?);
        let start = self.points.partition_point(|(point, _)| *point < hash);
        let circle = self.points.iter().cycle();
        for (_, index) in circle.skip(start).take(MAX_DRAWS + 1) {
            let name = self.names.get(*index as usize)?;
            let members = tier.members.iter().copied();
            let chosen = round_robin::pick_among(members, peers, ask.now, |server, peer| {
                peer.name == *name && ask.accepts(server, peer)
            });
            if chosen.is_some() {
                return chosen;
            }
        }
        None
    }
}

/// The points of a server: `crc32(HOST NUL PORT PREVIOUS)`, each feeding the next.
fn points_of(name: &str) -> impl Iterator<Item = u32> {
    let (host, port) = host_and_port(name);
    let mut base = crc32fast::Hasher::new();
    base.update(host.as_bytes());
    base.update(b"\0");
    base.update(port.as_bytes());
    let mut previous = 0u32;
    std::iter::repeat_with(move || {
        let mut crc = base.clone();
        crc.update(&previous.to_le_bytes());
        previous = crc.finalize();
        previous
    })
}

/// A name's two parts; a unix socket's path has no port.
fn host_and_port(name: &str) -> (&str, &str) {
    if let Some(scheme) = name.get(..5)
        && scheme.eq_ignore_ascii_case("unix:")
    {
        return (&name[5..], "");
    }
    match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{Bench, server, servers};
    use super::*;
    use crate::Method;

    const PLAIN: Method = Method::Hash { consistent: false };
    const CONSISTENT: Method = Method::Hash { consistent: true };

    fn map(bench: &mut Bench, keys: u32) -> Vec<usize> {
        (1..=keys)
            .map(|key| bench.run(None, Some(key.to_string().as_bytes())))
            .collect()
    }

    #[test]
    fn names_split_at_a_numeric_port() {
        let cases = [
            ("127.0.0.1:8081", ("127.0.0.1", "8081")),
            ("backend", ("backend", "")),
            ("[::1]:80", ("[::1]", "80")),
            ("[::1]", ("[::1]", "")),
            ("unix:/run/a:1", ("/run/a:1", "")),
        ];
        for (name, expected) in cases {
            assert_eq!(host_and_port(name), expected, "{name}");
        }
    }

    /// upstream_hash.t, "empty key"
    #[test]
    fn an_empty_key_means_round_robin() {
        for method in [PLAIN, CONSISTENT] {
            let mut bench = Bench::new(method, servers(&[1, 1, 1]));
            let turns: Vec<usize> = (0..6).map(|_| bench.run(None, Some(b""))).collect();
            assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
        }
    }

    /// upstream_hash.t, "consistent": without the second server, only its keys move.
    #[test]
    fn only_keys_of_an_absent_server_move_when_the_hash_is_consistent() {
        let two = || vec![server(8081), server(8083)];
        let moved = |method| {
            let three = map(&mut Bench::new(method, servers(&[1, 1, 1])), 200);
            let two = map(&mut Bench::new(method, two()), 200);
            let pairs = three.into_iter().zip(two);
            pairs
                .filter(|(of_three, of_two)| *of_three != 1 && *of_three != of_two * 2)
                .count()
        };
        assert_eq!(moved(CONSISTENT), 0);
        assert!(moved(PLAIN) > 0);
    }
}
