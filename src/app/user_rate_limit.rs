//! The rate limit of runs per user.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroU32;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

use super::rate::Rate;
use crate::config::Limits;

/// The number of locks. Users that share a lock wait for each other while their questions are
/// accepted.
const SHARDS: usize = 64;

/// The rate limit of users, and the locks under which their questions are accepted.
pub(super) struct UserRateLimit {
    /// `None`: no limit.
    rate: Option<Rate<String>>,
    lanes: Vec<Mutex<()>>,
}

impl UserRateLimit {
    pub fn new(limits: &Limits) -> Self {
        let most = limits.user_per_minute.and_then(NonZeroU32::new);
        let rate = most.map(|most| {
            let burst = limits.user_burst.and_then(NonZeroU32::new).unwrap_or(most);
            Rate::per_minute(most, burst)
        });
        Self {
            rate,
            lanes: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Locks the submissions of a user. Of several equal questions, the second is checked when the
    /// first is in the journal, so that a repetition never counts. Returns `None` without a limit,
    /// because then nothing has to wait.
    pub async fn acquire(&self, user: &str) -> Option<MutexGuard<'_, ()>> {
        self.rate.as_ref()?;
        let mut hasher = DefaultHasher::new();
        user.hash(&mut hasher);
        let lane = usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0);
        Some(self.lanes.get(lane)?.lock().await)
    }

    /// Counts one run of the user.
    ///
    /// # Errors
    /// The time until the user may start another run.
    pub fn take(&self, user: &str) -> Result<(), Duration> {
        self.rate
            .as_ref()
            .map_or(Ok(()), |rate| rate.take(&user.to_owned()))
    }
}
