//! The process that serves the same site while one program takes the other's place. A purge returns when both have
//! applied it: each sends its purges to the other, and a response waits until all earlier purges of this process are
//! applied there as well. Stored pages go over to the process that takes the other's place (`pages`).
//!
//! ```text
//! zone.purge ─► applied here ─► queue ─► socket ─► applied there ─► Done ─► responses go
//! ```
//!
//! The end of the socket is the proof that the other process answers nothing more. A process that sends nothing for two
//! seconds is stopped or stuck, and is killed.

mod on_disk;
mod pages;

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use http_cache::{Millis, OwnedPurgeTarget, PurgeListener, PurgeMode, PurgeTarget, Zone};
use parking_lot::{Condvar, Mutex};
use rustix::net::sockopt::Timeout;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;
use transport::http3::{self, QuicEstate};

use crate::applied_log::AppliedLog;
use crate::cache_zones::AliveZones;
use pages::ListeningZones;

/// The silence after which the other process is killed.
const MAX_SILENCE: Duration = Duration::from_secs(2);
/// The pause between two questions whether the other process is there, while it is waited for.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// Messages that wait to be sent; beyond, one purge of everything stands for them.
const MAX_WAITING: usize = 65_536;
/// Purges that are answered together.
const MAX_TOGETHER: usize = 256;
/// The longest message is a purge: its target has at most 16 KB.
const PACKET_BYTES: usize = 64 << 10;
/// The process, and a pair of sockets for each address of QUIC.
const INTRODUCTION_FDS: usize = 65;

const PURGE: u8 = b'P';
const DONE: u8 = b'D';
const ASK: u8 = b'?';
const HERE: u8 = b'!';

/// The other process, where there is one.
#[derive(Default)]
pub struct Sibling {
    is_there: AtomicBool,
    link: Mutex<Option<Arc<Link>>>,
}

/// The connection to it.
struct Link {
    socket: OwnedFd,
    waiting: Mutex<VecDeque<Vec<u8>>>,
    is_waiting: Condvar,
    /// The number of the last purge that was sent.
    sent: AtomicU64,
    /// The number up to which they are applied there; the highest, once the other process has ended.
    applied: watch::Sender<u64>,
    /// How many parcels of pages were taken there.
    parcels_taken: Mutex<u64>,
    is_taken: Condvar,
    /// The position up to which the purges of other machines are applied to the pages that come from there.
    applied_to_pages: Mutex<Option<AppliedLog>>,
    /// Counts the messages from there.
    heard: AtomicU64,
    process: Mutex<Option<OwnedFd>>,
    is_over: AtomicBool,
}

/// The messages that take a while, to the threads that carry them out.
struct MessageQueues {
    purges: mpsc::Sender<Vec<u8>>,
    /// Without a descriptor: there are no more.
    parcels: mpsc::Sender<(Vec<u8>, Option<OwnedFd>)>,
}

impl Sibling {
    /// Whether there is another process.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }

    /// Goes on beside another process until the other end of `socket` is closed. If this process is the successor, it
    /// takes the place of the other and gets its pages, and returns the position up to which the purges of other
    /// machines are applied to them. Otherwise `applied` is that position. `on_end` is called at the end, on a thread
    /// that may block; purges that wait for the other process wait for it as well.
    ///
    /// # Errors
    /// The error of the system.
    pub fn begin(
        self: &Arc<Self>,
        socket: OwnedFd,
        zones: &Arc<AliveZones>,
        applied: Option<AppliedLog>,
        is_successor: bool,
        on_end: impl Fn() + Send + 'static,
    ) -> io::Result<Option<AppliedLog>> {
        let quic = match is_successor {
            true => Some(http3::hand_over()?),
            false => None,
        };
        introduce(&socket, quic.as_ref())?;
        let link = Arc::new(Link {
            socket,
            waiting: Mutex::default(),
            is_waiting: Condvar::new(),
            sent: AtomicU64::new(0),
            applied: watch::Sender::new(0),
            parcels_taken: Mutex::default(),
            is_taken: Condvar::new(),
            applied_to_pages: Mutex::default(),
            heard: AtomicU64::new(0),
            process: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        if let Some(former) = self.link.lock().replace(link.clone()) {
            former.end();
        }
        if !is_successor {
            // Before the sockets of QUIC are read.
            link.meet();
        }
        self.is_there.store(true, Ordering::SeqCst);
        for zone in zones.zones() {
            link.clone().watch(&zone);
        }
        // The zones listen before the first purge arrives.
        let listening = pages::listening(zones);
        let (writer, sibling, alive) = (link.clone(), self.clone(), zones.clone());
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        thread("sibling-tell").spawn(move || writer.write())?;
        if is_successor {
            let (sender, zones) = (link.clone(), zones.clone());
            let send = move || pages::send_all(&sender, &zones, applied.as_ref());
            thread("sibling-pages").spawn(send)?;
        }
        let (arrived, all_pages) = mpsc::sync_channel(1);
        let heard = link.clone();
        thread("sibling-hear").spawn(move || {
            heard.read(&alive, &listening, arrived);
            // The folders of the other process are free: purges are written down there before they are answered.
            on_end();
            on_disk::wait(&alive);
            sibling.ended(&heard, &alive);
        })?;
        if !is_successor {
            // Or the other process has ended, and with it the other end of this.
            let _ = all_pages.recv_timeout(pages::WITHIN);
        }
        Ok(link.applied_to_pages.lock().take())
    }

    /// Sends purges of another configuration's zones as well.
    pub fn watch(&self, zones: &[Arc<Zone>]) {
        if let Some(link) = &*self.link.lock() {
            zones.iter().for_each(|zone| link.clone().watch(zone));
        }
    }

    /// Waits until all that was purged here so far is applied in the other process, or that one has ended.
    pub async fn settled(&self) {
        let link = self.link.lock().clone();
        let Some(link) = link else {
            return;
        };
        let sent = link.sent.load(Ordering::SeqCst);
        let mut applied = link.applied.subscribe();
        let (mut heard, mut silent) = (link.heard.load(Ordering::Relaxed), Duration::ZERO);
        loop {
            let wait = applied.wait_for(|applied| *applied >= sent);
            match tokio::time::timeout(ASK_EVERY, wait).await {
                Ok(_) => return,
                Err(_) => link.queue(vec![ASK]),
            }
            let now = link.heard.load(Ordering::Relaxed);
            silent = match now == heard {
                true => silent + ASK_EVERY,
                false => Duration::ZERO,
            };
            heard = now;
            if silent >= MAX_SILENCE {
                link.kill();
            }
        }
    }

    /// Ends the connection: the other process has ended, or has sent a message that makes no sense.
    fn ended(&self, link: &Arc<Link>, zones: &AliveZones) {
        link.end();
        let mut current = self.link.lock();
        if !current.as_ref().is_some_and(|it| Arc::ptr_eq(it, link)) {
            return;
        }
        *current = None;
        http3::end_of_other();
        zones.zones().iter().for_each(|zone| zone.end_beside());
        self.is_there.store(false, Ordering::SeqCst);
    }
}

impl Link {
    fn watch(self: Arc<Self>, zone: &Zone) {
        zone.begin_beside(self);
    }

    fn queue(&self, message: Vec<u8>) {
        let mut waiting = self.waiting.lock();
        add_message(&mut waiting, message, self.sent.load(Ordering::SeqCst));
        self.is_waiting.notify_one();
    }

    /// Sends waiting messages, until the end.
    fn write(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let message = {
                let mut waiting = self.waiting.lock();
                while waiting.is_empty() && !self.is_over.load(Ordering::Relaxed) {
                    self.is_waiting.wait(&mut waiting);
                }
                waiting.pop_front()
            };
            if let Some(message) = message
                && send(&self.socket, &message).is_err()
            {
                return;
            }
        }
    }

    /// Waits until the last parcel is taken there. `None`: the time is over, or the other process has ended.
    fn wait_until_taken(&self, number: u64, until: Instant) -> Option<()> {
        let mut taken = self.parcels_taken.lock();
        while *taken < number && !self.is_over.load(Ordering::Relaxed) {
            if self.is_taken.wait_until(&mut taken, until).timed_out() {
                return None;
            }
        }
        (*taken >= number).then_some(())
    }

    /// Carries out messages until the other end is closed. Sends to `arrived` when all pages have come.
    fn read(
        &self,
        zones: &Arc<AliveZones>,
        listening: &ListeningZones,
        arrived: mpsc::SyncSender<()>,
    ) {
        // Walks through all addresses and pages take their time; whether we are here is answered meanwhile.
        let (purges, given) = mpsc::channel();
        let (parcels, given_parcels) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| self.apply_all(given, zones));
            scope.spawn(|| self.take_parcels(given_parcels, listening, arrived));
            let to = MessageQueues { purges, parcels };
            while let Some((message, fds)) = self.receive() {
                self.heard.fetch_add(1, Ordering::Relaxed);
                if self.take(message, fds, &to).is_none() {
                    break;
                }
            }
            drop(to);
        });
    }

    /// Stores pages, until there are no more.
    fn take_parcels(
        &self,
        given: mpsc::Receiver<(Vec<u8>, Option<OwnedFd>)>,
        listening: &ListeningZones,
        arrived: mpsc::SyncSender<()>,
    ) {
        for (message, parcel) in given {
            let Some(parcel) = parcel else {
                let _ = arrived.try_send(());
                continue;
            };
            pages::take(&message, parcel, listening);
            self.queue(vec![pages::TAKEN]);
        }
    }

    /// Applies one purge after the other; ends with the first that makes no sense. They are answered once they are on
    /// the disk: of two processes, one has the folder. Purges that have come meanwhile are answered together.
    fn apply_all(&self, given: mpsc::Receiver<Vec<u8>>, zones: &AliveZones) {
        while let Ok(message) = given.recv() {
            let messages = std::iter::once(message).chain(given.try_iter().take(MAX_TOGETHER));
            let applied: Vec<Option<u64>> =
                messages.map(|message| apply(&message, zones)).collect();
            let sensible = applied.iter().map_while(|number| *number);
            if let Some(last) = sensible.last() {
                on_disk::wait(zones);
                self.queue([&[DONE][..], &last.to_le_bytes()].concat());
            }
            if applied.contains(&None) {
                return;
            }
        }
    }

    /// Carries out a message; `None` for one that makes no sense.
    fn take(&self, message: Vec<u8>, mut fds: Vec<OwnedFd>, to: &MessageQueues) -> Option<()> {
        match *message.first()? {
            PURGE => to.purges.send(message).ok()?,
            pages::PARCEL => to.parcels.send((message, Some(fds.pop()?))).ok()?,
            pages::END => to.parcels.send((message, None)).ok()?,
            pages::APPLIED => *self.applied_to_pages.lock() = pages::read_applied(&message),
            pages::TAKEN => {
                *self.parcels_taken.lock() += 1;
                self.is_taken.notify_all();
            }
            HERE if !fds.is_empty() => self.introduced(&message, fds),
            DONE => {
                let number = number(&message)?;
                let later = |applied: &mut u64| *applied = (*applied).max(number);
                self.applied.send_modify(later);
            }
            ASK => self.queue(vec![HERE]),
            HERE => {}
            _ => return None,
        }
        Some(())
    }

    /// Takes the introduction of the other process.
    fn introduced(&self, message: &[u8], fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        *self.process.lock() = fds.next();
        if let Some(quic) = quic_estate(message, fds) {
            http3::inherit(quic);
        }
    }

    fn receive(&self) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        let mut bytes = vec![0; PACKET_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(INTRODUCTION_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut buffers = [IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            match rustix::net::recvmsg(&self.socket, &mut buffers, &mut control, flags) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result.ok()?,
            }
        };
        bytes.truncate(received.bytes);
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        (received.bytes > 0).then_some((bytes, fds))
    }

    /// Takes the other process's introduction, which it has sent by now, or is about to.
    fn meet(&self) {
        let limit =
            |time| rustix::net::sockopt::set_socket_timeout(&self.socket, Timeout::Recv, time);
        // Without an introduction the other one cannot be killed, and its end is waited for.
        if limit(Some(MAX_SILENCE)).is_ok() {
            if let Some((message, fds)) = self.receive() {
                self.introduced(&message, fds);
            }
            let _ = limit(None);
        }
    }

    fn kill(&self) {
        if let Some(process) = &*self.process.lock() {
            // It may have ended meanwhile.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Ends all waiting.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.is_waiting.notify_all();
        self.is_taken.notify_all();
        self.applied.send_replace(u64::MAX);
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}

impl PurgeListener for Link {
    fn purged(&self, zone: &str, target: PurgeTarget<'_>, mode: PurgeMode) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        // Under the lock, so that the numbers go in their order.
        let mut waiting = self.waiting.lock();
        let number = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        let message = purge_message(number, mode, zone, target);
        add_message(&mut waiting, message, number);
        self.is_waiting.notify_one();
    }
}

/// Adds a message to those that wait. If they are too many, one purge of everything stands for all purges up to the
/// given number, and the last answer for all answers. Requests that will be repeated are left out.
fn add_message(waiting: &mut VecDeque<Vec<u8>>, message: Vec<u8>, sent: u64) {
    if waiting.len() >= MAX_WAITING {
        let is_of =
            |message: &Vec<u8>, kinds: &[u8]| message.first().is_some_and(|it| kinds.contains(it));
        let answer = waiting.iter().rfind(|it| is_of(it, &[DONE])).cloned();
        waiting.retain(|message| is_of(message, &[pages::APPLIED, pages::TAKEN, pages::END]));
        waiting.extend(answer);
        let everything = PurgeTarget::Everything;
        waiting.push_back(purge_message(sent, PurgeMode::Hard, "", everything));
    }
    waiting.push_back(message);
}

/// Sends the other process the means to end this one and, if it takes this one's place, the means to go on with the
/// sockets of QUIC.
fn introduce(socket: &OwnedFd, quic: Option<&QuicEstate>) -> io::Result<()> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut message = vec![HERE];
    let mut fds = vec![own.as_fd()];
    if let Some(quic) = quic {
        message.extend_from_slice(&quic.host_secret);
        message.extend_from_slice(&quic.ids);
        for (address, pair) in quic.pairs.iter().take(INTRODUCTION_FDS - 1) {
            message.extend_from_slice(format!("{address}\n").as_bytes());
            fds.push(pair.as_fd());
        }
    }
    send_with(socket, &message, &fds)
}

/// Sends a message with descriptors.
fn send_with(socket: &OwnedFd, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(INTRODUCTION_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    let message = [IoSlice::new(message)];
    loop {
        match rustix::net::sendmsg(socket, &message, &mut control, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.map(drop).map_err(io::Error::from),
        }
    }
}

/// Returns the QUIC state in an introduction.
fn quic_estate(message: &[u8], fds: impl Iterator<Item = OwnedFd>) -> Option<QuicEstate> {
    let (host_secret, rest) = message.get(1..)?.split_first_chunk::<32>()?;
    let (ids, addresses) = rest.split_first_chunk::<32>()?;
    let addresses = std::str::from_utf8(addresses).ok()?.lines();
    let addresses = addresses.map(|address| address.parse().ok());
    let pairs = addresses
        .zip(fds)
        .map(|(address, pair)| Some((address?, pair)));
    Some(QuicEstate {
        host_secret: *host_secret,
        ids: *ids,
        pairs: pairs.collect::<Option<_>>()?,
    })
}

fn send(socket: &OwnedFd, message: &[u8]) -> io::Result<()> {
    loop {
        match rustix::net::send(socket, message, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.map(drop).map_err(io::Error::from),
        }
    }
}

/// `P`, number, mode, length of the zone's name, the name, the target. Without a name: all zones.
pub(super) fn purge_message(
    number: u64,
    mode: PurgeMode,
    zone: &str,
    target: PurgeTarget<'_>,
) -> Vec<u8> {
    // A response whose names are too long for a message may be stored there all the same.
    let everything = || PurgeTarget::Everything.written().unwrap_or_default();
    let target = target.written().unwrap_or_else(everything);
    let mode = match mode {
        PurgeMode::Soft => b's',
        PurgeMode::Hard => b'h',
    };
    let name = zone.as_bytes();
    let name = name.get(..name.len().min(255)).unwrap_or_default();
    let length = u8::try_from(name.len()).unwrap_or_default();
    let head = [mode, length];
    [&[PURGE][..], &number.to_le_bytes(), &head, name, &target].concat()
}

fn number(message: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(message.get(1..9)?.try_into().ok()?))
}

/// Applies a purge; its number. `None` for one that makes no sense.
pub(super) fn apply(message: &[u8], zones: &AliveZones) -> Option<u64> {
    let number = number(message).filter(|_| message.first() == Some(&PURGE))?;
    let [mode, length] = *message.get(9..11)?.first_chunk::<2>()?;
    let (name, target) = message.get(11..)?.split_at_checked(usize::from(length))?;
    let mode = match mode {
        b's' => PurgeMode::Soft,
        _ => PurgeMode::Hard,
    };
    // A target of a later version, or one that cannot be read, counts as everything.
    let target = OwnedPurgeTarget::of(target, &cache_decision::pattern::read_written);
    let now = Millis(clock::now());
    for zone in zones.zones() {
        if name.is_empty() || zone.config().name.as_bytes() == name {
            zone.purge_here(target.as_target(), mode, now);
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use http_cache::ZoneConfig;

    use super::*;

    fn zone(name: &str) -> Arc<Zone> {
        Zone::new(ZoneConfig {
            name: name.to_owned(),
            ..ZoneConfig::default()
        })
    }

    #[test]
    fn a_purge_reaches_the_zone_of_its_name_and_what_makes_no_sense_ends_the_talk() {
        let (one, other) = (zone("one"), zone("other"));
        let zones = AliveZones::default();
        zones.add(&[one.clone(), other.clone()]);
        let stamps = || (one.stamp().number(), other.stamp().number());
        let message = purge_message(7, PurgeMode::Hard, "one", PurgeTarget::Tag(b"news"));
        assert_eq!(apply(&message, &zones), Some(7));
        assert_eq!(stamps(), (1, 0));
        let message = purge_message(8, PurgeMode::Soft, "", PurgeTarget::Everything);
        assert_eq!(apply(&message, &zones), Some(8));
        assert_eq!(stamps(), (2, 1));
        // A target that is too long to be sent counts as everything.
        let long = vec![b'x'; 100_000];
        let message = purge_message(9, PurgeMode::Hard, "one", PurgeTarget::Tag(&long));
        assert!(message.len() < 100);
        assert_eq!(apply(&message, &zones), Some(9));
        for length in 0..11 {
            assert_eq!(apply(&message[..length], &zones), None, "{length}");
        }
        assert_eq!(apply(&[b"?", &message[1..]].concat(), &zones), None);
    }

    #[test]
    fn answers_outlive_more_messages_than_may_wait() {
        let done = |number: u64| [&[DONE][..], &number.to_le_bytes()].concat();
        let mut waiting = VecDeque::from([
            vec![pages::TAKEN],
            done(1),
            vec![ASK],
            done(2),
            vec![pages::END],
        ]);
        for number in 0..MAX_WAITING as u64 {
            let tag = PurgeTarget::Tag(b"a");
            add_message(
                &mut waiting,
                purge_message(number, PurgeMode::Soft, "a", tag),
                number,
            );
        }
        let left: Vec<_> = waiting
            .iter()
            .take(4)
            .map(|it| (it[0], number(it)))
            .collect();
        // The purge of everything stands for all purges that were sent until it was made.
        let stands_for = MAX_WAITING as u64 - 5;
        let expected = [
            (pages::TAKEN, None),
            (pages::END, None),
            (DONE, Some(2)),
            (PURGE, Some(stands_for)),
        ];
        assert_eq!(left, expected);
        assert_eq!(waiting.len(), 4 + 5);
    }

    #[tokio::test]
    async fn a_purge_is_settled_once_the_other_side_has_applied_it_or_has_ended() {
        let make = || {
            let zone = zone("one");
            let zones = Arc::new(AliveZones::default());
            zones.add(std::slice::from_ref(&zone));
            (zone, zones, Arc::new(Sibling::default()))
        };
        let (socket, theirs) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let (old, zones_of_old, sibling_of_old) = make();
        let (new, zones_of_new, sibling_of_new) = make();
        sibling_of_old
            .begin(socket, &zones_of_old, None, true, || {})
            .unwrap();
        sibling_of_new
            .begin(theirs, &zones_of_new, None, false, || {})
            .unwrap();
        let now = Millis(clock::now());
        for round in 1..=100 {
            old.purge(PurgeTarget::Tag(b"a"), PurgeMode::Hard, now);
            sibling_of_old.settled().await;
            new.purge(PurgeTarget::Tag(b"b"), PurgeMode::Hard, now);
            sibling_of_new.settled().await;
            assert_eq!(
                (old.stamp().number(), new.stamp().number()),
                (2 * round, 2 * round)
            );
        }
        let link = sibling_of_new.link.lock().clone().unwrap();
        link.end();
        old.purge(PurgeTarget::Everything, PurgeMode::Hard, now);
        sibling_of_old.settled().await;
        new.purge(PurgeTarget::Everything, PurgeMode::Hard, now);
        sibling_of_new.settled().await;
    }
}
