//! Rules about who is let in, and about lines that do something else than they seem to.

use nginx_conf::{Directive, Span};

use super::super::edit::{HazardEdit, before};
use super::super::hazard::HazardSink;
use super::super::tree::Block;
use super::super::values::{address_is_local, leaves_location};
use crate::directives::Context;

pub(super) fn allow_without_deny(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let allows: Vec<_> = block.own("allow").collect();
    let is_for_all = |line: &&Directive| line.args.first().is_some_and(|word| word.text == "all");
    let Some(last) = allows.last() else { return };
    if block.has("deny") || allows.iter().any(is_for_all) {
        return;
    }
    let edit = HazardEdit {
        span: before(Span {
            start: last.span.end,
            ..last.span
        }),
        text: " deny all;".to_owned(),
    };
    sink.mend(
        last.head(),
        format!("allow without deny in {}", block.shown()),
        "deny all; after the last allow",
        vec![edit],
    );
}

pub(super) fn return_before_access(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let shows = block
        .own("return")
        .find(|line| matches!(line.args.as_slice(), [code, _] if code.starts_with('2')));
    if let Some(line) = shows
        && block.location().is_some()
        && !block.has("internal")
        && block.is_restricted()
    {
        let write =
            "try_files with a named location that returns it: try_files /nonexistent @text;";
        sink.say(
            line.head(),
            format!("return 200 in {}, which has restrictions", block.shown()),
            write,
        );
    }
}

pub(super) fn valid_referers_none(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for word in block.own("valid_referers").flat_map(|line| &line.args) {
        if word.text == "none" {
            sink.say(
                word.span,
                "valid_referers none",
                "valid_referers without none, if it is to protect",
            );
        }
    }
}

pub(super) fn merge_slashes_off(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for word in block.own("merge_slashes").flat_map(|line| &line.args) {
        if word.text == "off" {
            sink.replace(word, "on", "merge_slashes off", "merge_slashes on;");
        }
    }
}

pub(super) fn status_open(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(line) = block.own("stub_status").next() else {
        return;
    };
    let Some(server) = block.server() else { return };
    let is_local = |line: &Directive| {
        line.args
            .first()
            .is_some_and(|word| word.starts_with("unix:") || address_is_local(word))
    };
    let listens: Vec<_> = server.own("listen").collect();
    let is_local = !listens.is_empty() && listens.iter().all(|line| is_local(line));
    if !is_local && !block.is_restricted() {
        sink.say(
            line.head(),
            format!("\"{}\" in {} is for everybody", line.name, block.shown()),
            "allow 127.0.0.1; deny all;",
        );
    }
}

pub(super) fn if_trap(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    if block.location().is_none() {
        return;
    }
    let rewrites = ["set", "return", "rewrite", "break"];
    let has_settings = |it: &Block<'_, '_>| {
        it.is(Context::LocationIf)
            && it
                .lines()
                .iter()
                .any(|line| !rewrites.contains(&&*line.name.text))
    };
    let leaves = |it: &Block<'_, '_>| it.lines().iter().any(leaves_location);
    let ifs: Vec<Block<'_, '_>> = block
        .inner()
        .filter(|it| it.is(Context::LocationIf))
        .collect();
    let with_settings: Vec<_> = ifs
        .iter()
        .filter(|it| has_settings(it) && !leaves(it))
        .collect();
    let write = "a map of the conditions, and its variable in the directive";
    if let [_, .., last] = with_settings.as_slice()
        && let Some(span) = last.head()
    {
        sink.say(
            span,
            format!(
                "{} blocks of \"if\" with settings in {}",
                with_settings.len(),
                block.shown()
            ),
            write,
        );
    } else if block.has("try_files")
        && let Some(span) = ifs.iter().find(|it| !leaves(it)).and_then(|it| it.head())
    {
        sink.say(
            span,
            format!("\"if\" beside try_files in {}", block.shown()),
            write,
        );
    }
}

pub(super) fn error_log_off(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for word in block.own("error_log").filter_map(|line| line.args.first()) {
        if word.text == "off" {
            sink.replace(
                word,
                "/dev/null crit",
                "error_log off",
                "error_log /dev/null crit;",
            );
        }
    }
}
