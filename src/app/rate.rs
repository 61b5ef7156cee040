//! A rate limit per key: one token bucket each (`governor`), in this process.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::Clock as _;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

/// Keys with a full bucket are removed after this number of calls of `take`.
const SWEEP_EVERY: u32 = 1024;

/// A rate limit with one bucket per key. It stores the keys of about the last minute, not all keys
/// ever used.
pub struct Rate<K: Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    taken: AtomicU32,
}

impl<K: Hash + Eq + Clone> Rate<K> {
    /// Allows `most` a minute on average, and at most `burst` at once.
    pub fn per_minute(most: NonZeroU32, burst: NonZeroU32) -> Self {
        let quota = Quota::per_minute(most).allow_burst(burst);
        Self {
            limiter: RateLimiter::keyed(quota),
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
            .map_err(|not_until| not_until.wait_time_from(self.limiter.clock().now()))
    }
}
