//! The head of a response, as an upstream may send it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http1::fuzz_response_head(bytes));
