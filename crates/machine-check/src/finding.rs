//! One finding: the fault, why it matters, and its remedy.

use serde::Serialize;

/// How bad it is, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It could be better.
    Note,
    /// It will hurt under load, or when something else fails.
    Warning,
    /// It does harm, or lets an intruder in.
    Error,
}

impl Severity {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    /// A name that stays the same: `backlog`.
    pub name: &'static str,
    pub what: String,
    pub why: String,
    /// A command, or a line of the configuration.
    pub mend: String,
}

impl Finding {
    #[must_use]
    pub fn note(name: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, name, what)
    }

    #[must_use]
    pub fn warning(name: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, name, what)
    }

    #[must_use]
    pub fn error(name: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(Severity::Error, name, what)
    }

    fn new(severity: Severity, name: &'static str, what: impl Into<String>) -> Finding {
        Finding {
            severity,
            name,
            what: what.into(),
            why: String::new(),
            mend: String::new(),
        }
    }

    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Finding {
        Finding {
            why: why.into(),
            ..self
        }
    }

    #[must_use]
    pub fn mended_by(self, mend: impl Into<String>) -> Finding {
        Finding {
            mend: mend.into(),
            ..self
        }
    }
}
