//! Attacks, each staged end to end on the program; one file for each family.
//! docs/security.md has the promises about them.

mod cache_deception;
mod chosen_locations;
mod exchanged_files;
mod forwarded;
mod hosts;
mod invalidation;
mod key_collisions;
mod magic_links;
mod operators_locations;
mod patterns;
mod php_names;
mod processes;
mod races;
pub mod random;
mod random_pairs;
mod refreshes;
mod repeated_requests;
mod request_bodies;
mod script_paths;
mod secret_files;
mod sessions;
mod staleness;
mod temporary_files;
mod unkeyed_input;
mod upgrades;
mod variants;

use testkit::fake_http::FakeHttp;
use testkit::serving::FolderServer;

use crate::program;

/// `mayfly serve` for a site with these files, with a real PHP; pages are kept for an hour.
async fn start_site(files: &[(&str, &str)]) -> FolderServer {
    FolderServer::start_site(program(), files, &["--ttl", "1h", "--workers", "2"]).await
}

/// `mayfly serve` in front of an upstream; pages are kept for an hour.
async fn start_before(upstream: &FakeHttp) -> FolderServer {
    FolderServer::start(program(), &upstream.url(), &["--ttl", "1h"]).await
}

/// An upstream that shows each request's head as an HTML page.
async fn showing_requests() -> FakeHttp {
    FakeHttp::showing_requests("Content-Type: text/html\r\n").await
}
