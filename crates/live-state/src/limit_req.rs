//! The leaky buckets of `limit_req_zone`, one for each key, with nginx's arithmetic
//! (<https://nginx.org/en/docs/http/ngx_http_limit_req_module.html>).
//!
//! A bucket holds the excess over the rate, in thousandths of a request. It rises by 1000 with each request
//! and leaks at the rate. The time is an argument; memory is bounded by the zone's size, and the least
//! recently used bucket makes room.

use parking_lot::Mutex;
use site::{LimitReq, LimitReqZone};

use server_base::lru::Lru;

/// The bytes that nginx takes for a state beside its key; together a power of two.
const STATE_BYTES: u64 = 80;
/// The time after which an unused bucket may go once it is empty.
const IDLE_MS: u64 = 60_000;
/// A clock that goes back further than this is not believed.
const MAX_BACKWARD_MS: u64 = 60_000;

/// The states of one `limit_req_zone`, shared by all threads.
pub struct Zone {
    pub name: String,
    pub key: site::Template,
    /// Thousandths of a request per second.
    rate: u64,
    buckets: Mutex<Buckets>,
}

struct Buckets {
    by_key: Lru<Bucket>,
    used_bytes: u64,
    max_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Thousandths of a request.
    excess: u64,
    /// Unix milliseconds; 0: never counted yet.
    last: u64,
    /// Requests that looked at it and have not counted themselves yet.
    pins: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitState {
    /// Over the burst.
    Busy {
        excess: u64,
    },
    /// There is no room for another state.
    Full,
    Within {
        excess: u64,
    },
}

impl Zone {
    pub fn new(zone: &LimitReqZone) -> Zone {
        Zone {
            name: zone.name.clone(),
            key: zone.key.clone(),
            rate: zone.rate_per_1000s.max(1),
            buckets: Mutex::new(Buckets {
                by_key: Lru::default(),
                used_bytes: 0,
                max_bytes: zone.size_bytes,
            }),
        }
    }

    /// How long one more request with `key` would wait now; `None`: it would be refused. Nothing is counted.
    pub fn foresee(&self, key: &[u8], now: u64, limit: &LimitReq) -> Option<u64> {
        let mut buckets = self.buckets.lock();
        let Some(bucket) = buckets.by_key.peek(key) else {
            return Some(0);
        };
        let (_, excess) = self.risen(bucket, now);
        let is_within = excess <= limit.burst.saturating_mul(1000);
        is_within.then(|| self.delay(excess, limit.delay_after))
    }

    /// Looks at `key`'s bucket. With `counts` the request is counted at once;
    /// else the bucket is pinned until [`Zone::count`] or [`Zone::release`].
    fn look(&self, key: &[u8], now: u64, burst: u64, counts: bool) -> LimitState {
        let mut buckets = self.buckets.lock();
        if let Some(bucket) = buckets.by_key.touch(key) {
            let (elapsed, excess) = self.risen(bucket, now);
            if excess > burst.saturating_mul(1000) {
                return LimitState::Busy { excess };
            }
            if counts {
                bucket.excess = excess;
                if elapsed > 0 {
                    bucket.last = now;
                }
            } else {
                bucket.pins += 1;
            }
            return LimitState::Within { excess };
        }
        if !buckets.make_room(key, now, self.rate) {
            return LimitState::Full;
        }
        let (last, pins) = if counts { (now, 0) } else { (0, 1) };
        buckets.by_key.insert(
            key,
            Bucket {
                excess: 0,
                last,
                pins,
            },
        );
        LimitState::Within { excess: 0 }
    }

    /// Counts a request whose bucket is pinned; gives the excess.
    fn count(&self, key: &[u8], now: u64) -> u64 {
        let mut buckets = self.buckets.lock();
        let Some(bucket) = buckets.by_key.peek(key) else {
            return 0;
        };
        let (elapsed, excess) = self.risen(bucket, now);
        if elapsed > 0 {
            bucket.last = now;
        }
        bucket.excess = excess;
        bucket.pins = bucket.pins.saturating_sub(1);
        excess
    }

    /// Takes back a look without counting.
    fn release(&self, key: &[u8]) {
        if let Some(bucket) = self.buckets.lock().by_key.peek(key) {
            bucket.pins = bucket.pins.saturating_sub(1);
        }
    }

    /// Milliseconds since the last request, and the excess with one more now.
    fn risen(&self, bucket: &Bucket, now: u64) -> (u64, u64) {
        let elapsed = match now.checked_sub(bucket.last) {
            Some(elapsed) => elapsed,
            None if bucket.last - now > MAX_BACKWARD_MS => 1,
            None => 0,
        };
        let excess = (bucket.excess + 1000).saturating_sub(leaked(self.rate, elapsed));
        (elapsed, excess)
    }

    /// How long a request with `excess` waits: until the part above `delay_after` has leaked.
    fn delay(&self, excess: u64, delay_after: u64) -> u64 {
        excess
            .saturating_sub(delay_after.saturating_mul(1000))
            .saturating_mul(1000)
            / self.rate
    }
}

/// Thousandths of a request that leak in `elapsed` milliseconds.
fn leaked(rate: u64, elapsed: u64) -> u64 {
    rate.saturating_mul(elapsed) / 1000
}

fn state_bytes(key: &[u8]) -> u64 {
    (STATE_BYTES + key.len() as u64).next_power_of_two()
}

impl Buckets {
    /// Takes the memory for one more state; false if no memory is left.
    fn make_room(&mut self, key: &[u8], now: u64, rate: u64) -> bool {
        let needed = state_bytes(key);
        // One or two that are empty go in any case, so that the zone gets
        // smaller again.
        for _ in 0..2 {
            if !self.drop_oldest(|bucket| {
                let idle = now.abs_diff(bucket.last);
                idle >= IDLE_MS && bucket.excess <= leaked(rate, idle)
            }) {
                break;
            }
        }
        // One is dropped by force. Keys differ in size: with room for one, that
        // may not do, but it must not take the whole zone either.
        for _ in 0..3 {
            if self.used_bytes + needed <= self.max_bytes {
                break;
            }
            self.drop_oldest(|_| true);
        }
        let fits = self.used_bytes + needed <= self.max_bytes;
        if fits {
            self.used_bytes += needed;
        }
        fits
    }

    /// Drops the oldest bucket, unless it is pinned or `may_go` is false for it.
    fn drop_oldest(&mut self, may_go: impl Fn(&Bucket) -> bool) -> bool {
        let Some((key, bucket)) = self.by_key.oldest() else {
            return false;
        };
        if bucket.pins > 0 || !may_go(bucket) {
            return false;
        }
        self.used_bytes = self.used_bytes.saturating_sub(state_bytes(key));
        self.by_key.remove_oldest();
        true
    }
}

/// One limit that applies, with the key it found.
pub struct AppliedLimit<'a> {
    pub limit: &'a LimitReq,
    pub zone: &'a Zone,
    pub key: Vec<u8>,
}

/// The verdict of all limits together.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Rejected {
        by: usize,
        excess: Option<u64>,
    },
    Passed {
        delay_ms: u64,
        excess: u64,
        by: usize,
    },
}

/// Asks every limit in turn; counts the request in all zones or in none.
pub fn judge(limits: &[AppliedLimit<'_>], now: u64) -> Outcome {
    let last = limits.len().saturating_sub(1);
    let mut longest = (0, 0, last);
    for (index, applied) in limits.iter().enumerate() {
        let AppliedLimit { limit, zone, key } = applied;
        let excess = match zone.look(key, now, limit.burst, index == last) {
            LimitState::Within { excess } => excess,
            LimitState::Busy { excess } => {
                release(&limits[..index]);
                return Outcome::Rejected {
                    by: index,
                    excess: Some(excess),
                };
            }
            LimitState::Full => {
                release(&limits[..index]);
                return Outcome::Rejected {
                    by: index,
                    excess: None,
                };
            }
        };
        if index == last {
            longest = (zone.delay(excess, limit.delay_after), excess, index);
        }
    }
    for (index, AppliedLimit { limit, zone, key }) in limits.iter().enumerate().take(last).rev() {
        let excess = zone.count(key, now);
        let delay = zone.delay(excess, limit.delay_after);
        if delay > longest.0 {
            longest = (delay, excess, index);
        }
    }
    let (delay_ms, excess, by) = longest;
    Outcome::Passed {
        delay_ms,
        excess,
        by,
    }
}

fn release(limits: &[AppliedLimit<'_>]) {
    for applied in limits {
        applied.zone.release(&applied.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use site::{LimitReqZoneId, Template};

    fn zone(rate_per_second: u64, size_bytes: u64) -> Zone {
        Zone::new(&LimitReqZone {
            name: "one".into(),
            key: Template::literal("key"),
            size_bytes,
            rate_per_1000s: rate_per_second * 1000,
        })
    }

    fn limit(burst: u64, delay_after: u64) -> LimitReq {
        LimitReq {
            zone: LimitReqZoneId(0),
            burst,
            delay_after,
        }
    }

    fn passed(delay_ms: u64, excess: u64, by: usize) -> Outcome {
        Outcome::Passed {
            delay_ms,
            excess,
            by,
        }
    }

    #[test]
    fn requests_wait_or_go_as_the_bucket_fills() {
        let no_burst = limit(0, 0);
        let queue = limit(2, 0);
        let nodelay = limit(2, u64::MAX);
        let delay = limit(3, 1);
        let reject = |excess| Outcome::Rejected {
            by: 0,
            excess: Some(excess),
        };
        #[rustfmt::skip]
        let cases = [
            ("no burst", &no_burst, vec![
                (0, passed(0, 0, 0)),
                (50, reject(500)),
                (100, passed(0, 0, 0)),
                (101, reject(990)),
                (5000, passed(0, 0, 0)),
            ]),
            ("queue", &queue, vec![
                (0, passed(0, 0, 0)),
                (0, passed(100, 1000, 0)),
                (0, passed(200, 2000, 0)),
                (0, reject(3000)),
                (50, reject(2500)),
                (100, passed(200, 2000, 0)),
            ]),
            ("nodelay", &nodelay, vec![
                (0, passed(0, 0, 0)),
                (0, passed(0, 1000, 0)),
                (0, passed(0, 2000, 0)),
                (0, reject(3000)),
            ]),
            ("delay=1", &delay, vec![
                (0, passed(0, 0, 0)),
                (0, passed(0, 1000, 0)),
                (0, passed(100, 2000, 0)),
                (0, passed(200, 3000, 0)),
                (0, reject(4000)),
            ]),
            ("clock a bit back", &no_burst, vec![
                (1000, passed(0, 0, 0)),
                (900, reject(1000)),
                (1100, passed(0, 0, 0)),
            ]),
        ];
        for (name, limit, steps) in cases {
            let zone = zone(10, 1 << 20);
            for (at, wanted) in steps {
                let applied = [AppliedLimit {
                    limit,
                    zone: &zone,
                    key: b"k".to_vec(),
                }];
                let now = 1_000_000 + at;
                // To look ahead counts nothing, however often.
                let foreseen = [(); 2].map(|()| zone.foresee(b"k", now, limit));
                let delay = match &wanted {
                    Outcome::Passed { delay_ms, .. } => Some(*delay_ms),
                    Outcome::Rejected { .. } => None,
                };
                assert_eq!(foreseen, [delay; 2], "{name} at {at}");
                assert_eq!(judge(&applied, now), wanted, "{name} at {at}");
            }
        }
    }

    #[test]
    fn several_limits_count_together_or_not_at_all() {
        let (wide, narrow) = (zone(10, 1 << 20), zone(1, 1 << 20));
        let (big, none) = (limit(10, 0), limit(0, 0));
        let both = |now| {
            judge(
                &[
                    AppliedLimit {
                        limit: &big,
                        zone: &wide,
                        key: b"k".to_vec(),
                    },
                    AppliedLimit {
                        limit: &none,
                        zone: &narrow,
                        key: b"k".to_vec(),
                    },
                ],
                now,
            )
        };
        assert_eq!(both(1000), passed(0, 0, 1));
        assert_eq!(
            both(1000),
            Outcome::Rejected {
                by: 1,
                excess: Some(1000)
            }
        );
        // The rejected one did not count in the first zone either.
        let first = [AppliedLimit {
            limit: &big,
            zone: &wide,
            key: b"k".to_vec(),
        }];
        assert_eq!(judge(&first, 1000), passed(100, 1000, 0));
        assert_eq!(both(2000), passed(0, 0, 1));
        assert_eq!(wide.buckets.lock().by_key.oldest().unwrap().1.pins, 0);
    }

    #[test]
    fn the_longest_delay_of_several_limits_counts() {
        let (slow, fast) = (zone(1, 1 << 20), zone(100, 1 << 20));
        let queue = limit(10, 0);
        let both = |now| {
            judge(
                &[
                    AppliedLimit {
                        limit: &queue,
                        zone: &slow,
                        key: b"k".to_vec(),
                    },
                    AppliedLimit {
                        limit: &queue,
                        zone: &fast,
                        key: b"k".to_vec(),
                    },
                ],
                now,
            )
        };
        assert_eq!(both(1_000_000), passed(0, 0, 1));
        assert_eq!(both(1_000_000), passed(1000, 1000, 0));
        assert_eq!(both(1_000_000), passed(2000, 2000, 0));
    }

    #[test]
    fn a_full_zone_gives_up_what_was_used_longest_ago() {
        let zone = zone(1, 4 * 128);
        for key in 0..4u8 {
            assert_eq!(
                zone.look(&[key], 0, 0, true),
                LimitState::Within { excess: 0 }
            );
        }
        assert_eq!(
            zone.look(&[0], 10, 5, true),
            LimitState::Within { excess: 990 }
        );
        assert_eq!(
            zone.look(&[9], 10, 0, true),
            LimitState::Within { excess: 0 }
        );
        assert_eq!(zone.buckets.lock().by_key.len(), 4);
        assert_eq!(
            zone.look(&[0], 10, 0, true),
            LimitState::Busy { excess: 1990 }
        );
        assert_eq!(
            zone.look(&[1], 10, 0, true),
            LimitState::Within { excess: 0 }
        );
    }

    #[test]
    fn buckets_that_are_looked_at_stay() {
        let zone = zone(1, 128);
        assert_eq!(
            zone.look(b"a", 0, 0, false),
            LimitState::Within { excess: 0 }
        );
        assert_eq!(zone.look(b"b", 0, 0, true), LimitState::Full);
        zone.release(b"a");
        assert_eq!(
            zone.look(b"b", 0, 0, true),
            LimitState::Within { excess: 0 }
        );
    }

    #[test]
    fn empty_buckets_make_room_before_it_is_needed() {
        let zone = zone(1, 1 << 20);
        zone.look(b"a", 0, 0, true);
        zone.look(b"b", 0, 0, true);
        zone.look(b"c", 59_000, 0, true);
        assert_eq!(zone.buckets.lock().by_key.len(), 3);
        zone.look(b"d", 60_001, 0, true);
        assert_eq!(zone.buckets.lock().by_key.len(), 2);
        assert_eq!(zone.buckets.lock().used_bytes, 256);
    }
}
