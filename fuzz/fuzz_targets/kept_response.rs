//! A response and a purge's target as they were kept on disk, in whatever form they come back.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http_cache::record::fuzz_record(bytes));
