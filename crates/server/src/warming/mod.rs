//! Pages that the server asks itself for, so that visitors find them stored: those that a user names (`mayfly warm`),
//! and the most wanted of those that a purge has hit (`cache_refill`). Also paths that applications want requested
//! again and again.
//!
//! ```text
//! pages    one page that a user names; a page that is read for its content
//! refill   after a purge: which pages are fetched again, in which order
//! repeat   paths that an application has named in a response (`X-Cache-Repeat`)
//! audit    learned pages that are made again to be compared (`cache_learn`)
//! again    from a stored response to the request that stores it again
//! visit    one request through all stages, and its result
//! ```
//!
//! All of it stands in the line of refreshes (`upstream::Class::Refresh`), so that visitors come first.

mod again;
pub(crate) mod audit;
mod pages;
pub(crate) mod refill;
pub(crate) mod repeat;
mod visit;

/// The fields that a browser sends that has never been here.
pub(crate) fn browser_fields() -> Vec<(String, Vec<u8>)> {
    visit::fields(shared_request::Class::Desktop)
}

pub use pages::{read, warm};
