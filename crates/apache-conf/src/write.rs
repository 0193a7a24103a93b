//! Writes a [`Site`] as lines for the inside of a `server`: what is set, then rules in the order in which Apache applies
//! them, then locations. Refusals come first among these; a path that is refused or limited is led nowhere by a rule.

use nginx_conf::text::Conf;

use crate::access::{Access, AccessLines};
use crate::names::path_pattern;
use crate::note::{Kind, Note};
use crate::patterns::{literal, matches, over_lines};
use crate::php;
use crate::rewrite::{FrontController, argument};
use crate::settings::Settings;
use crate::site::{Folder, Site};
use crate::write_files;

/// Names that begin with a dot, but for proofs of ownership.
pub const DOT: &str = r"/\.(?!well-known(?:/|$))";
/// Scripts, where they are not run.
pub const ANY_SCRIPT: &str = r"\.(?i:ph(?:p\d?|ar|tml|t))(?:/|$)";

/// A folder with who may have what is in it.
pub struct LimitedFolder<'a> {
    pub folder: &'a Folder,
    pub access: Access,
    /// Those of the folders around it, and its own.
    pub settings: Settings,
    /// Of its `<Files>` sections, in their order; `None` where nothing is said of access.
    pub named: Vec<Option<Access>>,
}

/// What all parts know.
pub struct Writer<'a> {
    pub site: &'a Site,
    pub root: LimitedFolder<'a>,
    /// Folders below the root, the deeper ones first.
    pub below: Vec<LimitedFolder<'a>>,
    pub fronts: Vec<(String, FrontController)>,
    pub conf: Conf,
    pub notes: Vec<Note>,
    /// Patterns of paths that rules refuse and lead to, and their statuses.
    pub refused: Vec<(String, u16)>,
    /// Scripts are refused, since it is not known what runs them.
    pub refuses_scripts: bool,
}

/// What a site became.
pub struct WrittenSite {
    pub text: String,
    pub notes: Vec<Note>,
    pub refuses_scripts: bool,
}

/// The lines of a site, and what is not translated.
pub fn site(site: &Site) -> WrittenSite {
    let empty = Folder {
        path: "/".to_owned(),
        ..Folder::default()
    };
    let mut notes = Vec::new();
    let root = site
        .folders
        .iter()
        .find(|it| it.path == "/")
        .unwrap_or(&empty);
    let mut below: Vec<&Folder> = site.folders.iter().filter(|it| it.path.len() > 1).collect();
    below.sort_by(|a, b| b.path.len().cmp(&a.path.len()).then(a.path.cmp(&b.path)));
    let root = limited(site, root, &mut notes);
    let below = below
        .into_iter()
        .map(|it| limited(site, it, &mut notes))
        .collect();
    let mut writer = Writer {
        site,
        root,
        below,
        fronts: Vec::new(),
        conf: Conf::default(),
        notes,
        refused: Vec::new(),
        refuses_scripts: false,
    };
    writer.all();
    WrittenSite {
        text: writer.conf.text,
        notes: writer.notes,
        refuses_scripts: writer.refuses_scripts,
    }
}

fn limited<'a>(site: &'a Site, folder: &'a Folder, notes: &mut Vec<Note>) -> LimitedFolder<'a> {
    let knows = |it: &str| site.is_environment(it);
    let mut around: Vec<&Folder> = site
        .folders
        .iter()
        .filter(|it| {
            !it.path.is_empty() && folder.path.starts_with(&it.path) && it.path != folder.path
        })
        .collect();
    around.sort_by_key(|it| it.path.len());
    let settings = around
        .iter()
        .fold(Settings::default(), |all, it| all.over(&it.settings))
        .over(&folder.settings);
    let outer = around.iter().fold(AccessLines::default(), |outer, it| {
        it.settings.access.clone().within(&outer)
    });
    // Notes of what is around stand there.
    let own = folder.settings.access.clone().within(&outer);
    let access = match folder.settings.access.is_empty() {
        true => own.access(&knows, &mut Vec::new()),
        false => own.access(&knows, notes),
    };
    let named = folder.named.iter().map(|it| {
        let access = &it.settings.access;
        (!access.is_empty()).then(|| access.clone().within(&own).access(&knows, notes))
    });
    let named: Vec<Option<Access>> = named.collect();
    LimitedFolder {
        folder,
        access,
        settings,
        named,
    }
}

impl Writer<'_> {
    fn all(&mut self) {
        self.settings();
        self.environment();
        let rules = self.rules();
        self.root_access();
        self.conf.text.push_str(&rules);
        if !rules.is_empty() {
            self.conf.gap();
        }
        self.locations();
    }

    fn settings(&mut self) {
        let mut lines: Vec<String> = Vec::new();
        let settings = match self.site.folders.iter().find(|it| it.path.is_empty()) {
            Some(server) => server.settings.over(&self.root.settings),
            None => self.root.settings.clone(),
        };
        self.root.settings = settings;
        lines.extend(self.site.server.lines.iter().cloned());
        let settings = &self.root.settings;
        lines.extend(settings.lines.iter().cloned());
        if let Some(expires) = &settings.expires {
            lines.push(format!("expires {expires};"));
        }
        lines.extend(settings.field_lines());
        for field in &settings.hidden {
            lines.push(format!("fastcgi_hide_header {field};"));
        }
        if self.site.php.is_some() {
            lines.extend(php::params(self.site));
        } else if php::says_something(self.site) && self.root.folder.content.is_empty() {
            lines.push("# PHP is given these beside fastcgi_pass, where lines of this kind take the place of these.".to_owned());
            lines.extend(php::own_params(self.site));
        }
        let is_empty = lines.is_empty();
        lines.iter().for_each(|it| self.conf.line(it));
        if !is_empty {
            self.conf.gap();
        }
    }

    fn environment(&mut self) {
        for variable in &self.site.environment {
            self.conf.line(&format!(
                "set ${} \"\";",
                crate::rewrite::environment(&variable.name)
            ));
            variable.lines.iter().for_each(|it| self.conf.line(it));
        }
        if !self.site.environment.is_empty() {
            self.conf.gap();
        }
    }

    fn root_access(&mut self) {
        match self.root.access.clone() {
            Access::Open => return,
            Access::Closed => self.conf.line("deny all;"),
            Access::Limited(limits) => limits.lines().iter().for_each(|it| self.conf.line(it)),
        }
        self.conf.gap();
    }

    /// Redirects and rewrites, for the server.
    fn rules(&mut self) -> String {
        let knows = |it: &str| self.site.is_environment(it);
        let mut conf = Conf::default();
        let mut refused: Vec<(String, u16)> = Vec::new();
        let mut targets: Vec<String> = Vec::new();
        let mut notes = Vec::new();
        let mut fronts = Vec::new();
        let folders: Vec<&Folder> = self
            .below
            .iter()
            .map(|it| it.folder)
            .chain([self.root.folder])
            .collect();
        let server = self.site.folders.iter().find(|it| it.path.is_empty());
        let mut first = Conf::default();
        for folder in server.into_iter() {
            let program = folder.program(&knows);
            first.text.push_str(&program.text);
            notes.extend(program.notes);
            let redirects = folder.redirects.program("", &knows);
            first.text.push_str(&redirects.text);
            notes.extend(redirects.notes);
        }
        for folder in &folders {
            let redirects = folder.redirects.program("", &knows);
            conf.text.push_str(&redirects.text);
            notes.extend(redirects.notes);
        }
        let has_root_rules =
            !self.root.folder.rewrite.rules.is_empty() && self.root.folder.rewrite.is_on;
        for folder in &folders {
            let program = folder.program(&knows);
            conf.text.push_str(&program.text);
            notes.extend(program.notes);
            refused.extend(program.refused);
            targets.extend(program.targets);
            fronts.extend(program.front.map(|it| (folder.path.clone(), it)));
            let is_own = folder.rewrite.is_said && folder.path.len() > 1;
            if is_own && has_root_rules {
                conf.line(&format!(
                    "if ($uri ~ ^{}) {{ break; }}",
                    literal(&folder.path)
                ));
            }
            if !folder.rewrite.is_on {
                for rule in &folder.rewrite.rules {
                    let why = "RewriteEngine is not on here";
                    let lines = rule
                        .conditions
                        .iter()
                        .map(|it| Note::new(&it.place, &it.text, why, Kind::LeftOut));
                    notes.extend(lines);
                    notes.push(Note::of(&rule.item, why, Kind::LeftOut));
                }
            }
        }
        self.notes.extend(notes);
        self.fronts = fronts;
        // Apache begins again with the path to which a rule leads.
        refused.retain(|(pattern, _)| {
            targets
                .iter()
                .any(|it| it.contains('$') || matches(pattern, it) != Some(false))
        });
        self.refused = refused;
        let mut text = first.text;
        if !conf.text.is_empty() {
            let mut guard = Conf::default();
            let mut patterns = self.restricted();
            // Apache refuses these before it looks at rules.
            patterns.push((false, r"/\.ht".to_owned()));
            if !patterns.is_empty() {
                guard.note("What is refused or limited is led nowhere else.");
            }
            for (case, pattern) in patterns {
                let case = if case { "*" } else { "" };
                guard.line(&format!(
                    "if ($uri ~{case} {}) {{ break; }}",
                    nginx_conf::text::quoted(&pattern)
                ));
            }
            text.push_str(&guard.text);
            text.push_str(&conf.text);
        }
        text
    }

    /// Patterns of paths that are not for everybody, and whether case does not count.
    fn restricted(&self) -> Vec<(bool, String)> {
        let mut patterns = Vec::new();
        let closed = self.closed_folders();
        patterns.extend(closed.map(|it| (false, it)));
        for limited in &self.below {
            let is_limited = match limited.access {
                Access::Open => false,
                Access::Closed => self.is_within_own(limited),
                Access::Limited(_) => !limited.folder.settings.access.is_empty(),
            };
            if is_limited {
                patterns.push((
                    false,
                    format!(
                        "^{}(?:/|$)",
                        literal(limited.folder.path.trim_end_matches('/'))
                    ),
                ));
            }
            if limited.folder.settings.is_without_php {
                patterns.push((false, scripts_in(&limited.folder.path)));
            }
        }
        for limited in self.below.iter().chain([&self.root]) {
            for (named, access) in limited.folder.named.iter().zip(&limited.named) {
                if matches!(access, Some(Access::Closed | Access::Limited(_))) {
                    let (case, pattern) = path_pattern(&named.names, &limited.folder.path);
                    patterns.push((case, over_lines(&pattern)));
                }
            }
        }
        patterns
    }

    /// One pattern for the folders that are closed.
    fn closed_folders(&self) -> Option<String> {
        let closed = self
            .below
            .iter()
            .filter(|it| it.access == Access::Closed && !self.is_within_own(it));
        let mut names: Vec<String> = closed
            .map(|it| literal(it.folder.path.trim_matches('/')))
            .collect();
        names.sort();
        let pattern = match &names[..] {
            [] => return None,
            [one] => one.clone(),
            all => format!("(?:{})", all.join("|")),
        };
        Some(format!("^/{pattern}(?:/|$)"))
    }

    /// Is it in a folder that has a location of its own, which hides patterns outside of it?
    fn is_within_own(&self, limited: &LimitedFolder<'_>) -> bool {
        self.below.iter().any(|it| {
            it.folder.path != limited.folder.path
                && limited.folder.path.starts_with(&it.folder.path)
                && write_files::needs_location(it)
        })
    }

    fn locations(&mut self) {
        let is_proxy = !self.root.folder.content.is_empty();
        if !is_proxy && !self.site.is_for_serve {
            self.deny(false, DOT);
        }
        for (pattern, status) in std::mem::take(&mut self.refused) {
            self.conf
                .open(&format!("location ~ {}", argument_of_pattern(&pattern)));
            self.conf.line(&format!("return {status};"));
            self.conf.close();
            self.conf.gap();
        }
        if let Some(pattern) = self.closed_folders() {
            self.deny(false, &pattern);
        }
        let below = std::mem::take(&mut self.below);
        for limited in &below {
            self.folder_refusals(limited);
        }
        for limited in &below {
            let is_closed = limited.access == Access::Closed;
            self.below_location(limited, &below, is_closed);
        }
        self.below = below;
        write_files::named_access(self);
        for location in &self.site.locations {
            location.lines().for_each(|it| self.conf.line(it));
            self.conf.gap();
        }
        if is_proxy {
            self.conf.open("location /");
            let content = self.content(self.root.folder);
            content.iter().for_each(|it| self.conf.line(it));
            self.conf.close();
            return;
        }
        php::location(self);
        write_files::extensions(self);
        self.front_controllers();
    }

    pub fn deny(&mut self, is_caseless: bool, pattern: &str) {
        let compares = if is_caseless { "~*" } else { "~" };
        self.conf.open(&format!(
            "location {compares} {}",
            argument_of_pattern(pattern)
        ));
        self.conf.line("deny all;");
        self.conf.close();
        self.conf.gap();
    }

    /// The arguments of `try_files` for a folder.
    pub fn fallback(&self, folder: &str) -> Option<String> {
        Some(try_files(self.front(folder)?.1))
    }

    /// The front controller of a folder, with the path of the folder in which it is said.
    pub fn front(&self, folder: &str) -> Option<(&str, &FrontController)> {
        let fronts = self.fronts.iter().filter(|it| folder.starts_with(&it.0));
        let (path, front) = fronts.max_by_key(|it| it.0.len())?;
        Some((path, front))
    }

    fn front_controllers(&mut self) {
        let fronts = std::mem::take(&mut self.fronts);
        for (folder, front) in &fronts {
            for path in &front.without {
                self.conf.open(&format!("location = {}", argument(path)));
                self.conf.line("try_files $uri =404;");
                self.conf.close();
                self.conf.gap();
            }
            let lines = [
                format!("location {} {{", argument(folder)),
                format!("    try_files {};", try_files(front)),
                "}".to_owned(),
            ];
            if self.site.is_for_serve && folder == "/" {
                self.conf
                    .note("The location / of the server stands for this one:");
                lines.iter().for_each(|it| self.conf.note(it));
            } else {
                lines.iter().for_each(|it| self.conf.line(it));
            }
            self.conf.gap();
            if let Some(pattern) = &front.pattern {
                self.conf
                    .open(&format!("location {}", named_location(front)));
                self.conf.line(&format!(
                    "rewrite {} {} last;",
                    argument_of_pattern(pattern),
                    argument(&front.target)
                ));
                self.conf.close();
                self.conf.gap();
            }
        }
        self.fronts = fronts;
        while self.conf.text.ends_with("\n\n") {
            self.conf.text.pop();
        }
    }
}

fn try_files(front: &FrontController) -> String {
    let folders = if front.keeps_folders { " $uri/" } else { "" };
    format!("$uri{folders} {}", last_argument(front))
}

/// Where `try_files` leads what is not there.
pub fn last_argument(front: &FrontController) -> String {
    match front.pattern {
        Some(_) => named_location(front),
        None => argument(&front.target),
    }
}

/// The name of the location of a front controller whose rule captures the path.
fn named_location(front: &FrontController) -> String {
    let name = front.script.trim_matches('/');
    let letters = name
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '_' });
    format!("@{}", letters.collect::<String>())
}

/// The pattern of the scripts in a folder.
pub fn scripts_in(folder: &str) -> String {
    match folder {
        "/" => ANY_SCRIPT.to_owned(),
        folder => format!("(?s)^{}.*{ANY_SCRIPT}", literal(folder)),
    }
}

/// A pattern as an argument, without quotes where the syntax can do without.
pub fn argument_of_pattern(pattern: &str) -> String {
    let is_plain = !pattern.contains(['{', '}', ';', '"', '\'', '#', ' ', '\t'])
        && !pattern.chars().any(char::is_control);
    // Without quotes, two backslashes would be read as one.
    match is_plain && !pattern.starts_with('(') && !pattern.contains(r"\\") {
        true => pattern.to_owned(),
        false => nginx_conf::text::quoted(pattern),
    }
}
