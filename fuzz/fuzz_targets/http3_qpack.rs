//! HTTP/3 field blocks.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http3::fuzz_qpack(bytes));
