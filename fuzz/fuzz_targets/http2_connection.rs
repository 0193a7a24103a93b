//! A whole HTTP/2 connection, behind a byte that says how it is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http2::fuzz_connection(bytes));
