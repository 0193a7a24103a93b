//! Both directions of a connection to a Redis server, in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cache_wire::fuzz_conversation(bytes));
