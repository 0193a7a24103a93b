//! A site as the lines of Apache describe it: folders with what is said of them, and what holds for all.

use crate::rewrite::{RewriteProgram, RewriteSection};
use crate::settings::{NamedSettings, Names, Settings};

/// A folder of the site.
#[derive(Debug, Default)]
pub struct Folder {
    /// The path of its address, with a slash at both ends; empty for a server's own lines.
    pub path: String,
    pub settings: Settings,
    pub named: Vec<NamedSettings>,
    pub rewrite: RewriteSection,
    /// `Redirect` and its relatives.
    pub redirects: RewriteSection,
    /// `root` or `alias`, where its files are elsewhere.
    pub place: Option<String>,
    /// Lines of a location that asks another server, or runs nothing.
    pub content: Vec<String>,
    /// Its path without a slash belongs to it as well.
    pub is_exact: bool,
}

/// A variable of Apache's environment, and the lines that set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentVariable {
    pub name: String,
    pub lines: Vec<String>,
}

/// The address of a server, and what it says once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLines {
    pub names: Vec<String>,
    pub root: Option<String>,
    pub is_tls: bool,
    pub has_http2: bool,
    /// Logs, certificates and what TLS is made of.
    pub lines: Vec<String>,
    /// Addresses of `Alias`, and their folders.
    pub aliases: Vec<(String, String)>,
    /// The `Host` of the request is passed on to other servers.
    pub passes_host: bool,
    /// The host that was asked for, with its port where that is not the usual one.
    pub asked_host: &'static str,
    pub log_level: Option<String>,
}

/// A site.
#[derive(Debug, Default)]
pub struct Site {
    pub folders: Vec<Folder>,
    pub environment: Vec<EnvironmentVariable>,
    /// Names and values that PHP is given.
    pub php_params: Vec<(String, String)>,
    /// Settings of PHP, `name=value`; the second ones cannot be changed by scripts.
    pub php_values: Vec<String>,
    pub php_admin_values: Vec<String>,
    /// Where PHP listens.
    pub php: Option<String>,
    /// No other lines of the server run scripts.
    pub is_whole_server: bool,
    /// Other lines of the server refuse hidden files, and lead to the front controller of the root.
    pub is_for_serve: bool,
    /// What a server says of itself.
    pub server: ServerLines,
    /// Fields, with their quoted values, for servers behind this one.
    pub proxy_fields: Vec<(String, String)>,
    /// Lines about proxies and other folders: whole locations.
    pub locations: Vec<String>,
}

impl Site {
    /// The folder of this path; it is made if the site does not have it yet.
    pub fn folder(&mut self, path: &str) -> &mut Folder {
        let at = self.folders.iter().position(|it| it.path == path);
        let at = at.unwrap_or_else(|| {
            self.folders.push(Folder {
                path: path.to_owned(),
                ..Folder::default()
            });
            self.folders.len() - 1
        });
        &mut self.folders[at]
    }

    pub fn is_environment(&self, name: &str) -> bool {
        self.environment
            .iter()
            .any(|it| it.name.eq_ignore_ascii_case(name))
    }

    /// Is it a whole server with files, among which scripts would be shown as text?
    pub fn shows_files(&self) -> bool {
        self.is_whole_server && self.server.root.is_some()
    }

    /// Adds a line that sets a variable.
    pub fn set_environment(&mut self, name: &str, line: Option<String>) {
        let at = self.environment.iter().position(|it| it.name == name);
        let at = at.unwrap_or_else(|| {
            self.environment.push(EnvironmentVariable {
                name: name.to_owned(),
                lines: Vec::new(),
            });
            self.environment.len() - 1
        });
        self.environment[at].lines.extend(line);
    }
}

impl Folder {
    /// The settings of these names; they are made if the folder does not have them yet.
    pub fn named(&mut self, names: Names, item: &htaccess::item::Item) -> &mut Settings {
        let at = self.named.iter().position(|it| it.names == names);
        let at = at.unwrap_or_else(|| {
            self.named.push(NamedSettings {
                names,
                settings: Settings::default(),
                item: item.clone(),
            });
            self.named.len() - 1
        });
        &mut self.named[at].settings
    }

    pub fn program(&self, is_environment: &dyn Fn(&str) -> bool) -> RewriteProgram {
        match self.rewrite.is_on {
            true => self.rewrite.program(&self.path, is_environment),
            false => RewriteProgram::default(),
        }
    }
}
