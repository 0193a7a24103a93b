//! HTTP/2 frames, as a client may send them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http2::fuzz_frames(bytes));
