//! `mayfly serve DIR`: a site without a configuration file. Looks at the
//! folder ([`detect()`]), then writes the nginx-syntax configuration that a
//! careful administrator would ([`write_config()`]). The program runs that text
//! like any other file, and `--print-config` prints it: the step to a file of
//! one's own is a copy. An HTTP server may stand in the folder's place
//! ([`UpstreamUrl`]). Nothing here starts anything.

mod account_error;
mod account_places;
mod account_settings;
mod applications;
mod cache_rules;
mod conf_text;
mod dashboard;
mod database_login;
mod detect;
mod http_settings;
mod https;
mod kind;
mod locations;
mod mediawiki;
mod mediawiki_purges;
mod nested_applications;
mod object_cache_login;
mod options;
mod php_literals;
mod php_params;
mod php_values;
mod refused;
#[cfg(test)]
mod rules_test;
mod site_files;
mod unreadable;
mod upstream;
mod wordpress_home;
pub mod wordpress_plugin;
mod write_config;

pub use account_error::AccountError;
pub use applications::{ignored_arguments, known_names};
pub use database_login::{account_of_file, database_login};
pub use detect::{DetectedSite, detect};
pub use https::port_of_urls;
pub use kind::SiteKind;
pub use object_cache_login::object_cache_login;
pub use options::{
    AccessLogPlace, DEFAULT_TTL, Dashboard, DatabaseLogin, GuestSessions, Https, LearnMode,
    ServeOptions,
};
pub use site_files::{Files, Folder, begin_of_text};
pub use unreadable::WatchedFolder;
pub use upstream::{UpstreamUrl, write_upstream_config};
pub use wordpress_home::HomeAddress;
pub use write_config::write_config;
