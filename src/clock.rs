//! The only source of time, ids and randomness, so that tests can fix them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Where the current time, ids and seeds come from.
#[derive(Debug, Clone)]
pub enum Clock {
    System,
    /// Starts at the given instant and advances one millisecond at each reading. Ids and seeds
    /// count up.
    Fixed {
        start: Timestamp,
        ticks: Arc<AtomicU64>,
    },
}

impl Clock {
    pub fn fixed(start: Timestamp) -> Self {
        Self::Fixed {
            start,
            ticks: Arc::default(),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Fixed { start, ticks } => {
                let tick = ticks.fetch_add(1, Ordering::Relaxed);
                start
                    .saturating_add(SignedDuration::from_millis(tick.cast_signed()))
                    .unwrap_or(*start)
            }
        }
    }

    /// Returns a new UUIDv7.
    #[allow(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new_id(&self) -> Uuid {
        match self {
            Self::System => Uuid::now_v7(),
            Self::Fixed { ticks, .. } => {
                let millis = u64::try_from(self.now().as_millisecond()).unwrap_or(0);
                let count = ticks.fetch_add(1, Ordering::Relaxed);
                let mut tail = [0u8; 10];
                tail[2..].copy_from_slice(&count.to_be_bytes());
                uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
            }
        }
    }

    /// Returns unpredictable bits for a secret.
    pub fn new_secret(&self) -> [u8; 32] {
        match self {
            Self::System => rand::random(),
            Self::Fixed { ticks, .. } => {
                let mut bits = [0u8; 32];
                bits[24..].copy_from_slice(&ticks.fetch_add(1, Ordering::Relaxed).to_be_bytes());
                bits
            }
        }
    }

    /// Returns a new random seed.
    pub fn new_seed(&self) -> u64 {
        match self {
            Self::System => rand::random(),
            Self::Fixed { ticks, .. } => ticks.fetch_add(1, Ordering::Relaxed),
        }
    }
}
