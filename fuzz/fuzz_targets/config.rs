//! A configuration file of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nginx_conf::fuzz_parse(bytes));
