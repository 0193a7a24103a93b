//! The counts of `limit_conn_zone`. A guard counts as long as it lives; the request holds
//! it. Memory is bounded by the zone's size: where it is full, further keys are refused.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use site::LimitConnZone;

/// The bytes that nginx takes for a state beside its key; together a power of two.
const STATE_BYTES: u64 = 36;

/// The counts of one `limit_conn_zone`, shared by all threads.
pub struct Zone {
    pub name: String,
    pub key: site::Template,
    max_bytes: u64,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    by_key: HashMap<Box<[u8]>, u64>,
    used_bytes: u64,
}

/// A connection that counts until this is dropped.
pub struct Guard {
    zone: Arc<Zone>,
    key: Box<[u8]>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut counts = self.zone.counts.lock();
        let Some(count) = counts.by_key.get_mut(&self.key) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.by_key.remove(&self.key);
            counts.used_bytes = counts.used_bytes.saturating_sub(state_bytes(&self.key));
        }
    }
}

/// The reason why a connection is not let in.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    Limit,
    /// There is no room for another key.
    Full,
}

impl Zone {
    pub fn new(zone: &LimitConnZone) -> Zone {
        Zone {
            name: zone.name.clone(),
            key: zone.key.clone(),
            max_bytes: zone.size_bytes,
            counts: Mutex::default(),
        }
    }

    /// Would one more connection of `key` be refused now? Nothing is counted.
    pub fn is_full_for(&self, key: &[u8], limit: u64) -> bool {
        let counts = self.counts.lock();
        counts.by_key.get(key).is_some_and(|count| *count >= limit)
    }

    /// Counts one more connection of `key`, of which there may be as many as `limit`.
    ///
    /// # Errors
    /// There are as many already, or the zone is full.
    pub fn enter(self: &Arc<Self>, key: Vec<u8>, limit: u64) -> Result<Guard, ConnectionRefusal> {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.by_key.get_mut(key.as_slice()) {
            if *count >= limit {
                return Err(ConnectionRefusal::Limit);
            }
            *count += 1;
        } else {
            let used_bytes = counts.used_bytes + state_bytes(&key);
            if used_bytes > self.max_bytes {
                return Err(ConnectionRefusal::Full);
            }
            counts.used_bytes = used_bytes;
            counts.by_key.insert(key.as_slice().into(), 1);
        }
        Ok(Guard {
            zone: self.clone(),
            key: key.into(),
        })
    }
}

fn state_bytes(key: &[u8]) -> u64 {
    (STATE_BYTES + key.len() as u64).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use site::Template;

    fn zone(size_bytes: u64) -> Arc<Zone> {
        let key = Template::literal("key");
        Arc::new(Zone::new(&LimitConnZone {
            name: "one".into(),
            key,
            size_bytes,
        }))
    }

    fn enter(zone: &Arc<Zone>, key: &[u8], limit: u64) -> Result<Guard, ConnectionRefusal> {
        zone.enter(key.to_vec(), limit)
    }

    #[test]
    fn connections_count_until_their_guard_goes() {
        let zone = zone(1 << 20);
        let first = enter(&zone, b"a", 2).ok();
        let second = enter(&zone, b"a", 2).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(enter(&zone, b"a", 2).err(), Some(ConnectionRefusal::Limit));
        assert!(enter(&zone, b"b", 2).is_ok());
        drop(first);
        let third = enter(&zone, b"a", 2);
        assert!(third.is_ok());
        drop((second, third));
        assert!(zone.counts.lock().by_key.is_empty());
        assert_eq!(zone.counts.lock().used_bytes, 0);
    }

    #[test]
    fn what_is_foreseen_is_what_happens_and_counts_nothing() {
        let zone = zone(1 << 20);
        assert!(!zone.is_full_for(b"a", 1) && !zone.is_full_for(b"a", 1));
        let held = enter(&zone, b"a", 1);
        assert!(
            zone.is_full_for(b"a", 1) && !zone.is_full_for(b"a", 2) && !zone.is_full_for(b"b", 1)
        );
        drop(held);
        assert!(!zone.is_full_for(b"a", 1));
        assert!(zone.counts.lock().by_key.is_empty());
    }

    #[test]
    fn a_full_zone_refuses_new_keys_only() {
        let zone = zone(2 * 64);
        let held = [
            enter(&zone, b"a", 9),
            enter(&zone, b"b", 9),
            enter(&zone, b"a", 9),
        ];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(enter(&zone, b"c", 9).err(), Some(ConnectionRefusal::Full));
        drop(held);
        assert!(enter(&zone, b"c", 9).is_ok());
    }
}
