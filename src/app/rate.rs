//! A rate limit per key: one token bucket each (`governor`), in this process.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

/// Keys with a full bucket are removed after this number of calls of `take`.
const SWEEP_EVERY: u32 = 1024;

/// A rate limit with one bucket per key. It stores the keys of about the last minute, not all keys
/// ever used.
pub struct Rate<K: Hash + Eq + Clone, C: Clock = DefaultClock> {
    limiter: RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
    taken: AtomicU32,
}

impl<K: Hash + Eq + Clone> Rate<K> {
    /// Allows `most` a minute on average, and at most `burst` at once.
    pub fn per_minute(most: NonZeroU32, burst: NonZeroU32) -> Self {
        Self::on_clock(most, burst, DefaultClock::default())
    }
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> Rate<K, C> {
    fn on_clock(most: NonZeroU32, burst: NonZeroU32, clock: C) -> Self {
        let quota = Quota::per_minute(most).allow_burst(burst);
        Self {
            limiter: RateLimiter::dashmap_with_clock(quota, clock.clone()),
            clock,
            taken: AtomicU32::new(0),
        }
    }

    /// Takes one permit from the key's bucket.
    ///
    /// # Errors
    /// The time until the next permit.
    pub fn take(&self, key: &K) -> Result<(), Duration> {
        if self
            .taken
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1)
            .is_multiple_of(SWEEP_EVERY)
        {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        self.limiter
            .check_key(key)
            .map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn rate(clock: &FakeRelativeClock) -> Rate<u32, FakeRelativeClock> {
        Rate::on_clock(
            NonZeroU32::new(6).unwrap(),
            NonZeroU32::new(2).unwrap(),
            clock.clone(),
        )
    }

    #[test]
    fn keys_that_were_not_seen_for_a_while_are_forgotten() {
        let clock = FakeRelativeClock::default();
        let rate = rate(&clock);
        for key in 0..5000 {
            clock.advance(Duration::from_secs(1));
            assert_eq!(rate.take(&key), Ok(()));
        }
        assert!(
            rate.limiter.len() <= SWEEP_EVERY as usize + 20,
            "{} keys",
            rate.limiter.len()
        );
    }
}
