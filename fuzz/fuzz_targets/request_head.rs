//! The head of a request, as a client may send it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http1::fuzz_request_head(bytes));
