//! A line of an access log, and the advice that is made of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| log_advice::fuzz_line(bytes));
