//! How often one user may begin a run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroU32;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

use super::rate::Rate;
use crate::config::Limits;

/// Users of one lane wait for each other while their questions are taken in.
const SHARDS: usize = 64;

/// The rate limit of users, with the lanes in which their questions come in.
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

    /// The user's turn: of several equal questions, the second is looked at when the first is in the journal, so that a
    /// repetition never counts. `None` without a limit, where nothing has to wait.
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
    /// The time until he may begin another.
    pub fn take(&self, user: &str) -> Result<(), Duration> {
        self.rate
            .as_ref()
            .map_or(Ok(()), |rate| rate.take(&user.to_owned()))
    }
}
