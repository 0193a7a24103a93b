//! The reasons why a master could not be started, for the program that wanted
//! it.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::find::FindError;
use crate::fpm_conf::SpecError;

/// The reason why a master could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no php-fpm.
    #[error("{0}")]
    Find(#[from] FindError),
    /// The administrator set a value that php-fpm cannot take.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// The system did not let us.
    #[error("could not {attempt}: {source}")]
    Io {
        /// The attempted operation.
        attempt: String,
        /// The error of the system.
        source: io::Error,
    },
    /// php-fpm ended instead of becoming ready.
    #[error("{}", refusal(.status, .said))]
    Refused {
        /// How it ended, if known.
        status: Option<ExitStatus>,
        /// Its last lines.
        said: Vec<String>,
    },
    /// php-fpm neither ended nor became ready.
    #[error("php-fpm was not ready after {waited:?}")]
    Silent {
        /// How long we waited.
        waited: Duration,
    },
    /// Another process has the pool meanwhile.
    #[error("another process has the pool meanwhile")]
    Lent,
    /// The pool has been stopped meanwhile.
    #[error("the pool has been stopped")]
    Stopped,
}

impl StartError {
    pub(crate) fn io(attempt: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            attempt: attempt.into(),
            source,
        }
    }
}

fn refusal(status: &Option<ExitStatus>, said: &[String]) -> String {
    let status = status.map_or_else(String::new, |status| format!(" ({status})"));
    let said: String = said
        .iter()
        .map(|line| format!("; it said: {line}"))
        .collect();
    format!("php-fpm did not start{status}{said}")
}
