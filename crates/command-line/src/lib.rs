//! The parts that the command lines of `mayfly` and `mayfly-tools` share: exit codes, messages, the addresses that a
//! command asks, and the arguments of the words that `mayfly-tools` obeys. `mayfly` reads these arguments as
//! well: help, manual pages and completions know all words, whether or not the tools are installed.

mod cache_word;
mod exit;
mod local;
mod messages;
mod page_args;
pub mod terminal;
mod tool_args;
mod url;
pub mod values;
mod window_size;

pub use cache_word::CacheWord;
pub use exit::Exit;
pub use local::is_this_machine;
pub use messages::{complain, print, printable};
pub use page_args::PageArgs;
pub use tool_args::{AdviseArgs, BenchArgs, ServerArgs};
pub use url::{Target, UrlError};
pub use window_size::WindowSize;
