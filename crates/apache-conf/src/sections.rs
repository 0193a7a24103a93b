//! Sections of servers: folders of the disk, and paths of addresses.

use crate::access::AccessLines;
use crate::collect::{Collector, LineOutcome, Scope};
use crate::patterns::compiles;
use crate::settings::Names;
use htaccess::item::Item;

/// A section of another kind than `Files` and `FilesMatch`.
pub fn section(
    collector: &mut Collector,
    item: &Item,
    block: &[Item],
    scope: &Scope,
) -> LineOutcome {
    if !scope.is_server {
        return LineOutcome::Not(
            "this section may stand in the configuration of a server only".to_owned(),
        );
    }
    let argument = item.args.first().map_or("", String::as_str);
    match (item.name.as_str(), argument, item.args.get(1)) {
        ("directory" | "location", "~", Some(regex)) => pattern(collector, item, block, regex),
        ("directorymatch" | "locationmatch", regex, _) => pattern(collector, item, block, regex),
        ("directory", path, _) => {
            let folders = folders_of(collector, path);
            folders
                .iter()
                .for_each(|folder| within(collector, block, folder));
            match folders.is_empty() {
                true if path.contains(['*', '?', '[']) => {
                    LineOutcome::Not("write a location by pattern".to_owned())
                }
                true => LineOutcome::LeftOut("this folder is not served here".to_owned()),
                false => LineOutcome::Taken,
            }
        }
        ("location", path, _) => location(collector, item, block, path),
        ("proxy", ..) => {
            for line in block {
                match line.denies() {
                    true => {
                        collector.not_translated(line, "write it into the location with proxy_pass")
                    }
                    false => collector
                        .left_out(line, "servers behind this one are asked as locations say"),
                }
            }
            LineOutcome::Taken
        }
        _ => LineOutcome::Not("this section has no counterpart".to_owned()),
    }
}

fn within(collector: &mut Collector, block: &[Item], folder: &str) {
    let scope = Scope::of_folder(folder);
    // What a later section says of access takes the place of what an earlier one has said.
    let outer = std::mem::take(&mut collector.settings(&scope).access);
    collector.items(block, &scope);
    let access = &mut collector.settings(&scope).access;
    *access = std::mem::take(access).within(&outer);
}

/// The paths of the addresses at which a folder is handed out: below the document root, and below each alias.
fn folders_of(collector: &Collector, path: &str) -> Vec<String> {
    let path = path.trim_end_matches('/');
    let server = &collector.site.server;
    let below = |address: &str, root: &str| -> Option<String> {
        let address = address.trim_end_matches('/');
        match path.strip_prefix(root.trim_end_matches('/'))? {
            "" => Some(format!("{address}/")),
            rest if rest.starts_with('/') => Some(format!("{address}{rest}/")),
            _ => None,
        }
    };
    if path.contains(['*', '?', '[']) {
        return Vec::new();
    }
    let aliases = server.aliases.iter();
    let mut folders: Vec<String> = aliases
        .filter_map(|(address, folder)| below(address, folder))
        .collect();
    if let Some(root) = server.root.as_deref() {
        folders.extend(below("/", root));
        // A folder around the document root.
        let is_around = root.len() > path.len() && root.starts_with(&format!("{path}/"));
        if is_around && !folders.contains(&"/".to_owned()) {
            folders.push("/".to_owned());
        }
    }
    folders
}

fn location(collector: &mut Collector, item: &Item, block: &[Item], path: &str) -> LineOutcome {
    if !path.starts_with('/') || path.contains(['*', '?', '[', '$', '"']) {
        return LineOutcome::Not("write a location by pattern".to_owned());
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    if last.contains('.') {
        // A file: who may have it is said of its name, wherever it is.
        let names = Some((Names::Literal(last.to_owned()), item.clone()));
        let scope = Scope {
            names,
            ..Scope::of_folder("/")
        };
        let mut access = AccessLines::default();
        for line in block {
            if access.take(line) {
                collector.settings(&scope).access.take(line);
            } else {
                collector.not_translated(line, "write a location for this file");
            }
        }
        return LineOutcome::Taken;
    }
    let folder = match path.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => format!("{path}/"),
    };
    within(collector, block, &folder);
    LineOutcome::Taken
}

/// A section whose paths are said by a regular expression: what it closes is closed.
fn pattern(collector: &mut Collector, item: &Item, block: &[Item], regex: &str) -> LineOutcome {
    let mut access = AccessLines::default();
    let others: Vec<&Item> = block.iter().filter(|it| !access.take(it)).collect();
    let mut notes = Vec::new();
    let is_closed = access.access(&|_| false, &mut notes) == crate::access::Access::Closed;
    // A pattern of folders of the disk, which paths of addresses do not begin with.
    let root = collector.site.server.root.as_deref().unwrap_or("/");
    let names_root = root
        .split('/')
        .any(|name| !name.is_empty() && regex.contains(&format!("{name}/")));
    let is_of_disk = item.name.starts_with("directory")
        && (regex.starts_with('^') || names_root || collector.site.server.root.is_none());
    if !others.is_empty() || !is_closed || is_of_disk || !compiles(regex) {
        return LineOutcome::Not("write a location by pattern".to_owned());
    }
    let pattern = crate::write::argument_of_pattern(regex);
    collector
        .site
        .locations
        .insert(0, format!("location ~ {pattern} {{\n    deny all;\n}}"));
    LineOutcome::Taken
}
