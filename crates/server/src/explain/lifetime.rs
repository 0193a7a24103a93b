//! What gave a stored response its lifetime: a field of the response, or a line of the configuration.

use http_cache::{LifetimeSource, StoredResponse};
use shared_request::Class;
use site::CacheRules;

use super::explanation::line_text;
use crate::content::through_cache::outlook::Lookup;

/// What gave the lifetime of a response that is stored for a request, in words.
pub fn given_by(stored: &StoredResponse, lookup: &Lookup) -> String {
    let (head, rules) = (&stored.head, &lookup.rules);
    let is_not_found = matches!(head.status, 404 | 410);
    let not_found = rules.shared.as_ref().and_then(|shared| shared.not_found);
    if stored.lacks_tags() {
        return "more tags than are kept: fresh for a second only".to_owned();
    }
    let mut by = if is_not_found && not_found.is_some() && lookup.class.is_some() {
        first_line(rules, "cache_not_found")
    } else if head.lifetime_source == LifetimeSource::Rule {
        of_rule(head.status, lookup)
    } else {
        of_field(stored)
    };
    let lifetime = head.age_at_receipt.duration() + head.expires_at.since(head.stored_at);
    let bound = rules
        .max_valid
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

fn of_rule(status: u16, lookup: &Lookup) -> String {
    let rules = &lookup.rules;
    let matches = |statuses: &[u16]| statuses.is_empty() || statuses.contains(&status);
    let rule = rules.valid.iter().position(|rule| matches(&rule.statuses));
    let crawlers = rules
        .shared
        .as_ref()
        .and_then(|shared| shared.crawler_lifetime);
    let lifetime = rule
        .and_then(|at| rules.valid.get(at))
        .map(|rule| rule.lifetime);
    if lookup.class == Some(Class::Crawler) && crawlers > lifetime {
        return first_line(rules, "cache_crawler_valid");
    }
    let line = rule.and_then(|at| rules.lines_of("_cache_valid").nth(at));
    line.map_or_else(
        || "a line of the configuration that is not in force any more".to_owned(),
        line_text,
    )
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
        LifetimeSource::Rule => ("", "the configuration"),
    };
    format!("{what}the field {name} of the response")
}
