//! The place to note who may share a page, once its response is there
//! (`cache_litespeed`).

use std::sync::Arc;

use http_cache::{CacheKey, Zone};

pub struct SharingNote {
    pub zone: Arc<Zone>,
    pub key: CacheKey,
}
