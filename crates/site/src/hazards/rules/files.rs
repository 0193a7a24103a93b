//! Rules about files that are sent, and their types.

use super::super::hazard::HazardSink;
use super::super::tree::{Block, LocationKind};
use super::super::values::is_upload;
use crate::directives::Context;

pub(super) fn alias_slash(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(alias) = block.own("alias").next().and_then(|line| line.args.first()) else {
        return;
    };
    let Some((kind, text)) = block.location() else {
        return;
    };
    if !matches!(kind, LocationKind::Prefix | LocationKind::FirmPrefix) || alias.contains('$') {
        return;
    }
    let found = format!("location {text} with alias {alias}");
    match (text.ends_with('/'), alias.ends_with('/')) {
        (false, true) => sink.insert(text, text.len(), "/", found, format!("location {text}/")),
        (true, false) => sink.insert(alias, alias.len(), "/", found, format!("alias {alias}/;")),
        _ => {}
    }
}

pub(super) fn dotfiles_served(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    if !block.is(Context::Server) {
        return;
    }
    let within = block.within();
    let runs_php = within.iter().any(|it| it.runs_any_script());
    let names_them = within.iter().any(|it| {
        it.location().is_some_and(|(kind, text)| {
            kind != LocationKind::Named
                && [".git", ".env", ".svn", r"\.git", r"\.env", r"/\."]
                    .iter()
                    .any(|name| text.contains(name))
                && !text.contains("well-known")
        })
    });
    let root = block
        .value("root")
        .filter(|root| root.starts_with('/') && !root.contains('$'));
    let secret =
        |name: &str| root.is_some_and(|root| std::path::Path::new(&*root.text).join(name).exists());
    for (path, name) in [("/.git/config", ".git/config"), ("/.env", ".env")] {
        if !(runs_php || names_them || secret(name)) {
            continue;
        }
        let chosen = block.chosen(path);
        let passes = chosen
            .lines()
            .iter()
            .any(|line| line.name.ends_with("_pass"));
        let is_refused = chosen.is_closed()
            || block.returns_error()
            || passes
            || chosen.has("return")
            || chosen.has("rewrite");
        if !is_refused
            && !chosen.effective("root").is_empty()
            && let Some(span) = chosen.head()
        {
            sink.say(
                span,
                format!("{path} is sent as a file by {}", chosen.shown()),
                r"location ~ /\.(?!well-known/) { deny all; }",
            );
            return;
        }
    }
}

pub(super) fn root_too_high(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    const HIGH: [&str; 9] = [
        "",
        "/etc",
        "/etc/nginx",
        "/etc/mayfly",
        "/home",
        "/root",
        "/var",
        "/usr",
        "/proc",
    ];
    for line in block.own("root").chain(block.own("alias")) {
        if let Some(word) = line.args.first()
            && HIGH.contains(&word.trim_end_matches('/'))
        {
            sink.say(
                word.span,
                format!("{} {word}", line.name),
                format!("{} with the site's own folder", line.name),
            );
        }
    }
}

/// Directives that name files which are for the server alone.
const SECRET_FILES: [&str; 5] = [
    "auth_basic_user_file",
    "ssl_certificate_key",
    "ssl_password_file",
    "access_log",
    "error_log",
];

pub(super) fn secret_in_root(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let within = block.within();
    let roots = std::iter::once(block)
        .chain(within)
        .filter_map(|it| it.value("root"));
    let roots: Vec<&str> = roots
        .map(|root| root.trim_end_matches('/'))
        .filter(|root| root.starts_with('/') && root.len() > 1)
        .collect();
    for line in SECRET_FILES.iter().flat_map(|name| block.own(name)) {
        if let Some(word) = line.args.first()
            && let Some(root) = roots.iter().find(|root| {
                word.strip_prefix(**root)
                    .is_some_and(|rest| rest.starts_with('/'))
            })
        {
            sink.say(
                word.span,
                format!("{} {word} is below root {root}", line.name),
                "a path outside of the folder that is served",
            );
        }
    }
}

pub(super) fn autoindex_uploads(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some((_, text)) = block.location() else {
        return;
    };
    let Some(word) = block.value("autoindex").filter(|word| word.text == "on") else {
        return;
    };
    let paths = block
        .own("alias")
        .chain(block.own("root"))
        .filter_map(|line| line.args.first());
    if is_upload(text) || paths.into_iter().any(|path| is_upload(path)) {
        sink.replace(
            word,
            "off",
            format!("autoindex on in location {text}"),
            "autoindex off;",
        );
    }
}

pub(super) fn default_type_html(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some((kind, _)) = block.location() else {
        return;
    };
    let sends_files = !block.lines().iter().any(|line| {
        line.name.ends_with("_pass")
            || ["return", "stub_status", "empty_gif"].contains(&&*line.name.text)
    });
    let pages = ["text/html", "application/xhtml+xml", "image/svg+xml"];
    if let Some(word) = block
        .value("default_type")
        .filter(|word| pages.contains(&&*word.text))
        && sends_files
        && !matches!(kind, LocationKind::Exact | LocationKind::Named)
    {
        sink.replace(
            word,
            "application/octet-stream",
            format!("default_type {word} where files are sent"),
            "default_type application/octet-stream;",
        );
    }
}
