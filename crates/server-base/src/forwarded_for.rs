//! The address that a chain of proxies reports (X-Forwarded-For), as far as each of them is
//! trusted.

use std::net::{IpAddr, SocketAddr};

use site::Network;

/// The address that `chain` (the values of X-Forwarded-For, in order) gives for
/// a peer at `address`: the last one, or with `recursive` the last that is not
/// trusted itself. `address` again if it is not trusted or the chain is empty.
pub fn forwarded_address(
    address: Option<IpAddr>,
    chain: &[&[u8]],
    trusted: &[Network],
    recursive: bool,
) -> Option<IpAddr> {
    let peer = address.map(|address| SocketAddr::new(address, 0));
    walk(peer, chain, trusted, recursive)
        .map(|found| found.ip())
        .or(address)
}

/// Is `address` in one of these networks?
pub fn is_trusted(address: Option<IpAddr>, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// Goes back through the chain while the sender of each step is trusted;
/// `None` if not a single step can be taken.
pub fn walk(
    peer: Option<SocketAddr>,
    chain: &[&[u8]],
    trusted: &[Network],
    recursive: bool,
) -> Option<SocketAddr> {
    let mut sender = peer.map(|peer| peer.ip());
    let mut found = None;
    let steps = chain.iter().rev().flat_map(|value| {
        let blank = |byte: &u8| matches!(byte, b',' | b' ');
        let mut texts = value
            .rsplit(blank)
            .filter(|text| !text.is_empty())
            .peekable();
        // An empty field ends the chain, like an unreadable one.
        let nothing: Option<&[u8]> = texts.peek().is_none().then_some(&[]);
        texts.chain(nothing)
    });
    for text in steps {
        if !is_trusted(sender, trusted) {
            break;
        }
        let Some(address) = parse_address(text) else {
            break;
        };
        found = Some(address);
        sender = Some(address.ip());
        if !recursive {
            break;
        }
    }
    found
}

/// An address with or without a port; IPv6 with one is in brackets. Without a
/// port it is 0.
fn parse_address(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, 0));
    }
    text.parse::<SocketAddr>()
        .ok()
        .filter(|address| address.port() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: [u8; 4], prefix_bits: u8) -> Network {
        Network::Block {
            address: address.into(),
            prefix_bits,
        }
    }

    #[test]
    fn proxies_are_believed_as_far_as_they_are_trusted() {
        let trusted = [network([127, 0, 0, 0], 8), network([10, 0, 0, 0], 8)];
        #[rustfmt::skip]
        let cases = [
            ("untrusted peer", "192.0.2.9", &["192.0.2.1"][..], true, None),
            ("one address", "127.0.0.1", &["192.0.2.1"], false, Some("192.0.2.1:0")),
            ("with a port", "127.0.0.1", &["192.0.2.1:8080"], false, Some("192.0.2.1:8080")),
            ("IPv6", "127.0.0.1", &["2001:db8::1"], false, Some("[2001:db8::1]:0")),
            ("IPv6 with a port", "127.0.0.1", &["[2001:db8::1]:8080"], false, Some("[2001:db8::1]:8080")),
            ("port 0 is no port", "127.0.0.1", &["192.0.2.1:0"], false, None),
            ("the last one", "127.0.0.1", &["192.0.2.1, 192.0.2.2"], false, Some("192.0.2.2:0")),
            ("the last field", "127.0.0.1", &["192.0.2.1", "192.0.2.2"], false, Some("192.0.2.2:0")),
            ("blanks and commas", "127.0.0.1", &["192.0.2.1 ,, "], false, Some("192.0.2.1:0")),
            (
                "back to the first untrusted", "127.0.0.1", &["192.0.2.1, 192.0.2.2, 10.0.0.3"], true,
                Some("192.0.2.2:0"),
            ),
            ("across fields", "127.0.0.1", &["192.0.2.1", "10.0.0.2", "10.0.0.3"], true, Some("192.0.2.1:0")),
            ("all trusted", "127.0.0.1", &["10.0.0.2, 10.0.0.3"], true, Some("10.0.0.2:0")),
            ("stops at rubbish", "127.0.0.1", &["192.0.2.1, rubbish, 10.0.0.3"], true, Some("10.0.0.3:0")),
            ("an empty field", "127.0.0.1", &["192.0.2.1", " , "], false, None),
            ("only rubbish", "127.0.0.1", &["rubbish"], true, None),
            ("nothing", "127.0.0.1", &[], true, None),
            ("mapped peer", "::ffff:127.0.0.1", &["192.0.2.1"], false, Some("192.0.2.1:0")),
        ];
        for (name, peer, chain, recursive, wanted) in cases {
            let peer: SocketAddr = SocketAddr::new(peer.parse().unwrap(), 1);
            let chain: Vec<&[u8]> = chain.iter().map(|text| text.as_bytes()).collect();
            let wanted = wanted.map(|text| text.parse().unwrap());
            assert_eq!(
                walk(Some(peer), &chain, &trusted, recursive),
                wanted,
                "{name}"
            );
        }
        assert_eq!(walk(None, &[b"192.0.2.1"], &trusted, false), None);
        let unix = walk(None, &[b"192.0.2.1"], &[Network::Unix], false);
        assert_eq!(unix, Some("192.0.2.1:0".parse().unwrap()));
        let peer = Some("192.0.2.9".parse().unwrap());
        assert_eq!(
            forwarded_address(peer, &[b"192.0.2.1"], &trusted, false),
            peer
        );
    }
}
