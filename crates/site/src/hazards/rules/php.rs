//! Rules about the scripts that PHP is asked to run.

use nginx_conf::{Directive, Word};

use super::super::edit::{HazardEdit, before};
use super::super::hazard::HazardSink;
use super::super::tree::{Block, LocationKind};
use super::super::values::{address_is_local, is_from_request, is_upload, variables};
use crate::directives::Context;

/// Applications by a word in their configurations, and where each puts uploads.
const APPLICATIONS: [(&str, &str); 3] = [
    ("wp-", "/wp-content/uploads/x.php"),
    ("sites/default", "/sites/default/files/x.php"),
    ("typo3", "/fileadmin/x.php"),
];

/// Scripts that a visitor may have uploaded, as patterns that close them have them in mind.
const UPLOADED_SCRIPTS: [&str; 5] = [
    "/wp-content/uploads/x.php",
    "/app/uploads/x.php",
    "/uploads/x.php",
    "/files/x.php",
    "/media/x.php",
];

pub(super) fn php_in_uploads(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    if !block.is(Context::Server) {
        return;
    }
    let within = block.within();
    let mut paths: Vec<String> = Vec::new();
    for location in &within {
        let Some((kind, text)) = location.location() else {
            continue;
        };
        let takes_files = location
            .own("dav_methods")
            .any(|it| it.args.iter().any(|word| word.text == "PUT"));
        if matches!(kind, LocationKind::Prefix | LocationKind::FirmPrefix)
            && (is_upload(text) || takes_files)
        {
            paths.push(format!("{}/x.php", text.trim_end_matches('/')));
        }
        // Patterns are tried in order: one that closes uploads behind the one for scripts does nothing.
        if kind == LocationKind::Pattern && (location.is_closed() || location.returns_error()) {
            let mut scripts = UPLOADED_SCRIPTS.iter();
            paths.extend(
                scripts
                    .find(|path| location.matches(path))
                    .map(|path| (*path).to_owned()),
            );
        }
        for (name, path) in APPLICATIONS {
            if text.contains(name) {
                paths.push(path.to_owned());
            }
        }
    }
    paths.sort();
    paths.dedup();
    for path in paths {
        let chosen = block.chosen(&path);
        if chosen.runs(&path)
            && let Some(span) = chosen.head()
        {
            let folder = path.trim_start_matches('/').trim_end_matches("/x.php");
            sink.say(
                span,
                format!("this location runs {path}"),
                format!("before it: location ~* ^/{folder}/.*\\.(?:php\\d*|phtml?|phar)(?:/|$) {{ deny all; }}"),
            );
        }
    }
}

pub(super) fn access_lost_in_pattern(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some((LocationKind::Prefix, text)) = block.location() else {
        return;
    };
    let names = ["auth_basic", "auth_request", "deny"];
    let Some(line) = names.iter().find_map(|name| {
        block
            .own(name)
            .find(|it| it.args.first().is_some_and(|word| word.text != "off"))
    }) else {
        return;
    };
    let Some(server) = block.server() else { return };
    let path = format!("{}/x.php", text.trim_end_matches('/'));
    let chosen = server.chosen(&path);
    if chosen.runs(&path) && !chosen.outwards().any(|it| it.written() == block.written()) {
        sink.say(
            line.head(),
            format!(
                "\"{}\" in location {text}, and {path} is answered by {}",
                line.name,
                chosen.shown()
            ),
            format!("location ^~ {text} {{ ... }} with a location for PHP within it"),
        );
    }
}

pub(super) fn php_pattern(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some((LocationKind::Pattern, text)) = block.location() else {
        return;
    };
    if !block.has("fastcgi_pass") || !block.runs_any_script() {
        return;
    }
    let found = |text: &Word| format!("location ~ {text} runs PHP");
    if text.ends_with(r"\.php") {
        sink.insert(
            text,
            text.len(),
            "$",
            found(text),
            format!("location ~ {text}$"),
        );
    } else if let Some(stem) = text.strip_suffix(".php$")
        && !stem.ends_with(['\\', ']'])
    {
        sink.insert(
            text,
            stem.len(),
            r"\",
            found(text),
            format!(r"location ~ {stem}\.php$"),
        );
    }
}

pub(super) fn php_path_info(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    if !block.runs_any_script() {
        return;
    }
    let Some(pass) = block.own("fastcgi_pass").next() else {
        return;
    };
    let Some(to) = pass.args.first() else { return };
    let looks = block.has("try_files")
        || block.inner().any(|it| {
            let words = it.written().map_or(&[][..], |written| &written.args);
            words
                .iter()
                .any(|word| word.contains("!-f") || word.contains("!-e"))
        });
    // PHP of another machine has files of its own.
    if looks || !is_php_of_this_machine(block, to) {
        return;
    }
    let line = "try_files $fastcgi_script_name =404;";
    let edit = HazardEdit {
        span: before(pass.name.span),
        text: format!("{line} "),
    };
    sink.mend(
        pass.head(),
        format!("{} passes each path on to PHP", block.shown()),
        line,
        vec![edit],
    );
}

/// Is it PHP on this machine, by its address, or by those of the upstream of this name?
fn is_php_of_this_machine(block: Block<'_, '_>, to: &str) -> bool {
    let is_local = |address: &str| address.starts_with("unix:") || address_is_local(address);
    let of_group = |line: &Directive| {
        let servers = line
            .block
            .iter()
            .flatten()
            .filter(|it| it.name.text == "server");
        line.args.first().is_some_and(|name| name.text == to)
            && servers
                .filter_map(|it| it.args.first())
                .any(|word| is_local(word))
    };
    is_local(to)
        || block
            .outwards()
            .any(|level| level.own("upstream").any(of_group))
}

pub(super) fn php_value_from_request(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for line in block.own("fastcgi_param") {
        if let [name, value, ..] = line.args.as_slice()
            && ["PHP_VALUE", "PHP_ADMIN_VALUE"].contains(&&*name.text)
            && variables(value).any(is_from_request)
        {
            let write = "values that are written here, or a map that gives nothing else";
            sink.say(value.span, format!("{name} is made of {value}"), write);
        }
    }
}
