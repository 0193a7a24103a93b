//! Locations of folders below the root.

use crate::access::Access;
use crate::names::path_pattern;
use crate::patterns::over_lines;
use crate::php;
use crate::rewrite::argument;
use crate::site::Folder;
use crate::write::{ANY_SCRIPT, DOT, LimitedFolder, Writer, scripts_in};
use crate::write_files;

impl Writer<'_> {
    /// Refusals of files in a folder that has no location of its own.
    pub fn folder_refusals(&mut self, limited: &LimitedFolder<'_>) {
        if limited.access == Access::Closed || write_files::needs_location(limited) {
            return;
        }
        let folder = limited.folder;
        for (named, access) in folder.named.iter().zip(&limited.named).rev() {
            if *access == Some(Access::Closed) {
                let (case, pattern) = path_pattern(&named.names, &folder.path);
                self.deny(case, &over_lines(&pattern));
            }
        }
        if folder.settings.is_without_php {
            self.deny(false, &scripts_in(&folder.path));
        }
    }

    /// A folder with its own location.
    pub fn below_location(
        &mut self,
        limited: &LimitedFolder<'_>,
        all: &[LimitedFolder<'_>],
        is_closed: bool,
    ) {
        let folder = limited.folder;
        let is_hidden = all.iter().any(|it| {
            it.folder.path != folder.path
                && folder.path.starts_with(&it.folder.path)
                && write_files::needs_location(it)
        });
        if is_closed {
            if is_hidden {
                self.conf
                    .open(&format!("location ^~ {}", argument(&folder.path)));
                self.conf.line("deny all;");
                self.conf.close();
                self.conf.gap();
            }
            return;
        }
        if !write_files::needs_location(limited) {
            return;
        }
        if !folder.content.is_empty() {
            return self.content_location(limited);
        }
        self.conf
            .open(&format!("location ^~ {}", argument(&folder.path)));
        write_files::own_lines(&mut self.conf, limited, &self.root.access);
        self.conf.gap();
        let begin = self.conf.text.len();
        self.deny(false, DOT);
        if limited.settings.is_without_php {
            self.deny(false, ANY_SCRIPT);
        }
        write_files::refusals_within(self, limited);
        match &folder.place {
            // The path of the script would not be that of its file.
            Some(place) if place.starts_with("alias") => self.deny(false, ANY_SCRIPT),
            _ => php::location_in(self, &limited.settings),
        }
        write_files::extensions_of(self, limited);
        if let Some(fallback) = self
            .fallback(&folder.path)
            .filter(|_| folder.place.is_none())
        {
            self.conf.line(&format!("try_files {fallback};"));
        }
        if let Access::Limited(limits) = &limited.access {
            let inner = self.conf.text.split_off(begin);
            let refused = limits.refused_lines();
            self.conf.text.push_str(&with_conditions(&inner, &refused));
        }
        self.conf.close();
        self.conf.gap();
    }

    /// A folder that another server answers for, and its path without a slash, which is one of its own.
    fn content_location(&mut self, limited: &LimitedFolder<'_>) {
        let folder = limited.folder;
        let lines = self.content(folder);
        let without_slash = folder.path.trim_end_matches('/');
        if folder.is_exact {
            self.conf
                .open(&format!("location = {}", argument(without_slash)));
            write_files::own_lines(&mut self.conf, limited, &self.root.access);
            for line in &lines {
                match line
                    .strip_suffix("/;")
                    .filter(|it| it.starts_with("proxy_pass "))
                {
                    Some(address) => self.conf.line(&format!("{address};")),
                    None => self.conf.line(line),
                }
            }
            self.conf.close();
            self.conf.gap();
        }
        self.conf
            .open(&format!("location ^~ {}", argument(&folder.path)));
        write_files::own_lines(&mut self.conf, limited, &self.root.access);
        lines.iter().for_each(|it| self.conf.line(it));
        self.conf.close();
        self.conf.gap();
    }

    /// The lines of a location that asks another server, with the fields that this one is given.
    pub fn content(&self, folder: &Folder) -> Vec<String> {
        let mut lines = folder.content.clone();
        if lines.iter().any(|it| it.starts_with("proxy_pass ")) {
            let fields = self.site.proxy_fields.iter();
            lines.extend(fields.map(|(name, value)| format!("proxy_set_header {name} {value};")));
        }
        lines
    }
}

/// The locations in `text`, each with these lines at its begin: an `if` holds in its own location only, and not in those
/// within it.
fn with_conditions(text: &str, lines: &[String]) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        out.push_str(line);
        let inner = line.trim_start();
        if inner.starts_with("location ") && inner.trim_end().ends_with('{') {
            let indent = &line[..line.len() - inner.len()];
            for added in lines {
                out.push_str(&format!("{indent}    {added}\n"));
            }
        }
    }
    out
}
