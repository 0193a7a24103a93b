//! A response as an upstream may send it, in pieces as it may send them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http_client::fuzz_exchange(bytes));
