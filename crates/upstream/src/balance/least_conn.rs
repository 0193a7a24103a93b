//! `least_conn`: the server with the fewest requests in flight for its weight.
//!
//! Servers that tie share the turn by weighted round robin, counted from the
//! first of them on; others' balances stay as they are.

use std::cmp::Ordering;

use super::{PickRequest, Tier, round_robin};
use crate::Millis;
use crate::peer::Peer;

pub(super) fn pick(tier: &Tier, peers: &mut [Peer], ask: &PickRequest<'_>) -> Option<usize> {
    let mut candidates = tier.candidates(peers, ask);
    let (mut best, first) = candidates.next()?;
    let now = ask.now;
    let (mut in_flight, mut share) = (first.in_flight, first.share(now));
    let mut ties = false;
    for (server, peer) in candidates {
        match load_order(peer, in_flight, share, now) {
            Ordering::Less => {
                (best, in_flight, share) = (server, peer.in_flight, peer.share(now));
                ties = false;
            }
            Ordering::Equal => ties = true,
            Ordering::Greater => {}
        }
    }
    if !ties {
        return Some(best);
    }
    let from_best = tier.members.iter().copied().filter(|of| *of >= best);
    round_robin::pick_among(from_best, peers, now, |server, peer| {
        ask.accepts(server, peer) && load_order(peer, in_flight, share, now).is_eq()
    })
}

/// Compares requests per share without dividing.
pub(super) fn load_order(peer: &Peer, in_flight: usize, share: i64, now: Millis) -> Ordering {
    let ours = peer.in_flight as u128 * share as u128;
    let theirs = in_flight as u128 * peer.share(now) as u128;
    ours.cmp(&theirs)
}

#[cfg(test)]
mod tests {
    use super::super::Pick;
    use super::super::tests_support::{Bench, servers};
    use crate::peer::Outcome;
    use crate::{Method, TriedSet};

    /// upstream_least_conn.t
    #[test]
    fn a_server_that_holds_a_request_is_left_alone() {
        let mut bench = Bench::new(Method::LeastConn, servers(&[1, 1]));
        let turns: Vec<usize> = (0..10).map(|_| bench.run(None, None)).collect();
        assert_eq!(turns, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(bench.next(&TriedSet::new(), 0), Pick::Server(0));
        for _ in 0..10 {
            assert_eq!(bench.run(None, None), 1);
        }
        bench.peers[0].end(Outcome::Success, 0);
    }
}
