//! A received request: its connection, its head, and the facts about both that trusted proxies
//! send. The stages read it; only `service` and the addresses of trusted proxies complete it before
//! they begin. A request that the server makes itself gets one of its own.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http_semantics::{Host, RequestHead};
use site::ServerId;
use transport::facts::ConnectionFacts;
use transport::service::ReceivedHead;
use transport::spare_fields;

use crate::exchange::host_name::HostName;
use server_base::sampling::Sample;

/// A request head with the facts of its connection.
pub struct ReceivedRequest {
    connection: Arc<ConnectionFacts>,
    head: RequestHead,
    /// Host without port, lower case; empty if the client named none.
    host: HostName,
    /// `http` or `https`: the scheme of the connection, or the one that a trusted proxy sends.
    scheme: &'static str,
    /// The client's address: the peer's, or the one that a trusted proxy sends.
    client: Option<SocketAddr>,
    /// Unix milliseconds of the first byte.
    started_at: u64,
    /// If it is one of those that are looked at more closely.
    sample: Option<Sample>,
    nth_on_connection: u64,
    is_pipelined: bool,
    /// It came ahead of the end of the TLS handshake (RFC 8470).
    is_early: bool,
}

impl ReceivedRequest {
    /// Creates a request from the head that a transport has received.
    #[inline(always)]
    pub fn new(received: ReceivedHead, sample: Option<Sample>) -> ReceivedRequest {
        let ReceivedHead {
            head,
            connection,
            started_at,
            nth_on_connection,
            is_pipelined,
            is_early,
            bytes: _,
        } = received;
        ReceivedRequest {
            scheme: connection.scheme,
            client: connection.peer,
            connection,
            head,
            host: HostName::default(),
            started_at,
            sample,
            nth_on_connection,
            is_pipelined,
            is_early,
        }
    }

    /// That of a request which stands in the place of this one: host, scheme and client stay.
    pub fn remade(
        &self,
        connection: Arc<ConnectionFacts>,
        head: RequestHead,
        now: u64,
    ) -> ReceivedRequest {
        ReceivedRequest {
            connection,
            head,
            host: self.host.clone(),
            scheme: self.scheme,
            client: self.client,
            started_at: now,
            sample: None,
            nth_on_connection: 1,
            is_pipelined: false,
            is_early: false,
        }
    }

    /// Replaces the client's address.
    pub fn set_client(&mut self, client: Option<SocketAddr>) {
        self.client = client;
    }

    pub fn connection(&self) -> &Arc<ConnectionFacts> {
        &self.connection
    }

    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// Returns path and query as the client sent them: `$request_uri`. A target with scheme and
    /// authority (RFC 9112 §3.2.2) gives the part behind these, like in nginx.
    pub fn target(&self) -> &[u8] {
        self.head.target()
    }

    /// A request line was understood: without one there is nothing but its bytes.
    pub fn has_line(&self) -> bool {
        !self.head.method().is_empty()
    }

    pub fn host(&self) -> &[u8] {
        &self.host
    }

    /// The port that the client named.
    pub fn host_port(&self) -> Option<u16> {
        self.host.port()
    }

    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    pub fn client(&self) -> Option<SocketAddr> {
        self.client
    }

    pub fn client_ip(&self) -> Option<IpAddr> {
        self.client.map(|address| address.ip())
    }

    pub fn started_at(&self) -> u64 {
        self.started_at
    }

    pub fn sample(&self) -> Option<Sample> {
        self.sample
    }

    pub fn nth_on_connection(&self) -> u64 {
        self.nth_on_connection
    }

    pub fn is_pipelined(&self) -> bool {
        self.is_pipelined
    }

    pub fn is_early(&self) -> bool {
        self.is_early
    }

    /// The head names this host.
    pub fn set_host(&mut self, host: HostName) {
        self.host = host;
    }

    /// Sets host and target of a request whose target has scheme and authority: its Host field is
    /// ignored (RFC 9112 §3.2.2). Every reader of host or target, including the application, sees
    /// these values.
    pub fn set_target(&mut self, authority: &[u8], target: &[u8]) {
        self.head.set_host(authority);
        self.head.set_target(target);
    }

    /// Puts these cookies into the place of those that the client sent.
    pub fn set_cookies(&mut self, cookies: &[u8]) {
        self.head.set_cookies(cookies);
    }

    /// Puts another head into the place of this one: host, scheme and client stay.
    pub fn replace_head(&mut self, head: RequestHead) {
        self.head = head;
    }

    /// Sets the scheme that a trusted proxy sends.
    pub fn believe_scheme(&mut self, scheme: &'static str) {
        self.scheme = scheme;
    }

    /// Sets the host that a trusted proxy sends as `text`.
    pub fn believe_host(&mut self, text: &[u8], host: &Host<'_>) {
        self.host.set(text, host);
        self.head.set_host(text);
    }

    /// Sets the client's address that a trusted proxy sends.
    pub fn believe_client(&mut self, client: SocketAddr) {
        self.client = Some(client);
    }

    /// The server of the host, see [`HostName::server_in`].
    pub fn server_in(&mut self, serial: u64, find: impl FnOnce(&[u8]) -> ServerId) -> ServerId {
        self.host.server_in(serial, find)
    }

    /// Its host, for the next request of the connection.
    pub fn hand_on_host(&mut self) -> HostName {
        self.host.hand_on()
    }
}

impl Drop for ReceivedRequest {
    fn drop(&mut self) {
        spare_fields::give(std::mem::take(&mut self.head.fields));
    }
}
