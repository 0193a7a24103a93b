//! The map type for names that come from the configuration and are looked up by requests.

use std::collections::HashMap;

/// Looked up with bytes that clients send. The entries come from the
/// configuration alone, so nobody outside can make them collide, and a hash
/// that is quick for short names will do.
pub type ByteMap<V> = HashMap<Box<[u8]>, V, foldhash::fast::RandomState>;
