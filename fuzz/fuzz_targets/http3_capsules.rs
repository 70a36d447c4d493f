#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    godwit_fuzz::http3::capsules(bytes);
});
