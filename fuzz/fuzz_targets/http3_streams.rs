//! HTTP/3 streams of a client: requests, control, QPACK.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http3::fuzz_streams(bytes));
