//! What a site's folders hold: files as they are found and kept open (`open_file_cache`), and listings of folders.
//!
//! Paths are whole, and who may follow links is said by `server_base::site_path`. The crate knows no request.

pub mod listing;
pub mod open;
