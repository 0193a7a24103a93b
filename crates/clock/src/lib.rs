//! The server's clock: one steady count of milliseconds for every thread, the wall clock beside
//! it, and the texts that are made from it at most once a second per thread.
//!
//! ```text
//!   steady  ───────────────────────────────────►  lifetimes, ages, deadlines, durations
//!      + the wall clock's difference
//!   wall    ──────────────┐ step  ┌────────────►  Date, Expires, Last-Modified, logs, variables
//!                         └───────┘
//! ```
//!
//! The steady count begins with the unix time of the start and goes on with the system's clock of
//! elapsed time, sleep of the machine included. A step of the wall clock therefore neither makes a
//! stored response stale nor keeps one fresh. Times that are shown, or compared with a date of a
//! peer, are [`wall`]: it follows the wall clock in both directions.
//!
//! A wait that is moved more often than it ends has a [`Deadline`].

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::time::{ClockId, clock_gettime};

mod deadline;

pub use deadline::{Deadline, SharedDeadline};

struct Origin {
    elapsed_ms: u64,
    unix_ms: u64,
    zone: TimeZone,
}

fn origin() -> &'static Origin {
    static ORIGIN: OnceLock<Origin> = OnceLock::new();
    ORIGIN.get_or_init(|| Origin {
        elapsed_ms: elapsed_ms(),
        unix_ms: millis(unix()),
        zone: TimeZone::system(),
    })
}

/// Returns the time since the machine started, including its sleep.
fn elapsed_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Reads the wall clock.
fn unix() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Now, on the steady count.
pub fn now() -> u64 {
    let origin = origin();
    origin.unix_ms + elapsed_ms().saturating_sub(origin.elapsed_ms)
}

/// A duration in milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The milliseconds by which the wall clock is ahead of the steady count.
static WALL_AHEAD_MS: AtomicI64 = AtomicI64::new(0);

/// Less than this is the time between two looks at two clocks, and no step. Slow corrections
/// change the rate of both alike.
const MIN_STEP_MS: u64 = 20;

/// The unix time in milliseconds that the wall clock shows at a moment of the steady count.
#[inline]
pub fn wall(steady_ms: u64) -> u64 {
    steady_ms.saturating_add_signed(WALL_AHEAD_MS.load(Ordering::Relaxed))
}

/// Returns the wall clock's time now, in unix milliseconds.
pub fn wall_now() -> u64 {
    let steady_ms = now();
    follow_wall(steady_ms);
    wall(steady_ms)
}

/// Looks whether the wall clock has been set.
fn follow_wall(steady_ms: u64) {
    let known = WALL_AHEAD_MS.load(Ordering::Relaxed);
    let ahead = ahead(known, steady_ms, millis(unix()));
    if ahead != known {
        WALL_AHEAD_MS.store(ahead, Ordering::Relaxed);
    }
}

/// Returns how far the wall clock is ahead, given the `known` distance before.
fn ahead(known: i64, steady_ms: u64, wall_ms: u64) -> i64 {
    let seen = i64::try_from(i128::from(wall_ms) - i128::from(steady_ms)).unwrap_or(known);
    match seen.abs_diff(known) >= MIN_STEP_MS {
        true => seen,
        false => known,
    }
}

/// The instant of a moment of the steady count, for deadlines that count from then.
pub fn instant_of(steady_ms: u64) -> tokio::time::Instant {
    let now = tokio::time::Instant::now();
    let ago = Duration::from_millis(self::now().saturating_sub(steady_ms));
    now.checked_sub(ago).unwrap_or(now)
}

/// How often [`recent`] gives the same reading while its thread does not sleep.
/// At some ten microseconds a request, that is well below a millisecond.
const READINGS: u32 = 32;

/// The clock as this thread last read it.
struct Reading {
    steady_ms: Cell<u64>,
    instant: Cell<Option<tokio::time::Instant>>,
    /// How often it may still be used.
    left: Cell<u32>,
    /// This thread reports its sleeps. Other threads read the clock anew each time.
    is_kept: Cell<bool>,
}

/// How often a thread that keeps readings looks at the wall clock: a step is noticed after this
/// time at the latest, and each look costs as much as a reading.
const LOOK_EVERY_MS: u64 = 64;

thread_local! {
    /// When this thread looked at the wall clock, in [`LOOK_EVERY_MS`].
    static LOOKED: Cell<u64> = const { Cell::new(0) };
    static READING: Reading = const {
        Reading {
            steady_ms: Cell::new(0),
            instant: Cell::new(None),
            left: Cell::new(0),
            is_kept: Cell::new(false),
        }
    };
}

/// Lets this thread use a reading several times. It must then call
/// [`has_slept`] whenever it did.
pub fn keep_readings() {
    READING.with(|reading| {
        reading.left.set(0);
        reading.is_kept.set(true);
    });
}

/// The thread has slept: its last reading is old.
pub fn has_slept() {
    READING.with(|reading| reading.left.set(0));
}

/// Now, on the steady count, as of the thread's last look at the clock: for events that begin now,
/// not for durations.
#[inline]
pub fn recent() -> u64 {
    READING.with(|reading| {
        reading.use_once();
        reading.steady_ms.get()
    })
}

/// Returns the recent reading for deadlines.
#[inline]
pub fn recent_instant() -> tokio::time::Instant {
    READING.with(|reading| {
        reading.use_once();
        reading
            .instant
            .get()
            .unwrap_or_else(tokio::time::Instant::now)
    })
}

impl Reading {
    #[inline]
    fn use_once(&self) {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => self.read(),
        }
    }

    #[inline(never)]
    fn read(&self) {
        let steady_ms = now();
        if LOOKED.replace(steady_ms / LOOK_EVERY_MS) != steady_ms / LOOK_EVERY_MS {
            follow_wall(steady_ms);
        }
        self.steady_ms.set(steady_ms);
        self.instant.set(Some(tokio::time::Instant::now()));
        let left = if self.is_kept.get() { READINGS } else { 0 };
        self.left.set(left);
    }
}

/// Local date and time of a unix time in seconds.
pub fn local(unix_seconds: i64) -> jiff::Zoned {
    Timestamp::from_second(unix_seconds)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned(origin().zone.clone())
}

/// The texts of one second.
#[derive(Default)]
struct Texts {
    second: u64,
    date_line: String,
    log_time: String,
    iso8601: String,
    error_log: String,
}

thread_local! {
    static TEXTS: RefCell<Texts> = RefCell::default();
}

/// The texts for a moment of the steady count.
fn with_texts<R>(now_ms: u64, read: impl FnOnce(&Texts) -> R) -> R {
    if !READING.with(|reading| reading.is_kept.get()) {
        follow_wall(now());
    }
    let second = wall(now_ms) / 1000;
    with_texts_of(second, read)
}

fn with_texts_of<R>(second: u64, read: impl FnOnce(&Texts) -> R) -> R {
    TEXTS.with_borrow_mut(|texts| {
        if texts.second != second {
            let seconds = i64::try_from(second).unwrap_or(i64::MAX);
            let local = local(seconds);
            *texts = Texts {
                second,
                date_line: format!(
                    "Date: {}\r\n",
                    String::from_utf8_lossy(&http_semantics::date::format(seconds))
                ),
                log_time: local.strftime("%d/%b/%Y:%H:%M:%S %z").to_string(),
                iso8601: local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
                error_log: local.strftime("%Y/%m/%d %H:%M:%S").to_string(),
            };
        }
        read(texts)
    })
}

/// Appends the `Date` field and its line end (RFC 9110 §6.6.1).
pub fn put_date_line(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.date_line.as_bytes())
    });
}

/// Hands the value of `Date` to `read` (RFC 9110 §5.6.7).
pub fn with_date<R>(now_ms: u64, read: impl FnOnce(&str) -> R) -> R {
    with_texts(now_ms, |texts| {
        let line = texts.date_line.strip_prefix("Date:").unwrap_or_default();
        read(line.trim())
    })
}

/// Appends `$time_local`: `20/Nov/2026:18:38:56 +0000`.
pub fn put_log_time(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.log_time.as_bytes())
    });
}

/// Appends `$time_iso8601`.
pub fn put_iso8601(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.iso8601.as_bytes())
    });
}

/// Appends the error log's time: `2026/11/20 18:38:56`.
pub fn put_error_log_time(now_ms: u64, out: &mut Vec<u8>) {
    with_texts(now_ms, |texts| {
        out.extend_from_slice(texts.error_log.as_bytes())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_second_asked_for() {
        let mut out = Vec::new();
        put_date_line(784_111_777_000, &mut out);
        assert_eq!(out, b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        out.clear();
        put_date_line(784_111_778_999, &mut out);
        assert_eq!(out, b"Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    }

    #[test]
    fn a_reading_is_used_until_the_thread_slept_or_used_it_enough() {
        let first = recent_instant();
        while tokio::time::Instant::now() <= first {}
        assert!(recent_instant() > first, "without `keep_readings`");

        keep_readings();
        let first = recent_instant();
        while tokio::time::Instant::now() <= first {}
        assert_eq!(recent_instant(), first);
        has_slept();
        let second = recent_instant();
        assert!(second > first);
        while tokio::time::Instant::now() <= second {}
        let used = (0..=READINGS).take_while(|_| recent_instant() == second);
        assert_eq!(used.count(), READINGS as usize);
    }

    #[test]
    fn the_wall_clock_is_followed_in_both_directions_and_jitter_is_not() {
        let steady = 1_700_000_000_000;
        for (known, wall, wanted) in [
            (0, steady, 0),
            (0, steady + 3, 0),
            (0, steady - 3, 0),
            (0, steady + 3_600_000, 3_600_000),
            (0, steady - 3_600_000, -3_600_000),
            (3_600_000, steady + 3_600_004, 3_600_000),
            (3_600_000, steady, 0),
            (-50, steady, 0),
            (0, 0, -1_700_000_000_000),
        ] {
            assert_eq!(ahead(known, steady, wall), wanted, "{known} {wall}");
        }
    }

    #[test]
    fn the_clock_does_not_step_back() {
        let first = now();
        assert!(now() >= first);
    }
}
