//! How many first packets of connections are looked at, and how many after their ends (`closed_peers`).
//!
//! The first packet of a connection is dear, whatever becomes of it: its keys are derived from its own
//! connection id (RFC 9001 §5.2), and a Retry packet has a tag of its own. One core that makes such
//! packets (120,000 a second, `scripts/floods`) keeps more than one core of a server busy. Packets of
//! connections that there are cost little, but a socket has one line for all: if first packets come
//! faster than they are looked at, the kernel drops the others as well. So packets beyond a rate are
//! dropped here, before anything is derived. A client sends dropped packets again.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use parking_lot::Mutex;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::closed_peers::ClosedPeers;
use super::routing::{OwnIds, destination};
use super::unproven::UnprovenAddresses;

/// First packets each second, of either kind (see [`kind`]): a small part of the rate that kept a core
/// busy, and more than the handshakes that a core can make (about 3,000).
const PER_SECOND: f64 = 8000.0;
/// First packets at once: the number that arrives while the thread does something else.
const BURST: f64 = 1024.0;

/// A socket on which first packets are bounded.
pub struct FirstPackets {
    inner: Arc<dyn AsyncUdpSocket>,
    allowances: Mutex<[Allowance; 2]>,
    unproven: Arc<UnprovenAddresses>,
    peers: Arc<ClosedPeers>,
    own_ids: OwnIds,
}

impl FirstPackets {
    /// `unproven` bounds the bytes sent, and `peers` which last packets are answered.
    pub fn new(
        inner: Arc<dyn AsyncUdpSocket>,
        unproven: Arc<UnprovenAddresses>,
        peers: Arc<ClosedPeers>,
    ) -> FirstPackets {
        let full = Allowance {
            left: BURST,
            refilled_at: Instant::now(),
        };
        FirstPackets {
            inner,
            allowances: Mutex::new([full; 2]),
            unproven,
            peers,
            own_ids: OwnIds::of_this_process(),
        }
    }

    /// Does the client know an id of ours, from our answer? It may send further Initial packets, which
    /// begin nothing: if its address were unproven from then on, it would be sent no more than three
    /// times the bytes that it sends, to its end.
    fn is_answered(&self, datagram: &[u8]) -> bool {
        let (id, _) = destination(datagram);
        self.own_ids.is_own(id)
    }
}

impl fmt::Debug for FirstPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl AsyncUdpSocket for FirstPackets {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let contents = transmit.contents;
        let datagram_bytes = transmit.segment_size.unwrap_or(contents.len());
        let to = transmit.destination;
        match self.unproven.send(to, contents, datagram_bytes) {
            0 => Ok(()),
            bytes => self.inner.try_send(&Transmit {
                destination: to,
                ecn: transmit.ecn,
                contents: contents.get(..bytes).unwrap_or(contents),
                segment_size: transmit.segment_size,
                src_ip: transmit.src_ip,
            }),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for (buf, meta) in bufs.iter().zip(meta.iter_mut()).take(count) {
            let contents = buf.get(..meta.len).unwrap_or_default();
            let (kind, now) = (kind(contents), tokio::time::Instant::now().into_std());
            if !self.peers.lets_through(meta.addr, contents) {
                // quinn passes over an empty datagram.
                meta.len = 0;
                continue;
            }
            // Datagrams that the kernel has joined come from one client.
            let datagrams = contents.chunks(meta.stride.max(1));
            if let Some(kind) = kind {
                let mut allowances = self.allowances.lock();
                if !allowances[kind as usize].take(datagrams.len() as f64, now) {
                    meta.len = 0;
                    continue;
                }
            }
            for datagram in datagrams {
                let is_first =
                    kind == Some(PacketKind::WithoutToken) && !self.is_answered(datagram);
                self.unproven.receive(meta.addr, datagram, is_first, now);
            }
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// The allowance that a first packet needs. A client that answers a Retry packet does not compete with
/// those who have not been asked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketKind {
    WithoutToken,
    WithToken,
}

/// Returns the kind of a datagram that begins with an Initial packet (RFC 9000 §17.2.2); `None` for any
/// other.
fn kind(datagram: &[u8]) -> Option<PacketKind> {
    const LONG_HEADER: u8 = 0x80;
    const TYPE: u8 = 0x30;
    const BEFORE_CONNECTION_IDS: usize = 5;
    let first = *datagram.first()?;
    if first & LONG_HEADER == 0 || first & TYPE != 0 {
        return None;
    }
    // The two connection ids, each behind its length.
    let mut at = BEFORE_CONNECTION_IDS;
    for _ in 0..2 {
        at += 1 + usize::from(*datagram.get(at)?);
    }
    match datagram.get(at)? {
        0 => Some(PacketKind::WithoutToken),
        _ => Some(PacketKind::WithToken),
    }
}

/// How many more may come.
#[derive(Clone, Copy)]
struct Allowance {
    left: f64,
    refilled_at: Instant,
}

impl Allowance {
    fn take(&mut self, count: f64, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.refilled_at);
        self.left = (self.left + passed.as_secs_f64() * PER_SECOND).min(BURST);
        self.refilled_at = now;
        if self.left < count {
            return false;
        }
        self.left -= count;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    /// A client's socket, and the server's that it is connected to.
    fn pair(unproven: Arc<UnprovenAddresses>) -> (UdpSocket, FirstPackets) {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (client, socket) = (bind(), bind());
        client.connect(socket.local_addr().unwrap()).unwrap();
        let inner = quinn::default_runtime().unwrap().wrap_udp_socket(socket);
        (
            client,
            FirstPackets::new(inner.unwrap(), unproven, Arc::default()),
        )
    }

    /// A datagram with a long header of this first byte and a token of this length.
    fn datagram(first: u8, token_bytes: u8) -> Vec<u8> {
        let ids = [2, 1, 2, 3, 1, 2, 3];
        [&[first, 0, 0, 0, 1], &ids[..], &[token_bytes, 9, 9, 9]].concat()
    }

    #[test]
    fn only_initial_packets_are_counted() {
        assert_eq!(kind(&datagram(0xc3, 0)), Some(PacketKind::WithoutToken));
        assert_eq!(kind(&datagram(0xc0, 3)), Some(PacketKind::WithToken));
        // 0-RTT, Handshake, Retry, and a short header.
        for first in [0xd0, 0xe0, 0xf0, 0x43] {
            assert_eq!(kind(&datagram(first, 0)), None, "{first:x}");
        }
        // A truncated packet belongs to nothing.
        for length in 0..12 {
            assert_eq!(kind(&datagram(0xc3, 0)[..length]), None, "{length}");
        }
    }

    #[tokio::test]
    async fn a_client_that_knows_an_id_of_ours_begins_nothing() {
        use quinn::ConnectionIdGenerator as _;

        let initial = |id: &[u8]| [&[0xc3, 0, 0, 0, 1, id.len() as u8][..], id, &[0; 20]].concat();
        let answered = OwnIds::of_this_process().generate_cid();
        for (id, begins) in [(&answered[..], false), (b"invented", true)] {
            let unproven = Arc::new(UnprovenAddresses::default());
            let (client, first_packets) = pair(unproven.clone());
            let from = client.local_addr().unwrap();
            client.send(&initial(id)).unwrap();
            first_bytes(&first_packets).await;
            assert_eq!(unproven.knows(from), begins);
        }
    }

    /// The first bytes of the datagrams that come next and are not dropped.
    async fn first_bytes(first_packets: &FirstPackets) -> Vec<u8> {
        let (mut buf, mut meta) = ([0; 2000], [RecvMeta::default()]);
        let mut bufs = [IoSliceMut::new(&mut buf)];
        let received = std::future::poll_fn(|cx| first_packets.poll_recv(cx, &mut bufs, &mut meta));
        assert_eq!(received.await.unwrap(), 1);
        let datagrams = buf[..meta[0].len].chunks(meta[0].stride.max(1));
        datagrams.map(|it| it[0]).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn first_packets_beyond_a_rate_are_dropped_and_no_others_are() {
        // The number of datagrams that the socket's buffer holds.
        const BATCH: usize = 40;
        let (client, first_packets) = pair(Arc::default());
        let (first, other) = (datagram(0xc3, 0), datagram(0xe0, 0));
        // How many of a batch pass, up to the other packet behind them, which always passes.
        let pass = async || {
            for _ in 0..BATCH {
                client.send(&first).unwrap();
            }
            client.send(&other).unwrap();
            let mut passed = Vec::new();
            while passed.last() != Some(&0xe0) {
                passed.extend(first_bytes(&first_packets).await);
            }
            passed.len() - 1
        };
        let mut passed = 0;
        for _ in 0..2 * BURST as usize / BATCH {
            passed += pass().await;
        }
        // The kernel may join datagrams, which pass together or not at all.
        let burst = BURST as usize;
        assert!((burst - BATCH..=burst).contains(&passed), "{passed}");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(pass().await, BATCH);
    }

    #[test]
    fn an_allowance_is_used_up_and_comes_back_with_time() {
        let start = Instant::now();
        let mut allowance = Allowance {
            left: BURST,
            refilled_at: start,
        };
        assert!(allowance.take(BURST, start));
        assert!(!allowance.take(1.0, start));
        let later = start + Duration::from_millis(10);
        assert!(allowance.take(PER_SECOND / 100.0, later));
        assert!(!allowance.take(1.0, later));
        // No more than at the beginning, however long no client came.
        let much_later = start + Duration::from_secs(3600);
        assert!(allowance.take(BURST, much_later));
        assert!(!allowance.take(1.0, much_later));
    }
}
