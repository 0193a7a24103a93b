//! The lines that the server evaluates itself, as the text of `apache_rules`, and the notes about them.

use htaccess::item::Item;

use crate::left_out;
use crate::note::{Note, NoteKind};

/// Lines, in their order.
#[derive(Debug, Default)]
pub struct RulesText {
    pub text: String,
    /// The parsed lines of the text.
    items: Vec<Item>,
    depth: usize,
}

impl RulesText {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds a line, or the head of a section.
    pub fn line(&mut self, item: &Item) {
        self.write(&item.text, item);
    }

    pub fn begin(&mut self, item: &Item) {
        let head = item.text.trim_end();
        match head.ends_with('>') {
            true => self.write(head, item),
            false => self.write(&format!("{head}>"), item),
        }
        self.depth += 1;
    }

    pub fn end(&mut self, item: &Item) {
        self.depth -= 1;
        let text = item.text.trim_start_matches('<');
        let name: String = text.chars().take(item.name.len()).collect();
        self.write(&format!("</{name}>"), item);
    }

    fn write(&mut self, text: &str, item: &Item) {
        self.text.push_str(&"    ".repeat(self.depth + 1));
        // A backslash at the end would take the next line in.
        self.text.push_str(text.trim().trim_end_matches('\\'));
        self.text.push('\n');
        self.items.push(item.clone());
    }

    /// The notes about the lines.
    pub fn notes(&self) -> Vec<Note> {
        let notes = htaccess::read_server_rules(&self.text).notes;
        let found = notes.iter().filter_map(|note| {
            let item = self.items.get(note.line.checked_sub(1)?)?;
            Some(note_of(item, note))
        });
        found.collect()
    }
}

/// The note about a line that has another effect than in Apache. One that closes keeps out whom Apache keeps out.
pub fn note_of(item: &Item, note: &htaccess::Note) -> Note {
    if let Some(why) = left_out::reason(&item.name) {
        return Note::of(item, why, NoteKind::LeftOut);
    }
    let own = format!("{}: ", item.name);
    let why = note.text.strip_prefix(&own).unwrap_or(&note.text);
    let kind = match item.name == "allowoverride" {
        true => NoteKind::Unsafe,
        false => NoteKind::NotTranslated,
    };
    let closes = if note.closes { " (closed)" } else { "" };
    Note::of(item, &format!("{why}{closes}"), kind)
}

pub fn line(items: &[Item], number: usize) -> Option<&Item> {
    items.iter().find_map(|item| match &item.block {
        _ if item.place.line == number => Some(item),
        Some(block) => line(block, number),
        None => None,
    })
}
