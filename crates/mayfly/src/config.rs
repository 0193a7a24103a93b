//! The place of the configuration, and how it is read again: from files, or from
//! texts held in memory (`mayfly serve`, and the worker process, which may not be
//! allowed to read the files).

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nginx_conf::{Diagnostic, FileLoader, Loader, MemoryLoader, Note, Severity, Sources, Style};
use site::{LowerOptions, OwnFiles, ReadConfiguration, Site};

use crate::cli::Flags;
use command_line::terminal;

/// The name of `mayfly serve`'s configuration, which messages replace.
pub const MADE_CONF: &str = "/mayfly-serve.conf";

/// The command that shows the lines of that configuration.
const PRINTS_MADE_CONF: &str = "mayfly serve --print-config";

/// The hint for a missing configuration file, or one in another folder.
const NO_FILE: &str = "with -p, -c begins at that folder, else where you are; \
     mayfly serve DIR needs no file, and mayfly serve DIR --print-config writes one";

/// Puts the written text into a complaint in place of its position: the text is no
/// file.
fn without_place(diagnostic: &mut Diagnostic, sources: &Sources) {
    diagnostic.notes.retain(|note| note.span.is_none());
    let Some(span) = diagnostic.span.take() else {
        return;
    };
    let line = sources.position(span).and_then(|place| {
        let text = sources.source(span.source)?.text();
        text.lines().nth(place.line.checked_sub(1)?)
    });
    if let Some(line) = line {
        diagnostic.notes.push(Note {
            message: format!("the options of serve made of it: {}", line.trim()),
            span: None,
        });
    }
}

/// The configuration to read.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The main file, absolute.
    pub path: PathBuf,
    /// Absolute.
    pub prefix: PathBuf,
    /// `-g`.
    pub globals: Option<String>,
    /// `-e`.
    pub error_log: Option<PathBuf>,
    /// Texts to read instead of files.
    pub texts: Option<Arc<MemoryLoader>>,
    /// Read for a program that root started, even if another account reads it now.
    pub is_privileged: bool,
}

impl Invocation {
    pub fn from_flags(flags: &Flags) -> Invocation {
        Invocation {
            path: flags.conf(),
            prefix: flags.prefix(),
            globals: flags.globals.clone(),
            error_log: flags.error_log.clone(),
            texts: None,
            is_privileged: false,
        }
    }

    /// One text that is nowhere on the disk, under the name that messages show.
    pub fn from_text(name: &Path, text: String) -> Invocation {
        Invocation {
            path: name.to_owned(),
            prefix: crate::paths::PREFIX.into(),
            globals: None,
            error_log: None,
            texts: Some(Arc::new([(name, text)].into_iter().collect())),
            is_privileged: false,
        }
    }

    pub fn read(&self) -> ReadConfiguration {
        let loader: &dyn Loader = match &self.texts {
            Some(texts) => &**texts,
            None => &FileLoader,
        };
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut options = LowerOptions::new(&self.prefix, folder);
        options.privileged |= self.is_privileged;
        options.error_log = self.error_log.as_deref().map(|path| match path.to_str() {
            Some("stderr") => PathBuf::from("/dev/stderr"),
            _ => OwnFiles::of(&self.prefix).logs.join(path),
        });
        options.text_name = self.is_made().then_some(PRINTS_MADE_CONF);
        let mut reading = site::read_with(&self.path, self.globals.as_deref(), loader, &options);
        if self.texts.is_none() && !self.path.exists() {
            let error = reading
                .diagnostics
                .first_mut()
                .filter(|it| it.span.is_none());
            if let Some(error) = error {
                error.hint = Some(NO_FILE.to_owned());
            }
        }
        if self.is_made() {
            for diagnostic in &mut reading.diagnostics {
                without_place(diagnostic, &reading.sources);
            }
        }
        reading
    }

    /// The text is `mayfly serve`'s own, and no file that anybody could look into.
    fn is_made(&self) -> bool {
        self.texts.is_some() && self.path == Path::new(MADE_CONF)
    }

    /// `-e` as a file, absolute; `None` when it is not given or is `stderr`.
    pub fn error_log_file(&self) -> Option<PathBuf> {
        let file = self.error_log.as_deref()?;
        (file != Path::new("stderr")).then(|| OwnFiles::of(&self.prefix).logs.join(file))
    }
}

/// A configuration that can be served, and the texts it came from.
pub struct AcceptedConfiguration {
    pub site: Site,
    pub sources: Sources,
    pub warnings: Vec<Diagnostic>,
    /// There is a `pid` directive: where it points must be writable.
    pub names_pid_file: bool,
}

/// A configuration that cannot.
pub struct RejectedConfiguration {
    pub sources: Sources,
    pub diagnostics: Vec<Diagnostic>,
}

/// Sorts out whether the reading is of use.
///
/// # Errors
/// [`RejectedConfiguration`], with every complaint.
pub fn judge(reading: ReadConfiguration) -> Result<AcceptedConfiguration, RejectedConfiguration> {
    let ReadConfiguration {
        site,
        ast,
        sources,
        diagnostics,
        complaints: _,
    } = reading;
    let is_refused = diagnostics.iter().any(Diagnostic::is_error);
    match site {
        Some(site) if !is_refused => {
            let names_pid_file = ast.directives.iter().any(|it| it.name.text == "pid");
            Ok(AcceptedConfiguration {
                site,
                sources,
                warnings: diagnostics,
                names_pid_file,
            })
        }
        _ => Err(RejectedConfiguration {
            sources,
            diagnostics,
        }),
    }
}

/// Shows complaints on the terminal, underlined.
pub fn show(diagnostics: &[Diagnostic], sources: &Sources) {
    let style = if terminal::wants_colours(&io::stderr()) {
        Style::Coloured
    } else {
        Style::Plain
    };
    let mut stderr = io::stderr().lock();
    for diagnostic in diagnostics {
        // The reader may be gone.
        let _ = writeln!(
            stderr,
            "{}\n",
            nginx_conf::render(diagnostic, sources, style)
        );
    }
}

/// Returns the same diagnostics for a log: one line each, as nginx words them, with
/// its level.
pub fn lines<'a>(
    diagnostics: &'a [Diagnostic],
    sources: &'a Sources,
) -> impl Iterator<Item = (site::LogLevel, String)> + 'a {
    diagnostics.iter().map(|diagnostic| {
        let level = match diagnostic.severity {
            Severity::Error => site::LogLevel::Emerg,
            Severity::Warning => site::LogLevel::Warn,
        };
        let mut line = diagnostic.one_line(sources);
        if let Some(hint) = &diagnostic.hint {
            line.push_str(" (");
            line.push_str(hint);
            line.push(')');
        }
        (level, line)
    })
}
