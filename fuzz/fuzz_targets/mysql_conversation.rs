//! Both directions of a connection to a MySQL server, in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mysql_wire::fuzz_conversation(bytes));
