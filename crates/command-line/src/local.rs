//! Whether an address is of this machine: a load test of a foreign server is an attack.

use std::net::{IpAddr, UdpSocket};

/// Loopback, or an address of one of this machine's interfaces: only to such a one can a socket be
/// bound.
#[must_use]
pub fn is_this_machine(address: IpAddr) -> bool {
    if address.is_loopback() {
        return true;
    }
    !address.is_unspecified() && !address.is_multicast() && UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_addresses_are_this_machine() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("192.0.2.1", false),
            ("224.0.0.1", false),
            ("0.0.0.0", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(
                is_this_machine(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }
}
