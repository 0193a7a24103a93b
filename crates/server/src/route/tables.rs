//! Variables whose value is looked up by another's: `map`, `geo`, `split_clients`.

use std::net::{IpAddr, Ipv4Addr};

use site::{Geo, Map, Network, SplitClients, Template};

use crate::exchange::reply::ReplyHead;
use crate::exchange::request::Request;
use crate::exchange::variable::{append_sent, write_sent};
use crate::exchange::variable_table::Tables;
use crate::route::pattern;
use server_base::forwarded_for;

/// The address that nginx assumes for a client that has none.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::BROADCAST);

/// The functions that evaluate variables of `map`, `geo` and `split_clients`.
pub const TABLES: Tables = Tables {
    map: write_map,
    geo: write_geo,
    split_clients: write_split,
};

/// `map`: exact values, host name wildcards, patterns, default.
fn write_map(request: &Request, sent: Option<&ReplyHead>, map: &Map, out: &mut Vec<u8>) {
    let mut key = Vec::new();
    append_sent(request, sent, &map.source, &mut key);
    let found = find_in_map(request, map, &key);
    append_sent(request, sent, found, out);
}

fn find_in_map<'m>(request: &Request, map: &'m Map, key: &[u8]) -> &'m Template {
    let lower = key.to_ascii_lowercase();
    let key_name = if map.hostnames {
        lower.strip_suffix(b".").unwrap_or(&lower)
    } else {
        &lower
    };
    if let Some(value) = map.exact.get(key_name) {
        return value;
    }
    if map.hostnames {
        let by_suffix = |(suffix, _): &&(Box<[u8]>, Template)| {
            key_name.len() > suffix.len() && key_name.ends_with(suffix)
        };
        let by_prefix = |(prefix, _): &&(Box<[u8]>, Template)| {
            key_name.len() > prefix.len() && key_name.starts_with(prefix)
        };
        if let Some((_, value)) = map.leading_wildcard.iter().find(by_suffix) {
            return value;
        }
        if let Some((_, value)) = map.trailing_wildcard.iter().find(by_prefix) {
            return value;
        }
    }
    // Like in nginx, no pattern matches an empty value, not even `~^$`.
    for (pattern, value) in map.patterns.iter().filter(|_| !key.is_empty()) {
        if pattern::matches(request, pattern, key) {
            return value;
        }
    }
    &map.default
}

/// `geo`: the longest network that holds the address.
fn write_geo(request: &Request, sent: Option<&ReplyHead>, geo: &Geo, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    write_sent(request, sent, &geo.source, &mut text);
    let mut address = std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.parse::<IpAddr>().ok());
    if address.is_none() && matches!(text.len(), 4 | 16) && !text.starts_with(b"unix:") {
        address = binary_address(&text);
    }
    if !geo.proxies.is_empty() {
        let chain = request.received.head().field_all(b"x-forwarded-for");
        let chain: Vec<&[u8]> = chain.collect();
        address =
            forwarded_for::forwarded_address(address, &chain, &geo.proxies, geo.proxy_recursive);
    }
    let others = geo.has_place_for_others.then_some(NO_ADDRESS);
    let address = address.map(|address| address.to_canonical()).or(others);
    if !geo.ranges.is_empty() {
        let found = match address {
            Some(IpAddr::V4(address)) => {
                let number = u32::from(address);
                // Sorted and apart: the last that begins at or before it, or none.
                let after = geo.ranges.partition_point(|(first, ..)| *first <= number);
                let nearest = after.checked_sub(1).and_then(|at| geo.ranges.get(at));
                nearest.filter(|(_, last, _)| *last >= number)
            }
            _ => None,
        };
        out.extend_from_slice(found.map_or(&geo.default, |(_, _, value)| value));
        return;
    }
    let holds = |network: &Network| match network {
        // `*_cache_purge METHOD from unix:`
        Network::Unix => text == b"unix:",
        _ => address.is_some() && network.contains(address),
    };
    let found = geo.networks.iter().find(|(network, _)| holds(network));
    out.extend_from_slice(found.map_or(&geo.default, |(_, value)| value));
}

fn binary_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(octets));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// `split_clients`: MurmurHash2 of the source against the parts' bounds, as
/// nginx documents it.
fn write_split(
    request: &Request,
    sent: Option<&ReplyHead>,
    split: &SplitClients,
    out: &mut Vec<u8>,
) {
    let mut source = Vec::new();
    append_sent(request, sent, &split.source, &mut source);
    let hash = murmur2(&source);
    for (bound, value) in &split.parts {
        if *bound == u32::MAX || hash < *bound {
            append_sent(request, sent, value, out);
            return;
        }
    }
}

/// MurmurHash2 by Austin Appleby (public domain algorithm), seed = length.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut blocks = data.chunks_exact(4);
    for block in &mut blocks {
        let mut word = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        word = word.wrapping_mul(M);
        word ^= word >> 24;
        word = word.wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ word;
    }
    let rest = blocks.remainder();
    if !rest.is_empty() {
        for (index, &byte) in rest.iter().enumerate() {
            hash ^= u32::from(byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}
