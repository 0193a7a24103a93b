//! Networks as Apache names them: `10.1`, `10.1.0.0/16`, `10.1.0.0/255.255.0.0`, `2001:db8::/32`.

use std::net::{IpAddr, Ipv4Addr};

/// A network, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Parses a network; `None` if the text is not a network.
    pub fn of(text: &str) -> Option<Network> {
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let (address, whole) = match address.parse::<IpAddr>() {
            Ok(address @ IpAddr::V4(_)) => (address, 32),
            Ok(address) => (address, 128),
            Err(_) => short(address)?,
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match mask {
            None => whole,
            Some(mask) => match mask.parse::<u32>() {
                Ok(bits) => Some(bits).filter(|bits| *bits <= most)?,
                Err(_) => {
                    let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
                    let bits = mask.leading_ones();
                    (bits + mask.trailing_zeros().min(32) >= 32 && address.is_ipv4())
                        .then_some(bits)?
                }
            },
        };
        Some(Network { address, bits })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - self.bits).unwrap_or(0);
                (u32::from(own) ^ u32::from(other)) & mask == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
                (u128::from(own) ^ u128::from(other)) & mask == 0
            }
            _ => false,
        }
    }
}

/// `10.1` and `10.1.`
fn short(text: &str) -> Option<(IpAddr, u32)> {
    let parts: Vec<&str> = text.trim_end_matches('.').split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    let mut bytes = [0; 4];
    for (byte, part) in bytes.iter_mut().zip(&parts) {
        *byte = part.parse().ok()?;
    }
    let bits = u32::try_from(parts.len()).ok()? * 8;
    Some((Ipv4Addr::from(bytes).into(), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_apache_reads_them() {
        for (network, inside, outside) in [
            ("10.1", "10.1.2.3", "10.2.2.3"),
            ("10.1.", "10.1.2.3", "10.2.2.3"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1.0.0/16", "10.1.2.3", "10.2.0.1"),
            ("10.1.0.0/255.255.0.0", "10.1.2.3", "10.2.0.1"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            ("127.0.0.1", "::ffff:127.0.0.1", "::1"),
        ] {
            let network = Network::of(network).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{outside}");
        }
        for text in ["", "x", "10.1/33", "1.2.3.4.5", "10.0.0.0/255.0.255.0"] {
            assert_eq!(Network::of(text), None, "{text}");
        }
    }
}
