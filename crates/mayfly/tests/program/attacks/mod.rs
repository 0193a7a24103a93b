//! Attacks, each staged end to end on the program; one file for each family. What is
//! promised about them is in docs/security.md.

mod cache_deception;
mod chosen_locations;
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
