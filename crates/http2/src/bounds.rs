//! Bounds for frames that cost us more than they cost the peer, each with its reason. A peer that
//! exceeds one gets GOAWAY with ENHANCE_YOUR_CALM.
//!
//! Each kind of frame in question has an allowance. It begins full (`burst`), is used up by one
//! for each frame, and comes back with time (`per_second`) and with useful work: frames that an
//! honest client sends more of, the more it downloads, earn by bytes; frames in relation to
//! requests earn by answered requests. So a connection of many hours is not ended for the sum of
//! its frames, and a flood ends within moments.
//!
//! Also here: bounds of kept memory.

use std::time::{Duration, Instant};

/// The kind of frames that a client sent too many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Flood {
    /// Requests that the client took back (CVE-2023-44487, "rapid reset").
    #[error("too many reset requests")]
    Resets,
    /// Frames for which we had to reset a stream (CVE-2025-8671, "MadeYouReset"), and
    /// requests that were malformed.
    #[error("too many stream errors")]
    StreamErrors,
    /// Requests beyond the streams there may be at a time.
    #[error("too many refused streams")]
    RefusedStreams,
    /// CONTINUATION frames of one field block (CVE-2024-27316).
    #[error("too many CONTINUATION frames")]
    Continuations,
    /// PING frames (CVE-2019-9512).
    #[error("too many PING frames")]
    Pings,
    /// SETTINGS frames (CVE-2019-9515).
    #[error("too many SETTINGS frames")]
    Settings,
    /// WINDOW_UPDATE frames.
    #[error("too many WINDOW_UPDATE frames")]
    WindowUpdates,
    /// PRIORITY and PRIORITY_UPDATE frames (CVE-2019-9513).
    #[error("too many priority frames")]
    Priorities,
    /// DATA frames with hardly any data that end nothing (CVE-2019-9518).
    #[error("too many tiny DATA frames")]
    TinyData,
    /// DATA frames that we could fill with hardly any data, because the windows were so
    /// small (CVE-2019-9511).
    #[error("too small flow-control windows")]
    TinyWindows,
    /// Frames that we ignore: of unknown types, or for streams that are closed.
    #[error("too many frames to ignore")]
    IgnoredFrames,
}

/// How much of something is reasonable.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// How much may come at once.
    burst: u32,
    /// How much of it comes back each second.
    per_second: u32,
    /// Further events that give it back.
    earns: Earning,
}

#[derive(Clone, Copy, Debug)]
enum Earning {
    /// One for each request that is answered.
    Requests,
    /// One for each [`EARNING_BYTES`] of body, in either direction.
    Bytes,
    RequestsAndBytes,
    Nothing,
}

/// The bytes of bodies that bring back one frame of each kind that is in relation to them: clients
/// send a WINDOW_UPDATE for stream and connection each 4 KB at most, and a PING for each
/// round-trip while data come.
const EARNING_BYTES: u64 = 1024;

/// The bounds in the order of [`Flood`], which [`bound`] checks. The rates cost well below a
/// hundredth of a core.
static BOUNDS: [Bound; 11] = [
    // A browser that leaves a page takes back all that is open (128 by default); twice that much
    // at once. Then one for each answered request.
    bound(0, Flood::Resets, 256, 16, Earning::Requests),
    // Honest clients make next to none; a broken one shall see its 400s.
    bound(1, Flood::StreamErrors, 100, 1, Earning::Nothing),
    // A client may send a whole batch before it has seen our settings.
    bound(2, Flood::RefusedStreams, 256, 16, Earning::Requests),
    // For one block, so it is counted anew for each: a head that we accept fits in three
    // full frames. Tests and proxies cut smaller.
    bound(3, Flood::Continuations, 32, 0, Earning::Nothing),
    // gRPC sends one for each round-trip while data come; others one in some seconds.
    bound(4, Flood::Pings, 500, 10, Earning::Bytes),
    // Once at the start, then hardly ever; each costs a look at all streams.
    bound(5, Flood::Settings, 100, 1, Earning::Nothing),
    // Two for each 4 KB by the most eager clients, and one for each new stream by curl.
    bound(
        6,
        Flood::WindowUpdates,
        2000,
        100,
        Earning::RequestsAndBytes,
    ),
    // Firefox before version 130 sent six at the start, browsers one for an image that
    // comes in sight.
    bound(7, Flood::Priorities, 500, 20, Earning::Requests),
    // Chat and telemetry over a long request body send small pieces, as fast as people and
    // events come.
    bound(8, Flood::TinyData, 2000, 100, Earning::Bytes),
    // A window that is used up ends with a small piece, once for each WINDOW_UPDATE.
    bound(9, Flood::TinyWindows, 1000, 50, Earning::Bytes),
    // Frames under way when we reset a stream: at most a window full of frames.
    bound(10, Flood::IgnoredFrames, 1000, 20, Earning::Bytes),
];

const fn bound(at: usize, flood: Flood, burst: u32, per_second: u32, earns: Earning) -> Bound {
    assert!(at == flood as usize);
    Bound {
        burst,
        per_second,
        earns,
    }
}

/// A DATA frame of less is [`Flood::TinyData`]: its header is a tenth of it, and handing
/// it on costs as much as for a full one.
pub(crate) const TINY_DATA_BYTES: usize = 64;
/// A piece of less, where there was more to send, is [`Flood::TinyWindows`].
pub(crate) const TINY_PIECE_BYTES: usize = 256;

/// A field block may have this many times the bytes that a head may have, and decode to as
/// many, before the connection ends. Up to that its request is answered with a status.
pub(crate) const BLOCK_TO_LIST: usize = 2;
/// The least bound of a block, whatever the limit for heads.
pub(crate) const MIN_BLOCK_BYTES: usize = 16 * 1024;

/// How many closed streams are remembered, to tell frames that were under way when we reset a
/// stream from frames that no client could send: as many as may be open by default.
pub(crate) const REMEMBERED_STREAMS: usize = 128;
/// How many priorities are kept for streams to come (RFC 9218 §7.1 suggests the number of
/// streams that may be open; browsers send one at most).
pub(crate) const REMEMBERED_PRIORITIES: usize = 32;

/// The bytes of a body that may wait for its turn; no more should be given beyond them: one turn
/// writes as much, and the next piece is read from its file meanwhile.
pub(crate) const STREAM_QUEUE_BYTES: usize = 64 * 1024;
/// The bound for all bodies of a connection: some of one urgency take turns, and one write takes
/// [`OUTPUT_BYTES`].
pub(crate) const CONNECTION_QUEUE_BYTES: usize = 256 * 1024;
/// The bytes of a waiting body that a client must take in the time that a stream has
/// ([`crate::Connection::reset_stalled`]): a byte now and then does not keep a stream.
pub(crate) const MIN_PROGRESS_BYTES: usize = 4096;

/// No more bytes are put into the output at once: the next turn may bring more urgent ones. A
/// system call for this number costs little for each byte.
pub(crate) const OUTPUT_BYTES: usize = 256 * 1024;
/// While this number of bytes of heads and answers waits for the socket, nothing more should be
/// read: a client that does not read shall not have us write.
pub(crate) const CONGESTED_BYTES: usize = 64 * 1024;

/// The rest of each allowance.
#[derive(Debug)]
pub(crate) struct Allowances {
    left: [u32; BOUNDS.len()],
    refilled_at: Instant,
    unearned_bytes: u64,
}

impl Allowances {
    pub(crate) fn new(now: Instant) -> Self {
        Allowances {
            left: std::array::from_fn(|at| BOUNDS[at].burst),
            refilled_at: now,
            unearned_bytes: 0,
        }
    }

    /// Uses up one.
    #[inline]
    pub(crate) fn charge(&mut self, flood: Flood) -> Result<(), Flood> {
        let left = &mut self.left[flood as usize];
        *left = left.checked_sub(1).ok_or(flood)?;
        Ok(())
    }

    /// A request was answered.
    pub(crate) fn earn_by_request(&mut self) {
        self.give(|bound| match bound.earns {
            Earning::Requests | Earning::RequestsAndBytes => 1,
            Earning::Bytes | Earning::Nothing => 0,
        });
    }

    /// Notes that this many bytes of bodies went either way.
    #[inline]
    pub(crate) fn earn_by_bytes(&mut self, bytes: usize) {
        self.unearned_bytes += bytes as u64;
        if self.unearned_bytes >= EARNING_BYTES {
            let earned = u32::try_from(self.unearned_bytes / EARNING_BYTES).unwrap_or(u32::MAX);
            self.unearned_bytes %= EARNING_BYTES;
            self.give(|bound| match bound.earns {
                Earning::Bytes | Earning::RequestsAndBytes => earned,
                Earning::Requests | Earning::Nothing => 0,
            });
        }
    }

    /// Time passed.
    #[inline]
    pub(crate) fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.refilled_at);
        if passed >= Duration::from_secs(1) {
            let seconds = u32::try_from(passed.as_secs()).unwrap_or(u32::MAX);
            self.refilled_at += Duration::from_secs(passed.as_secs());
            self.give(|bound| bound.per_second.saturating_mul(seconds));
        }
    }

    fn give(&mut self, of: impl Fn(&Bound) -> u32) {
        for (left, bound) in self.left.iter_mut().zip(&BOUNDS) {
            *left = left.saturating_add(of(bound)).min(bound.burst);
        }
    }
}

/// Returns how many CONTINUATION frames one field block may have.
pub(crate) fn max_continuations() -> u32 {
    BOUNDS[Flood::Continuations as usize].burst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_used_up_and_comes_back_with_time() {
        let start = Instant::now();
        let mut allowances = Allowances::new(start);
        for _ in 0..100 {
            assert_eq!(allowances.charge(Flood::Settings), Ok(()));
        }
        assert_eq!(allowances.charge(Flood::Settings), Err(Flood::Settings));
        assert_eq!(
            allowances.charge(Flood::Pings),
            Ok(()),
            "others are not touched"
        );
        allowances.refill(start + Duration::from_millis(999));
        assert_eq!(allowances.charge(Flood::Settings), Err(Flood::Settings));
        allowances.refill(start + Duration::from_millis(1999));
        assert_eq!(allowances.charge(Flood::Settings), Ok(()));
        assert_eq!(allowances.charge(Flood::Settings), Err(Flood::Settings));
        allowances.refill(start + Duration::from_secs(1 << 40));
        for _ in 0..100 {
            assert_eq!(allowances.charge(Flood::Settings), Ok(()));
        }
        assert_eq!(allowances.charge(Flood::Settings), Err(Flood::Settings));
    }

    #[test]
    fn useful_work_brings_back_what_goes_with_it() {
        let mut allowances = Allowances::new(Instant::now());
        while allowances.charge(Flood::Resets).is_ok() {}
        while allowances.charge(Flood::Pings).is_ok() {}
        allowances.earn_by_request();
        assert_eq!(allowances.charge(Flood::Resets), Ok(()));
        assert_eq!(allowances.charge(Flood::Resets), Err(Flood::Resets));
        assert_eq!(allowances.charge(Flood::Pings), Err(Flood::Pings));
        allowances.earn_by_bytes(1023);
        assert_eq!(allowances.charge(Flood::Pings), Err(Flood::Pings));
        allowances.earn_by_bytes(1025);
        assert_eq!(allowances.charge(Flood::Pings), Ok(()));
        assert_eq!(allowances.charge(Flood::Pings), Ok(()));
        assert_eq!(allowances.charge(Flood::Pings), Err(Flood::Pings));
    }
}
