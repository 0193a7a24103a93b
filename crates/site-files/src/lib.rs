//! The content of a site's folders: files as they are found and kept open (`open_file_cache`), and listings of
//! folders.
//!
//! Paths are whole, and `server_base::site_path` decides which links are followed. The crate knows no request.

pub mod listing;
pub mod open;
