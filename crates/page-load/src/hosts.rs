//! The connections of requests: six to each host with HTTP/1.1, one with HTTP/2.

use std::collections::HashMap;
use std::sync::Arc;

use tls_client::Connector;

use crate::network::{Connecting, Connection, Origin, Traffic, Way};

/// Browsers' bound for HTTP/1.1.
const MAX_CONNECTIONS_PER_HOST: usize = 6;
/// Chromium's bound for all hosts together.
const MAX_CONNECTIONS: usize = 256;
/// Requests at once over a connection of HTTP/2: the number that most servers allow.
const MAX_STREAMS: usize = 100;

/// All hosts of a load.
pub struct Hosts {
    hosts: HashMap<Origin, Host>,
    tls: Connector,
    pub traffic: Arc<Traffic>,
    /// Connections that were begun.
    pub connections: usize,
}

#[derive(Default)]
struct Host {
    protocol: Protocol,
    /// Connections of HTTP/1.1 without a request.
    idle: Vec<Connection>,
    /// Connections that stand or are being made.
    open: usize,
    /// Requests under way over HTTP/2.
    streams: usize,
}

#[derive(Default)]
enum Protocol {
    /// The first connection has not negotiated its protocol yet.
    #[default]
    Unknown,
    Http1,
    Http2(Connection),
}

impl Hosts {
    pub fn new(tls: Connector) -> Hosts {
        Hosts {
            hosts: HashMap::new(),
            tls,
            traffic: Arc::default(),
            connections: 0,
        }
    }

    /// A way for a request, or `None` as long as it has to wait. With `is_public_only`, a new connection is
    /// made to no private address.
    pub fn way(&mut self, origin: &Origin, is_public_only: bool) -> Option<Way> {
        let open: usize = self.hosts.values().map(|it| it.open).sum();
        let host = self.hosts.entry(origin.clone()).or_default();
        if let Protocol::Http2(connection) = &host.protocol {
            match connection.shared() {
                Some(shared) if !shared.is_closed() => {
                    let has_room = host.streams < MAX_STREAMS;
                    host.streams += usize::from(has_room);
                    return has_room.then_some(Way::Kept(shared));
                }
                _ => *host = Host::default(),
            }
        }
        while let Some(connection) = host.idle.pop() {
            if !connection.is_closed() {
                return Some(Way::Kept(connection));
            }
            host.open -= 1;
        }
        // Until the first connection has negotiated a protocol, a second one may be of no use.
        let waits = origin.is_tls && host.open > 0 && matches!(host.protocol, Protocol::Unknown);
        if waits || host.open >= MAX_CONNECTIONS_PER_HOST || open >= MAX_CONNECTIONS {
            return None;
        }
        host.open += 1;
        self.connections += 1;
        Some(Way::New(Connecting {
            origin: origin.clone(),
            number: self.connections,
            tls: self.tls.clone(),
            traffic: self.traffic.clone(),
            is_public_only,
        }))
    }

    /// A new connection stands; with HTTP/2 it has other uses.
    pub fn connected(&mut self, origin: &Origin, shared: Option<Connection>) {
        let host = self.hosts.entry(origin.clone()).or_default();
        match shared {
            Some(connection) => {
                host.protocol = Protocol::Http2(connection);
                host.streams += 1;
            }
            None => host.protocol = Protocol::Http1,
        }
    }

    /// A request ended, and its connection may be used again.
    pub fn ended(&mut self, origin: &Origin, connection: Option<Connection>) {
        let host = self.hosts.entry(origin.clone()).or_default();
        match (&host.protocol, connection) {
            (Protocol::Http2(_), _) => host.streams = host.streams.saturating_sub(1),
            (_, Some(connection)) => host.idle.push(connection),
            (_, None) => host.open = host.open.saturating_sub(1),
        }
    }
}
