//! Exit codes: few, and the same everywhere.
//!
//! | code | when |
//! | --- | --- |
//! | 0 | done, or stopped as asked |
//! | 1 | refused: a bad configuration, a flag nginx would refuse too, a start, a reload or a signal that failed |
//! | 2 | a word (`serve`, `check`, ...) was used wrongly, or `purge` or `warm` found no server |
//! | 1, 2 | `explain --audit` has findings; it could not audit all pages |
//! | 3 | `doctor` or `check` has warnings, or `convert` left lines untranslated |
//! | 4 | `doctor` or `check` has errors, or `convert` left lines untranslated that keep visitors out |
//! | any | of the command of `run`; 126 and 127 where it cannot be started, 128 and the signal's number by which it ended |

use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Refused,
    Usage,
    /// A command found no server to speak with.
    NoServer,
    /// `explain --audit` has findings.
    Findings,
    /// `doctor` or `check` found faults that will matter later.
    Warnings,
    /// `doctor` or `check` found faults that matter now.
    Errors,
    /// `run`: the exit code of its command.
    OfCommand(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Refused | Exit::Findings => 1,
            Exit::Usage | Exit::NoServer => 2,
            Exit::Warnings => 3,
            Exit::Errors => 4,
            Exit::OfCommand(code) => code,
        })
    }
}
