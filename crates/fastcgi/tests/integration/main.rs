//! One test program: the bytes on the wire, and how a real PHP-FPM takes them.

mod exchange;
mod php_fpm;
