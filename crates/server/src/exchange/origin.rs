//! The origin of a request: from this machine or not, for whom, and under which of its names.
//! `content/own_machine.rs` decides by it.

use std::net::{IpAddr, SocketAddr};

use http_semantics::Initiator;
use http_semantics::initiator::tells_of_proxy;
use site::{ServerId, ServerNames};
use transport::facts::LocalAddress;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::request::Request;

impl Request {
    /// Was it made on this machine, by a client that speaks for itself? A proxy on this machine names
    /// its client in a field. Fields that were left out because of their names may have been such
    /// fields.
    pub fn is_made_here(&self) -> bool {
        let facts = self.received.connection();
        let is_peer_here = match (facts.peer, &facts.local) {
            (None, _) => true,
            (Some(peer), local) => {
                let peer = peer.ip().to_canonical();
                let is_own = |own: &SocketAddr| own.ip().to_canonical() == peer;
                peer.is_loopback() || matches!(local, LocalAddress::Ip(own) if is_own(own))
            }
        };
        is_peer_here
            && facts.proxy.is_none()
            && self.received.head().line.ignored_fields == 0
            && !self
                .received
                .head()
                .fields()
                .any(|(name, _)| tells_of_proxy(name))
    }

    /// Was it made on this machine, and by no browser that a foreign page may have led here?
    pub fn is_of_own_program(&self) -> bool {
        self.is_made_here()
            && match self.initiator() {
                Initiator::Program => true,
                Initiator::OwnSite | Initiator::Unknown => self.has_own_host(),
                Initiator::OtherSite => false,
            }
    }

    /// Returns on whose behalf the client sent it, by its fields.
    pub fn initiator(&self) -> Initiator {
        Initiator::of(
            self.received.head().view(),
            self.received.host(),
            self.received.host_port(),
        )
    }

    /// Is the host one that leads here by right? A foreign page may have a name that leads to this
    /// machine when the browser asks for it a second time (DNS rebinding). Its requests then have that
    /// name as their host. Names of other servers do not count: these may be of other people.
    pub fn has_own_host(&self) -> bool {
        let host: &[u8] = self.received.host();
        if host.is_empty() || host == b"localhost" || host.ends_with(b".localhost") {
            return true;
        }
        let address = host
            .strip_prefix(b"[")
            .and_then(|host| host.strip_suffix(b"]"));
        let text = std::str::from_utf8(address.unwrap_or(host));
        if text.is_ok_and(|text| text.parse::<IpAddr>().is_ok()) {
            return true;
        }
        is_server_name(&self.configuration, self.route.server(), host)
    }
}

/// Is the host a name of the server? A visitor who invents hosts finds few of these.
pub fn is_server_name(configuration: &ActiveConfiguration, server: ServerId, host: &[u8]) -> bool {
    let mut listeners = configuration.site.http.listeners.iter();
    listeners.any(|listener| is_name_of(server, &listener.names, host))
}

/// Does a `server_name` say that the host is the server's? One that ends with `*` does not, nor does a
/// pattern: a stranger may own a domain that fits it.
fn is_name_of(server: ServerId, names: &ServerNames, host: &[u8]) -> bool {
    let mut wildcards = names.leading_wildcard.iter();
    names.exact.get(host) == Some(&server)
        || wildcards.any(|(ending, of)| *of == server && host.ends_with(ending))
}
