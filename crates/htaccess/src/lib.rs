//! Apache's rules: `.htaccess` files, and sections of a server's configuration, are merged in Apache's order (folders from the
//! root down, `<Files>`, `<Location>`, `<If>`), and evaluated for a path that was mapped to a file.
//!
//! ```text
//! text --lexer--> lines and words --item--> Items --read--> FolderRules, ServerRules
//! ServerRules, FolderRules of all folders, and a Visit --evaluate--> Evaluation
//! ```
//!
//! A line that can limit access and that cannot be evaluated closes its section or folder, with a [`Note`]. Nothing
//! here opens a file: the files of the site, its rules and its passwords are asked for by a [`Disk`].

mod access;
mod address;
mod admission;
mod alias;
pub mod anchors;
mod directives;
mod environment;
mod evaluate;
mod expression;
pub mod item;
mod judge_response;
pub mod lexer;
mod lifetimes;
mod media;
mod mistake;
pub mod modules;
mod names;
mod paths;
mod pattern;
mod read;
mod require;
mod response;
mod rewrite;
mod rewriting;
mod round;
mod server_rules;
mod set_variables;
mod settings;
mod values;
mod variables;
mod visit;
mod walk;

pub use evaluate::{Evaluation, evaluate};
pub use lifetimes::Lifetime;
pub use media::FileType;
pub use paths::resolved;
pub use read::{read_rules, read_server_rules};
pub use response::{ErrorDocument, FieldEffect, FieldLine, ResponseRules};
pub use server_rules::ServerRules;
pub use settings::{FolderRules, Note};
pub use values::{FileFacts, FileKind};
pub use visit::{Disk, Mount, RuleFile, Target, UserCheck, Verdict, Visit};
