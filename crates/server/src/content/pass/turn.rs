//! The turn of a request at its upstream, if the group serves clients in turn (`php_concurrency`).

use std::borrow::Cow;

use bytes::Bytes;
use fair_queue::{Assessment, CrawlerName, NameEvidence, Turn, Visit};
use http_semantics::same_name;
use live_state::client_table::ClientTable;
use shared_request::{NamedCrawler, crawler_named};
use site::{Pass, PassTarget};
use upstream::{Class, Group};

use crate::exchange::page_name::page_and_agent;
use crate::exchange::request::Request;

/// The class of a request and its turn, as its group wants it.
pub fn of(request: &Request, group: &Group) -> (Class, Option<Turn>) {
    let class = request.class;
    if !group.has_turns() || class.is_background() {
        return (class, None);
    }
    let Some(assessed) = assessed(request) else {
        return (class, None);
    };
    let class = match (class, assessed.class) {
        // A crawler's parts of a page are no more urgent than its pages.
        (_, Class::Crawler) => Class::Crawler,
        (Class::Visitor, of_client) => of_client,
        (class, _) => class,
    };
    let mut turn = assessed.turn;
    let agent = request.received.head().field("user-agent");
    let latest = page_and_agent(&request.received, agent.unwrap_or_default());
    turn.request.latest = latest.into();
    turn.request.address = request.received.client_ip();
    (class, Some(turn))
}

/// Is the client a crawler, by its name or its behaviour? Always false unless the group serves clients
/// in turn.
pub fn is_crawler(request: &Request, pass: &Pass) -> bool {
    group_with_turns(request, pass).is_some()
        && !request.class.is_background()
        && assessed(request).is_some_and(|assessed| assessed.class == Class::Crawler)
}

/// Like [`is_crawler`], before it is known whether the upstream is asked: nothing is noted.
pub fn looks_like_crawler(request: &Request, pass: &Pass) -> bool {
    let clients = request.configuration.live.groups.clients();
    group_with_turns(request, pass).is_some()
        && clients.is_some_and(|clients| look(request, clients).class == Class::Crawler)
}

fn group_with_turns<'r>(request: &'r Request, pass: &Pass) -> Option<&'r Group> {
    let PassTarget::Group(id) = &pass.target else {
        return None;
    };
    let group = &*request.configuration.live.groups[id.0].group;
    group.has_turns().then_some(group)
}

/// Assesses the client by its behaviour, once for each request.
fn assessed(request: &Request) -> Option<Assessment> {
    if let Some(assessed) = request.values.read(|values| values.assessed.clone()) {
        return Some(assessed);
    }
    let clients = request.configuration.live.groups.clients()?;
    let assessed = match request.is_own_visit() {
        true => look(request, clients),
        false => with_visit(request, |visit| clients.assess(visit, request.now())),
    };
    request
        .values
        .write(|values| values.assessed = Some(assessed.clone()));
    Some(assessed)
}

/// Assesses the client without noting the request.
pub fn look(request: &Request, clients: &ClientTable) -> Assessment {
    with_visit(request, |visit| clients.look(visit, request.now()))
}

fn with_visit<T>(request: &Request, ask: impl FnOnce(&Visit<'_>) -> T) -> T {
    let head = request.received.head();
    let agent = head.field("user-agent").unwrap_or_default();
    let cookies = head.field_joined(b"cookie").unwrap_or(Cow::Borrowed(b""));
    ask(&Visit {
        address: request.received.client_ip(),
        agent,
        crawler: crawler_named(agent).map(|crawler| name_of(request, crawler)),
        cookies: &cookies,
        page: (request.received.host(), request.received.target()),
        writes: request.route.method.invalidates(),
    })
}

/// Returns the name of a crawler, and whether it is a search engine's own.
fn name_of(request: &Request, crawler: &'static NamedCrawler) -> CrawlerName {
    let checks = request.configuration.live.groups.crawler_checks();
    let evidence = checks.filter(|_| crawler.is_search_engine).map(|checks| {
        let of = (crawler.name, crawler.domains);
        checks.evidence(request.received.client_ip(), of, request.now())
    });
    CrawlerName {
        name: crawler.name,
        evidence: evidence.unwrap_or(NameEvidence::NoSearchEngine),
    }
}

/// A response goes to the client with these fields: the sessions that it gives are known from now on.
pub fn note_cookies(request: &Request, fields: &[(Bytes, Bytes)]) {
    if let Some(clients) = request.configuration.live.groups.clients() {
        let set_cookies = fields
            .iter()
            .filter(|(name, _)| same_name(name, b"set-cookie"));
        let values = set_cookies.map(|(_, value)| value.as_ref());
        clients.note_cookies(request.received.client_ip(), values, request.now());
    }
}
