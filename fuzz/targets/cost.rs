#![no_main]
//! Searches for texts that take much time per byte. The first byte selects the routine, and the
//! rest is repeated.

#[allow(dead_code, reason = "each program runs one target")]
#[path = "../entry.rs"]
mod entry;

use std::time::Instant;

/// The largest allowed growth in time for four times the bytes. Linear is 4, quadratic is 16.
const MAX_GROWTH: f64 = 10.0;

/// Milliseconds below which the growth is not checked.
const MIN_MS: f64 = 100.0;

fn ms(data: &[u8], bytes: usize) -> f64 {
    // Takes the lesser of two times, to exclude other load on the machine.
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
