//! `traceparent` and `tracestate` of a request: what is read is written and read again the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| traces::fuzz_parent(bytes));
