//! Routing: chooses the server by the request's host and the location by its path, both as
//! nginx does (<https://nginx.org/en/docs/http/request_processing.html>,
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#location>).

pub mod pattern;
pub mod rewrite;
pub mod tables;

use site::{Listener, LocationId, Locations, PrefixLocation, Server, ServerId};

use crate::exchange::request::Request;

/// The server for `host` (lower case, no port) behind `listener`. The pattern
/// that matched, where one did, is run again by [`capture_server_name`]: so a server whose
/// pattern gave up is as good as chosen, and the request is refused there.
pub fn server_for(listener: &Listener, host: &[u8]) -> ServerId {
    named_server(listener, host).unwrap_or(listener.default_server)
}

/// The server that has this name, where one has.
pub fn named_server(listener: &Listener, host: &[u8]) -> Option<ServerId> {
    let names = &listener.names;
    if let Some(&server) = names.exact.get(host) {
        return Some(server);
    }
    if host.is_empty() {
        return None;
    }
    let by_suffix =
        |(suffix, _): &&(Box<[u8]>, ServerId)| host.len() > suffix.len() && host.ends_with(suffix);
    if let Some((_, server)) = names.leading_wildcard.iter().find(by_suffix) {
        return Some(*server);
    }
    let by_prefix = |(prefix, _): &&(Box<[u8]>, ServerId)| {
        host.len() > prefix.len() && host.starts_with(prefix)
    };
    if let Some((_, server)) = names.trailing_wildcard.iter().find(by_prefix) {
        return Some(*server);
    }
    names
        .patterns
        .iter()
        .find(|(pattern, _)| pattern.is_match(host).unwrap_or(true))
        .map(|(_, server)| *server)
}

/// Some server behind `listener` is named by a pattern.
pub fn may_capture(listener: &Listener) -> bool {
    !listener.names.patterns.is_empty()
}

/// Stores the captures of the pattern by which the server was chosen in the request.
pub fn capture_server_name(request: &Request, listener: &Listener) {
    if request.received.host().is_empty() {
        return;
    }
    let host = request.received.host().to_vec();
    for (candidate, server) in &listener.names.patterns {
        if *server == request.route.server() && pattern::matches(request, candidate, &host) {
            return;
        }
    }
}

/// Outcome of looking for a location.
#[derive(Debug, PartialEq, Eq)]
pub enum FoundLocation {
    Location(LocationId),
    /// The path lacks the slash that a location with a handler has:
    /// redirect to the path with the slash.
    AddSlash,
}

/// The location for the request's path: exact, else the longest prefix, else
/// (unless the prefix forbids) the first pattern, then likewise one level down.
pub fn locate(request: &Request, server: &Server) -> FoundLocation {
    match locate_in(request, server, &server.top, &request.route.path) {
        LocationMatch::None => FoundLocation::Location(Server::ROOT),
        LocationMatch::Final(location) | LocationMatch::Prefix(location) => {
            FoundLocation::Location(location)
        }
        LocationMatch::AddSlash => FoundLocation::AddSlash,
    }
}

enum LocationMatch {
    None,
    /// Nothing else is looked at.
    Final(LocationId),
    /// A prefix that a pattern further out may still displace.
    Prefix(LocationId),
    AddSlash,
}

fn locate_in(request: &Request, server: &Server, level: &Locations, path: &[u8]) -> LocationMatch {
    if let Some(&location) = level.exact.get(path) {
        return LocationMatch::Final(location);
    }
    let mut found = LocationMatch::None;
    let mut patterns_allowed = true;
    let mut is_slash_missing = false;
    // Longest first.
    for candidate in &level.prefixes {
        if candidate.prefix.len() > path.len() {
            is_slash_missing |= lacks_slash_for(server, candidate, path);
            continue;
        }
        if begins_with(path, &candidate.prefix) {
            patterns_allowed = !candidate.skips_patterns;
            let inner = &server.location(candidate.location).inner;
            found = match inner.is_empty() {
                true => LocationMatch::Prefix(candidate.location),
                false => match locate_in(request, server, inner, path) {
                    LocationMatch::None => LocationMatch::Prefix(candidate.location),
                    LocationMatch::Prefix(inner) => LocationMatch::Prefix(inner),
                    done => return done,
                },
            };
            break;
        }
    }
    if is_slash_missing {
        return LocationMatch::AddSlash;
    }
    if patterns_allowed {
        for (pattern, location) in &level.patterns {
            if pattern::matches(request, pattern, path) {
                let inner = &server.location(*location).inner;
                return match locate_in(request, server, inner, path) {
                    LocationMatch::None => LocationMatch::Final(*location),
                    LocationMatch::Prefix(inner) => LocationMatch::Final(inner),
                    done => done,
                };
            }
        }
    } else if let LocationMatch::Prefix(location) = found {
        return LocationMatch::Final(location);
    }
    found
}

/// Returns the location that applies to the request's method (`limit_except`).
#[inline]
pub fn for_method(request: &Request, server: &Server, location: LocationId) -> LocationId {
    match &server.location(location).limit_except {
        Some(limit)
            if !limit
                .methods
                .iter()
                .any(|method| method.as_bytes() == request.method_name()) =>
        {
            limit.location
        }
        _ => location,
    }
}

/// Like `starts_with`, comparing the last byte first: prefixes differ at their ends rather
/// than at their beginnings.
#[inline]
fn begins_with(path: &[u8], prefix: &[u8]) -> bool {
    let last = prefix.len().checked_sub(1).and_then(|at| path.get(at));
    last == prefix.last() && path.starts_with(prefix)
}

/// Is `path` this location's, but for the slash at its end?
fn lacks_slash_for(server: &Server, candidate: &PrefixLocation, path: &[u8]) -> bool {
    candidate.prefix.len() == path.len() + 1
        && candidate.prefix.starts_with(path)
        && candidate.prefix.ends_with(b"/")
        && server.location(candidate.location).auto_redirect
}
