//! Attacks, each staged end to end on the program; one file for each family. What is
//! promised about them is in docs/security.md.
//!
//! `MAYFLY_UNDER_TEST=PATH` runs another build of the program instead, to see which
//! attacks it withstands.

mod chosen_locations;
mod deception;
mod forwarded;
mod hosts;
mod invalidation;
mod key_collisions;
mod patterns;
mod php_names;
mod processes;
mod races;
mod random;
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

/// The program under test.
fn program() -> String {
    std::env::var("MAYFLY_UNDER_TEST").unwrap_or_else(|_| env!("CARGO_BIN_EXE_mayfly").to_owned())
}

/// Several attacks are on what root does for others; only root can stage them.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
