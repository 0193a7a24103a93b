//! From a configuration file to a [`Site`] in one call: load, parse, check, lower.

use std::path::{Path, PathBuf};

use nginx_conf::{
    Ast, Diagnostic, Loader, MAX_DIAGNOSTICS, Sources, load_with_globals, merge_by_cause,
};

use crate::lower::{LowerOptions, lower};
use crate::model::Site;

/// The result of reading a configuration.
#[derive(Debug)]
pub struct ReadConfiguration {
    /// There when no diagnostic is an error.
    pub site: Option<Site>,
    /// The tree, for `check --explain`.
    pub ast: Ast,
    pub sources: Sources,
    /// Messages to show: one for each cause, in the order of the text, those of the grammar
    /// first, and at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// All messages, not merged.
    pub complaints: Vec<Diagnostic>,
}

impl ReadConfiguration {
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads the configuration file `path` (relative ones start at `prefix`) after
/// the directives in `globals` (nginx's `-g`). `error_log_override` is nginx's
/// `-e`: the error log where the file names none; relative to `prefix`.
pub fn read(
    path: &Path,
    prefix: &Path,
    globals: Option<&str>,
    error_log_override: Option<&Path>,
    loader: &dyn Loader,
) -> ReadConfiguration {
    let prefix = std::path::absolute(prefix).unwrap_or_else(|_| PathBuf::from(prefix));
    let main = prefix.join(path);
    let folder = main.parent().unwrap_or(Path::new("/"));
    let mut options = LowerOptions::new(&prefix, folder);
    options.error_log = error_log_override.map(|path| prefix.join(path));
    read_with(path, globals, loader, &options)
}

/// Like [`read`], with the facts about the machine as an argument.
pub fn read_with(
    path: &Path,
    globals: Option<&str>,
    loader: &dyn Loader,
    options: &LowerOptions,
) -> ReadConfiguration {
    let loaded = load_with_globals(globals, path, &options.prefix, loader);
    let is_broken = loaded.has_errors();
    let (site, mut found) = lower(&loaded.ast, &loaded.sources, options);
    if is_broken {
        // Directives that seem to be missing may be in the part that could not be read.
        found.retain(|diagnostic| diagnostic.span.is_some());
    }
    let mut diagnostics = loaded.diagnostics;
    let complaints: Vec<Diagnostic> = diagnostics.iter().chain(&found).cloned().collect();
    let mut found = merge_by_cause(found);
    found.truncate(MAX_DIAGNOSTICS);
    diagnostics.extend(found);
    ReadConfiguration {
        site: site.filter(|_| !is_broken),
        ast: loaded.ast,
        sources: loaded.sources,
        diagnostics,
        complaints,
    }
}

/// Reads any bytes as a configuration without includes, for fuzzing. The result must be a site
/// or an error.
///
/// # Panics
///
/// When there is neither, or both.
#[doc(hidden)]
pub fn fuzz_read(bytes: &[u8]) {
    let loader: nginx_conf::MemoryLoader = [("/mayfly.conf", bytes.to_vec())].into_iter().collect();
    let options = LowerOptions {
        prefix: PathBuf::from("/"),
        conf_folder: PathBuf::from("/"),
        error_log: None,
        text_name: None,
        privileged: true,
        hostname: "machine".to_owned(),
        resolve: |_, _| Ok(Vec::new()),
    };
    let reading = read_with(Path::new("/mayfly.conf"), None, &loader, &options);
    assert_eq!(
        reading.site.is_none(),
        reading.has_errors(),
        "a site or an error"
    );
    for diagnostic in &reading.diagnostics {
        nginx_conf::render(diagnostic, &reading.sources, nginx_conf::Style::Plain);
    }
    crate::explain(&reading.ast, &reading.sources, &reading.complaints);
    let found = crate::hazards(&reading.ast);
    for source in reading.sources.iter() {
        crate::edited(source.text(), found.iter().flat_map(|it| &it.edits));
    }
}
