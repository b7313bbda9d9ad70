#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hugeinfo_fuzz::postgresql_conf(bytes));
