//! What becomes of a line, and where lines stand.

/// What became of a line.
pub enum LineOutcome {
    Taken,
    /// The server evaluates it.
    Rule,
    LeftOut(String),
    /// Why, and what to do.
    Not(String),
}

/// Where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    Server,
    /// In a section for this path of an address.
    Location(&'a str),
    Section,
}
