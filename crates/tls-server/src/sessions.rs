//! Sessions that the server keeps: `ssl_session_cache`.
//!
//! A few parts, each with its lock. In a part, the oldest session makes room for the newest.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::pki_types::UnixTime;
use rustls::server::StoresServerSessions;

use crate::config::Context;

const PARTS: usize = 16;
/// The memory of a session beside its own bytes.
const OVERHEAD_BYTES: usize = 128;
/// How many bytes of a cache nginx needs for a session, about.
const BYTES_OF_SESSION: u64 = 256;

/// Sessions of one or more servers.
pub struct SessionCache {
    parts: [Mutex<Part>; PARTS],
    part_bytes: usize,
}

#[derive(Default)]
struct Part {
    sessions: HashMap<Box<[u8]>, Session>,
    /// Keys in the order of arrival; some may be gone already.
    order: VecDeque<Box<[u8]>>,
    bytes: usize,
}

struct Session {
    value: Vec<u8>,
    /// The time in seconds since 1970.
    made_at: u64,
}

impl SessionCache {
    /// A cache of `bytes` bytes.
    pub fn of_bytes(bytes: u64) -> SessionCache {
        SessionCache {
            parts: Default::default(),
            part_bytes: usize::try_from(bytes).unwrap_or(usize::MAX) / PARTS,
        }
    }

    /// A cache for about `sessions` sessions.
    pub fn of_sessions(sessions: u64) -> SessionCache {
        SessionCache::of_bytes(sessions.saturating_mul(BYTES_OF_SESSION))
    }

    /// The part of a key. Ids are random, or chosen by a client that finds nothing.
    fn part(&self, key: &[u8]) -> &Mutex<Part> {
        let at = usize::from(key.last().copied().unwrap_or(0)) % PARTS;
        &self.parts[at]
    }
}

impl Part {
    fn put(&mut self, key: Box<[u8]>, session: Session, limit: usize) {
        self.remove(&key);
        self.bytes += cost(&key, &session);
        self.sessions.insert(key.clone(), session);
        self.order.push_back(key);
        // Keys of sessions that are gone cost too.
        let costs = |part: &Part| part.bytes.max(part.order.len() * OVERHEAD_BYTES);
        while costs(self) > limit {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        self.bytes -= cost(key, &session);
        Some(session)
    }
}

fn cost(key: &[u8], session: &Session) -> usize {
    2 * key.len() + session.value.len() + OVERHEAD_BYTES
}

impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache").finish_non_exhaustive()
    }
}

/// The sessions of one server in a cache.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) cache: Arc<SessionCache>,
    pub(crate) context: Context,
    /// `ssl_session_timeout`
    pub(crate) lifetime: Duration,
}

impl Sessions {
    fn key(&self, id: &[u8]) -> Box<[u8]> {
        [&self.context.0, id].concat().into()
    }

    fn put_at(&self, now: u64, id: &[u8], value: Vec<u8>) {
        let key = self.key(id);
        let session = Session {
            value,
            made_at: now,
        };
        let mut part = self.cache.part(&key).lock();
        part.put(key, session, self.cache.part_bytes);
    }

    fn get_at(&self, now: u64, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id);
        let part = self.cache.part(&key).lock();
        let session = part.sessions.get(&key)?;
        self.is_valid(session, now).then(|| session.value.clone())
    }

    fn take_at(&self, now: u64, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id);
        let session = self.cache.part(&key).lock().remove(&key)?;
        self.is_valid(&session, now).then_some(session.value)
    }

    fn is_valid(&self, session: &Session, now: u64) -> bool {
        now.saturating_sub(session.made_at) <= self.lifetime.as_secs()
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(UnixTime::now().as_secs(), &key, value);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get_at(UnixTime::now().as_secs(), key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.take_at(UnixTime::now().as_secs(), key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(cache: &Arc<SessionCache>, context: u8) -> Sessions {
        Sessions {
            cache: cache.clone(),
            context: Context([context; 32]),
            lifetime: Duration::from_secs(300),
        }
    }

    #[test]
    fn a_session_is_found_by_its_own_server_until_it_is_too_old() {
        let cache = Arc::new(SessionCache::of_bytes(1 << 20));
        let (one, other) = (sessions(&cache, 1), sessions(&cache, 2));
        one.put_at(0, b"id", b"secret".to_vec());
        assert_eq!(other.get_at(0, b"id"), None);
        assert_eq!(one.get_at(300, b"id").as_deref(), Some(&b"secret"[..]));
        assert_eq!(one.get_at(301, b"id"), None);
        assert!(one.take_at(300, b"id").is_some());
        assert!(one.take_at(300, b"id").is_none());
    }

    #[test]
    fn a_cache_keeps_to_its_size_whether_sessions_are_taken_or_not() {
        let cache = Arc::new(SessionCache::of_bytes(64 << 10));
        let server = sessions(&cache, 1);
        for number in 0..100_000_u32 {
            let id = number.to_be_bytes();
            server.put_at(0, &id, vec![0; 100]);
            if number % 2 == 0 {
                server.take_at(0, &id);
            }
        }
        let held = |part: &Mutex<Part>| {
            let part = part.lock();
            assert!(part.bytes <= cache.part_bytes);
            assert!(part.order.len() * OVERHEAD_BYTES <= cache.part_bytes);
            part.sessions.len()
        };
        let held: usize = cache.parts.iter().map(held).sum();
        assert!(held > 50, "{held}");
        assert!(server.get_at(0, &99_999_u32.to_be_bytes()).is_some());
        assert!(server.get_at(0, &1_u32.to_be_bytes()).is_none());
    }
}
