//! Which listener of the configuration in force a connection belongs to.

use site::{ListenAddress, ListenerId};
use transport::facts::LocalAddress;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::host_name::HostName;

/// State of a connection that is remembered from one of its requests to the next.
pub struct Memory {
    /// The address of the socket that it came by.
    address: ListenAddress,
    /// Its listener in the configuration of this serial number.
    found: Option<(u64, ListenerId)>,
    /// The host that the last request named.
    pub host: HostName,
}

impl Memory {
    pub fn new(address: ListenAddress) -> Memory {
        Memory {
            address,
            found: None,
            host: HostName::default(),
        }
    }

    /// The listener; `None` if a reload has taken it away.
    #[inline]
    pub fn listener(
        &mut self,
        configuration: &ActiveConfiguration,
        local: &LocalAddress,
    ) -> Option<ListenerId> {
        match self.found {
            Some((serial, listener)) if serial == configuration.serial => Some(listener),
            _ => {
                let listeners = &configuration.site.http.listeners;
                let index = position_of(listeners, local, &self.address)?;
                let (_, listener) = self.found.insert((configuration.serial, ListenerId(index)));
                Some(*listener)
            }
        }
    }
}

/// The listener for a connection that came to `local` by the socket of `place`: a
/// wildcard's socket also takes connections to addresses of its port that have a `listen`
/// of their own.
fn position_of(
    listeners: &[site::Listener],
    local: &LocalAddress,
    place: &site::ListenAddress,
) -> Option<usize> {
    let is_wildcard = matches!(place, site::ListenAddress::Tcp(address) | site::ListenAddress::Udp(address)
            if address.ip().is_unspecified());
    if is_wildcard && let LocalAddress::Ip(local) = local {
        let local = std::net::SocketAddr::new(local.ip().to_canonical(), local.port());
        let own = listeners
            .iter()
            .position(|listener| match (&listener.address, place) {
                (site::ListenAddress::Tcp(own), site::ListenAddress::Tcp(_))
                | (site::ListenAddress::Udp(own), site::ListenAddress::Udp(_)) => *own == local,
                _ => false,
            });
        if own.is_some() {
            return own;
        }
    }
    listeners
        .iter()
        .position(|listener| listener.address == *place)
}

#[cfg(test)]
mod tests {
    use site::ServerId;

    use super::*;

    #[test]
    fn a_wildcard_socket_serves_the_listeners_of_its_addresses() {
        let tcp = |text: &str| site::ListenAddress::Tcp(text.parse().unwrap());
        let listener = |text| site::Listener {
            address: tcp(text),
            options: site::ListenOptions::default(),
            default_server: ServerId(0),
            names: site::ServerNames::default(),
        };
        let listeners = [
            "0.0.0.0:80",
            "10.0.0.1:80",
            "[::]:80",
            "[::1]:80",
            "10.0.0.1:81",
        ]
        .map(listener);
        for (local, place, wanted) in [
            ("10.0.0.1:80", "0.0.0.0:80", Some("10.0.0.1:80")),
            ("10.0.0.2:80", "0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:80", "[::]:80", Some("[::1]:80")),
            // ipv6only=off
            ("[::ffff:10.0.0.1]:80", "[::]:80", Some("10.0.0.1:80")),
            ("[::2]:80", "[::]:80", Some("[::]:80")),
            ("10.0.0.1:81", "10.0.0.1:81", Some("10.0.0.1:81")),
            // Taken away by a reload.
            ("10.0.0.3:82", "10.0.0.3:82", None),
        ] {
            let local = LocalAddress::Ip(local.parse().unwrap());
            let found = position_of(&listeners, &local, &tcp(place));
            assert_eq!(
                found.map(|index| listeners[index].address.clone()),
                wanted.map(tcp),
                "{local:?}"
            );
        }
    }
}
