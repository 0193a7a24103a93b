//! Rules about redirects and fields of responses.

use nginx_conf::{Directive, Word};

use super::super::edit::{HazardEdit, before, redirect_edits};
use super::super::hazard::HazardSink;
use super::super::tree::{Block, LocationKind};
use super::super::values::{has_cr_or_lf, host_part, names_any, quoted, variables, written};

/// The target of a line that redirects.
fn redirect_target(line: &Directive) -> Option<&Word> {
    match (&*line.name.text, line.args.as_slice()) {
        ("return", [target]) if !target.starts_with(|c: char| c.is_ascii_digit()) => Some(target),
        ("return", [code, target]) if code.starts_with('3') => Some(target),
        ("rewrite", [_, target, flag]) if ["redirect", "permanent"].contains(&&*flag.text) => {
            Some(target)
        }
        ("rewrite", [_, target, ..]) if target.contains("://") => Some(target),
        _ => None,
    }
}

pub(super) fn uri_in_redirect(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for line in block.lines() {
        let target = redirect_target(line).or_else(|| match line.args.as_slice() {
            [_, value, ..] if line.name.text == "add_header" => Some(value),
            _ => None,
        });
        if let Some(word) = target.filter(|word| names_any(word, &["uri", "document_uri"])) {
            let edits = match redirect_target(line) {
                Some(target) => redirect_edits(target),
                None => Vec::new(),
            };
            let found = format!("\"{}\" with {word}", line.name);
            let write = match edits.first() {
                Some(edit) => edit.text.clone(),
                None => "$request_uri, which stays encoded, in the place of $uri".to_owned(),
            };
            sink.mend(word.span, found, write, edits);
        }
    }
}

pub(super) fn capture_in_field(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let pattern = block.outwards().find_map(|it| match it.location() {
        Some((LocationKind::Pattern, text)) => Some(text),
        _ => None,
    });
    let Some(pattern) = pattern.filter(|text| has_cr_or_lf(text)) else {
        return;
    };
    for line in block.lines() {
        let value = match (&*line.name.text, line.args.as_slice()) {
            ("add_header" | "proxy_set_header", [_, value, ..]) => Some(value),
            _ => redirect_target(line).filter(|_| line.name.text == "return"),
        };
        let captured = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_digit())
                || pattern.contains(&format!("?<{name}>"))
        };
        if let Some(word) = value.filter(|word| variables(word).any(captured)) {
            sink.say(
                word.span,
                format!("{word} in \"{}\", captured by {pattern}", line.name),
                "add \\r\\n or \\s to what the pattern excludes: [^/\\s]",
            );
        }
    }
}

pub(super) fn open_redirect(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for line in block.lines() {
        let Some(word) = redirect_target(line) else {
            continue;
        };
        let is_chosen = |name: &str| {
            name.starts_with("arg_")
                || name.starts_with("cookie_")
                || name == "http_referer"
                || name == "http_x_forwarded_host"
        };
        if variables(host_part(word)).any(is_chosen) {
            sink.say(
                word.span,
                format!("the visitor chooses where \"{}\" leads: {word}", line.name),
                "a map from what may be asked for to where it leads",
            );
        }
    }
}

/// Fields that protect a page.
const PROTECTING: [&str; 7] = [
    "strict-transport-security",
    "content-security-policy",
    "x-frame-options",
    "x-content-type-options",
    "referrer-policy",
    "permissions-policy",
    "cross-origin-opener-policy",
];

pub(super) fn add_header_lost(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(first) = block.own("add_header").next() else {
        return;
    };
    let Some(outer) = block.outer() else { return };
    if block.value_is("add_header_inherit", "merge") {
        return;
    }
    let name_of = |line: &Directive| line.args.first().map(|name| name.to_ascii_lowercase());
    let own: Vec<_> = block.own("add_header").filter_map(name_of).collect();
    let lost = outer.effective("add_header").into_iter().filter(|line| {
        name_of(line).is_some_and(|name| PROTECTING.contains(&&*name) && !own.contains(&name))
    });
    let lost: Vec<&Directive> = lost.collect();
    let names: Vec<&str> = lost
        .iter()
        .filter_map(|line| line.args.first())
        .map(|name| &*name.text)
        .collect();
    if names.is_empty() {
        return;
    }
    let lines: Vec<String> = lost.iter().map(|line| written(line)).collect();
    let edit = HazardEdit {
        span: before(first.name.span),
        text: lines.iter().map(|line| format!("{line} ")).collect(),
    };
    let found = format!(
        "{} has add_header of its own and loses {}",
        block.shown(),
        names.join(", ")
    );
    let write = format!("{}  or add_header_inherit merge;", lines.join(" "));
    sink.mend(first.head(), found, write, vec![edit]);
}

pub(super) fn add_header_multiline(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for line in block.own("add_header") {
        if let Some(value) = line
            .args
            .get(1)
            .filter(|value| value.contains(['\n', '\r']))
        {
            let one_line = value.split_whitespace().collect::<Vec<_>>().join(" ");
            let text = quoted(&one_line);
            let name = line.args.first().map_or("", |name| &name.text);
            sink.replace(
                value,
                &text,
                format!("add_header {name} has a value of several lines"),
                "the value in one line",
            );
        }
    }
}

pub(super) fn cors_any_origin(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let fields = block.effective("add_header");
    let value_of = |wanted: &str| {
        fields.iter().find_map(|line| match line.args.as_slice() {
            [name, value, ..] if name.eq_ignore_ascii_case(wanted) => Some(value),
            _ => None,
        })
    };
    let Some(origin) = value_of("access-control-allow-origin") else {
        return;
    };
    if value_of("access-control-allow-credentials").is_none() || !block.has("add_header") {
        return;
    }
    let condition = block
        .written()
        .filter(|it| it.name.text == "if")
        .map(|it| &it.args);
    let pattern = condition
        .and_then(|words| words.last())
        .map(|word| word.trim_end_matches(')'));
    let is_checked = pattern.is_some_and(|it| it.starts_with('^') && it.ends_with('$'));
    if names_any(origin, &["http_origin"]) && !is_checked {
        sink.say(
            origin.span,
            "Access-Control-Allow-Origin $http_origin with Access-Control-Allow-Credentials",
            "a map from $http_origin to the origins that may: ~^https://(?:www\\.)?example\\.com$ $http_origin;",
        );
    }
}
