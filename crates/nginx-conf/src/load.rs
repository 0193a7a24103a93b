//! A configuration from its files: parses each and puts included directives in
//! the place of their `include`.
//!
//! Relative paths of `include` start at the folder of the main file, as in
//! nginx. A literal path must exist; a pattern may match nothing. Depth, count
//! and size are bounded, so that no configuration loads for ever.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use system_error::SystemError;

use crate::ast::{Ast, Directive, Word};
use crate::diagnostic::Diagnostic;
use crate::loader::Loader;
use crate::parser::{MAX_BLOCK_DEPTH, MAX_DIAGNOSTICS, parse_source};
use crate::source::{Origin, SourceId, Sources};

/// How deep files may include each other; real configurations reach about four.
pub const MAX_INCLUDE_DEPTH: usize = 16;

/// How many files may be put in place of `include`, counted each time: a hundred
/// times the number that hosting panels write.
pub const MAX_INCLUDES: usize = 100_000;

/// How many bytes all texts may have, counted each time they are included:
/// a large list of addresses takes a few megabytes.
pub const MAX_TOTAL_BYTES: usize = 32 << 20;

/// A configuration's tree and complaints, after its includes were followed.
#[derive(Clone, Debug, Default)]
pub struct LoadedConfiguration {
    /// All that could be parsed.
    pub ast: Ast,
    pub sources: Sources,
    /// In the order they were found.
    pub diagnostics: Vec<Diagnostic>,
}

impl LoadedConfiguration {
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Loads the configuration file `path`; a relative one starts at `prefix`
/// (nginx's `-p`).
pub fn load(path: &Path, prefix: &Path, loader: &dyn Loader) -> LoadedConfiguration {
    load_with_globals(None, path, prefix, loader)
}

/// Like [`load`], with the directives of `-g` before those of the file.
pub fn load_with_globals(
    globals: Option<&str>,
    path: &Path,
    prefix: &Path,
    loader: &dyn Loader,
) -> LoadedConfiguration {
    let main = prefix.join(path);
    let folder = main.parent().unwrap_or(Path::new("")).to_owned();
    let mut load = Load::new(&folder, loader);
    let mut directives = Vec::new();
    if let Some(text) = globals {
        directives = load
            .text(Path::new("command line"), text.as_bytes(), Origin::Argument)
            .1;
        load.refuse_blocks(&directives);
        directives = load.expand(directives, 0);
    }
    match load.file(&main) {
        Ok((id, parsed)) => {
            load.stack.push(id);
            directives.extend(load.expand(parsed, 0));
        }
        Err(error) => load.report(Diagnostic::error_without_span(open_failed(&main, &error))),
    }
    load.finish(directives)
}

/// Parses one text. An `include` stays a directive.
pub fn parse(name: &str, text: &[u8]) -> LoadedConfiguration {
    let mut load = Load::new(Path::new(""), &crate::FileLoader);
    let directives = match load.spend(text.len()) {
        true => load.text(Path::new(name), text, Origin::File).1,
        false => {
            load.report(Diagnostic::error_without_span(too_large()));
            Vec::new()
        }
    };
    load.finish(directives)
}

/// nginx's message for a file that cannot be read.
fn open_failed(path: &Path, error: &io::Error) -> String {
    format!(
        "open() \"{}\" failed ({})",
        path.display(),
        SystemError(error)
    )
}

fn too_large() -> String {
    format!(
        "the configuration has more than {} MB",
        MAX_TOTAL_BYTES >> 20
    )
}

/// A load under way.
struct Load<'a> {
    folder: &'a Path,
    loader: &'a dyn Loader,
    loaded: LoadedConfiguration,
    /// The directives of each file, for the next time it is included.
    parsed: HashMap<PathBuf, (SourceId, Vec<Directive>)>,
    /// The files whose directives are being put in, outermost first.
    stack: Vec<SourceId>,
    includes_left: usize,
    bytes_left: usize,
}

impl<'a> Load<'a> {
    fn new(folder: &'a Path, loader: &'a dyn Loader) -> Self {
        Self {
            folder,
            loader,
            loaded: LoadedConfiguration::default(),
            parsed: HashMap::new(),
            stack: Vec::new(),
            includes_left: MAX_INCLUDES,
            bytes_left: MAX_TOTAL_BYTES,
        }
    }

    fn finish(mut self, directives: Vec<Directive>) -> LoadedConfiguration {
        self.loaded.ast = Ast { directives };
        self.loaded
    }

    /// Adds a diagnostic once: a file included many times has its mistakes once.
    fn report(&mut self, diagnostic: Diagnostic) {
        let known = &mut self.loaded.diagnostics;
        if known.len() <= MAX_DIAGNOSTICS && !known.contains(&diagnostic) {
            known.push(diagnostic);
        }
    }

    /// Whether this many bytes more are allowed.
    fn spend(&mut self, bytes: usize) -> bool {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.unwrap_or(0);
        left.is_some()
    }

    fn text(&mut self, path: &Path, bytes: &[u8], origin: Origin) -> (SourceId, Vec<Directive>) {
        let id = self.loaded.sources.add(path, bytes, origin);
        let LoadedConfiguration {
            sources,
            diagnostics,
            ..
        } = &mut self.loaded;
        let directives = match sources.source(id) {
            Some(source) => parse_source(id, source, diagnostics),
            None => Vec::new(),
        };
        (id, directives)
    }

    fn file(&mut self, path: &Path) -> io::Result<(SourceId, Vec<Directive>)> {
        let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, too_large());
        if let Some((id, directives)) = self.parsed.get(path) {
            let found = (*id, directives.clone());
            let length = self
                .loaded
                .sources
                .source(found.0)
                .map_or(0, |it| it.text().len());
            return if self.spend(length) {
                Ok(found)
            } else {
                Err(too_large())
            };
        }
        let bytes = self.loader.read(path)?;
        if !self.spend(bytes.len()) {
            return Err(too_large());
        }
        let found = self.text(path, &bytes, Origin::File);
        self.parsed.insert(path.to_owned(), found.clone());
        Ok(found)
    }

    /// `-g` takes simple directives only.
    fn refuse_blocks(&mut self, directives: &[Directive]) {
        for directive in directives.iter().filter(|it| it.block.is_some()) {
            let message = "block directives are not supported in -g option";
            self.report(
                Diagnostic::error(directive.head(), message)
                    .label("expected a directive that ends in ;"),
            );
        }
    }

    /// Puts files in the place of each `include`, at any depth.
    fn expand(&mut self, directives: Vec<Directive>, depth: usize) -> Vec<Directive> {
        let mut expanded = Vec::with_capacity(directives.len());
        for mut directive in directives {
            if directive.name.text == "include" {
                if let Some(argument) = self.include_argument(&directive) {
                    self.include(argument, depth, &mut expanded);
                }
                continue;
            }
            if let Some(block) = directive.block.take() {
                if depth >= MAX_BLOCK_DEPTH {
                    let message = format!("blocks are nested more than {MAX_BLOCK_DEPTH} deep");
                    self.report(Diagnostic::error(directive.head(), message).label("one too many"));
                    continue;
                }
                directive.block = Some(self.expand(block, depth + 1));
            }
            expanded.push(directive);
        }
        expanded
    }

    fn include_argument<'d>(&mut self, include: &'d Directive) -> Option<&'d Word> {
        if include.block.is_some() {
            let message = "directive \"include\" is not terminated by \";\"";
            self.report(Diagnostic::error(include.head(), message).label("expected ; after this"));
            return None;
        }
        match include.args.as_slice() {
            [argument] => Some(argument),
            _ => {
                let message = "invalid number of arguments in \"include\" directive";
                self.report(
                    Diagnostic::error(include.head(), message)
                        .label("expected one path or pattern"),
                );
                None
            }
        }
    }

    fn include(&mut self, argument: &Word, depth: usize, into: &mut Vec<Directive>) {
        let path = self.folder.join(&argument.text);
        if !argument.text.contains(['*', '?', '[']) {
            self.include_file(&path, argument, depth, into);
            return;
        }
        match self.loader.glob(&path) {
            Ok(paths) => {
                for path in paths {
                    self.include_file(&path, argument, depth, into);
                }
            }
            Err(error) => {
                let message = format!("glob() \"{}\" failed ({error})", path.display());
                self.report(
                    Diagnostic::error(argument.span, message).label("not a usable pattern"),
                );
            }
        }
    }

    fn include_file(
        &mut self,
        path: &Path,
        argument: &Word,
        depth: usize,
        into: &mut Vec<Directive>,
    ) {
        let Some(left) = self.includes_left.checked_sub(1) else {
            let message = format!("more than {MAX_INCLUDES} files are included");
            self.report(Diagnostic::error(argument.span, message).label("not included"));
            return;
        };
        self.includes_left = left;
        let cycle = self
            .parsed
            .get(path)
            .is_some_and(|(id, _)| self.stack.contains(id));
        if cycle {
            let message = format!("\"{}\" includes itself", path.display());
            self.report(Diagnostic::error(argument.span, message).label("already being included"));
            return;
        }
        if self.stack.len() > MAX_INCLUDE_DEPTH {
            let message = format!("files include each other more than {MAX_INCLUDE_DEPTH} deep");
            self.report(Diagnostic::error(argument.span, message).label("not included"));
            return;
        }
        match self.file(path) {
            Ok((id, directives)) => {
                self.stack.push(id);
                into.extend(self.expand(directives, depth));
                self.stack.pop();
            }
            Err(error) => {
                let label = match error.kind() {
                    io::ErrorKind::NotFound => "expected a file that exists",
                    _ => "expected a file that can be read",
                };
                self.report(
                    Diagnostic::error(argument.span, open_failed(path, &error)).label(label),
                );
            }
        }
    }
}
