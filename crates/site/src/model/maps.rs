//! Variables that are defined from other values: `map`, `geo` and `split_clients`.

use std::sync::Arc;

use super::byte_map::ByteMap;
use super::network::Network;
use super::pattern::Pattern;
use super::template::{Template, Variable};

/// `map SOURCE $name { ... }`.
#[derive(Debug)]
pub struct Map {
    pub source: Template,
    /// Do not remember the result for the rest of the request.
    pub volatile: bool,
    /// Keys in lower case.
    pub exact: ByteMap<Template>,
    /// With `hostnames`: like in `ServerNames`, longest first.
    pub leading_wildcard: Vec<(Box<[u8]>, Template)>,
    pub trailing_wildcard: Vec<(Box<[u8]>, Template)>,
    pub hostnames: bool,
    pub patterns: Vec<(Arc<Pattern>, Template)>,
    pub default: Template,
}

/// `geo [$address] $name { ... }`.
#[derive(Debug)]
pub struct Geo {
    /// The variable with the address; `$remote_addr` by default.
    pub source: Variable,
    /// Networks, longest prefix first.
    pub networks: Vec<(Network, Box<[u8]>)>,
    /// `ranges`: first and last IPv4 address, sorted, not overlapping.
    pub ranges: Vec<(u32, u32, Box<[u8]>)>,
    pub default: Box<[u8]>,
    /// `proxy`, `proxy_recursive`.
    pub proxies: Vec<Network>,
    pub proxy_recursive: bool,
    /// A value that is no address, such as the client of a unix socket, counts as
    /// 255.255.255.255.
    pub has_place_for_others: bool,
    pub volatile: bool,
}

/// `split_clients SOURCE $name { ... }`.
#[derive(Debug)]
pub struct SplitClients {
    pub source: Template,
    /// Upper bound of the hash for each part, and its value.
    pub parts: Vec<(u32, Template)>,
}
