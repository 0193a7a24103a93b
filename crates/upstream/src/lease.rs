//! The right to have one request in flight at one server.
//!
//! A lease counts against its server's `max_conns` from the moment the group
//! makes it until it is reported or dropped, on whatever thread. It brings the
//! idle connection to its server along if there is one, taken in the same
//! breath: so a slot with an idle connection is never used for a new one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fair_queue::Class;

use crate::Millis;
use crate::endpoint::{Endpoint, StdStream, Stream};
use crate::group::Group;
use crate::idle::{ConnectionScope, ParkedConnection};
use crate::peer::Outcome;
use crate::turns::TakenTurn;

/// A chosen server with a slot reserved. Dropping it frees the slot and reports nothing
/// about the server ([`Outcome::Neutral`]).
#[derive(Debug)]
#[must_use = "dropping a lease frees its slot"]
pub struct Lease {
    group: Arc<Group>,
    server: LeasedServer,
    class: Class,
    /// `None`: it has ended before the lease.
    turn: Option<Box<TakenTurn>>,
    /// The scope of its connections.
    scope: ConnectionScope,
    /// The connection for this lease's request or the next one's.
    idle: Option<ParkedConnection<StdStream>>,
    ended: Option<(Outcome, Millis)>,
}

/// The facts of a lease's server, which may leave the group while it is being asked.
#[derive(Debug)]
pub(crate) struct LeasedServer {
    /// Its place in the group.
    pub index: usize,
    pub endpoint: Arc<Endpoint>,
    /// The endpoint's text.
    pub address: Arc<str>,
}

/// A connection to a lease's server.
#[derive(Debug)]
pub struct Connection {
    /// The bytes.
    pub stream: Stream,
    /// Requests it has carried before this one. Above zero, a failure before
    /// the first byte may only mean that the server closed it meanwhile.
    pub requests: u32,
    /// When it was opened.
    pub born: Millis,
}

impl Connection {
    /// Was it kept from an earlier request?
    pub fn is_reused(&self) -> bool {
        self.requests != 0
    }
}

impl Lease {
    pub(crate) fn new(
        group: Arc<Group>,
        server: LeasedServer,
        (class, turn): (Class, TakenTurn),
        scope: ConnectionScope,
        idle: Option<ParkedConnection<StdStream>>,
    ) -> Self {
        Self {
            group,
            server,
            class,
            turn: Some(Box::new(turn)),
            scope,
            idle,
            ended: None,
        }
    }

    /// Notes how long the head of the response took.
    pub fn note_head(&mut self, took: Duration) {
        self.group.counts().note_head(took);
        if let Some(turn) = &mut self.turn {
            turn.head_ms = Some(Millis::try_from(took.as_millis()).unwrap_or(Millis::MAX));
        }
    }

    /// The connection has become a tunnel: others may have their turn.
    pub fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.group.end_turn(*turn);
        }
    }

    /// The chosen server's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.server.endpoint
    }

    /// Its text: `$upstream_addr`.
    pub fn address(&self) -> &Arc<str> {
        &self.server.address
    }

    /// The chosen server's index in the configuration, for a [`crate::TriedSet`].
    pub fn server(&self) -> usize {
        self.server.index
    }

    /// A new connection, for the second try after a reused one turned out to be
    /// closed. Drop that one first: together they would be two for one slot.
    pub async fn connect_anew(&mut self, timeout: Duration, now: Millis) -> io::Result<Connection> {
        self.idle = None;
        let stream = self
            .server
            .endpoint
            .connect(self.scope.local, timeout)
            .await?;
        if let Some(pid) = stream.peer_process().filter(|_| self.group.finds_limit) {
            self.group.note_listener(self.server.index, pid);
        }
        Ok(Connection {
            stream,
            requests: 0,
            born: now,
        })
    }

    /// The most recently used idle connection that is still open and silent.
    ///
    /// `may_repeat`: should it turn out to be closed, the request is sent again over
    /// another. Then the state that this thread has last seen is enough; otherwise the
    /// system is asked as well.
    pub fn take_idle(&mut self, now: Millis, may_repeat: bool) -> Option<Connection> {
        // Bounded: each turn takes one connection out of a bounded pool.
        loop {
            let parked = match self.idle.take() {
                Some(parked) => parked,
                None => self.group.take_idle(self.server.index, self.scope, now)?,
            };
            if let Some(stream) = parked.stream.take_up(may_repeat) {
                return Some(Connection {
                    stream,
                    requests: parked.requests,
                    born: parked.born,
                });
            }
        }
    }

    /// Leaves the connection for later requests once this lease ends, if the
    /// group's `keepalive` allows. The response must have been read to its end.
    pub fn keep(&mut self, connection: Connection, now: Millis) {
        let requests = connection.requests.saturating_add(1);
        let keepalive = self.group.keepalive();
        if !keepalive.is_some_and(|limits| limits.allows_another(requests, connection.born, now)) {
            return;
        }
        if let Ok(stream) = connection.stream.park() {
            self.idle = Some(ParkedConnection {
                stream,
                requests,
                born: connection.born,
                parked_at: now,
                scope: self.scope,
            });
        }
    }

    /// Ends the lease and reports the server's outcome to the group.
    pub fn report(mut self, outcome: Outcome, now: Millis) {
        self.ended = Some((outcome, now));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (outcome, now) = match self.ended {
            Some((outcome, now)) => (outcome, Some(now)),
            None => (Outcome::Neutral, None),
        };
        let turn = (self.class, self.turn.take().map(|turn| *turn));
        self.group
            .release(self.server.index, turn, outcome, self.idle.take(), now);
    }
}
