//! What everything else stands on and what knows nothing of requests.

pub mod address;
pub mod field_list;
pub mod host_key;
pub mod lru;
pub mod memory_limit;
pub mod open_file;
pub mod private_file;
pub mod random;
pub mod ready_or_pending;
pub mod request_body;
pub mod sampling;
pub mod site_path;
pub mod spare_fields;
pub mod spool;
