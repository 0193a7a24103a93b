//! Promises of the group as a whole: bounds, order, every request served.

mod classes;
mod keepalive;
mod membership;
mod queue;
mod simulation;
mod threads;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fair_queue::Concurrency;

use crate::millis::Millis;
use crate::{
    AcquireError, Admission, Class, Connection, Endpoint, Group, GroupSpec, Lease, PickKey,
    QueueSpec, ServerSpec, TriedSet, TurnsSpec,
};

/// Servers with these `max_conns` and a line of `length` that waits a minute.
fn group(max_conns: &[usize], length: usize) -> Arc<Group> {
    let servers = (8081..).zip(max_conns).map(|(port, max_conns)| ServerSpec {
        max_conns: *max_conns,
        ..ServerSpec::new(Endpoint::Tcp(([127, 0, 0, 1], port).into()))
    });
    let spec = GroupSpec {
        servers: servers.collect(),
        queue: Some(QueueSpec {
            length,
            timeout: Duration::from_secs(60),
        }),
        ..GroupSpec::single("u", Endpoint::Unix("/unused".into()))
    };
    Group::new(spec).unwrap()
}

/// A server that serves one request at a time, in turns, with a line of `length`.
fn group_with_turns(concurrency: usize, length: usize) -> Arc<Group> {
    let turns = TurnsSpec {
        concurrency: Concurrency::Fixed(concurrency),
        crawler_share: 25,
    };
    let spec = GroupSpec {
        queue: Some(QueueSpec {
            length,
            timeout: Duration::from_secs(60),
        }),
        turns: Some(turns),
        ..GroupSpec::single("u", Endpoint::Unix("/unused".into()))
    };
    Group::new(spec).unwrap()
}

impl Group {
    /// Waits in line while all servers are full. Dropping the future leaves the line.
    async fn acquire(
        self: &Arc<Self>,
        key: PickKey<'_>,
        tried: &TriedSet,
        class: Class,
        now: Millis,
    ) -> Result<Lease, AcquireError> {
        match self.enter(key, tried, class, now)? {
            Admission::Granted(lease) => Ok(lease),
            Admission::InLine(mut ticket) => ticket.wait().await,
        }
    }

    /// Never waits: full servers are `NoLiveUpstreams`.
    fn try_acquire(
        self: &Arc<Self>,
        key: PickKey<'_>,
        tried: &TriedSet,
        now: Millis,
    ) -> Result<Lease, AcquireError> {
        match self.admit(key, tried, Class::Visitor, now, None)? {
            Admission::Granted(lease) => Ok(lease),
            Admission::InLine(_) => Err(AcquireError::NoLiveUpstreams),
        }
    }
}

impl Lease {
    /// An idle connection if a healthy one is there, or else a new one.
    async fn connect(&mut self, timeout: Duration, now: Millis) -> io::Result<Connection> {
        match self.take_idle(now, false) {
            Some(connection) => Ok(connection),
            None => self.connect_anew(timeout, now).await,
        }
    }
}

fn try_now(group: &Arc<Group>) -> Result<Lease, crate::AcquireError> {
    group.try_acquire(PickKey::default(), &TriedSet::new(), 0)
}

fn in_flight(group: &Group) -> usize {
    let servers = group.snapshot(0);
    servers.iter().map(|server| server.in_flight).sum()
}
