//! Addresses that no client has shown to be its own. A server may send such an address at most three times
//! as many bytes as came from there (RFC 9000 §8.1). quinn sends a whole packet more wherever anything of
//! that is left, so bytes beyond that are dropped here, and QUIC takes them for lost.
//!
//! A client that names a connection id of ours has received it, which proves its address: the id is
//! one of eight bytes that it cannot guess.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How many bytes may be sent for each that came.
const FACTOR: u64 = 3;
/// The most addresses that are known. A client with any other must show its address by a Retry packet: there
/// are four times as many as handshakes that may be under way without one.
const MAX_ADDRESSES: usize = 1024;
/// An address is known for this time, which is longer than a handshake and the packets after its failure.
const KNOWN_FOR: Duration = Duration::from_secs(120);
/// Bytes of a connection id of ours.
const ID_BYTES: usize = 8;
/// The most ids kept for an address: those of a Retry packet and of some connections.
const MAX_IDS: usize = 8;

const LONG_HEADER: u8 = 0x80;
/// The offset of the connection ids in a long header, each behind its length (RFC 9000 §17.2).
const IDS_AT: usize = 5;

/// The addresses that are not proven.
#[derive(Default)]
pub struct UnprovenAddresses {
    addresses: Mutex<HashMap<SocketAddr, Address>>,
    /// How many there are: mostly none.
    count: AtomicUsize,
}

struct Address {
    received: u64,
    sent: u64,
    /// Connection ids that were sent there.
    ids: Vec<[u8; ID_BYTES]>,
    /// The client's own id of its last connection.
    client: Vec<u8>,
    since: Instant,
}

impl UnprovenAddresses {
    /// Are the bytes sent to this address counted?
    pub fn knows(&self, address: SocketAddr) -> bool {
        self.addresses.lock().contains_key(&address)
    }

    /// Notes a datagram; `is_first`: it begins a connection without a token.
    pub fn receive(&self, from: SocketAddr, datagram: &[u8], is_first: bool, now: Instant) {
        if !is_first && self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut addresses = self.addresses.lock();
        if is_first && !addresses.contains_key(&from) {
            if addresses.len() >= MAX_ADDRESSES {
                addresses.retain(|_, it| now.saturating_duration_since(it.since) < KNOWN_FOR);
            }
            if addresses.len() < MAX_ADDRESSES {
                addresses.insert(from, Address::new(now));
            }
        }
        let is_proven = match addresses.get_mut(&from) {
            Some(address) => address.receive(datagram, is_first),
            None => false,
        };
        if is_proven {
            addresses.remove(&from);
        }
        self.count.store(addresses.len(), Ordering::Relaxed);
    }

    /// Returns how many bytes of `contents` may be sent: datagrams of `datagram_bytes` each, of which the
    /// last may be shorter.
    pub fn send(&self, to: SocketAddr, contents: &[u8], datagram_bytes: usize) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return contents.len();
        }
        match self.addresses.lock().get_mut(&to) {
            Some(address) => address.send(contents, datagram_bytes),
            None => contents.len(),
        }
    }
}

impl Address {
    fn new(since: Instant) -> Address {
        Address {
            received: 0,
            sent: 0,
            ids: Vec::new(),
            client: Vec::new(),
            since,
        }
    }

    /// Returns whether that proves the address.
    fn receive(&mut self, datagram: &[u8], is_first: bool) -> bool {
        self.received += datagram.len() as u64;
        let [destination, source] = connection_ids(datagram);
        if is_first {
            self.client = source.to_vec();
        }
        self.ids.iter().any(|id| id.as_slice() == destination)
    }

    fn send(&mut self, contents: &[u8], datagram_bytes: usize) -> usize {
        let is_long = contents.first().is_some_and(|byte| byte & LONG_HEADER != 0);
        if is_long {
            let [_, source] = connection_ids(contents);
            if let Ok(id) = source.try_into()
                && !self.ids.contains(&id)
                && self.ids.len() < MAX_IDS
            {
                self.ids.push(id);
            }
        } else if self.client.is_empty()
            || !contents[1.min(contents.len())..].starts_with(&self.client)
        {
            // It is of another connection from there.
            return contents.len();
        }
        let left = (FACTOR * self.received).saturating_sub(self.sent);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let bytes = match contents.len() <= left {
            true => contents.len(),
            false => left - left % datagram_bytes.max(1),
        };
        self.sent += bytes as u64;
        bytes
    }
}

/// The ids of destination and source that a datagram begins with. With a short header the first is as
/// long as ours are, and the second is not there.
fn connection_ids(datagram: &[u8]) -> [&[u8]; 2] {
    let is_long = datagram.first().is_some_and(|byte| byte & LONG_HEADER != 0);
    if !is_long {
        return [datagram.get(1..=ID_BYTES).unwrap_or_default(), &[]];
    }
    let mut rest = datagram.get(IDS_AT..).unwrap_or_default();
    [(); 2].map(|()| {
        let Some((&length, after)) = rest.split_first() else {
            return &[][..];
        };
        let (id, after) = after.split_at(after.len().min(usize::from(length)));
        rest = after;
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &[u8] = b"ourselfs";

    fn long(destination: &[u8], source: &[u8], length: usize) -> Vec<u8> {
        let ids = [destination, source].map(|id| [&[id.len() as u8][..], id].concat());
        let mut packet = [&[0xc0, 0, 0, 0, 1][..], &ids.concat()].concat();
        packet.resize(length, 0);
        packet
    }

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    #[test]
    fn an_unproven_address_is_sent_three_times_what_it_sent() {
        let (addresses, now) = (UnprovenAddresses::default(), Instant::now());
        addresses.receive(address(1), &long(b"random", b"client", 1200), true, now);
        let flight = long(b"client", OURS, 3300);
        assert_eq!(addresses.send(address(1), &flight, 1200), 3300);
        let probe = long(b"client", OURS, 1200);
        assert_eq!(addresses.send(address(1), &probe, 1200), 0);
        let short = [&[0x40][..], b"client", &[0; 200]].concat();
        assert_eq!(addresses.send(address(1), &short, 1200), short.len());
        let flight = long(b"client", OURS, 3000);
        addresses.receive(address(1), &[0xc0; 400], false, now);
        assert_eq!(
            addresses.send(address(1), &flight, 1200),
            1200,
            "a datagram"
        );
        // Other connections are not touched.
        let other = [&[0x40][..], b"another's", &[0; 5000]].concat();
        assert_eq!(addresses.send(address(1), &other, 1200), other.len());
        assert_eq!(addresses.send(address(2), &flight, 1200), flight.len());
    }

    #[test]
    fn a_client_that_names_an_id_of_ours_has_proven_its_address() {
        let (addresses, now) = (UnprovenAddresses::default(), Instant::now());
        addresses.receive(address(1), &long(b"random", b"client", 1200), true, now);
        let flight = long(b"client", OURS, 9000);
        assert_eq!(addresses.send(address(1), &flight, 1200), 3600);
        addresses.receive(address(1), &long(b"guessing", b"client", 50), false, now);
        assert!(addresses.knows(address(1)));
        addresses.receive(address(2), &long(OURS, b"client", 50), false, now);
        assert!(addresses.knows(address(1)));
        addresses.receive(address(1), &long(OURS, b"client", 50), false, now);
        assert!(!addresses.knows(address(1)));
        assert_eq!(addresses.send(address(1), &flight, 1200), 9000);
        assert_eq!(addresses.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn no_more_addresses_are_known_than_there_is_room_for() {
        let (addresses, now) = (UnprovenAddresses::default(), Instant::now());
        let first = |port, now| {
            addresses.receive(address(port), &long(b"random", b"client", 1200), true, now);
            addresses.knows(address(port))
        };
        for port in 0..MAX_ADDRESSES {
            assert!(first(port as u16, now));
        }
        assert!(!first(5000, now));
        assert!(first(5001, now + KNOWN_FOR));
        assert!(!addresses.knows(address(1)));
    }
}
