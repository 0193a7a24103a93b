//! Reads directives into a [`Site`]: each line is taken, left out for a reason, or noted as not translated.

use crate::access::{Access, AccessLines};
use crate::directives::{self, Judged};
use crate::item::Item;
use crate::modules::{Holds, holds};
use crate::names;
use crate::note::{Kind, Note};
use crate::require::method_question;
use crate::settings::{Names, Settings};
use crate::site::{Folder, Site};

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
    pub fn items(&mut self, items: &[Item], scope: &Scope) {
        for item in items {
            self.item(item, scope);
        }
    }

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

    fn item(&mut self, item: &Item, scope: &Scope) {
        if let Some(block) = &item.block {
            match holds(item) {
                Some(Holds::Yes) => return self.items(block, scope),
                Some(Holds::No)
                    if item.name == "ifmodule"
                        && item.denies()
                        && !item.lower(0).starts_with('!') =>
                {
                    return self.not_translated(item, "this module has no counterpart");
                }
                Some(Holds::No) => {
                    return self.left_out(
                        item,
                        "it does not hold for Apache 2.4 as distributions build it",
                    );
                }
                None => {}
            }
        }
        let judged = match &item.block {
            Some(block) => self.section(item, block, scope),
            None => directives::directive(self, item, scope),
        };
        match judged {
            Judged::Taken => {}
            Judged::LeftOut(why) => self.left_out(item, &why),
            Judged::Not(why) => self.not_translated(item, &why),
        }
    }

    fn section(&mut self, item: &Item, block: &[Item], scope: &Scope) -> Judged {
        let argument = item.args.first().map_or("", String::as_str);
        match item.name.as_str() {
            "requireall" | "requireany" | "requirenone" => {
                self.settings(scope).access.take(item);
                Judged::Taken
            }
            "files" | "filesmatch" => {
                let names = match (argument, item.args.get(1)) {
                    ("~", Some(regex)) => names::of_regex(regex),
                    _ if item.name == "filesmatch" => names::of_regex(argument),
                    _ => names::of_glob(argument),
                };
                if let Names::Pattern(regex) = &names
                    && !crate::patterns::compiles(regex)
                {
                    return Judged::Not(format!("{regex} is no regular expression"));
                }
                let names = (names != Names::All).then(|| (names, item.clone()));
                self.items(
                    block,
                    &Scope {
                        names,
                        ..scope.clone()
                    },
                );
                Judged::Taken
            }
            "limit" | "limitexcept" => self.limit(item, block, scope),
            "if" | "elseif" | "else" => {
                Judged::Not("expressions have no counterpart; write an if or a map".to_owned())
            }
            _ => crate::sections::section(self, item, block, scope),
        }
    }

    /// Limits of some methods.
    fn limit(&mut self, item: &Item, block: &[Item], scope: &Scope) -> Judged {
        let methods = item.all_lower();
        let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
        let mut access = AccessLines::default();
        for line in block {
            if !access.take(line) {
                self.not_translated(line, "only limits of access can hold for some methods");
            }
        }
        let mut notes = Vec::new();
        let outer = self.settings(scope).access.clone();
        let site = &self.site;
        let found = access
            .clone()
            .with_password_of(&outer)
            .access(&|it| site.is_environment(it), &mut notes);
        let is_exception = item.name == "limitexcept";
        let has_get = methods.contains(&"get");
        let settings = self.settings(scope);
        match found {
            Access::Open => {}
            Access::Closed if is_exception || !has_get => {
                settings
                    .access
                    .refuse_methods(method_question(&methods, is_exception));
                self.notes.extend(notes);
            }
            // What limits reading limits all methods here.
            _ => {
                for line in block {
                    settings.access.take(line);
                }
            }
        }
        Judged::Taken
    }
}
