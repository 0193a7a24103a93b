//! The keys to remove from a zone: what a request to purge names, and what a write makes out of
//! date (RFC 9111 §4.4). `purge` removes it.

use std::sync::Arc;
use std::time::Duration;

use cache_decision::address;
use http_cache::Zone;
use site::CacheRules;

use crate::exchange::request::Request;
use crate::exchange::variable;

/// What a request to purge is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgedKeys {
    One(Vec<u8>),
    /// All that begin so.
    Prefix(Vec<u8>),
    /// All that is stored for an address, by whatever keys.
    Address(Vec<u8>),
    /// The same for all addresses that begin so.
    AddressPrefix(Vec<u8>),
    /// All of the zone.
    Everything,
}

impl PurgedKeys {
    /// A key that ends in `*` means all that begin with what stands before.
    fn of(mut key: Vec<u8>) -> PurgedKeys {
        match key.pop_if(|last| *last == b'*') {
            Some(_) => PurgedKeys::Prefix(key),
            None => PurgedKeys::One(key),
        }
    }

    /// For people.
    pub fn shown(&self) -> Vec<u8> {
        match self {
            PurgedKeys::One(text) | PurgedKeys::Address(text) => text.clone(),
            PurgedKeys::Prefix(start) | PurgedKeys::AddressPrefix(start) => {
                [start, &b"*"[..]].concat()
            }
            PurgedKeys::Everything => b"*".to_vec(),
        }
    }
}

/// What a request to purge is about, as the rules have it.
pub fn purged_keys(request: &mut Request, rules: &CacheRules) -> Vec<PurgedKeys> {
    match &rules.shared {
        _ if rules.purges_everything => vec![PurgedKeys::Everything],
        Some(_) => vec![address_of(request, rules)],
        None => keys_of_reads(request, rules),
    }
}

/// What is stored for a URL, whatever the visitor's class, cookies and scheme: an application knows one
/// scheme, and the proxy in front of it may speak another. As elsewhere, `*` at the end of the address
/// means all that begin so.
fn address_of(request: &Request, rules: &CacheRules) -> PurgedKeys {
    let mut address = address::of_request(&request.host, request.received_target(), rules);
    match address.pop_if(|last| *last == b'*') {
        Some(_) => PurgedKeys::AddressPrefix(address),
        None => PurgedKeys::Address(address),
    }
}

/// What a purge is about: the page as GET and HEAD have stored it.
fn keys_of_reads(request: &mut Request, rules: &CacheRules) -> Vec<PurgedKeys> {
    let mut keys = vec![PurgedKeys::of(key_of_get(request, rules))];
    let of_head = PurgedKeys::of(key_of(request, rules, "HEAD"));
    if !keys.contains(&of_head) {
        keys.push(of_head);
    }
    keys
}

/// The key that a GET for the same target has.
fn key_of_get(request: &mut Request, rules: &CacheRules) -> Vec<u8> {
    key_of(request, rules, "GET")
}

/// The key that the same request has with another method.
fn key_of(request: &mut Request, rules: &CacheRules, method: &'static str) -> Vec<u8> {
    let method = request.method_override.replace(method);
    // What maps gave for the method that came is not what they give for this one.
    let maps = std::mem::take(&mut request.extras.map_values);
    let key = variable::evaluate(request, &rules.key);
    request.extras.map_values = maps;
    request.method_override = method;
    key
}

/// What a write removes once it has succeeded.
pub struct Invalidation<'a> {
    pub zone: &'a Arc<Zone>,
    pub what: PurgedKeys,
    /// How often anybody's write may do so; `None`: always.
    pub pause: Option<Duration>,
    /// Answers that there is no such page go as well: the write may have made one.
    pub drops_not_found: bool,
}

/// Writes remove a page no more often than this, even if it is fresh for longer.
const LONGEST_INVALIDATION_PAUSE: Duration = Duration::from_secs(10);

/// What a write removes: what GET has stored for its target. Where anybody may write and
/// pages are shared (`cache_shared`), once in a page's lifetime: a flood of writes would
/// otherwise keep the page out of the cache.
pub fn invalidation<'a>(
    request: &mut Request,
    rules: &CacheRules,
    zone: &'a Arc<Zone>,
) -> Invalidation<'a> {
    let Some(shared) = &rules.shared else {
        return Invalidation {
            zone,
            what: PurgedKeys::One(key_of_get(request, rules)),
            pause: None,
            drops_not_found: false,
        };
    };
    let lifetime = rules
        .valid
        .iter()
        .find(|rule| rule.statuses.is_empty() || rule.statuses.contains(&200))
        .map_or(LONGEST_INVALIDATION_PAUSE, |rule| rule.lifetime);
    Invalidation {
        zone,
        what: PurgedKeys::Address(address::of_request(
            &request.host,
            request.received_target(),
            rules,
        )),
        pause: Some(lifetime.min(LONGEST_INVALIDATION_PAUSE)),
        drops_not_found: shared.not_found.is_some(),
    }
}
