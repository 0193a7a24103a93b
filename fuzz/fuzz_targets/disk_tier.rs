//! Files of the tier on disk: records, segments and journals.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| disk_tier::fuzz_form(bytes));
