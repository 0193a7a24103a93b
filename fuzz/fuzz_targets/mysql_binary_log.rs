//! What a MySQL server sends of its binary log: see `mysql_wire::fuzz_binary_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mysql_wire::fuzz_binary_log(bytes));
