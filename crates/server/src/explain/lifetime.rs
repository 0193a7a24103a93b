//! Explains the lifetime of a stored response: a field of the response, or a line of the configuration.

use std::time::Duration;

use http_cache::{LifetimeSource, StoredResponse, Zone};
use shared_request::Class;
use site::CacheRules;

use super::explanation::line_text;
use super::shown::rules_of_zone;
use crate::content::through_cache::outlook::Lookup;
use crate::exchange::active_configuration::ActiveConfiguration;

const LACKS_TAGS: &str = "more tags than are kept: fresh for a second only";
const NOT_IN_FORCE: &str = "a line of the configuration that is not in force any more";

/// Describes in words where the lifetime of a response stored for a request comes from.
pub fn given_by(stored: &StoredResponse, lookup: &Lookup) -> String {
    let (head, rules) = (&stored.head, &lookup.rules);
    let is_not_found = matches!(head.status, 404 | 410);
    let not_found = rules.shared.as_ref().and_then(|shared| shared.not_found);
    if stored.lacks_tags() {
        return LACKS_TAGS.to_owned();
    }
    let mut by = if is_not_found && not_found.is_some() && lookup.class.is_some() {
        of_not_found(not_found, lookup)
    } else if head.lifetime_source == LifetimeSource::Rule {
        of_rule(head.status, lookup)
    } else {
        of_field(stored)
    };
    let lifetime = head.age_at_receipt.duration() + head.expires_at.since(head.stored_at);
    let bound = rules
        .max_valid
        .map(|most| most.time)
        .filter(|_| not_found.is_none() || !is_not_found);
    // It counts from the response's arrival here.
    let is_cut = bound.is_some_and(|bound| lifetime == bound + head.age_at_receipt.duration());
    if is_cut {
        by = format!("{by}; cut by {}", first_line(rules, "cache_max_valid"));
    }
    if stored.was_purged_softly() {
        by.push_str("; ended by a soft purge");
    }
    by
}

/// Describes the origin of a lifetime from a stored response alone. The configuration's line that gave
/// the lifetime is known only where the zone has one that could have.
pub fn probably_given_by(
    stored: &StoredResponse,
    configuration: &ActiveConfiguration,
    zone: &Zone,
) -> String {
    let head = &stored.head;
    if stored.lacks_tags() {
        return LACKS_TAGS.to_owned();
    }
    if head.lifetime_source != LifetimeSource::Rule {
        return of_field(stored);
    }
    let mut lines: Vec<String> = Vec::new();
    for rules in rules_of_zone(configuration, zone) {
        let valid = rules.valid.iter();
        let is_valid = valid.map(|rule| names(&rule.statuses, head.status));
        let valid = rules.lines_of("_cache_valid").zip(is_valid);
        let valid = valid.filter(|(_, is_valid)| *is_valid).take(1);
        let valid = valid.map(|(line, _)| line);
        let others = ["cache_crawler_valid", "cache_not_found"].into_iter();
        let others = others.flat_map(|directive| rules.lines_of(directive));
        for line in valid.chain(others).map(line_text) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    match &lines[..] {
        [] => NOT_IN_FORCE.to_owned(),
        [line] => line.clone(),
        [first, others @ ..] => format!("{first}, or {} other lines for its zone", others.len()),
    }
}

/// The line that gave a response 404 or 410 its lifetime.
fn of_not_found(lifetime: Option<Duration>, lookup: &Lookup) -> String {
    match is_longer_for_crawlers(lifetime, lookup) {
        true => first_line(&lookup.rules, "cache_crawler_valid"),
        false => first_line(&lookup.rules, "cache_not_found"),
    }
}

/// Does a crawler get the response for longer than `lifetime`?
fn is_longer_for_crawlers(lifetime: Option<Duration>, lookup: &Lookup) -> bool {
    let shared = lookup.rules.shared.as_ref();
    let crawlers = shared.and_then(|shared| shared.crawler_lifetime);
    lookup.class == Some(Class::Crawler) && crawlers > lifetime
}

fn of_rule(status: u16, lookup: &Lookup) -> String {
    let rules = &lookup.rules;
    let mut valid = rules.valid.iter();
    let rule = valid.position(|rule| names(&rule.statuses, status));
    let lifetime = rule
        .and_then(|at| rules.valid.get(at))
        .map(|rule| rule.lifetime);
    if is_longer_for_crawlers(lifetime, lookup) {
        return first_line(rules, "cache_crawler_valid");
    }
    let line = rule.and_then(|at| rules.lines_of("_cache_valid").nth(at));
    line.map_or_else(|| NOT_IN_FORCE.to_owned(), line_text)
}

/// No status stands for all.
fn names(statuses: &[u16], status: u16) -> bool {
    statuses.is_empty() || statuses.contains(&status)
}

fn first_line(rules: &CacheRules, directive: &str) -> String {
    let line = rules.lines_of(directive).next();
    line.map_or_else(|| directive.to_owned(), line_text)
}

fn of_field(stored: &StoredResponse) -> String {
    let (what, name) = match stored.head.lifetime_source {
        LifetimeSource::AccelExpires => ("", "X-Accel-Expires"),
        LifetimeSource::CdnCacheControl => ("", "CDN-Cache-Control"),
        LifetimeSource::SMaxage => ("s-maxage in ", "Cache-Control"),
        LifetimeSource::MaxAge => ("max-age in ", "Cache-Control"),
        LifetimeSource::Expires => ("", "Expires"),
        LifetimeSource::Heuristic => ("a share of the time since ", "Last-Modified"),
        LifetimeSource::NoCache => ("no-cache in ", "Cache-Control"),
        LifetimeSource::Rule => ("", "the configuration"),
    };
    format!("{what}the field {name} of the response")
}
