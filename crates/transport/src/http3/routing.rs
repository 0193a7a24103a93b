//! Packets of QUIC while one program takes the place of another. Both have the socket, and a packet goes to whichever
//! process reads first. So one of the two reads: the new one. It hands on packets for connections of the other, which
//! sends by itself.
//!
//! ```text
//!  UDP socket ─► new process ─┬─► its own connections
//!                             └─ connection id of the old one ─► pair of sockets ─► old process
//! ```
//!
//! The old process reads until the new one announces that it does (`READS`): a new process may take seconds to be
//! ready.
//!
//! A connection id names its process: five random bytes, and three that a key of the process makes of them. A client
//! chooses the first id of a connection itself: the new process gets a list of the connections that began in the old
//! one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use aws_lc_rs::hmac;
use parking_lot::Mutex;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ConnectionId, ConnectionIdGenerator, UdpPoller};
use quinn_proto::InvalidCid;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::host_key;

/// Bytes of a connection id of ours, and those of them that are random.
const ID_BYTES: usize = 8;
const RANDOM_BYTES: usize = 5;
/// Connections that began in the last moment before another process reads.
const MAX_BEGUN: usize = 256;
/// The longest connection id (RFC 9000 §17.2).
const LONGEST_ID: usize = 20;
/// The longest packet that is handed on, with its addresses.
const HANDED_ON_BYTES: usize = 66_000;
/// Before each message, its length.
const LENGTH_BYTES: usize = 4;
/// Packets that may wait for the other process. (The kernel may allow fewer.)
const PAIR_BUFFER_BYTES: usize = 4 << 20;

/// A new process reads soon after it has announced that it serves.
const READS_WITHIN: Duration = Duration::from_secs(5);

const LONG_HEADER: u8 = 0x80;
const TYPE: u8 = 0x30;
/// The messages over the pair: a packet, the list of connections that began, or that the new process reads from now on.
const PACKET: u8 = b'P';
const BEGUN: u8 = b'B';
const READS: u8 = b'R';

/// The key that connection ids of this process are made with.
static OWN_IDS: LazyLock<[u8; 32]> = LazyLock::new(host_key::random_bytes);

/// The keys of processes whose place this one has taken, the last first: once they have ended, their clients get a
/// stateless reset (RFC 9000 §10.3), which has the same key.
static FORMER_IDS: Mutex<VecDeque<OwnIds>> = Mutex::new(VecDeque::new());
/// Older ones have ended long ago.
const MAX_FORMER: usize = 2;

/// The route of each address.
static ROUTES: LazyLock<Mutex<HashMap<SocketAddr, Arc<Route>>>> = LazyLock::new(Mutex::default);

/// The state that another process needs to go on with the sockets of QUIC.
pub struct QuicEstate {
    /// Signs tokens and resets, see `host_key`.
    pub host_secret: [u8; 32],
    /// Made the ids of connections that the other process has.
    pub ids: [u8; 32],
    /// The sockets that their packets go to.
    pub pairs: Vec<(SocketAddr, OwnedFd)>,
}

/// Another process is about to read the sockets of QUIC, and to hand on packets for connections of this one. Until it
/// does, this one reads.
///
/// # Errors
/// An error of the system.
pub fn hand_over() -> io::Result<QuicEstate> {
    let mut pairs = Vec::new();
    for (address, route) in &*ROUTES.lock() {
        let (ours, theirs) = StdUnixStream::pair()?;
        for end in [&ours, &theirs] {
            end.set_nonblocking(true)?;
            let end = socket2::SockRef::from(end);
            // If the kernel allows less, the socket gets that.
            let _ = end.set_send_buffer_size(PAIR_BUFFER_BYTES);
        }
        route.change(Reading::FromPair(Arc::new(ours)));
        pairs.push((*address, theirs.into()));
    }
    Ok(QuicEstate {
        host_secret: host_key::process_secret(),
        ids: *OWN_IDS,
        pairs,
    })
}

/// From now on this process reads, and hands on packets for connections of another.
pub fn inherit(estate: QuicEstate) {
    host_key::inherit(estate.host_secret);
    let ids = OwnIds::new(&estate.ids);
    let mut former = FORMER_IDS.lock();
    former.push_front(ids.clone());
    former.truncate(MAX_FORMER);
    drop(former);
    let mut routes = ROUTES.lock();
    for (address, pair) in estate.pairs {
        let other = OtherConnections::new(ids.clone(), pair.into());
        let route = routes.entry(address).or_default();
        route.change(Reading::ForBoth(Arc::new(other)));
    }
}

/// There is no other process any more.
pub fn end_of_other() {
    for route in ROUTES.lock().values() {
        route.change(Reading::Alone);
    }
}

/// Waits until another process that is about to read the sockets of QUIC does so: until then, connections that begin are
/// taken here, since no other process hears of them. Returns as well when that one has ended, or within `READS_WITHIN`.
pub async fn until_other_reads() {
    let routes: Vec<Arc<Route>> = ROUTES.lock().values().cloned().collect();
    let reads = async {
        for route in routes {
            route.until_other_reads().await;
        }
    };
    // One that does not read after that is not there to take connections either.
    let _ = tokio::time::timeout(READS_WITHIN, reads).await;
}

/// The process that reads the packets of an address.
struct Route {
    reading: Mutex<Reading>,
    /// Counts changes.
    version: AtomicU64,
    waker: Mutex<Option<Waker>>,
    /// Another process is about to read, and has not announced yet that it does.
    awaited: watch::Sender<bool>,
}

impl Default for Route {
    fn default() -> Route {
        Route {
            reading: Mutex::default(),
            version: AtomicU64::new(0),
            waker: Mutex::default(),
            awaited: watch::Sender::new(false),
        }
    }
}

#[derive(Clone, Default)]
enum Reading {
    #[default]
    Alone,
    /// This process, also for another.
    ForBoth(Arc<OtherConnections>),
    /// The pair to another process, once that has announced that it reads.
    FromPair(Arc<StdUnixStream>),
}

/// The connections of another process.
struct OtherConnections {
    ids: OwnIds,
    pair: Mutex<OtherEnd>,
    begun: Mutex<HashSet<Vec<u8>>>,
}

/// The end of a pair that packets are written to.
struct OtherEnd {
    stream: StdUnixStream,
    /// The bytes of the last message that were not taken yet.
    rest: Vec<u8>,
    /// The received part of a list.
    list: Vec<u8>,
}

impl OtherEnd {
    /// Sends a message. If the other process does not read, the message is lost, as on a network.
    fn send(&mut self, message: &[u8]) {
        let rest = std::mem::take(&mut self.rest);
        self.write(&rest);
        if self.rest.is_empty() {
            let length = u32::try_from(message.len()).unwrap_or_default();
            let framed = [&length.to_le_bytes()[..], message].concat();
            self.write(&framed);
            if self.rest.len() == framed.len() {
                self.rest.clear();
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let written = match bytes.is_empty() {
            true => 0,
            false => self.stream.write(bytes).unwrap_or_default(),
        };
        self.rest = bytes.get(written..).unwrap_or_default().to_vec();
    }

    /// The list of connections that began in the other process, once all of it has come.
    fn list(&mut self) -> Option<Vec<u8>> {
        let mut more = [0; 1024];
        while let Ok(read @ 1..) = self.stream.read(&mut more)
            && self.list.len() < HANDED_ON_BYTES
        {
            self.list.extend_from_slice(more.get(..read)?);
        }
        let message = message(&self.list)?.to_vec();
        self.list.clear();
        Some(message)
    }
}

/// Returns the first message of the bytes read, if all of it is there.
fn message(read: &[u8]) -> Option<&[u8]> {
    let (length, rest) = read.split_first_chunk::<LENGTH_BYTES>()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}

impl Route {
    fn change(&self, reading: Reading) {
        // Before the socket's task sees the change.
        let is_awaited = matches!(reading, Reading::FromPair(_));
        self.awaited.send_replace(is_awaited);
        *self.reading.lock() = reading;
        self.version.fetch_add(1, Ordering::Release);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    async fn until_other_reads(&self) {
        let mut awaited = self.awaited.subscribe();
        // The sender is there for as long as the route.
        let _ = awaited.wait_for(|is_awaited| !is_awaited).await;
    }
}

/// Makes connection ids that say which process they are of.
#[derive(Clone)]
pub struct OwnIds(hmac::Key);

impl OwnIds {
    fn new(key: &[u8]) -> OwnIds {
        OwnIds(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Returns the ids of this process.
    pub fn of_this_process() -> OwnIds {
        OwnIds::new(&*OWN_IDS)
    }

    /// Did this process, or the one that has the key, make it?
    pub fn is_own(&self, id: &[u8]) -> bool {
        let Some((random, mark)) = id.split_at_checked(RANDOM_BYTES) else {
            return false;
        };
        let made = hmac::sign(&self.0, random);
        id.len() == ID_BYTES && made.as_ref().starts_with(mark)
    }
}

impl ConnectionIdGenerator for OwnIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let random = host_key::random_bytes();
        let mut id = [0; ID_BYTES];
        let (head, mark) = id.split_at_mut(RANDOM_BYTES);
        head.copy_from_slice(&random[..RANDOM_BYTES]);
        mark.copy_from_slice(&hmac::sign(&self.0, head).as_ref()[..ID_BYTES - RANDOM_BYTES]);
        ConnectionId::new(&id)
    }

    /// Asked for packets of no connection that there is: whether a reset may say so.
    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let is_known = self.is_own(id) || FORMER_IDS.lock().iter().any(|it| it.is_own(id));
        is_known.then_some(()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The id of a datagram's destination, and whether it is the client's own choice (RFC 9000 §17.2).
pub fn destination(datagram: &[u8]) -> (&[u8], bool) {
    let first = datagram.first().copied().unwrap_or_default();
    if first & LONG_HEADER == 0 {
        return (datagram.get(1..=ID_BYTES).unwrap_or_default(), false);
    }
    let length = datagram.get(5).map_or(0, |length| usize::from(*length));
    let id = datagram.get(6..6 + length).unwrap_or_default();
    (id, first & TYPE <= 0x10)
}

/// A socket whose packets may be another process's.
pub struct RoutedSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    route: Arc<Route>,
    current: Mutex<Current>,
}

/// The route's state that the socket's task works with.
struct Current {
    version: u64,
    reading: Reading,
    /// The pair, where another process reads or is about to.
    pair: Option<UnixStream>,
    /// The other process has announced that it reads.
    other_reads: bool,
    /// The ids that clients have chosen lately.
    begun: VecDeque<Vec<u8>>,
    /// Messages over the pair that were not looked at yet.
    received: Vec<u8>,
}

impl RoutedSocket {
    pub fn new(inner: Arc<dyn AsyncUdpSocket>, address: SocketAddr) -> RoutedSocket {
        let route = ROUTES.lock().entry(address).or_default().clone();
        RoutedSocket {
            inner,
            route,
            current: Mutex::new(Current {
                version: u64::MAX,
                reading: Reading::Alone,
                pair: None,
                other_reads: false,
                begun: VecDeque::new(),
                received: Vec::new(),
            }),
        }
    }
}

impl fmt::Debug for RoutedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Current {
    /// Takes over the route's changes. Informs a process for which this one reads from now on.
    fn renew(&mut self, route: &Route, cx: &Context<'_>) -> io::Result<()> {
        let version = route.version.load(Ordering::Acquire);
        *route.waker.lock() = Some(cx.waker().clone());
        if version == self.version {
            return Ok(());
        }
        self.version = version;
        self.reading = route.reading.lock().clone();
        self.pair = None;
        self.other_reads = false;
        match &self.reading {
            Reading::Alone => {}
            Reading::ForBoth(other) => other.pair.lock().send(&[READS]),
            Reading::FromPair(pair) => {
                self.pair = Some(UnixStream::from_std(pair.try_clone()?)?);
                self.received.clear();
            }
        }
        Ok(())
    }

    /// The next packet that another process has read for this one; pending, where that process does not read yet.
    fn receive(
        &mut self,
        route: &Route,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        meta: &mut RecvMeta,
    ) -> Poll<io::Result<usize>> {
        loop {
            while let Some(packed) = message(&self.received) {
                let (end, says_that_it_reads) = (LENGTH_BYTES + packed.len(), packed == [READS]);
                let unpacked = unpack(packed, buf);
                self.received.drain(..end);
                if says_that_it_reads && !self.other_reads {
                    self.other_reads = true;
                    self.tell_what_began();
                    route.awaited.send_replace(false);
                }
                if let Some(unpacked) = unpacked {
                    *meta = unpacked;
                    return Poll::Ready(Ok(1));
                }
            }
            let Some(pair) = &mut self.pair else {
                return Poll::Pending;
            };
            let mut more = [0; 16 << 10];
            let mut read = ReadBuf::new(&mut more);
            ready!(Pin::new(&mut *pair).poll_read(cx, &mut read))?;
            if read.filled().is_empty() || self.received.len() > HANDED_ON_BYTES {
                // The other process has ended, which its other socket shows as well, or sends nonsense.
                return Poll::Pending;
            }
            self.received.extend_from_slice(read.filled());
        }
    }

    /// Sends the list of connections that began here to the process that reads from now on.
    fn tell_what_began(&mut self) {
        let ids = self.begun.drain(..).flat_map(|id| {
            let length = u8::try_from(id.len()).unwrap_or_default();
            [vec![length], id].concat()
        });
        let list: Vec<u8> = [BEGUN].into_iter().chain(ids).collect();
        let length = u32::try_from(list.len()).unwrap_or_default();
        if let Reading::FromPair(pair) = &self.reading {
            // A full pair: these few begin anew.
            let _ = (&**pair).write(&[&length.to_le_bytes()[..], &list].concat());
        }
    }

    /// Notes which ids clients choose.
    fn note(&mut self, datagram: &[u8]) {
        let (id, is_chosen) = destination(datagram);
        if !is_chosen
            || id.is_empty()
            || id.len() > LONGEST_ID
            || self.begun.iter().any(|it| it == id)
        {
            return;
        }
        if self.begun.len() == MAX_BEGUN {
            self.begun.pop_front();
        }
        self.begun.push_back(id.to_vec());
    }
}

impl OtherConnections {
    fn new(ids: OwnIds, stream: StdUnixStream) -> OtherConnections {
        OtherConnections {
            ids,
            pair: Mutex::new(OtherEnd {
                stream,
                rest: Vec::new(),
                list: Vec::new(),
            }),
            begun: Mutex::default(),
        }
    }

    /// Hands on a packet for the other process.
    fn take(&self, datagram: &[u8], meta: &RecvMeta) -> bool {
        let (id, is_chosen) = destination(datagram);
        let is_other = self.ids.is_own(id) || (is_chosen && self.has_begun(id));
        if is_other {
            self.pair.lock().send(&pack(datagram, meta));
        }
        is_other
    }

    /// Did a connection begin there with this id?
    fn has_begun(&self, id: &[u8]) -> bool {
        let mut begun = self.begun.lock();
        if let Some(list) = self.pair.lock().list()
            && let Some((&BEGUN, mut rest)) = list.split_first()
        {
            while let Some((length, after)) = rest.split_first() {
                let (id, after) = after.split_at(after.len().min(usize::from(*length)));
                begun.insert(id.to_vec());
                rest = after;
            }
        }
        begun.contains(id)
    }
}

impl AsyncUdpSocket for RoutedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut current = self.current.lock();
        current.renew(&self.route, cx)?;
        if let (Some(_), Some(buf), Some(meta)) =
            (&current.pair, bufs.first_mut(), meta.first_mut())
        {
            let received = current.receive(&self.route, cx, buf, meta);
            if received.is_ready() || current.other_reads {
                return received;
            }
        }
        let count = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for (buf, meta) in bufs.iter_mut().zip(meta.iter_mut()).take(count) {
            let (length, stride) = (meta.len, meta.stride);
            match &current.reading {
                // quinn passes over an empty datagram.
                Reading::ForBoth(other) => {
                    let is_own = |datagram: &[u8]| !other.take(datagram, meta);
                    meta.len = retain(buf, (length, stride), is_own);
                }
                _ => {
                    let contents = buf.get(..length).unwrap_or_default();
                    let datagrams = contents.chunks(stride.max(1));
                    datagrams.for_each(|datagram| current.note(datagram));
                }
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

/// Keeps some of the datagrams that the kernel has joined, and returns the length of the rest, which begins where they
/// began. They come from one address, where one client may have several connections. All but the last are as long as
/// the stride.
fn retain(
    buf: &mut [u8],
    (length, stride): (usize, usize),
    mut is_kept: impl FnMut(&[u8]) -> bool,
) -> usize {
    let (length, mut left) = (length.min(buf.len()), 0);
    for from in (0..length).step_by(stride.max(1)) {
        let to = from.saturating_add(stride.max(1)).min(length);
        if buf.get(from..to).is_some_and(&mut is_kept) {
            buf.copy_within(from..to, left);
            left += to - from;
        }
    }
    left
}

/// `P`, mark of congestion, the client's address, our own, each behind its length, then the datagram.
fn pack(datagram: &[u8], meta: &RecvMeta) -> Vec<u8> {
    let addr = meta.addr.to_string();
    let own = meta.dst_ip.map(|ip| ip.to_string()).unwrap_or_default();
    let length = |text: &str| u8::try_from(text.len()).unwrap_or_default();
    let ecn = meta.ecn.map_or(0, |mark| mark as u8);
    let mut packed = vec![PACKET, ecn, length(&addr)];
    packed.extend_from_slice(addr.as_bytes());
    packed.push(length(&own));
    packed.extend_from_slice(own.as_bytes());
    packed.extend_from_slice(datagram);
    packed
}

/// Writes the datagram of a message to `buf`; `None` if it is none, or too long.
fn unpack(packed: &[u8], buf: &mut [u8]) -> Option<RecvMeta> {
    let (head, rest) = packed.split_at_checked(3)?;
    let [PACKET, ecn, length] = *head.first_chunk::<3>()? else {
        return None;
    };
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let (addr, rest) = rest.split_at_checked(usize::from(length))?;
    let addr: SocketAddr = text(addr)?.parse().ok()?;
    let (length, rest) = rest.split_first()?;
    let (own, datagram) = rest.split_at_checked(usize::from(*length))?;
    let own: Option<IpAddr> = text(own)?.parse().ok();
    buf.get_mut(..datagram.len())?.copy_from_slice(datagram);
    Some(RecvMeta {
        addr,
        len: datagram.len(),
        stride: datagram.len(),
        ecn: EcnCodepoint::from_bits(ecn),
        dst_ip: own,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::pin::pin;

    use super::*;

    #[test]
    fn a_connection_id_says_which_process_it_is_of() {
        let (mut one, other) = (OwnIds::new(&[1; 32]), OwnIds::new(&[2; 32]));
        for _ in 0..1000 {
            let id = one.generate_cid();
            assert!(one.is_own(&id) && !other.is_own(&id));
            assert!(!one.is_own(&id[1..]));
        }
        let short = [&[0x40][..], &one.generate_cid(), &[0; 20]].concat();
        let (id, is_chosen) = destination(&short);
        assert!(one.is_own(id) && !is_chosen);
        let initial = [&[0xc3, 0, 0, 0, 1, 5][..], b"tests", &[0; 20]].concat();
        assert_eq!(destination(&initial), (&b"tests"[..], true));
        let handshake = [&[0xe3, 0, 0, 0, 1, 5][..], b"tests", &[0; 20]].concat();
        assert_eq!(destination(&handshake), (&b"tests"[..], false));
    }

    #[test]
    fn a_datagram_is_handed_on_with_what_is_known_of_it() {
        let meta = RecvMeta {
            addr: "[2001:db8::1]:443".parse().unwrap(),
            len: 5,
            stride: 5,
            ecn: EcnCodepoint::from_bits(0b10),
            dst_ip: Some("127.0.0.1".parse().unwrap()),
        };
        let packed = pack(b"quick", &meta);
        let mut buf = [0; 16];
        let received = unpack(&packed, &mut buf).unwrap();
        assert_eq!((received.addr, received.dst_ip), (meta.addr, meta.dst_ip));
        assert_eq!(
            (received.ecn, received.len, &buf[..5]),
            (meta.ecn, 5, &b"quick"[..])
        );
        for length in 0..packed.len() - 5 {
            assert!(unpack(&packed[..length], &mut buf).is_none(), "{length}");
        }
        assert!(unpack(&packed, &mut [0; 4]).is_none());
    }

    /// Two processes with one socket: the one before, and the one that takes its place.
    struct TwoProcesses {
        client: UdpSocket,
        address: SocketAddr,
        before: RoutedSocket,
        after: RoutedSocket,
        /// Makes the ids of the one before.
        ids: OwnIds,
    }

    impl TwoProcesses {
        fn new() -> TwoProcesses {
            let runtime = quinn::default_runtime().unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            let routed = |socket: UdpSocket| RoutedSocket {
                route: Arc::default(),
                ..RoutedSocket::new(runtime.wrap_udp_socket(socket).unwrap(), address)
            };
            TwoProcesses {
                client: UdpSocket::bind("127.0.0.1:0").unwrap(),
                address,
                before: routed(socket.try_clone().unwrap()),
                after: routed(socket),
                ids: OwnIds::new(&[7; 32]),
            }
        }

        fn hand_over(&self) {
            let (ours, theirs) = StdUnixStream::pair().unwrap();
            for end in [&ours, &theirs] {
                end.set_nonblocking(true).unwrap();
            }
            self.before.route.change(Reading::FromPair(Arc::new(ours)));
            let other = OtherConnections::new(self.ids.clone(), theirs);
            self.after.route.change(Reading::ForBoth(Arc::new(other)));
        }

        fn send(&self, datagram: &[u8]) {
            self.client.send_to(datagram, self.address).unwrap();
        }
    }

    /// Returns the next datagram of the socket; `None` if there is none within a moment.
    async fn received(socket: &RoutedSocket, moment: Duration) -> Option<Vec<u8>> {
        let mut buf = [0; 2000];
        let receive = std::future::poll_fn(|cx| {
            let mut metas = [RecvMeta::default()];
            loop {
                let mut bufs = [IoSliceMut::new(&mut buf)];
                ready!(socket.poll_recv(cx, &mut bufs, &mut metas)).unwrap();
                if metas[0].len > 0 {
                    return Poll::Ready(metas[0].len);
                }
            }
        });
        let length = tokio::time::timeout(moment, receive).await.ok()?;
        Some(buf[..length].to_vec())
    }

    const SOON: Duration = Duration::from_secs(10);
    /// Enough for packets that are there already.
    const NOW: Duration = Duration::from_millis(50);

    fn initial(id: &[u8]) -> Vec<u8> {
        [&[0xc3, 0, 0, 0, 1, id.len() as u8][..], id, &[0; 20]].concat()
    }

    /// Beside a packet of the other process, a first packet that the kernel had joined with it was dropped.
    #[test]
    fn joined_datagrams_of_several_connections_are_told_apart() {
        let mut joined = *b"aaaabbbbccccdd";
        let left = retain(&mut joined, (14, 4), |datagram| datagram[0] != b'b');
        assert_eq!(&joined[..left], b"aaaaccccdd");
        let left = retain(&mut joined, (left, 4), |datagram| datagram[0] != b'd');
        assert_eq!(&joined[..left], b"aaaacccc");
        assert_eq!(retain(&mut joined, (left, 4), |_| false), 0);
        // Results that a system must never return.
        assert_eq!(retain(&mut joined, (99, 0), |_| true), 14);
        assert_eq!(retain(&mut joined, (8, usize::MAX), |_| true), 8);
    }

    #[tokio::test]
    async fn the_process_before_reads_until_the_new_one_does() {
        let mut processes = TwoProcesses::new();
        processes.hand_over();
        let own = [&[0x40][..], &processes.ids.generate_cid(), &[0; 20]].concat();
        processes.send(&own);
        assert_eq!(received(&processes.before, SOON).await.as_ref(), Some(&own));
        // The new one looks at its socket for the first time, and announces it.
        assert_eq!(received(&processes.after, NOW).await, None);
        assert_eq!(received(&processes.before, NOW).await, None);
        processes.send(&own);
        assert_eq!(received(&processes.before, NOW).await, None);
        assert_eq!(received(&processes.after, NOW).await, None);
        assert_eq!(received(&processes.before, SOON).await.as_ref(), Some(&own));
        let new = initial(b"another");
        processes.send(&new);
        assert_eq!(received(&processes.after, SOON).await.as_ref(), Some(&new));
    }

    #[tokio::test]
    async fn packets_of_a_connection_that_has_just_begun_stay_with_the_process_before() {
        let processes = TwoProcesses::new();
        let (first, other) = (initial(b"the first"), initial(b"the other"));
        processes.send(&first);
        assert!(received(&processes.before, SOON).await.is_some());
        processes.hand_over();
        assert_eq!(received(&processes.after, NOW).await, None);
        assert_eq!(received(&processes.before, NOW).await, None);
        processes.send(&first);
        processes.send(&other);
        assert_eq!(
            received(&processes.after, SOON).await.as_ref(),
            Some(&other)
        );
        assert_eq!(
            received(&processes.before, SOON).await.as_ref(),
            Some(&first)
        );
    }
    /// A process that took no more connections before another read the socket still had packets of new ones: it dropped
    /// them, and claimed these connections in its list, so that their clients were never answered.
    #[tokio::test]
    async fn the_process_before_takes_connections_until_the_new_one_reads() {
        let processes = TwoProcesses::new();
        let route = processes.before.route.clone();
        route.until_other_reads().await;
        processes.hand_over();
        let mut reads = pin!(route.until_other_reads());
        let mut cx = Context::from_waker(Waker::noop());
        let mut is_over = || reads.as_mut().poll(&mut cx).is_ready();
        assert!(!is_over(), "the new one has not come to it");
        let first = initial(b"the first");
        processes.send(&first);
        assert!(received(&processes.before, SOON).await.is_some());
        assert!(!is_over());
        // The new one looks at its socket, and the one before hears of it.
        assert_eq!(received(&processes.after, NOW).await, None);
        assert_eq!(received(&processes.before, NOW).await, None);
        assert!(is_over());
        // There is no other process any more: nothing is waited for.
        processes.hand_over();
        processes.before.route.change(Reading::Alone);
        processes.before.route.until_other_reads().await;
    }
}
