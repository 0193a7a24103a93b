//! The interface of a language of commands in pages.

use std::ops::Range;

use http_cache::Encoding;

/// A command with many long values; a longer text only looks like one.
pub const MAX_COMMAND_BYTES: usize = 16 * 1024;

/// The encoding under which the places of SSI commands are kept beside a stored body. Content
/// codings have numbers below these.
pub const KEPT_SSI: Encoding = Encoding(0x8000);
pub const KEPT_ESI: Encoding = Encoding(0x8001);

/// The result of a search for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandSearch {
    /// A command, from its first byte to behind its last.
    Command(Range<usize>),
    /// No whole command. One may begin at this position, which is the end of the searched text
    /// if none does.
    None(usize),
}

/// A language of commands in pages.
pub trait Language: Send + Sync + 'static {
    type Command: Clone + Send + Sync;
    /// The state that earlier commands of the page hand to a later part.
    type CommandContext: Default + Send + Sync;
    const KEPT_AS: Encoding;

    /// The first command in `bytes`. Nothing after it has been looked at.
    fn find(bytes: &[u8], inside: &mut Self::CommandContext) -> CommandSearch;

    /// Parses a command that [`find`](Language::find) has found.
    fn parse(command: &[u8]) -> Self::Command;
}
