//! A field value of Cache-Control.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http_cache::freshness::fuzz_cache_control(bytes));
