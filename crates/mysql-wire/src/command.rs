//! The command of a client, with its statement and parameters.

use std::sync::Arc;

use crate::parameters::Parameter;

/// A longer statement is not kept; [`Command::is_complete`] is false for it.
pub const MAX_STATEMENT_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// A statement, or several, as text.
    Query,
    /// A statement is prepared; nothing is run.
    Prepare,
    /// A prepared statement is run.
    Execute,
    /// The default database changes; its name is the text.
    InitDatabase,
    /// Another account, possibly another database; the session begins anew.
    ChangeUser,
    /// The session begins anew.
    ResetConnection,
    /// The names of a table's columns.
    FieldList,
    /// A command that reads and changes no data: a ping, statistics, options.
    Administration,
    /// A command that may do anything: shut down, kill, flush.
    Other,
}

#[derive(Debug, Clone)]
pub struct Command {
    pub kind: CommandKind,
    pub(crate) text: Arc<[u8]>,
    pub parameters: Vec<Parameter>,
    pub(crate) is_complete: bool,
    /// It was prepared before the session changed.
    pub(crate) is_of_session_before: bool,
}

impl Command {
    pub(crate) fn new(kind: CommandKind, text: &[u8], is_complete: bool) -> Self {
        Self {
            kind,
            text: text.into(),
            parameters: Vec::new(),
            is_complete,
            is_of_session_before: false,
        }
    }

    /// The statement, or what else the command names, in the character set of the connection.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the text is all of the statement.
    pub fn is_whole(&self) -> bool {
        self.is_complete
    }

    /// Whether text and session say how the server reads the statement.
    pub fn is_complete(&self) -> bool {
        self.is_complete && !self.is_of_session_before
    }
}
