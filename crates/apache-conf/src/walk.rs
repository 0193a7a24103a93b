//! Reads directives into a [`crate::site::Site`]: each line is taken, left out for a reason, or noted as not translated.

use crate::access::{Access, AccessLines};
use crate::collect::{Collector, LineOutcome, Scope};
use crate::directives;
use crate::names;
use crate::require::method_question;
use crate::settings::Names;
use htaccess::item::Item;
use htaccess::modules::{SectionVerdict, holds};

impl Collector {
    pub fn items(&mut self, items: &[Item], scope: &Scope) {
        for item in items {
            self.item(item, scope);
        }
    }

    fn item(&mut self, item: &Item, scope: &Scope) {
        if let Some(block) = &item.block {
            match holds(item) {
                Some(SectionVerdict::Yes) => return self.items(block, scope),
                Some(SectionVerdict::No)
                    if item.name == "ifmodule"
                        && item.denies()
                        && !item.lower(0).starts_with('!') =>
                {
                    return self.not_translated(item, "this module has no counterpart");
                }
                Some(SectionVerdict::No) => {
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
            LineOutcome::Taken => {}
            LineOutcome::LeftOut(why) => self.left_out(item, &why),
            LineOutcome::Not(why) => self.not_translated(item, &why),
        }
    }

    fn section(&mut self, item: &Item, block: &[Item], scope: &Scope) -> LineOutcome {
        let argument = item.args.first().map_or("", String::as_str);
        match item.name.as_str() {
            "requireall" | "requireany" | "requirenone" => {
                self.settings(scope).access.take(item);
                LineOutcome::Taken
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
                    return LineOutcome::Not(format!("{regex} is no regular expression"));
                }
                let names = (names != Names::All).then(|| (names, item.clone()));
                self.items(
                    block,
                    &Scope {
                        names,
                        ..scope.clone()
                    },
                );
                LineOutcome::Taken
            }
            "limit" | "limitexcept" => self.limit(item, block, scope),
            "if" | "elseif" | "else" => {
                LineOutcome::Not("expressions have no counterpart; write an if or a map".to_owned())
            }
            _ => crate::sections::section(self, item, block, scope),
        }
    }

    /// Limits of some methods.
    fn limit(&mut self, item: &Item, block: &[Item], scope: &Scope) -> LineOutcome {
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
        self.notes.extend(notes);
        let settings = self.settings(scope);
        match found {
            Access::Open => {}
            Access::Closed if is_exception || !has_get => {
                settings
                    .access
                    .refuse_methods(method_question(&methods, is_exception));
            }
            // What limits reading limits all methods here.
            _ => {
                for line in block {
                    settings.access.take(line);
                }
            }
        }
        LineOutcome::Taken
    }
}
