//! Apache's configuration language, and what of it is said in nginx's: `.htaccess` files become the inside of a `server`,
//! virtual hosts become whole servers.
//!
//! ```text
//! text --lexer--> lines and words --item--> Items --collect--> Site --write--> nginx's syntax, and Notes
//! ```
//!
//! A line is translated so that it means the same, or it is a [`Note`]: nothing is dropped without a word. What limits
//! access and cannot be said is closed. Nothing here opens a file.

mod access;
mod collect;
mod convert;
mod directives;
mod environment;
mod expand;
mod fields;
mod fuzz;
mod lifetimes;
mod media_types;
mod names;
mod note;
pub mod patterns;
mod php;
mod proxy;
mod redirects;
mod require;
mod rewrite;
mod sections;
mod server;
mod servers;
mod settings;
mod site;
mod types;
mod walk;
mod write;
mod write_files;
mod write_folders;

pub use convert::{Conversion, HtaccessFile, Options, convert_htaccess};
pub use expand::Load;
#[doc(hidden)]
pub use fuzz::fuzz_convert;
pub use htaccess::item::{Item, Mistake, ParsedText, Place, parse};
pub use note::{Kind, Note};
pub use php::PARAMS;
pub use servers::{convert_servers, is_of_servers};
