//! The typed model of a site: plain values, divided by the parts that a request meets.
//!
//! Each file imports the files whose types it uses, so that the imports run one way: from
//! `site`, which contains everything, through listeners, locations and settings down to
//! templates and identifiers.

mod acme;
mod builtin;
mod byte_map;
mod cache;
mod compression;
mod failures;
mod field_names;
mod health;
mod ids;
mod limits;
mod listener;
mod location;
mod log;
mod maps;
mod media_types;
mod network;
mod nodes;
mod otel;
mod pass;
mod pattern;
mod process;
mod resolver;
mod rewrite;
mod server_tls;
mod settings;
mod site;
mod template;
mod upstream;

pub use acme::*;
pub use builtin::*;
pub use byte_map::*;
pub use cache::*;
pub use compression::*;
pub use failures::*;
pub use field_names::*;
pub use health::*;
pub use ids::*;
pub use limits::*;
pub use listener::*;
pub use location::*;
pub use log::*;
pub use maps::*;
pub use media_types::*;
pub use network::*;
pub use nodes::*;
pub use otel::*;
pub use pass::*;
pub use pattern::*;
pub use process::*;
pub use resolver::*;
pub use rewrite::*;
pub use server_tls::*;
pub use settings::*;
pub use site::*;
pub use template::*;
pub use transport_settings::ProxyExtra;
pub use upstream::*;
