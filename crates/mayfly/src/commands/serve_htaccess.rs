//! The `.htaccess` of the document root of the folder that `mayfly serve` serves: the operator gets a note about lines
//! that have another effect than in Apache. The server reads these files by itself; its findings in other folders are
//! in its log.

use std::path::Path;

use serve_folder::{Files as _, Folder};

/// Lines of the file that are shown.
const MAX_SHOWN_LINES: usize = 10;

/// Returns the notes for the operator about it.
pub fn notes(document_root: &Path) -> Option<String> {
    let text = Folder(document_root.to_owned()).text(".htaccess")?;
    let notes = htaccess::read_rules(text.as_bytes()).notes;
    if notes.is_empty() {
        return None;
    }
    let mut note =
        "these lines of the document root's .htaccess have another effect than in Apache:"
            .to_owned();
    for shown in notes.iter().take(MAX_SHOWN_LINES) {
        let closes = if shown.closes { " (closes)" } else { "" };
        note.push_str(&format!("\n  {shown}{closes}"));
    }
    match notes.len().checked_sub(MAX_SHOWN_LINES) {
        None | Some(0) => {}
        Some(more) => note.push_str(&format!("\n  and {more} more")),
    }
    Some(note)
}
