//! Keeps the leases of a process's runs, and decides when it may take over runs of others. After a
//! stall of the process or a step of the clock, leases look expired that their processes are about to
//! renew.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{POLL, Runner};
use crate::journal::{Lease, LeaseState};

impl Runner {
    /// Renews the lease until that fails or the user cancels the run.
    pub(super) async fn keep_lease(&self, lease: &Lease) -> LeaseState {
        let duration = self.lease();
        let mut valid_until = Instant::now() + duration;
        let mut pause = duration / 3;
        loop {
            tokio::time::sleep(pause).await;
            pause = duration / 3;
            let asked = Instant::now();
            // An unresponsive database must not block this beyond the end of the lease. After a stall
            // of the process the lease may still be free to renew.
            let until = valid_until.max(asked + POLL);
            let renewal = self
                .0
                .process
                .store
                .renew(lease, duration, self.0.process.clock.now());
            match tokio::time::timeout_at(until, renewal).await {
                Ok(Ok(LeaseState::Yes)) => valid_until = asked + duration,
                Ok(Ok(held)) => return held,
                Ok(Err(error)) if Instant::now() < valid_until => {
                    pause = pause.min(POLL);
                    if !self.0.database_lost.load(Ordering::Relaxed) {
                        tracing::warn!(%error, "the lease is not renewed yet");
                    }
                }
                Ok(Err(_)) | Err(_) => return LeaseState::Lost,
            }
        }
    }
}

/// When the process last looked for runs to take over, and from when on it may.
#[derive(Default)]
pub(super) struct TakeOverGuard {
    last: Option<Timestamp>,
    from: Option<Timestamp>,
}

impl TakeOverGuard {
    /// Returns true if runs may be taken over at `now`. Call it at each look, [`POLL`] apart. After a
    /// gap in which leases of living processes may have expired, it returns false for the time of one
    /// lease: each process renews its leases in a third of it.
    pub fn allows(&mut self, now: Timestamp, lease: Duration) -> bool {
        let since = self.last.replace(now).map(|last| now.duration_since(last));
        let expected = lease / 3 + 2 * POLL;
        if since.is_some_and(|since| since.is_negative() || since.unsigned_abs() > expected) {
            tracing::warn!("the clock or the process jumped: no run is taken over for one lease");
            let wait = SignedDuration::try_from(lease).unwrap_or(SignedDuration::MAX);
            self.from = now.checked_add(wait).ok();
        }
        self.from.is_none_or(|from| now >= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_over_for_one_lease_after_a_jump() {
        let lease = Duration::from_secs(30);
        let allowed = |seconds: &[i64]| {
            let mut guard = TakeOverGuard::default();
            let at = |s: &i64| Timestamp::from_second(1_000_000 + s).unwrap();
            let all = seconds.iter().map(|s| guard.allows(at(s), lease));
            all.collect::<Vec<_>>()
        };
        assert_eq!(allowed(&[0, 1, 13, 14]), [true; 4]);
        assert_eq!(
            allowed(&[0, 40, 50, 60, 70]),
            [true, false, false, false, true]
        );
        assert_eq!(
            allowed(&[0, -9, 1, 12, 21]),
            [true, false, false, false, true]
        );
    }
}
