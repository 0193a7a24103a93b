//! `mayfly serve DIR`: a site without a configuration file. Looks at the
//! folder ([`detect()`]), then writes the nginx-syntax configuration that a
//! careful administrator would ([`write_config()`]). The program runs that text
//! like any other file, and `--print-config` prints it: the step to a file of
//! one's own is a copy. An HTTP server may stand in the folder's place
//! ([`UpstreamUrl`]). Nothing here starts anything.

mod applications;
mod below;
mod closed_folders;
mod conf_text;
mod detect;
mod refused;
#[cfg(test)]
mod rules_test;
mod unreadable;
mod upstream;
mod write_config;

pub use closed_folders::{Bounds, closed_folders};
pub use detect::{Folder, Found, Kind, detect};
pub use unreadable::Watched;
pub use upstream::{UpstreamUrl, write_upstream_config};
pub use write_config::{ServeOptions, write_config};
