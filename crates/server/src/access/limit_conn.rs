//! `limit_conn`: at most so many requests under way for each key
//! (<https://nginx.org/en/docs/http/ngx_http_limit_conn_module.html>).
//!
//! A guard counts as long as it lives; the request holds it. Memory is bounded
//! by the zone's size: where it is full, further keys are refused.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use site::{LimitConnZone, LogLevel};

use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::log::error_log;

/// Longest key that is counted; nginx's bound.
const MAX_KEY_BYTES: usize = 255;
/// What nginx takes for a state beside its key; together a power of two.
const STATE_BYTES: u64 = 36;

/// The counts of one `limit_conn_zone`, shared by all threads.
pub struct Zone {
    name: String,
    key: site::Template,
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

/// Why a connection is not let in.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
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

    fn enter(self: &Arc<Self>, key: Vec<u8>, limit: u64) -> Result<Guard, Refused> {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.by_key.get_mut(key.as_slice()) {
            if *count >= limit {
                return Err(Refused::Limit);
            }
            *count += 1;
        } else {
            let used_bytes = counts.used_bytes + state_bytes(&key);
            if used_bytes > self.max_bytes {
                return Err(Refused::Full);
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

/// Counts the request against the limits of its location, once in its life.
///
/// # Errors
/// The status to refuse it with.
pub fn check(request: &mut Request, zones: &[Arc<Zone>]) -> Result<(), u16> {
    if !request.extras.limit_conn_status.is_empty() {
        return Ok(());
    }
    let settings = request.settings_held();
    let reaction = settings.limits.on_connections;
    for limit in &settings.limits.connections {
        let Some(zone) = zones.get(limit.zone.0) else {
            continue;
        };
        let key = variable::evaluate(request, &zone.key);
        if key.is_empty() {
            continue;
        }
        if key.len() > MAX_KEY_BYTES {
            error_log::request(
                request,
                LogLevel::Error,
                format_args!(
                    "the value of the key of zone \"{}\" is more than {MAX_KEY_BYTES} bytes",
                    zone.name
                ),
            );
            continue;
        }
        request.extras.limit_conn_status = "PASSED";
        match zone.enter(key, limit.connections) {
            Ok(guard) => request.extras.limit_guards.push(guard),
            Err(refused) => {
                if refused == Refused::Limit {
                    let dry_run = if reaction.dry_run { ", dry run," } else { "" };
                    error_log::request(
                        request,
                        reaction.log_level,
                        format_args!("limiting connections{dry_run} by zone \"{}\"", zone.name),
                    );
                }
                request.extras.limit_guards.clear();
                if reaction.dry_run {
                    request.extras.limit_conn_status = "REJECTED_DRY_RUN";
                    return Ok(());
                }
                request.extras.limit_conn_status = "REJECTED";
                return Err(reaction.status);
            }
        }
    }
    Ok(())
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

    fn enter(zone: &Arc<Zone>, key: &[u8], limit: u64) -> Result<Guard, Refused> {
        zone.enter(key.to_vec(), limit)
    }

    #[test]
    fn connections_count_until_their_guard_goes() {
        let zone = zone(1 << 20);
        let first = enter(&zone, b"a", 2).ok();
        let second = enter(&zone, b"a", 2).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(enter(&zone, b"a", 2).err(), Some(Refused::Limit));
        assert!(enter(&zone, b"b", 2).is_ok());
        drop(first);
        let third = enter(&zone, b"a", 2);
        assert!(third.is_ok());
        drop((second, third));
        assert!(zone.counts.lock().by_key.is_empty());
        assert_eq!(zone.counts.lock().used_bytes, 0);
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
        assert_eq!(enter(&zone, b"c", 9).err(), Some(Refused::Full));
        drop(held);
        assert!(enter(&zone, b"c", 9).is_ok());
    }
}
