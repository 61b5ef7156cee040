#![no_main]

#[allow(dead_code, reason = "each program runs one target")]
#[path = "../entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::dice(data));
