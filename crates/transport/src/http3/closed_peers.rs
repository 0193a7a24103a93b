//! Clients whose connections have ended, and how many of their packets are still answered.
//!
//! A closed connection answers each packet that still comes for it, and a client may acknowledge each of these
//! answers: without a bound, the two go on until the connection is forgotten, and then with resets. So fewer and
//! fewer packets get through (RFC 9000 §10.2.1): the first, the second, the fourth, the eighth. A client that has
//! not heard of the end asks again until it does.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// The most addresses that are remembered; the oldest are forgotten, and are then answered each time.
const MAX_CLOSED: usize = 4096;
const LONG_HEADER: u8 = 0x80;

/// The clients of one socket, by address.
#[derive(Default)]
pub struct ClosedPeers {
    state: Mutex<PeerCounts>,
    /// How many have ended: while none has, packets are not looked at.
    closed: AtomicUsize,
}

#[derive(Default)]
struct PeerCounts {
    /// Connections that an address has.
    live: HashMap<SocketAddr, usize>,
    /// Packets that came from an address after its last connection had ended.
    after_end: HashMap<SocketAddr, u64>,
    /// The addresses of `after_end`, in the order in which their connections ended.
    order: VecDeque<SocketAddr>,
}

/// A connection of a client, while it lives.
pub struct LivePeer {
    peers: Arc<ClosedPeers>,
    address: SocketAddr,
}

impl ClosedPeers {
    pub fn enter(self: &Arc<Self>, address: SocketAddr) -> LivePeer {
        let mut state = self.state.lock();
        *state.live.entry(address).or_default() += 1;
        if state.after_end.remove(&address).is_some() {
            state.order.retain(|it| *it != address);
        }
        self.closed.store(state.after_end.len(), Ordering::Relaxed);
        LivePeer {
            peers: self.clone(),
            address,
        }
    }

    /// Does this datagram get through?
    pub fn lets_through(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let is_long = datagram
            .first()
            .is_some_and(|first| first & LONG_HEADER != 0);
        if is_long || self.closed.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut state = self.state.lock();
        let Some(packets) = state.after_end.get_mut(&from) else {
            return true;
        };
        *packets = packets.saturating_add(1);
        packets.is_power_of_two()
    }

    fn leave(&self, address: SocketAddr) {
        let mut state = self.state.lock();
        let left = state.live.get(&address).map_or(0, |count| count - 1);
        if left > 0 {
            state.live.insert(address, left);
            return;
        }
        state.live.remove(&address);
        if state.after_end.insert(address, 0).is_none() {
            state.order.push_back(address);
        }
        if state.order.len() > MAX_CLOSED
            && let Some(oldest) = state.order.pop_front()
        {
            state.after_end.remove(&oldest);
        }
        self.closed.store(state.after_end.len(), Ordering::Relaxed);
    }
}

impl Drop for LivePeer {
    fn drop(&mut self) {
        self.peers.leave(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &[u8] = &[0x40, 1, 2, 3];
    const LONG: &[u8] = &[0xc0, 1, 2, 3];

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn after_the_end_fewer_and_fewer_packets_are_answered() {
        let peers = Arc::new(ClosedPeers::default());
        let live = peers.enter(address(1));
        assert!((0..20).all(|_| peers.lets_through(address(1), SHORT)));
        drop(live);
        let answered: Vec<u32> = (1..=20)
            .filter(|_| peers.lets_through(address(1), SHORT))
            .collect();
        assert_eq!(answered, [1, 2, 4, 8, 16]);
        // Another client, and a packet that begins a connection.
        assert!((0..20).all(|_| peers.lets_through(address(2), SHORT)));
        assert!((0..20).all(|_| peers.lets_through(address(1), LONG)));
    }

    #[test]
    fn a_client_with_another_connection_is_answered() {
        let peers = Arc::new(ClosedPeers::default());
        let (first, second) = (peers.enter(address(1)), peers.enter(address(1)));
        drop(first);
        assert!((0..20).all(|_| peers.lets_through(address(1), SHORT)));
        drop(second);
        let third = peers.enter(address(1));
        assert!((0..20).all(|_| peers.lets_through(address(1), SHORT)));
        drop(third);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let peers = Arc::new(ClosedPeers::default());
        for port in 0..=MAX_CLOSED {
            drop(peers.enter(address(u16::try_from(port).unwrap())));
        }
        let state = peers.state.lock();
        assert_eq!(
            (state.after_end.len(), state.order.len()),
            (MAX_CLOSED, MAX_CLOSED)
        );
        assert!(state.live.is_empty() && !state.after_end.contains_key(&address(0)));
    }
}
