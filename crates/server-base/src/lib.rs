//! Functions that `server`, `upstream-fetch` and `live-state` share; they know nothing of
//! requests.

pub mod address;
pub mod field_list;
pub mod forwarded_for;
pub mod lru;
pub mod masked_path;
pub mod memory_limit;
pub mod random;
pub mod sampling;
pub mod site_path;
