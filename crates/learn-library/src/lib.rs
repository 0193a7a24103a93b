//! The library that Mayfly preloads into the PHP pools it starts. It reads the conversation of PHP with a
//! database, notices what else a request is made from, and reports that to Mayfly before the request ends.
//!
//! ```text
//! PHP ─► hooks (send, recv, open, ...) ─► the function of libc, with the same arguments
//!              │ bytes, results
//!              ▼
//!           Library ─► FastCGI: which fetch, when it ends        (fastcgi.rs)
//!              │    ─► connections to databases: statements       (connection.rs, plain_read.rs)
//!              ▼
//!           Reporter ─► learn-record ─► channels ─► Mayfly        (reporter.rs, channels.rs)
//! ```
//!
//! It runs inside other people's PHP, so that these rules come first:
//!
//! - **It changes nothing.** A hook passes on its arguments and returns the result of libc, with its
//!   `errno`. Two things are added on purpose: `RTLD_DEEPBIND` is taken from extensions that are known
//!   (`extensions.rs`), and the clock is put on for a request that asks for it.
//! - **It does not crash.** Whatever follows the bytes is safe Rust on bounded buffers and runs within
//!   `catch_unwind` (`entry.rs`); after a panic all hooks only pass on.
//! - **It does not wait**, but for two acknowledgements of a write, a second at most.
//! - **It stays out of the way.** PHP's own code is what the processor's caches are for: what can wait is held, and done many at
//!   a time (`connection.rs`, `reporter.rs`).
//! - **It lets go.** Where it missed something or cannot follow, it marks the record as incomplete. What it does
//!   not see it does not guess.
//! - One thread at a time is within the library. What another one, or a signal handler, does meanwhile is
//!   passed on at once and counts as missed.
//!
//! `unsafe` stands in `next.rs` (the functions of libc), `hooks/` (what takes their places), `entry.rs`
//! (the one place of the state), `system.rs` (system calls of our own) and `start.rs` (the environment).
//! Everything else forbids it.

#![cfg_attr(test, allow(dead_code, reason = "tests do not call the hooks"))]

mod cache_connection;
mod channel;
mod channels;
mod connection;
mod entry;
mod extensions;
mod fastcgi;
mod hooks;
mod library;
mod next;
mod plain_files;
mod plain_read;
mod postgres_connection;
mod reporter;
mod sent_bytes;
mod session_settings;
mod start;
mod system;
#[cfg(test)]
mod unanswered_tests;
