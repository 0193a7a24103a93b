//! HTTP/2 field blocks, each behind two bytes of length.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http2::fuzz_hpack(bytes));
