//! The command line: what was typed in, a [`Command`] out. nginx's flags are
//! read by nginx's own rules ([`flags`]); words beside them by clap
//! ([`words`]). Nothing here touches files or starts anything.

mod flags;
mod version;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

pub use flags::Flags;
pub use version::{build_text, nginx_version_line, version_text};
pub use words::{CheckArgs, ServeArgs, Workers};

/// What to do.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// Read a configuration and serve.
    Run(Flags),
    /// `-t` and `-T`.
    Test {
        flags: Flags,
        dump: bool,
    },
    /// `-s`.
    Signal(Flags, SignalName),
    /// `-v`.
    Version,
    /// `-V`: with what it was built.
    Build,
    /// `-h`, `-?`: nginx's flags on stderr, then nothing.
    FlagsHelp,
    /// A text for stdout: `help`, `serve --help`, ...
    Text(String),
    Serve(ServeArgs),
    Check(CheckArgs),
    /// The detached half of `daemon on` (see `daemon`).
    Detached(Flags),
    /// The unprivileged process (see `worker_process`).
    Worker,
}

/// Argument of `-s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalName {
    Stop,
    Quit,
    Reload,
    Reopen,
}

/// Why the arguments make no command.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// nginx's flags: the message, as nginx words it.
    Flags(String),
    /// Words: what clap says.
    Words(String),
}

/// First argument of the detached half of `daemon on`, and of the worker
/// process: started by the program itself, never typed.
pub const DETACHED: &str = "--as=main";
pub const WORKER: &str = "--as=worker";

/// Understands the arguments (without the program's name).
///
/// # Errors
/// [`Refusal`], with the text to show.
pub fn parse(arguments: &[OsString]) -> Result<Command, Refusal> {
    let first = arguments.first().and_then(|first| first.to_str());
    match first {
        Some(WORKER) => Ok(Command::Worker),
        Some(DETACHED) => match flags::parse(arguments.get(1..).unwrap_or_default())? {
            Command::Run(flags) => Ok(Command::Detached(flags)),
            other => Ok(other),
        },
        Some(word) if words::is_word(word) => words::parse(arguments),
        Some(word) if !word.is_empty() && !word.starts_with('-') => Err(words::unknown(word)),
        _ => flags::parse(arguments),
    }
}

/// What `-h` prints.
pub fn flags_help() -> String {
    flags::help()
}

fn path(text: &OsString) -> PathBuf {
    PathBuf::from(text)
}
