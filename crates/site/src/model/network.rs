//! A block of client addresses, as in `allow` and `geo`.

use std::net::IpAddr;

/// An address block: `allow`, `deny`, `geo`, `set_real_ip_from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    All,
    /// `unix:`
    Unix,
    Block {
        address: IpAddr,
        prefix_bits: u8,
    },
}

impl Network {
    /// Does it contain `address`? `None` is the client of a unix socket. IPv4-mapped IPv6
    /// addresses count as IPv4.
    pub fn contains(&self, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Network::All, _) => true,
            (Network::Unix, address) => address.is_none(),
            (Network::Block { .. }, None) => false,
            (
                Network::Block {
                    address: network,
                    prefix_bits,
                },
                Some(address),
            ) => match (network, address.to_canonical()) {
                (IpAddr::V4(network), IpAddr::V4(address)) => {
                    let bits = u32::from(*prefix_bits).min(32);
                    bits == 0 || (u32::from(*network) ^ u32::from(address)) >> (32 - bits) == 0
                }
                (IpAddr::V6(network), IpAddr::V6(address)) => {
                    let bits = u32::from(*prefix_bits).min(128);
                    bits == 0 || (u128::from(*network) ^ u128::from(address)) >> (128 - bits) == 0
                }
                _ => false,
            },
        }
    }
}
