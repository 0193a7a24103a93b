//! The command line: turns the arguments into a [`Command`]. nginx's flags are read by nginx's own
//! rules ([`flags`]); words beside them by clap ([`words`]). Nothing here touches files or starts
//! anything.

mod audit_args;
mod elsewhere;
mod flags;
mod manual;
mod serve_args;
mod values;
mod version;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

pub use flags::{Action, Flags, SignalName};
pub use manual::write as write_manual;
pub use serve_args::{LearnMode, ServeArgs, Workers};
pub use version::{build_text, nginx_version_line, version_text};
use words::WordResult;
pub use words::{
    CacheWord, CheckArgs, ConvertArgs, DoctorArgs, ExplainArgs, NodesArgs, PurgeArgs, ReportFormat,
    RunArgs, TopArgs, WarmArgs, Word,
};

/// The command to carry out.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// The action of nginx's flags.
    Flags(Flags, Action),
    /// A word, with the whole line, which may be for `mayfly-tools`.
    Word(Word, Vec<OsString>),
    /// A text for stdout: `help`, `serve --help`, ...
    Text(String),
    /// Manual pages and completions of shells, into a folder.
    Manual(PathBuf),
    /// The detached half of `daemon on` (see `daemon`).
    Detached(Flags),
    /// The unprivileged process (see `worker_process`).
    Worker,
    /// A program that takes the place of a running one (see `processes::upgrade`), and the command
    /// line of that one.
    Successor(Box<Command>),
}

/// The reason why the arguments make no command.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// nginx's flags: the message, as nginx words it.
    Flags(String),
    /// A line of words with a mistake: clap's message.
    Words(String),
}

/// First argument of the detached half of `daemon on`, of the worker process, and of a program that
/// takes the place of a running one: started by the program itself, never typed.
pub const DETACHED: &str = "--as=main";
pub const WORKER: &str = "--as=worker";
pub const SUCCESSOR: &str = "--as=successor";
/// First argument of who makes packages: a folder follows, for manual pages and completions.
const MANUAL: &str = "--as=manual";

/// Reads the arguments (without the program's name).
///
/// # Errors
/// [`Refusal`], with the text to show.
pub fn parse(arguments: &[OsString]) -> Result<Command, Refusal> {
    let first = arguments.first().and_then(|first| first.to_str());
    match first {
        Some(WORKER) => Ok(Command::Worker),
        Some(MANUAL) => Ok(Command::Manual(
            arguments.get(1).map_or_else(PathBuf::new, PathBuf::from),
        )),
        Some(DETACHED) => match parse_flags(arguments.get(1..).unwrap_or_default())? {
            Command::Flags(flags, Action::Run) => Ok(Command::Detached(flags)),
            other => Ok(other),
        },
        Some(SUCCESSOR) => {
            let command = parse(arguments.get(1..).unwrap_or_default())?;
            Ok(Command::Successor(Box::new(command)))
        }
        Some(word) if words::is_word(word) => parse_words(arguments),
        Some(word) if !word.is_empty() && !word.starts_with('-') => {
            Err(Refusal::Words(elsewhere::unknown(word)))
        }
        _ => parse_flags(arguments),
    }
}

fn parse_flags(arguments: &[OsString]) -> Result<Command, Refusal> {
    let (flags, action) = flags::parse(arguments).map_err(Refusal::Flags)?;
    Ok(Command::Flags(flags, action))
}

fn parse_words(arguments: &[OsString]) -> Result<Command, Refusal> {
    Ok(match words::parse(arguments).map_err(Refusal::Words)? {
        WordResult::Word(word) => Command::Word(word, arguments.to_vec()),
        WordResult::Text(text) => Command::Text(text),
    })
}

/// Returns the text of `-h`.
pub fn flags_help() -> String {
    flags::help()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Command, Refusal> {
        let words = line.split(' ').filter(|it| !it.is_empty());
        let arguments: Vec<OsString> = words.map(Into::into).collect();
        parse(&arguments)
    }

    #[test]
    fn the_first_argument_tells_flags_from_words() {
        let flags = |action| Ok(Command::Flags(Flags::default(), action));
        assert_eq!(run("-t"), flags(Action::Test { dump: false }));
        assert_eq!(run(""), flags(Action::Run));
        assert!(matches!(
            run("check a.conf"),
            Ok(Command::Word(Word::Check(_), _))
        ));
        assert!(matches!(
            run("version"),
            Ok(Command::Word(Word::Version, _))
        ));
        assert_eq!(run(WORKER), Ok(Command::Worker));
        assert_eq!(run(DETACHED), Ok(Command::Detached(Flags::default())));
        let command = Command::Flags(Flags::default(), Action::Run);
        assert_eq!(run(SUCCESSOR), Ok(Command::Successor(Box::new(command))));
        assert!(matches!(run("-z"), Err(Refusal::Flags(_))));
        assert!(matches!(run("sevre"), Err(Refusal::Words(_))));
        assert!(matches!(run("serve"), Err(Refusal::Words(_))));
    }
    #[test]
    fn words_of_other_programs_say_what_does_the_same_here() {
        let cases = [
            ("sevre", "did you mean \"serve\"?"),
            ("server", "did you mean \"serve\"?"),
            ("chekc a.conf", "did you mean \"check\"?"),
            ("start", "mayfly serve DIR"),
            ("stop", "mayfly -s stop"),
            ("reload", "mayfly -s reload"),
            ("a/site.conf", "mayfly -c a/site.conf"),
            ("./public", "mayfly serve ./public"),
            (
                "xyz",
                "Commands: serve, check, convert, explain, purge, warm, top, advise, bench, doctor, upgrade, nodes, run, cache, help, version.",
            ),
            (
                "sevre",
                "Commands: serve, check, convert, explain, purge, warm, top, advise, bench, doctor, upgrade, nodes, run, cache, help, version.",
            ),
            ("serve a --port 80", "--listen ADDR:PORT"),
            ("serve a --port=80", "--listen ADDR:PORT"),
            ("serve a -p 80", "--listen ADDR:PORT"),
            ("serve a --bind 0.0.0.0", "--listen ADDR:PORT"),
            ("serve a --lisen 80", "--listen"),
        ];
        for (line, part) in cases {
            match run(line) {
                Err(Refusal::Words(text)) => assert!(text.contains(part), "{line}: {text}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
