//! The settings of a section, and how an inner section is merged into an outer one.

use std::fmt;
use std::sync::Arc;

use crate::access::AddressAccess;
use crate::alias::AliasRedirect;
use crate::environment::Environment;
use crate::expression::Expression;
use crate::names::NameTest;
use crate::require::{Merging, Requirement};
use crate::response::ResponseSettings;
use crate::rewriting::Rewriting;

/// The rules of a file.
#[derive(Clone, Debug, Default)]
pub struct FolderRules {
    pub folder: Settings,
    pub files: Vec<FilesSection>,
    /// Lines that have another effect than in Apache.
    pub notes: Vec<Note>,
    /// Lines and sections that compare something with a pattern for each request.
    pub patterns: usize,
}

/// `<Files>` and `<FilesMatch>`
#[derive(Clone, Debug)]
pub struct FilesSection {
    pub names: NameTest,
    pub settings: Settings,
    /// It keeps visitors out.
    pub closes: bool,
}

/// A note about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub line: usize,
    pub text: String,
    /// The line closes its section or folder.
    pub closes: bool,
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.line, self.text)
    }
}

/// The settings of a section. Those which the section does not set are `None` or empty.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub access: Option<Arc<AddressAccess>>,
    pub require: Option<Requirement>,
    pub merging: Option<Merging>,
    pub authentication: Authentication,
    pub rewriting: Option<Rewriting>,
    pub redirects: Vec<Arc<AliasRedirect>>,
    pub folder: FolderAnswers,
    pub links: Option<LinkOptions>,
    pub scripts: ScriptSettings,
    pub environment: Environment,
    pub response: ResponseSettings,
    /// A status that all requests get: a line cannot be evaluated, or Apache would not take it.
    pub closed: Option<u16>,
    /// `AllowOverride`: whether `.htaccess` files count.
    pub overrides: Option<bool>,
    /// `<If>` sections, in order.
    pub conditional: Vec<Arc<Conditional>>,
}

/// How names and passwords are asked for.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    /// `AuthType`, in lower case.
    pub kind: Option<String>,
    pub realm: Option<String>,
    pub user_file: Option<String>,
    pub group_file: Option<String>,
    /// The passwords are elsewhere than in a file.
    pub has_other_provider: Option<bool>,
    /// A user who is not let in gets 403.
    pub refuses_with_403: Option<bool>,
}

/// The answer to a request for a folder (`mod_dir`).
#[derive(Clone, Debug, Default)]
pub struct FolderAnswers {
    pub indexes: Option<Vec<String>>,
    pub adds_slash: Option<bool>,
    /// `FallbackResource`; an empty text: none.
    pub fallback: Option<String>,
    /// `Options Indexes`: folders without an index are listed.
    pub lists: Option<bool>,
    /// `IndexIgnore`: a list would show names that it must not.
    pub hides_names: bool,
}

/// The symbolic links that may be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    pub follows: Option<bool>,
    pub follows_of_owner: Option<bool>,
}

/// Whether scripts run.
#[derive(Clone, Debug, Default)]
pub struct ScriptSettings {
    /// `php_flag engine`
    pub engine: Option<bool>,
    /// `SetHandler`, `ForceType`: whether they name PHP.
    pub handler: Option<bool>,
    /// By extension, in lower case: `AddHandler`, `AddType`, `RemoveHandler`, `RemoveType`.
    pub by_extension: Vec<(String, bool)>,
}

/// An `<If>`, or a chain of `<If>`, `<ElseIf>` and `<Else>`.
#[derive(Debug)]
pub struct Conditional {
    /// For these files only.
    pub names: Option<NameTest>,
    /// `None` for `<Else>`, and where only names are asked.
    pub branches: Vec<(Option<Expression>, Arc<Settings>)>,
    /// A branch keeps visitors out: where it is not known which one holds, the request is refused.
    pub closes: bool,
}

impl Settings {
    /// Merges the settings of an inner section into these.
    pub fn merge(&mut self, inner: &Settings) {
        if inner.access.is_some() {
            self.access.clone_from(&inner.access);
        }
        self.merge_requirements(inner);
        self.authentication.merge(&inner.authentication);
        if let Some(rewriting) = &inner.rewriting {
            self.rewriting = Some(rewriting.within(self.rewriting.as_ref()));
        }
        self.redirects.splice(0..0, inner.redirects.iter().cloned());
        take(&mut self.folder.indexes, &inner.folder.indexes);
        take(&mut self.folder.adds_slash, &inner.folder.adds_slash);
        take(&mut self.folder.fallback, &inner.folder.fallback);
        take(&mut self.folder.lists, &inner.folder.lists);
        self.folder.hides_names |= inner.folder.hides_names;
        if let Some(links) = inner.links {
            let own = self.links.get_or_insert(links);
            own.follows = links.follows.or(own.follows);
            own.follows_of_owner = links.follows_of_owner.or(own.follows_of_owner);
        }
        take(&mut self.scripts.engine, &inner.scripts.engine);
        take(&mut self.scripts.handler, &inner.scripts.handler);
        let by_extension = inner.scripts.by_extension.iter().cloned();
        self.scripts.by_extension.extend(by_extension);
        let conditions = inner.environment.conditions.iter().cloned();
        self.environment.conditions.extend(conditions);
        let set = inner.environment.set.iter().cloned();
        self.environment.set.extend(set);
        self.response.merge(&inner.response);
        take(&mut self.closed, &inner.closed);
        take(&mut self.overrides, &inner.overrides);
        self.conditional.extend(inner.conditional.iter().cloned());
    }

    fn merge_requirements(&mut self, inner: &Settings) {
        match (inner.merging, &self.require, &inner.require) {
            (None, _, None) => {}
            (None | Some(Merging::Off), _, own) => self.require.clone_from(own),
            (Some(_), Some(_), None) => {}
            (Some(_), None, own) => self.require.clone_from(own),
            (Some(merging), Some(outer), Some(own)) => {
                self.require = Some(Requirement::merged(merging, outer, own));
            }
        }
        take(&mut self.merging, &inner.merging);
    }
}

impl Authentication {
    fn merge(&mut self, inner: &Authentication) {
        take(&mut self.kind, &inner.kind);
        take(&mut self.realm, &inner.realm);
        take(&mut self.user_file, &inner.user_file);
        take(&mut self.group_file, &inner.group_file);
        take(&mut self.has_other_provider, &inner.has_other_provider);
        take(&mut self.refuses_with_403, &inner.refuses_with_403);
    }
}

fn take<T: Clone>(own: &mut Option<T>, inner: &Option<T>) {
    if inner.is_some() {
        own.clone_from(inner);
    }
}

impl ScriptSettings {
    /// Do scripts with this extension (in lower case) run?
    pub fn run(&self, extension: &str) -> bool {
        let mut by_extension = self.by_extension.iter().rev();
        let of_extension = by_extension.find(|(name, _)| name == extension);
        self.engine != Some(false)
            && match (self.handler, of_extension) {
                (Some(runs), _) => runs,
                (None, found) => found.is_none_or(|(_, runs)| *runs),
            }
    }
}
