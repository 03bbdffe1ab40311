#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_fuzz::column_default::run(data));
