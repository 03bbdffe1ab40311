#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_fuzz::bson_to_json::run(data));
