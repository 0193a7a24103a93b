//! What is read of a [`Site`] so far, with the lines that are not translated.

use crate::note::{Kind, Note};
use crate::settings::{Names, Settings};
use crate::site::{Folder, Site};
use htaccess::item::Item;

/// What became of a line.
pub enum LineOutcome {
    Taken,
    LeftOut(String),
    /// Why, and what to do.
    Not(String),
}

/// What lines hold for.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The path of a folder.
    pub folder: String,
    /// Files in it.
    pub names: Option<(Names, Item)>,
    /// The lines are those of a server, and not of a folder.
    pub is_server: bool,
}

impl Scope {
    pub fn of_folder(folder: &str) -> Scope {
        Scope {
            folder: folder.to_owned(),
            names: None,
            is_server: false,
        }
    }

    /// Of a server's own lines.
    pub fn of_server() -> Scope {
        Scope {
            is_server: true,
            ..Scope::of_folder("/")
        }
    }
}

/// Reads lines.
#[derive(Default)]
pub struct Collector {
    pub site: Site,
    pub notes: Vec<Note>,
}

impl Collector {
    /// The settings that a scope means.
    pub fn settings(&mut self, scope: &Scope) -> &mut Settings {
        let folder = self.site.folder(&scope.folder);
        match &scope.names {
            Some((names, item)) => folder.named(names.clone(), item),
            None => &mut folder.settings,
        }
    }

    pub fn folder(&mut self, scope: &Scope) -> &mut Folder {
        self.site.folder(&scope.folder)
    }

    /// The folder whose rules and redirects lines are: those of a server come before those of its folders.
    pub fn rules(&mut self, scope: &Scope) -> &mut Folder {
        let path = if scope.is_server { "" } else { &scope.folder };
        self.site.folder(path)
    }

    pub fn note(&mut self, item: &Item, why: &str, kind: Kind) {
        self.notes.push(Note::of(item, why, kind));
    }

    /// Notes that a line, or a section with all in it, is not translated.
    pub fn not_translated(&mut self, item: &Item, why: &str) {
        let kind = if item.denies() {
            Kind::Unsafe
        } else {
            Kind::NotTranslated
        };
        self.note(item, why, kind);
        for inner in item.block.iter().flatten() {
            self.not_translated(inner, "it is in the section above");
        }
    }

    pub fn left_out(&mut self, item: &Item, why: &str) {
        self.note(item, why, Kind::LeftOut);
        for inner in item.block.iter().flatten() {
            self.left_out(inner, "it is in the section above");
        }
    }

    /// A line of nginx's as it is.
    pub fn line(&mut self, scope: &Scope, line: &str) -> LineOutcome {
        if scope.names.is_some() && line.starts_with("index ") {
            return LineOutcome::Not("it holds for whole folders only".to_owned());
        }
        let lines = &mut self.settings(scope).lines;
        // The last line of a name counts, as in Apache.
        let name = line.split(' ').next().unwrap_or_default();
        if name != "error_page" && name != "gzip_types" {
            lines.retain(|it| it.split(' ').next() != Some(name));
        }
        lines.push(line.to_owned());
        LineOutcome::Taken
    }
}
