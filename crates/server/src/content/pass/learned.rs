//! Fetches from PHP pools whose pages are learned (`cache_learn`).

use site::{Pass, PassTarget};

use crate::exchange::request::Request;

/// The fetch that is about to begin, where what PHP reads for it is told. One number is checked where
/// nothing is learned.
pub fn begin(request: &Request, pass: &Pass) -> Option<learning::Fetch> {
    let pools = request.configuration.live.groups.learned()?;
    match pass.target {
        PassTarget::Group(id) => Some(pools.of_group(id)?.begin()),
        PassTarget::Variable(_) => None,
    }
}
