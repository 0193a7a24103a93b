//! Notes about lines that are not translated.

use std::fmt;

use htaccess::item::{Item, Place};

/// The reason why a line is not in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// Leaving it out changes nothing: it has no effect, or its effect is there
    /// anyway.
    LeftOut,
    /// It has no counterpart, or one that would mean something else.
    NotTranslated,
    /// It keeps visitors out, and has no counterpart.
    Unsafe,
}

/// A line that is not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub place: Place,
    /// The line as it was written.
    pub text: String,
    /// The reason, and the remedy.
    pub why: String,
    pub kind: NoteKind,
}

impl Note {
    pub fn new(place: &Place, text: &str, why: &str, kind: NoteKind) -> Note {
        Note {
            place: place.clone(),
            text: text.to_owned(),
            why: why.to_owned(),
            kind,
        }
    }

    pub fn of(item: &Item, why: &str, kind: NoteKind) -> Note {
        Note::new(&item.place, &item.text, why, kind)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, loud) = match self.kind {
            NoteKind::LeftOut => ("left out", ""),
            NoteKind::NotTranslated => ("not translated", ""),
            NoteKind::Unsafe => ("not translated", " (IT KEEPS VISITORS OUT)"),
        };
        let Place { file, line } = &self.place;
        let line = format!("{what}: {file}:{line}: {}: {}{loud}", self.text, self.why);
        let line = line
            .chars()
            .map(|it| if it.is_control() { ' ' } else { it });
        out.write_str(&line.collect::<String>())
    }
}
