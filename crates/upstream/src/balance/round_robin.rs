//! Smooth weighted round robin.
//!
//! Each turn every candidate's balance grows by its effective weight; the one
//! with the largest balance is chosen and pays the turn's total. Weights 5, 1,
//! 1 give a a b a c a a rather than a a a a a b c.

use super::{PickRequest, Tier};
use crate::Millis;
use crate::peer::Peer;

pub(super) fn pick(tier: &Tier, peers: &mut [Peer], ask: &PickRequest<'_>) -> Option<usize> {
    let members = tier.members.iter().copied();
    pick_among(members, peers, ask.now, |server, peer| {
        ask.accepts(server, peer)
    })
}

/// One turn among those of `servers` that `takes_part`. Earlier ones win ties.
pub(super) fn pick_among(
    servers: impl Iterator<Item = usize>,
    peers: &mut [Peer],
    now: Millis,
    takes_part: impl Fn(usize, &Peer) -> bool,
) -> Option<usize> {
    let mut best: Option<(usize, i64)> = None;
    let mut total = 0;
    for server in servers {
        let Some(peer) = peers.get_mut(server) else {
            continue;
        };
        if !takes_part(server, peer) {
            continue;
        }
        total += peer.advance(now);
        if best.is_none_or(|(_, balance)| peer.current_weight > balance) {
            best = Some((server, peer.current_weight));
        }
    }
    let (server, _) = best?;
    if let Some(peer) = peers.get_mut(server) {
        peer.current_weight -= total;
    }
    Some(server)
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{Bench, server, servers};
    use super::super::{Pick, Standing};
    use crate::peer::Outcome;
    use crate::{Method, ServerSpec, TriedSet};

    #[test]
    fn turns_are_spread_by_weight() {
        let cases: [(&str, &[u32], &[usize]); 4] = [
            ("equal", &[1, 1, 1], &[0, 1, 2, 0, 1, 2]),
            (
                "documentation's example",
                &[5, 1, 1],
                &[0, 0, 1, 0, 2, 0, 0],
            ),
            ("two to one", &[2, 1], &[0, 1, 0, 0, 1, 0]),
            ("alone", &[3], &[0, 0, 0]),
        ];
        for (name, weights, expected) in cases {
            let mut bench = Bench::new(Method::RoundRobin, servers(weights));
            let got: Vec<usize> = expected.iter().map(|_| bench.run(None, None)).collect();
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn a_tried_server_is_not_asked_again_and_none_left_is_exhausted() {
        let mut bench = Bench::new(Method::RoundRobin, servers(&[1, 1, 1]));
        let mut tried = TriedSet::new();
        for expected in [0, 1, 2] {
            assert_eq!(bench.next(&tried, 0), Pick::Server(expected));
            tried.insert(expected);
        }
        assert_eq!(bench.next(&tried, 0), Pick::Exhausted);
    }

    #[test]
    fn backups_serve_only_when_no_primary_server_can() {
        let backup = ServerSpec {
            backup: true,
            ..server(8083)
        };
        let mut list = servers(&[1, 1]);
        list.insert(0, backup);
        let mut bench = Bench::new(Method::RoundRobin, list);
        let none = TriedSet::new();
        assert_eq!(bench.next(&none, 100_000), Pick::Server(1));
        assert_eq!(bench.next(&none, 100_000), Pick::Server(2));
        bench.peers[1].end(Outcome::Failure, 100_000);
        bench.peers[2].end(Outcome::Failure, 100_000);
        assert_eq!(bench.next(&none, 100_000), Pick::Server(0), "the backup");
        let mut tried = TriedSet::new();
        tried.insert(0);
        assert_eq!(
            bench.next(&tried, 200_000),
            Pick::Exhausted,
            "who came to a backup stays with backups"
        );
    }

    #[test]
    fn a_full_group_is_busy_and_a_failed_one_has_none_live() {
        let limited: Vec<_> = servers(&[1, 1])
            .into_iter()
            .map(|server| ServerSpec {
                max_conns: 1,
                ..server
            })
            .collect();
        let mut bench = Bench::new(Method::RoundRobin, limited);
        let none = TriedSet::new();
        for expected in [Pick::Server(0), Pick::Server(1), Pick::AllBusy] {
            assert_eq!(bench.next(&none, 100_000), expected);
        }
        for server in [0, 1] {
            bench.peers[server].end(Outcome::Failure, 100_000);
        }
        assert_eq!(bench.next(&none, 100_000), Pick::NoneLive);
    }

    /// upstream_max_conns.t: requests that stay, one after the other.
    #[test]
    fn held_requests_fill_servers_up_to_max_conns_and_then_backups() {
        let hash = |consistent| Method::Hash { consistent };
        type Case<'a> = (
            &'a str,
            Method,
            &'a [(u32, usize, bool)],
            usize,
            &'a [usize],
        );
        #[rustfmt::skip]
        let cases: [Case; 10] = [
            ("u_lim", Method::RoundRobin, &[(1, 3, false)], 4, &[3]),
            ("u_two", Method::RoundRobin, &[(1, 1, false); 2], 4, &[1, 1]),
            ("u_some", Method::RoundRobin, &[(1, 1, false), (1, 0, false)], 4, &[1, 3]),
            ("u_weight", Method::RoundRobin, &[(2, 1, false), (1, 0, false)], 4, &[1, 3]),
            ("u_backup", Method::RoundRobin, &[(1, 2, false), (1, 0, true)], 6, &[2, 4]),
            ("u_backup_lim", Method::RoundRobin, &[(1, 2, false), (1, 3, true)], 6, &[2, 3]),
            ("u_lc_backup_lim", Method::LeastConn, &[(1, 2, false), (1, 3, true)], 6, &[2, 3]),
            ("u_ih", Method::IpHash, &[(1, 1, false), (1, 2, false)], 4, &[1, 2]),
            ("u_hash", hash(false), &[(1, 1, false), (1, 2, false)], 4, &[1, 2]),
            ("u_chash", hash(true), &[(1, 1, false), (1, 2, false)], 4, &[1, 2]),
        ];
        for (name, method, list, requests, expected) in cases {
            let list = (8081..).zip(list).map(|(port, of)| ServerSpec {
                weight: of.0,
                max_conns: of.1,
                backup: of.2,
                ..server(port)
            });
            let mut bench = Bench::new(method, list.collect());
            for _ in 0..requests {
                bench.ask(&super::PickRequest {
                    client_addr: Some([127, 0, 0, 1].into()),
                    hash_key: Some(b"127.0.0.1"),
                    tried: &TriedSet::new(),
                    now: 0,
                });
            }
            let held: Vec<usize> = bench.peers.iter().map(|peer| peer.in_flight).collect();
            assert_eq!(held, expected, "{name}");
        }
    }

    #[test]
    fn a_lone_server_is_asked_whatever_it_does() {
        let mut bench = Bench::new(Method::RoundRobin, servers(&[1]));
        for now in 100_000..100_010 {
            assert_eq!(bench.next(&TriedSet::new(), now), Pick::Server(0));
            bench.peers[0].end(Outcome::Failure, now);
            assert_eq!(bench.peers[0].standing(now), Standing::Ready);
        }
    }

    /// upstream.t, "failures": of the first server's requests every third
    /// fails; nine of them make three failures, and then it is left alone.
    #[test]
    fn three_failures_among_nine_requests_leave_the_rest_to_the_other_server() {
        let list = servers(&[1, 1])
            .into_iter()
            .map(|server| ServerSpec {
                max_fails: 3,
                ..server
            })
            .collect();
        let mut bench = Bench::new(Method::RoundRobin, list);
        let (mut count, mut served) = (0, [0, 0]);
        for _ in 0..30 {
            let mut tried = TriedSet::new();
            while let Pick::Server(server) = bench.next(&tried, 100_000) {
                tried.insert(server);
                count += usize::from(server == 0);
                if server == 0 && count % 3 == 0 {
                    bench.peers[server].end(Outcome::Failure, 100_000);
                    continue;
                }
                bench.peers[server].end(Outcome::Success, 100_000);
                served[server] += 1;
                break;
            }
        }
        assert_eq!(served, [6, 24]);
    }
}
