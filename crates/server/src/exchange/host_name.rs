//! The host of a request, remembered from one request of a connection to the next with the
//! results of parsing it.

use site::ServerId;

/// The host that a request is for. Most requests of a connection name the one that the
/// request before them did: it is handed on, so that it need not be parsed again.
/// Dereferences to the name without port, in lower case.
#[derive(Debug, Clone, Default)]
pub struct HostName {
    /// The received text in lower case; empty if the client named no host.
    received: Vec<u8>,
    name_len: usize,
    port: Option<u16>,
    /// The server it leads to, in the configuration of a serial number.
    server: Option<(u64, ServerId)>,
}

/// The longest name of the DNS (RFC 1035 §2.3.4).
const MAX_KEPT_HOST_BYTES: usize = 255;

impl HostName {
    /// Sets the name from a field; `host` is the parsed `received`.
    pub fn set(&mut self, received: &[u8], host: &http_semantics::Host<'_>) {
        self.received.clear();
        self.received.extend_from_slice(received);
        self.received.make_ascii_lowercase();
        self.name_len = host.name.len();
        self.port = host.port;
        self.server = None;
    }

    /// Does the name come from `field`, byte by byte?
    pub fn is_named_by(&self, field: &[u8]) -> bool {
        !field.is_empty() && self.received == field
    }

    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Hands the name on to the next request of the connection; a text longer than names is
    /// dropped, so that a connection at rest stays small.
    pub fn hand_on(&mut self) -> HostName {
        match self.received.capacity() <= MAX_KEPT_HOST_BYTES {
            true => std::mem::take(self),
            false => HostName::default(),
        }
    }

    /// The server in the configuration of this number, of which the connection has one
    /// listener; found the first time that it is asked for.
    pub fn server_in(&mut self, serial: u64, find: impl FnOnce(&[u8]) -> ServerId) -> ServerId {
        match self.server {
            Some((known, server)) if known == serial => server,
            _ => {
                let server = find(self);
                self.server = Some((serial, server));
                server
            }
        }
    }
}

impl std::ops::Deref for HostName {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.received.get(..self.name_len).unwrap_or_default()
    }
}
