//! The library within Debian's PHP-FPM, beside a MariaDB: its messages, and that PHP does not notice.
//!
//! `PRELOAD_ROUNDS=3000` asks for more requests than a plain run where growth and cost are looked at, and
//! for all pages of WordPress.

mod channels;
mod commands;
mod inputs;
mod mediawiki;
mod peers;
mod statements;
mod wordpress;
mod workers;
