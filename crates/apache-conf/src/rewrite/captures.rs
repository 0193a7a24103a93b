//! What conditions capture, and redirects that keep the whole request.

use super::condition::{CapturingPattern, Test};
use super::expansion::{Part, parts};
use super::front::is_for_all;
use super::rule::Rule;

/// The captures that `%1` means: those of the last group with a pattern.
pub fn captured(groups: &[Vec<Test>]) -> Option<CapturingPattern> {
    let of_group = |group: &Vec<Test>| -> Option<CapturingPattern> {
        let mut all = Vec::new();
        for test in group {
            match test {
                Test::If(question) => all.push(question.captured.clone()?),
                _ => return None,
            }
        }
        let first = all.first()?;
        match all.len() {
            1 => Some(first.clone()),
            _ if all.iter().all(|it| it.is_of_path) => Some(CapturingPattern {
                pattern: format!(
                    "(?|{})",
                    all.iter()
                        .map(|it| it.pattern.as_str())
                        .collect::<Vec<_>>()
                        .join("|")
                ),
                count: all.iter().map(|it| it.count).max().unwrap_or(0),
                is_of_path: true,
            }),
            _ => Some(first.clone()),
        }
    };
    let has_pattern = |group: &&Vec<Test>| {
        group
            .iter()
            .any(|test| matches!(test, Test::If(question) if question.captured.is_some()))
    };
    of_group(groups.iter().rev().find(has_pattern)?)
}

/// Removes the group whose pattern stands in that of the rule now.
pub fn remove_captured(groups: &mut Vec<Vec<Test>>) {
    let has_pattern = |group: &Vec<Test>| {
        group
            .iter()
            .any(|test| matches!(test, Test::If(question) if question.captured.is_some()))
    };
    if let Some(at) = groups.iter().rposition(has_pattern) {
        groups.remove(at);
    }
}

pub fn uses_condition(target: &str) -> bool {
    let parts = parts(target).unwrap_or_default();
    parts.iter().any(|it| matches!(it, Part::OfCondition(_)))
}

/// The address of a redirect that keeps the whole path and query: `https://%{HTTP_HOST}%{REQUEST_URI}`.
pub fn whole_request(rule: &Rule, folder: &str) -> Option<String> {
    let flags = &rule.flags;
    let rest = ["%{REQUEST_URI}", "/$1", "$1"]
        .iter()
        .find_map(|it| Some((*it, rule.target.strip_suffix(*it)?)));
    let (put, before) = rest?;
    let captures_all = ["^(.*)$", "(.*)", "^(.*)", "(.*)$"].contains(&rule.pattern.as_str());
    let is_whole = match put {
        "%{REQUEST_URI}" => is_for_all(&rule.pattern),
        "/$1" => captures_all && folder == "/",
        _ => captures_all && folder.is_empty(),
    };
    let is_free = !rule.is_negated
        && !flags.drops_query
        && folder.len() <= 1
        && !uses_condition(&rule.target);
    if !is_whole || !is_free {
        return None;
    }
    let host = before
        .strip_prefix("https://")
        .or_else(|| before.strip_prefix("http://"))?;
    let scheme = if before.starts_with("https") {
        "https"
    } else {
        "http"
    };
    let host = match host.to_ascii_uppercase().as_str() {
        "%{HTTP_HOST}" | "%{SERVER_NAME}" if scheme == "https" => "$host",
        "%{HTTP_HOST}" | "%{SERVER_NAME}" => "$http_host",
        "" => return None,
        _ if host
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b".-:[]".contains(&it)) =>
        {
            host
        }
        "WWW.%{HTTP_HOST}" if scheme == "https" => "www.$host",
        "WWW.%{HTTP_HOST}" => "www.$http_host",
        _ => return None,
    };
    Some(format!("{scheme}://{host}$request_uri"))
}
