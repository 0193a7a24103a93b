//! Commands to the server itself, named as those of `-s`: reload the configuration, reopen the
//! logs, quit, stop. And that of `mayfly upgrade`.

use serde::{Deserialize, Serialize};

/// The commands that a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    Reload,
    Reopen,
    /// To end after the requests under way.
    Quit,
    /// To end now.
    Stop,
    /// To have another program take its place, and to end then.
    Upgrade,
}

impl Command {
    /// All of them.
    pub const ALL: [Command; 5] = [
        Command::Reload,
        Command::Reopen,
        Command::Quit,
        Command::Stop,
        Command::Upgrade,
    ];

    /// Returns the path of the command's requests.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Command::Reload => "/1/reload",
            Command::Reopen => "/1/reopen",
            Command::Quit => "/1/quit",
            Command::Stop => "/1/stop",
            Command::Upgrade => "/1/upgrade",
        }
    }

    #[must_use]
    pub fn of_path(path: &str) -> Option<Command> {
        Command::ALL.into_iter().find(|it| it.path() == path)
    }

    /// Whether the command ends the server. Then the connection may close without an answer.
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Command::Quit | Command::Stop)
    }
}

/// The answer where it was done: the reload is in force, the logs are open, the end has begun, the other program
/// serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReport {
    pub done: Command,
}

/// The status of the answer if the command failed and the old state stays. The message has the reasons, one line
/// each.
pub const FAILED: u16 = 422;
