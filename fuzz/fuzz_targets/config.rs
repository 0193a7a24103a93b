//! A configuration file of any bytes: read, lowered, every complaint rendered.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    nginx_conf::fuzz_parse(bytes);
    site::fuzz_read(bytes);
});
