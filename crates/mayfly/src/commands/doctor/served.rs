//! How a server would treat the path of a file that is there: run it, send it, or refuse.
//!
//! Locations are chosen as the server chooses them. Rewriting counts as far as it needs no request:
//! `return`, and conditions on the file, which is there. Other conditions count as false, so that a
//! site which refuses a file only to some visitors gets a finding.

use site::{Condition, Content, FileTest, Location, LocationId, Locations, RewriteOp, Server};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTreatment {
    /// PHP runs it.
    Script,
    /// It is sent as it is.
    File,
    Refused,
    /// Another server is asked.
    Elsewhere,
}

/// For a visitor from anywhere.
const STRANGER: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

pub fn served(server: &Server, path: &str) -> FileTreatment {
    if returns(&server.rewrite) {
        return FileTreatment::Refused;
    }
    let found = find(server, &server.top, path.as_bytes());
    let id = found.map_or(Server::ROOT, |(id, _)| id);
    of_location(server.location(id))
}

fn of_location(location: &Location) -> FileTreatment {
    let settings = &location.settings;
    let mut rules = settings.access.iter();
    let rule = rules.find(|rule| rule.network.contains(Some(STRANGER)));
    let is_closed = rule.is_some_and(|rule| !rule.allow)
        || settings.auth.is_some()
        || settings.auth_request.is_some()
        || location.internal;
    if is_closed || returns(&location.rewrite) {
        return FileTreatment::Refused;
    }
    match &settings.content {
        Content::Files => FileTreatment::File,
        Content::Pass(pass) if pass.fastcgi().is_some() => FileTreatment::Script,
        Content::Pass(_) | Content::Handler(_) | Content::PurgeApi(_) | Content::Dashboard(_) => {
            FileTreatment::Elsewhere
        }
    }
}

/// Whether a request for a file that is there ends in `return`.
fn returns(program: &[RewriteOp]) -> bool {
    for step in program {
        match step {
            RewriteOp::Return { .. } => return true,
            RewriteOp::Break => return false,
            RewriteOp::If {
                condition: Condition::File { test, negated, .. },
                then,
                ..
            } => {
                let is_there = matches!(test, FileTest::RegularFile | FileTest::Exists);
                if is_there != *negated && returns(then) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// The location, and whether no pattern further out may displace it.
fn find(server: &Server, level: &Locations, path: &[u8]) -> Option<(LocationId, bool)> {
    if let Some(location) = level.exact.get(path) {
        return Some((*location, true));
    }
    let mut prefixes = level.prefixes.iter();
    let prefix = prefixes.find(|it| path.starts_with(&it.prefix));
    let found = prefix.map(|it| {
        let inner = find(server, &server.location(it.location).inner, path);
        inner.unwrap_or((it.location, false))
    });
    if let Some((location, true)) = found {
        return Some((location, true));
    }
    if prefix.is_some_and(|it| it.skips_patterns) {
        return found.map(|(location, _)| (location, true));
    }
    // A pattern that gives up refuses the request.
    let mut patterns = level.patterns.iter();
    let pattern = patterns.find(|(pattern, _)| pattern.is_match(path).unwrap_or(false));
    match pattern {
        Some((_, location)) => {
            let inner = find(server, &server.location(*location).inner, path);
            Some((inner.map_or(*location, |(inner, _)| inner), true))
        }
        None => found,
    }
}
