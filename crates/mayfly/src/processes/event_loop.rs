//! The main thread's own small event loop: signals, PHP, timers. Requests are served by
//! event loops of their own, one for each worker.

use std::io;

/// # Errors
/// The error of the system.
pub fn build() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
