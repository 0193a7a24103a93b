//! The outcome of a line, and its place.

pub enum LineOutcome {
    Taken,
    /// The server evaluates it.
    Rule,
    LeftOut(String),
    /// The reason, and the remedy.
    Not(String),
}

/// The place of a line in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    Server,
    /// In a section for this path of an address.
    Location(&'a str),
    Section,
}
