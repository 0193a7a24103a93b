//! Fetches from PHP pools whose pages are learned (`cache_learn`).

use std::sync::Arc;

use bytes::Bytes;
use http_cache::Zone;
use http_semantics::{RequestHead, same_name};
use learning::{LearnedPool, Visit};
use shared_request::cookies;
use site::{CacheRules, LearnMode, Pass, PassTarget};

use crate::exchange::request::{Method, Request};

/// Begins a fetch for which PHP reports its reads, with the visitor's own request. Costs one comparison if the pool is not
/// learned.
pub fn begin(request: &Request, pass: &Pass) -> Option<learning::Fetch> {
    let pool = pool(request, pass)?;
    Some(pool.begin(visit(request, pool)))
}

/// Begins the visit of a request whose cookies are sent to PHP.
pub fn visit(request: &Request, pool: &LearnedPool) -> Option<Visit> {
    let values = cookie_values(request.received.head());
    pool.sessions().visit(values)
}

/// Does the request send a cookie that may be a visitor's session?
pub fn has_session(request: &Request) -> bool {
    cookie_values(request.received.head()).any(learning::may_be_session)
}

/// The values of the request's cookies.
fn cookie_values(head: &RequestHead) -> impl Iterator<Item = &[u8]> {
    cookies::pairs(head.view()).map(|(_, value)| value)
}

/// Begins a write of a visitor, whoever answers it: the visitor's own copies are not shown from now on, and those that are
/// made meanwhile not after its end. `None`: it writes nothing, or no cookie of it may be a session.
pub fn begin_write(request: &Request) -> Option<Visit> {
    if matches!(request.route.method, Method::Get | Method::Head) {
        return None;
    }
    let pools = request.configuration.live.groups.learned()?;
    let sessions = pools.learning().sessions();
    let visit = sessions.visit(cookie_values(request.received.head()))?;
    visit.note_write();
    Some(visit)
}

/// The answer sets a cookie: the visitor's own copies are of the time before.
pub fn note_cookies(fetch: Option<&learning::Fetch>, fields: &[(Bytes, Bytes)]) {
    if let Some(visit) = fetch.and_then(learning::Fetch::visit)
        && fields
            .iter()
            .any(|(name, _)| same_name(name, b"set-cookie"))
    {
        visit.note_write();
    }
}

/// May the visitor have copies that are kept while nothing changes (`cache_private`, `cache_learn`)? Other nodes run
/// requests that are not heard here, and applications may read anything of a client's certificate.
pub fn has_own_copies(request: &Request, pass: &Pass, rules: &CacheRules, zone: &Zone) -> bool {
    let learn = rules.learn.as_ref();
    let keeps = learn.is_some_and(|learn| learn.mode == LearnMode::On);
    let tls = request.received.connection().tls.as_ref();
    keeps
        && rules.private.is_some()
        && matches!(request.route.method, Method::Get | Method::Head)
        && session_values(request.received.head(), rules)
            .next()
            .is_some()
        && tls.is_none_or(|tls| tls.client_certificates.is_empty())
        && request.configuration.live.nodes.is_none()
        && zone.trusts_guards()
        && pool(request, pass).is_some()
}

/// The values of the cookies by which the visitor's copies are kept.
pub fn session_values<'r>(
    head: &'r RequestHead,
    rules: &'r CacheRules,
) -> impl Iterator<Item = &'r [u8]> {
    let names = rules.private.as_ref().map(|private| &private.cookies);
    let pairs = cookies::pairs(head.view());
    pairs
        .filter(move |(name, _)| names.is_some_and(|names| cookies::is_named(name, names)))
        .map(|(_, value)| value)
        .filter(|value| learning::may_be_session(value))
}

/// The pool whose pages are learned that answers there.
pub fn pool<'a>(request: &'a Request, pass: &Pass) -> Option<&'a Arc<LearnedPool>> {
    let pools = request.configuration.live.groups.learned()?;
    match pass.target {
        PassTarget::Group(id) => pools.of_group(id),
        PassTarget::Variable(_) => None,
    }
}
