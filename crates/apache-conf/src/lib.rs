//! Apache's configuration as one of Mayfly: virtual hosts become servers. Names, addresses, logs, TLS, folders and
//! other servers are written in nginx's syntax. Access rules, rewrites and changes of responses are not translated:
//! their lines go into `apache_rules` as they are, which the server evaluates as it evaluates `.htaccess` files.
//!
//! ```text
//! text --item--> Items --expand--> Items of all files --servers--> Server --write--> nginx's syntax, and Notes
//! ```
//!
//! A line is in the result, or it is a [`Note`]: nothing is dropped without a word. Nothing here opens a file.

mod convert;
mod expand;
mod fuzz;
mod left_out;
mod lines;
mod note;
mod outcome;
mod php;
mod proxy;
mod rules;
mod server;
mod servers;
mod virtual_host;
mod words;
mod write;

pub use convert::{Conversion, HtaccessFile, Options, convert_htaccess};
pub use expand::Load;
#[doc(hidden)]
pub use fuzz::fuzz_convert;
pub use htaccess::item::Mistake;
pub use note::{Note, NoteKind};
pub use php::PARAMS;
pub use servers::{convert_servers, is_of_servers};
