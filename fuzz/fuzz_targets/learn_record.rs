//! What the library that PHP loads tells Mayfly: messages, and records in parts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| learn_record::fuzz_decoding(bytes));
