//! Both directions of a connection to a PostgreSQL server, in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| postgres_wire::fuzz_conversation(bytes));
