//! What a FastCGI responder may send.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fastcgi::fuzz_records(bytes));
