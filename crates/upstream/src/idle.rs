//! Connections kept between requests.
//!
//! One [`IdlePool`] per group, as with nginx's `keepalive`: the newest connection to the
//! chosen server is taken first, the least recently used one goes when there are too
//! many. The pool closes nothing itself: removed connections are returned, so that
//! sockets are closed after the group's lock is released.
//!
//! Invariant: sorted by `parked_at`, never longer than `connections`.

use std::collections::VecDeque;

use crate::Millis;
use crate::endpoint::LocalEnd;
use crate::spec::Keepalive;

/// An idle connection and its history.
#[derive(Debug)]
pub struct ParkedConnection<T> {
    /// The connection.
    pub stream: T,
    /// Requests it has carried.
    pub requests: u32,
    /// When it was opened.
    pub born: Millis,
    /// When its last request ended.
    pub parked_at: Millis,
    /// The scope of requests that may use it again.
    pub scope: ConnectionScope,
}

/// Connections of different scopes are never taken for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionScope {
    /// The location, where `keepalive ... local` binds them to it; else zero.
    pub location: u64,
    /// How they are secured: a number of the TLS settings; zero: they are not.
    pub security: u64,
    /// The local end of the connections.
    pub local: LocalEnd,
}

/// The idle connections of a group.
#[derive(Debug)]
pub struct IdlePool<T> {
    limits: Keepalive,
    /// Oldest first, each with its server's index.
    entries: VecDeque<(usize, ParkedConnection<T>)>,
}

impl<T> IdlePool<T> {
    /// An empty pool.
    pub fn new(limits: Keepalive) -> Self {
        Self {
            limits,
            entries: VecDeque::new(),
        }
    }

    /// Keeps a connection; returns the one that had to go for it, if any.
    pub fn park(
        &mut self,
        server: usize,
        parked: ParkedConnection<T>,
    ) -> Option<ParkedConnection<T>> {
        let is_newest =
            |(_, other): &(usize, ParkedConnection<T>)| other.parked_at <= parked.parked_at;
        match self.entries.back().is_none_or(is_newest) {
            true => self.entries.push_back((server, parked)),
            // Threads look at the clock at their own times.
            false => {
                let later = self.entries.partition_point(is_newest);
                self.entries.insert(later, (server, parked));
            }
        }
        if self.entries.len() > self.limits.connections {
            return self.entries.pop_front().map(|(_, oldest)| oldest);
        }
        None
    }

    /// The most recently used connection to `server` that belongs to `scope`.
    /// [`Self::sweep`] first.
    pub fn take(&mut self, server: usize, scope: ConnectionScope) -> Option<ParkedConnection<T>> {
        let fits =
            |(of, parked): &(usize, ParkedConnection<T>)| *of == server && parked.scope == scope;
        let newest = self.entries.iter().rposition(fits)?;
        self.entries.remove(newest).map(|(_, parked)| parked)
    }

    /// The least recently used connection to `server`, to be closed.
    pub fn shed(&mut self, server: usize) -> Option<ParkedConnection<T>> {
        let oldest = self.entries.iter().position(|(of, _)| *of == server)?;
        self.entries.remove(oldest).map(|(_, parked)| parked)
    }

    /// Removes connections idle for `keepalive_timeout`; the caller closes them.
    pub fn sweep(&mut self, now: Millis) -> Vec<ParkedConnection<T>> {
        let Some((_, oldest)) = self.entries.front() else {
            return Vec::new();
        };
        let timeout = self.limits.timeout.as_millis() as Millis;
        let is_expired =
            |parked: &ParkedConnection<T>| now.saturating_sub(parked.parked_at) >= timeout;
        if !is_expired(oldest) {
            return Vec::new();
        }
        let expired = self
            .entries
            .partition_point(|(_, parked)| is_expired(parked));
        self.entries
            .drain(..expired)
            .map(|(_, parked)| parked)
            .collect()
    }

    /// Idle connections to `server`.
    pub fn count(&self, server: usize) -> usize {
        self.entries.iter().filter(|(of, _)| *of == server).count()
    }

    /// Idle connections of the group.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No connection is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Do idle connections occupy the server?
    pub(crate) fn idle_counts(&self) -> bool {
        self.limits.idle_counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pool(connections: usize) -> IdlePool<&'static str> {
        IdlePool::new(Keepalive {
            requests: 3,
            time: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            ..Keepalive::new(connections)
        })
    }

    fn parked(stream: &'static str, parked_at: Millis) -> ParkedConnection<&'static str> {
        ParkedConnection {
            stream,
            requests: 1,
            born: 0,
            parked_at,
            scope: ConnectionScope::default(),
        }
    }

    #[test]
    fn a_connection_stays_in_its_place() {
        let mut pool = pool(8);
        let local = ConnectionScope {
            location: 7,
            ..ConnectionScope::default()
        };
        let secured = ConnectionScope {
            security: 7,
            ..ConnectionScope::default()
        };
        let bound = ConnectionScope {
            local: LocalEnd {
                address: Some("127.0.0.2:0".parse().unwrap()),
                probes: false,
            },
            ..ConnectionScope::default()
        };
        let there = ParkedConnection {
            scope: local,
            ..parked("there", 1)
        };
        pool.park(0, there);
        pool.park(0, parked("anywhere", 2));
        assert_eq!(pool.take(0, local).unwrap().stream, "there");
        assert!(pool.take(0, local).is_none());
        assert!(pool.take(0, secured).is_none());
        assert!(pool.take(0, bound).is_none());
        assert_eq!(
            pool.take(0, ConnectionScope::default()).unwrap().stream,
            "anywhere"
        );
    }

    #[test]
    fn the_newest_connection_to_the_server_is_taken_first() {
        let mut pool = pool(8);
        for (server, stream, at) in [(0, "a", 1), (1, "b", 2), (0, "c", 3), (1, "d", 4)] {
            assert!(pool.park(server, parked(stream, at)).is_none());
        }
        let taken: Vec<_> =
            std::iter::from_fn(|| pool.take(0, ConnectionScope::default())).collect();
        let names: Vec<_> = taken.iter().map(|parked| parked.stream).collect();
        assert_eq!(names, ["c", "a"]);
        assert_eq!(pool.count(1), 2);
    }

    #[test]
    fn the_least_recently_used_connection_makes_room_whatever_its_server() {
        let mut pool = pool(2);
        pool.park(0, parked("a", 1));
        pool.park(1, parked("b", 2));
        let gone = pool.park(1, parked("c", 3)).unwrap();
        assert_eq!(gone.stream, "a");
        assert_eq!(pool.len(), 2);
    }

    #[test]
    fn a_connection_idle_for_the_timeout_is_swept() {
        let mut pool = pool(8);
        pool.park(0, parked("late", 500));
        pool.park(0, parked("early", 100));
        assert!(pool.sweep(1_099).is_empty());
        let gone = pool.sweep(1_100);
        assert_eq!(gone.len(), 1);
        assert_eq!(gone[0].stream, "early");
        assert_eq!(
            pool.take(0, ConnectionScope::default()).unwrap().stream,
            "late"
        );
    }

    #[test]
    fn requests_and_age_decide_whether_a_connection_is_kept() {
        let cases = [
            ("young and little used", 8, 2, 2_000, true),
            ("its last request", 8, 3, 0, false),
            ("older than keepalive_time", 8, 1, 2_001, false),
            ("keepalive 0", 0, 1, 0, false),
        ];
        for (name, connections, requests, now, kept) in cases {
            let limits = pool(connections).limits;
            assert_eq!(limits.allows_another(requests, 0, now), kept, "{name}");
        }
    }
}
