//! One test program: what goes over the wire, and how a real PHP-FPM takes it.

mod exchange;
mod php_fpm;
