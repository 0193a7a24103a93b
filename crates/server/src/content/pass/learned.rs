//! Fetches from PHP pools whose pages are learned (`cache_learn`).

use std::sync::Arc;

use learning::LearnedPool;
use site::{Pass, PassTarget};

use crate::exchange::request::Request;

/// Begins a fetch for which PHP reports its reads. Costs one comparison if the pool is not learned.
pub fn begin(request: &Request, pass: &Pass) -> Option<learning::Fetch> {
    Some(pool(request, pass)?.begin())
}

/// The pool whose pages are learned that answers there.
pub fn pool<'a>(request: &'a Request, pass: &Pass) -> Option<&'a Arc<LearnedPool>> {
    let pools = request.configuration.live.groups.learned()?;
    match pass.target {
        PassTarget::Group(id) => pools.of_group(id),
        PassTarget::Variable(_) => None,
    }
}
