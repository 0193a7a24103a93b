//! The map type for names that the configuration defines and requests look up.

use std::collections::HashMap;

/// Clients choose the names that are looked up, but only the configuration adds entries. So clients
/// cannot make entries collide, and a hash that is quick for short names is safe.
pub type ByteMap<V> = HashMap<Box<[u8]>, V, foldhash::fast::RandomState>;
