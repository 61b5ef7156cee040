//! Waits for runs, and follows their entries.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::{App, Rejected, runner};
use crate::domain::RunId;
use crate::journal::{self, Entry, Finished, RunRow, Transcript};

/// What the journal says about the end of a run.
enum Read {
    Unended,
    /// `None` if there is no such run.
    Ended(Option<Finished>),
}

/// The time since which the journal cannot be read.
#[derive(Default)]
struct Outage(Option<Instant>);

impl Outage {
    /// True if an error may be one of an outage that is worth waiting for.
    fn may_end(&mut self, error: &journal::Error, max: Duration) -> bool {
        let since = *self.0.get_or_insert_with(Instant::now);
        matches!(error, journal::Error::Unavailable(_)) && since.elapsed() < max
    }
}

impl App {
    /// Waits for the end of a run, whichever process executes it. Keeps waiting during a short outage
    /// of the database, because the run does too. Returns `None` if there is no such run.
    ///
    /// # Errors
    /// [`journal::Error`] if the journal cannot be read for another reason, or for longer, or if it is
    /// damaged, so that no process can end the run.
    pub async fn finished(&self, run: RunId) -> Result<Option<Finished>, journal::Error> {
        let mut wake = self.process.wake.listen(run);
        let mut must_read = !self.runner.holds(run);
        let mut outage = Outage::default();
        loop {
            if must_read {
                match self.read_end(run).await {
                    Ok(Read::Ended(finished)) => return Ok(finished),
                    Ok(Read::Unended) => match self.runner.why_stuck(run).await {
                        Some(damaged) => return Err(damaged),
                        None => outage = Outage::default(),
                    },
                    Err(error) if outage.may_end(&error, self.max_outage()) => {}
                    Err(error) => return Err(error),
                }
            }
            // The end of a run of this process comes as a notification.
            let patience = if self.runner.holds(run) {
                runner::HELD_POLL
            } else {
                runner::POLL
            };
            if let Ok(Some(finished)) = tokio::time::timeout(patience, wake.end()).await {
                return Ok(Some(Finished::clone(&finished)));
            }
            must_read = true;
        }
    }

    /// Waits for the end of a run as [`App::finished`], unless the process shuts down before.
    ///
    /// # Errors
    /// [`Rejected::Draining`] if another process has to end the run; else as [`App::finished`].
    pub async fn ended(&self, run: RunId) -> Result<Option<Finished>, Rejected> {
        tokio::select! {
            biased;
            finished = self.finished(run) => Ok(finished?),
            () = self.runner.left_to_others(run) => Err(Rejected::Draining),
        }
    }

    /// Returns once the process shuts down and will not end the run.
    pub async fn left_to_others(&self, run: RunId) {
        self.runner.left_to_others(run).await;
    }

    /// Returns how long an outage of the database is waited for. Meanwhile the leases of its runs end,
    /// and a process takes them over.
    fn max_outage(&self) -> Duration {
        3 * self.config.policy.lease
    }

    async fn read_end(&self, run: RunId) -> Result<Read, journal::Error> {
        let Some(row) = self.store.run(run).await? else {
            return Ok(Read::Ended(None));
        };
        if !row.state.is_terminal() {
            return Ok(Read::Unended);
        }
        let entries = self.store.entries(run, 0).await?;
        let finished = Transcript::of_entries(&entries).finished.cloned();
        Ok(Read::Ended(finished))
    }

    /// Streams the run's entries after `after`, and then new ones until the run ends. Waits while the
    /// database is lost, unless it is damaged.
    pub fn follow(
        self: &Arc<Self>,
        run: RunId,
        after: i64,
    ) -> ReceiverStream<Result<Entry, journal::Error>> {
        let (sender, receiver) = tokio::sync::mpsc::channel(8);
        let (store, wake) = (Arc::clone(&self.store), self.process.wake.clone());
        let (mut outage, max_outage) = (Outage::default(), self.max_outage());
        let runner = self.runner.clone();
        self.runner.spawn_reader(async move {
            let mut wake = wake.listen(run);
            let mut after = after;
            loop {
                let entries = match store.entries(run, after).await {
                    Ok(entries) => {
                        outage = Outage::default();
                        entries
                    }
                    Err(error) if outage.may_end(&error, max_outage) => vec![],
                    Err(error) => {
                        let _ = sender.send(Err(error)).await;
                        return;
                    }
                };
                for entry in entries {
                    after = entry.seq;
                    let last = entry.is_end();
                    if sender.send(Ok(entry)).await.is_err() || last {
                        return;
                    }
                }
                let is_read = |row: RunRow| row.state.is_terminal() && after >= row.head_seq;
                if (store.run(run).await).is_ok_and(|row| row.is_none_or(is_read)) {
                    // No entry can follow: the caller has already read the last one.
                    return;
                }
                if let Some(damaged) = runner.why_stuck(run).await {
                    let _ = sender.send(Err(damaged)).await;
                    return;
                }
                tokio::select! {
                    () = sender.closed() => return,
                    _ = tokio::time::timeout(runner::POLL, wake.notified()) => {}
                }
            }
        });
        ReceiverStream::new(receiver)
    }
}
