//! What PHP asks a database: see `learned::fuzz_statements`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| learned::fuzz_statements(bytes));
