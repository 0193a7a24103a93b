//! The reasons why a master could not be started, for the program that wanted
//! it.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::find::FindError;
use crate::fpm_conf::SpecError;

/// The reason why a master could not be started.
#[derive(Debug)]
pub enum StartError {
    /// There is no php-fpm.
    Find(FindError),
    /// The administrator set a value that php-fpm cannot take.
    Spec(SpecError),
    /// The system did not let us.
    Io {
        /// The attempted operation.
        attempt: String,
        /// The error of the system.
        source: io::Error,
    },
    /// php-fpm ended instead of becoming ready.
    Refused {
        /// How it ended, if known.
        status: Option<ExitStatus>,
        /// Its last lines.
        said: Vec<String>,
    },
    /// php-fpm neither ended nor became ready.
    Silent {
        /// How long we waited.
        waited: Duration,
    },
    /// Another process has the pool meanwhile.
    Lent,
    /// The pool has been stopped meanwhile.
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

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Find(error) => error.fmt(out),
            Self::Spec(error) => error.fmt(out),
            Self::Io { attempt, source } => write!(out, "could not {attempt}: {source}"),
            Self::Refused { status, said } => {
                write!(out, "php-fpm did not start")?;
                if let Some(status) = status {
                    write!(out, " ({status})")?;
                }
                said.iter()
                    .try_for_each(|line| write!(out, "; it said: {line}"))
            }
            Self::Silent { waited } => write!(out, "php-fpm was not ready after {waited:?}"),
            Self::Lent => write!(out, "another process has the pool meanwhile"),
            Self::Stopped => write!(out, "the pool has been stopped"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Find(error) => Some(error),
            Self::Spec(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            Self::Refused { .. } | Self::Silent { .. } | Self::Lent | Self::Stopped => None,
        }
    }
}

impl From<FindError> for StartError {
    fn from(error: FindError) -> Self {
        Self::Find(error)
    }
}

impl From<SpecError> for StartError {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}
