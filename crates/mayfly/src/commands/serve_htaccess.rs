//! The `.htaccess` files of the folder that `mayfly serve` serves: what they close is closed here as well,
//! and the operator is told what has no effect.

use std::path::Path;

use serve_folder::{Bounds, DetectedSite, RootRules, closed_folders, root_rules};

use crate::commands::running_server::printable;
use crate::config::{self, Invocation, MADE_CONF};

/// Lines of the document root's file that are shown.
const MAX_SHOWN_LINES: usize = 10;
/// More of such a line is not shown.
const MAX_SHOWN_LETTERS: usize = 80;

/// Adds to `found` what these files say. Answers what the operator should know of it.
pub fn read(found: &mut DetectedSite, document_root: &Path) -> Vec<String> {
    found.root_rules = root_rules(document_root, found.front_controller, &is_pattern);
    let mut notes = root_notes(&found.root_rules);
    let walk =
        |folder: &Path, address| closed_folders(folder, address, Bounds::default(), &is_pattern);
    let mut walks = vec![walk(document_root, "/")];
    if let Some(parent) = found.wp_content_parent {
        walks.push(walk(&Path::new(parent).join("wp-content"), "/wp-content/"));
    }
    for walk in walks {
        if let Some(bound) = walk.ended_by {
            notes.push(format!(
                "not every folder was searched for a .htaccess that closes it: {bound} ended the search."
            ));
        }
        found.closed_folders.extend(walk.closed);
        found.refused_in_folders.extend(walk.refused);
    }
    // Debian's wp-content may be a link in the document root as well.
    found.closed_folders.sort_by(|a, b| a.path.cmp(&b.path));
    found.closed_folders.dedup_by(|a, b| a.path == b.path);
    match found.closed_folders.len() {
        0 => {}
        1 => notes.push("1 folder is closed by its .htaccess, and is not served.".to_owned()),
        count => notes.push(format!(
            "{count} folders are closed by their .htaccess, and are not served."
        )),
    }
    let count = found.refused_in_folders.len();
    if count > 0 {
        notes.push(format!(
            ".htaccess files of folders refuse some of what is in them: {count} of their rules are kept."
        ));
    }
    notes
}

/// Can the configuration have this pattern?
fn is_pattern(pattern: &str) -> bool {
    let pattern = pattern.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!("http {{ map $uri $found {{ \"~{pattern}\" 1; }} }}");
    config::judge(Invocation::from_text(Path::new(MADE_CONF), text).read()).is_ok()
}

/// What is said of the `.htaccess` of the document root.
fn root_notes(rules: &RootRules) -> Vec<String> {
    let mut notes = Vec::new();
    if rules.is_closed {
        notes.push(
            "the .htaccess of the document root closes the whole site, so every address answers 403.".to_owned(),
        );
    }
    let count = rules.refused.len() + rules.denied.len() + rules.refused_queries.len();
    if count > 0 {
        notes.push(format!(
            "the .htaccess of the document root refuses paths, queries or addresses: {count} of its rules are kept."
        ));
    }
    let count = rules.redirects.len();
    if count > 0 {
        notes.push(format!(
            "the .htaccess of the document root redirects: {count} of its rules are kept."
        ));
    }
    if rules.without_effect.is_empty() {
        return notes;
    }
    let mut note = "these lines of the document root's .htaccess have no effect here:".to_owned();
    for (number, line) in rules.without_effect.iter().take(MAX_SHOWN_LINES) {
        let letters = line.chars().map(printable);
        let shown: String = letters.take(MAX_SHOWN_LETTERS).collect();
        note.push_str(&format!("\n  {number}: {shown}"));
    }
    match rules.without_effect.len().checked_sub(MAX_SHOWN_LINES) {
        None | Some(0) => {}
        Some(more) => note.push_str(&format!("\n  and {more} more")),
    }
    notes.push(note);
    notes
}
