#![no_main]
//! Looks for texts that are dear per byte. The first byte chooses the routine, the rest is repeated.

#[allow(dead_code, reason = "each program runs one target")]
#[path = "../entry.rs"]
mod entry;

use std::time::Instant;

/// A routine may take so many times the time for four times the bytes: 4 is linear, 16 is quadratic.
const MAX_GROWTH: f64 = 10.0;

/// Less time than this says nothing of growth, in milliseconds.
const MIN_MS: f64 = 100.0;

fn ms(data: &[u8], bytes: usize) -> f64 {
    // The least of two: what else the machine does is not counted.
    let once = || {
        let started = Instant::now();
        entry::cost::run_repeated(data, bytes);
        started.elapsed().as_secs_f64() * 1000.0
    };
    once().min(once())
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (small, large) = (ms(data, entry::COST_BYTES), ms(data, 4 * entry::COST_BYTES));
    if large > MIN_MS && large > MAX_GROWTH * small {
        let name = entry::cost::chosen(data).map_or("", |(routine, _)| routine.name);
        panic!("{name}: {small:.1} ms for {} bytes, {large:.1} ms for four times as many", entry::COST_BYTES);
    }
});
