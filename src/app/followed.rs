//! Waits for runs, and follows their entries.

use std::sync::Arc;

use tokio_stream::wrappers::ReceiverStream;

use super::{App, runner};
use crate::domain::RunId;
use crate::journal::{self, Entry, Event, Finished, Transcript};

/// What the journal says about the end of a run.
enum Read {
    Unended,
    /// `None` if there is no such run.
    Ended(Option<Finished>),
}

impl App {
    /// Waits for the end of a run, also of one that another process executes, and also while the
    /// database is lost: the run waits for it too. Returns `None` if there is no such run.
    ///
    /// # Errors
    /// [`journal::Error`] if the journal cannot be read for another reason.
    pub async fn finished(&self, run: RunId) -> Result<Option<Finished>, journal::Error> {
        let mut wake = self.wake.listen(run);
        let mut must_read = !self.runner.holds(run);
        loop {
            if must_read {
                match self.read_end(run).await {
                    Err(journal::Error::Unavailable(_)) | Ok(Read::Unended) => {}
                    Err(error) => return Err(error),
                    Ok(Read::Ended(finished)) => return Ok(finished),
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
    /// database is lost.
    pub fn follow(
        self: &Arc<Self>,
        run: RunId,
        after: i64,
    ) -> ReceiverStream<Result<Entry, journal::Error>> {
        let (sender, receiver) = tokio::sync::mpsc::channel(8);
        let (store, wake) = (Arc::clone(&self.store), self.wake.clone());
        self.runner.spawn_reader(async move {
            let mut wake = wake.listen(run);
            let mut after = after;
            loop {
                let entries = match store.entries(run, after).await {
                    Ok(entries) => entries,
                    Err(journal::Error::Unavailable(_)) => vec![],
                    Err(error) => {
                        let _ = sender.send(Err(error)).await;
                        return;
                    }
                };
                for entry in entries {
                    after = entry.seq;
                    let last = matches!(entry.event, Event::Finished(_));
                    if sender.send(Ok(entry)).await.is_err() || last {
                        return;
                    }
                }
                match store.run(run).await {
                    // No entry can follow: the caller has already read the last one.
                    Ok(row)
                        if row
                            .as_ref()
                            .is_none_or(|row| row.state.is_terminal() && after >= row.head_seq) =>
                    {
                        return;
                    }
                    Ok(_) | Err(_) => {}
                }
                tokio::select! {
                    () = sender.closed() => return,
                    () = runner::wait_for_signal(&mut wake) => {}
                }
            }
        });
        ReceiverStream::new(receiver)
    }
}
