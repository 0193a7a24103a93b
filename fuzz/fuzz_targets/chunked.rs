//! A chunked body from either side.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http1::fuzz_chunked(bytes));
