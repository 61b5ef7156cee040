//! Chooses by measurement whether generating requests are decoded in one batch or one after the
//! other.
//!
//! One batch reads the weights once for all requests and should be faster. But llama.cpp's kernels
//! for two to four columns can be slower than its kernel for one. On an AVX2 machine with one
//! thread, a step took 9 ms for one request, 34 for two, 42 for three and 40 for four. With more
//! threads or other processors, the batch is faster.

use std::time::Duration;

/// The slower way is tried once in this number of decisions, since other load on the machine
/// changes.
const PROBE_EVERY: u32 = 64;
/// Weight of the newest step in the moving average.
const NEWEST: f64 = 0.2;

/// Average times of a step, by its number of tokens (one per request).
#[derive(Default)]
pub(crate) struct Pace {
    /// Seconds for a step of `n` tokens, at index `n - 1`.
    seconds: Vec<Option<f64>>,
    decisions: u32,
}

impl Pace {
    /// True if `writers` requests should share the next step.
    pub(crate) fn is_together(&mut self, writers: usize) -> bool {
        if writers < 2 {
            return true;
        }
        let (Some(together), Some(alone)) = (self.average(writers), self.average(1)) else {
            return self.average(writers).is_none();
        };
        self.decisions = self.decisions.wrapping_add(1);
        let is_probe = self.decisions.is_multiple_of(PROBE_EVERY);
        (together <= alone * writers as f64) != is_probe
    }

    /// Records the duration of a step with exactly one token for each of `writers` requests.
    pub(crate) fn record(&mut self, writers: usize, took: Duration) {
        let Some(at) = writers.checked_sub(1) else {
            return;
        };
        if self.seconds.len() <= at {
            self.seconds.resize(writers, None);
        }
        if let Some(average) = self.seconds.get_mut(at) {
            let newest = took.as_secs_f64();
            let former = average.unwrap_or(newest);
            *average = Some(former + NEWEST * (newest - former));
        }
    }

    fn average(&self, writers: usize) -> Option<f64> {
        let at = writers.checked_sub(1)?;
        *self.seconds.get(at)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(alone_ms: u64, three_ms: u64) -> Pace {
        let mut pace = Pace::default();
        pace.record(1, Duration::from_millis(alone_ms));
        pace.record(3, Duration::from_millis(three_ms));
        pace
    }

    #[test]
    fn both_ways_are_measured_before_one_is_preferred() {
        let mut pace = Pace::default();
        assert!(pace.is_together(3));
        pace.record(3, Duration::from_millis(42));
        assert!(!pace.is_together(3));
        pace.record(1, Duration::from_millis(9));
        assert!(!pace.is_together(3));
        assert!(pace.is_together(2), "two are not measured yet");
    }

    #[test]
    fn the_faster_way_wins_and_a_slow_step_is_forgotten() {
        assert!(measured(9, 15).is_together(3));
        assert!(!measured(9, 42).is_together(3));
        assert!(measured(9, 42).is_together(1));
        let mut pace = measured(9, 900);
        (0..20).for_each(|_| pace.record(3, Duration::from_millis(15)));
        assert!(pace.is_together(3));
    }

    #[test]
    fn the_slower_way_is_probed_now_and_then() {
        let mut pace = measured(9, 42);
        let together = (0..2 * PROBE_EVERY).filter(|_| pace.is_together(3)).count();
        assert_eq!(together, 2);
    }
}
