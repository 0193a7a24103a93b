//! What is removed from a zone on a request's behalf: what a request to purge names, and what
//! a write has made out of date (RFC 9111 §4.4).

use std::sync::Arc;
use std::time::Duration;

use http_cache::{KeyRef, Millis, PurgeMode, PurgeTarget, Zone};
use site::{CacheRules, SharedRules};

use super::shared;
use crate::exchange::handled::Handled;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::variable;

/// What a request to purge is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgedKeys {
    One(Vec<u8>),
    /// All that begin so.
    Prefix(Vec<u8>),
    /// All that begin with one of these: a URL under each scheme, the one asked for first.
    Url([Vec<u8>; 2]),
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

    /// For people: without what stands behind the address in keys of several parts.
    pub fn shown(&self) -> Vec<u8> {
        match self {
            PurgedKeys::One(key) => key.clone(),
            PurgedKeys::Prefix(start) | PurgedKeys::Url([start, _]) => {
                match start.strip_suffix(b"\0") {
                    Some(url) => url.to_vec(),
                    None => [start, &b"*"[..]].concat(),
                }
            }
            PurgedKeys::Everything => b"*".to_vec(),
        }
    }

    /// Removes what is stored under them; how many responses.
    pub fn purge(&self, zone: &Zone, now: Millis) -> usize {
        let purge = |target| zone.purge(target, PurgeMode::Hard, now).responses;
        match self {
            PurgedKeys::One(key) => purge(PurgeTarget::Key(KeyRef::new(key))),
            PurgedKeys::Prefix(start) => purge(PurgeTarget::Prefix(start)),
            PurgedKeys::Url(starts) => starts
                .iter()
                .map(|start| purge(PurgeTarget::Prefix(start)))
                .sum(),
            PurgedKeys::Everything => purge(PurgeTarget::Everything),
        }
    }
}

/// Removes what is stored under `keys`, and says so.
pub fn purge(request: &Request, zone: &Zone, keys: &[PurgedKeys]) -> Handled {
    let now = Millis(request.now);
    let purged: usize = keys.iter().map(|keys| keys.purge(zone, now)).sum();
    if purged == 0 && !keys.contains(&PurgedKeys::Everything) {
        return Handled::Status(404);
    }
    let shown = keys.first().map(PurgedKeys::shown).unwrap_or_default();
    let body = format!(
        "<html>\r\n<head><title>Successful purge</title></head>\r\n<body bgcolor=\"white\">\r\n\
         <center><h1>Successful purge</h1><p>Key : {}</p></center>\r\n</body>\r\n</html>\r\n",
        String::from_utf8_lossy(&http_semantics::escape::escape_html(&shown))
    );
    Handled::Reply(Box::new(Reply::new(200, b"text/html", body)))
}

/// What a request to purge is about, as the rules have it.
pub fn purged_keys(request: &mut Request, rules: &CacheRules) -> Vec<PurgedKeys> {
    match &rules.shared {
        _ if rules.purges_everything => vec![PurgedKeys::Everything],
        Some(shared) => vec![url_keys(request, shared)],
        None => keys_of_reads(request, rules),
    }
}

/// What a write removes once it has succeeded.
pub struct Invalidation<'a> {
    pub zone: &'a Arc<Zone>,
    pub keys: Vec<Vec<u8>>,
    /// How often anybody's write may do so; `None`: always.
    pub pause: Option<Duration>,
    /// Answers that there is no such page go as well: the write may have made one.
    drops_not_found: bool,
}

/// The keys of all that is stored for a URL, whatever the visitor's class, cookies and scheme:
/// an application knows one scheme, and the proxy in front of it may speak another. As
/// elsewhere, `*` at the end of the address means all that begin so.
fn url_keys(request: &Request, rules: &SharedRules) -> PurgedKeys {
    let other = match request.scheme {
        "http" => "https",
        _ => "http",
    };
    PurgedKeys::Url([request.scheme, other].map(|scheme| {
        let mut start = Vec::new();
        shared::put_url(request, scheme, rules, &mut start);
        if start.ends_with(b"*\0") {
            start.truncate(start.len() - 2);
        }
        start
    }))
}

/// Nobody's writes remove a page more often than this, even if it is fresh for longer.
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
            keys: vec![key_of_get(request, rules)],
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
        keys: shared::keys_of_classes(request, shared),
        pause: Some(lifetime.min(LONGEST_INVALIDATION_PAUSE)),
        drops_not_found: shared.not_found.is_some(),
    }
}

impl Invalidation<'_> {
    /// Removes it.
    pub fn carry_out(&self, now: Millis) {
        if self.drops_not_found {
            let target = PurgeTarget::NotFound;
            self.zone.purge(target, PurgeMode::Hard, now);
        }
        for key in &self.keys {
            let key = KeyRef::new(key);
            let may = self
                .pause
                .is_none_or(|pause| self.zone.may_invalidate(&key, now, pause));
            if may {
                self.zone.purge(PurgeTarget::Key(key), PurgeMode::Hard, now);
            }
        }
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
