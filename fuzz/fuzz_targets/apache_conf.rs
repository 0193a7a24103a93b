//! Apache's configuration of any bytes, translated as a `.htaccess` and as that of a server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| apache_conf::fuzz_convert(bytes));
