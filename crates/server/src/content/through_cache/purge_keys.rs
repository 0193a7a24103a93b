//! The keys to remove from a zone: those that a request to purge names, and those that a write
//! makes out of date (RFC 9111 §4.4). `purge` removes them.

use std::sync::Arc;
use std::time::Duration;

use cache_decision::address;
use http_cache::Zone;
use site::CacheRules;

use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::exchange::variable;
use purge_order::Target;

/// Returns the targets of a request to purge, following the rules of its zone.
pub fn purge_targets(request: &Request, rules: &CacheRules) -> Vec<Target> {
    match &rules.shared {
        _ if rules.purges_everything => vec![Target::everything()],
        // The visitor's class, cookies and scheme do not count: an application knows one scheme,
        // and the proxy in front of it may speak another.
        Some(_) => vec![Target::address(address_of(&request.received, rules))],
        None => {
            let mut keys = vec![
                key_of(request, rules, "GET"),
                key_of(request, rules, "HEAD"),
            ];
            keys.dedup();
            keys.iter().map(|key| Target::key(key)).collect()
        }
    }
}

/// Returns the address under which the response to the request is stored.
pub fn address_of(received: &ReceivedRequest, rules: &CacheRules) -> Vec<u8> {
    address::of_request(received.host(), received.target(), rules)
}

/// The key that the same request has with another method.
fn key_of(request: &Request, rules: &CacheRules, method: &'static str) -> Vec<u8> {
    // Maps may depend on the method: the copy has none that were evaluated.
    let mut other = request.again();
    other.route.method_override = Some(method);
    other.cache.view = request.cache.view.clone();
    variable::evaluate(&other, &rules.key)
}

/// The zone and page that a write invalidates once it has succeeded.
pub struct Invalidation<'a> {
    pub zone: &'a Arc<Zone>,
    pub what: InvalidatedPage,
}

/// The page that a write removes.
pub enum InvalidatedPage {
    /// The page that is stored under this key.
    Key(Vec<u8>),
    /// The pages that are stored for this address, under all keys.
    Shared {
        address: Vec<u8>,
        /// How often writes of any client may remove it.
        pause: Duration,
        /// Answers that there is no such page go as well: the write may have made one.
        drops_not_found: bool,
    },
}

/// Writes remove a page no more often than this, even if it is fresh for longer.
const LONGEST_INVALIDATION_PAUSE: Duration = Duration::from_secs(10);

/// Returns the page that a write invalidates: the response that GET has stored for its target. If
/// any client may write and pages are shared (`cache_shared`), a page is removed at most once in
/// its lifetime: a flood of writes would otherwise keep it out of the cache.
pub fn invalidation<'a>(
    request: &Request,
    rules: &CacheRules,
    zone: &'a Arc<Zone>,
) -> Invalidation<'a> {
    let Some(shared) = &rules.shared else {
        let what = InvalidatedPage::Key(key_of(request, rules, "GET"));
        return Invalidation { zone, what };
    };
    let lifetime = rules
        .valid
        .iter()
        .find(|rule| rule.statuses.is_empty() || rule.statuses.contains(&200))
        .map_or(LONGEST_INVALIDATION_PAUSE, |rule| rule.lifetime);
    let what = InvalidatedPage::Shared {
        address: address_of(&request.received, rules),
        pause: lifetime.min(LONGEST_INVALIDATION_PAUSE),
        drops_not_found: shared.not_found.is_some(),
    };
    Invalidation { zone, what }
}
