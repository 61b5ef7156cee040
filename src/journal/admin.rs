//! Copies and deletion of finished runs, on both databases.

use async_trait::async_trait;
use jiff::Timestamp;

use super::chain::Position;
use super::database::{Bound, Columns as _, Connection as _, Database, Durability};
use super::effects::Origin;
use super::packed::StoredBody;
use super::reads::ENTRIES;
use super::records::Restored;
use super::store::AdminStore;
use super::writes::{Head, change, insert_entry, insert_run, project, set_head};
use super::{Archive, Error, encoded_event, rows};
use crate::domain::RunId;

#[async_trait]
impl<D: Database> AdminStore for D {
    async fn archive(&self, run: RunId) -> Result<Option<Archive>, Error> {
        let statement = "SELECT idempotency_key, body_hash FROM runs WHERE id = $1 AND state NOT IN ('queued', 'running')";
        let mut reader = self.reader().await?;
        let id: Bound = run.to_string().into();
        let Some(row) = reader.row(statement, vec![id.clone()]).await? else {
            return Ok(None);
        };
        let found = reader.rows(ENTRIES, vec![id, 0.into()]).await?;
        let entries = rows::archived(run, 0, &found)?;
        if entries.is_empty() {
            // Another process pruned the run between the two statements.
            return Ok(None);
        }
        Ok(Some(Archive {
            version: Archive::VERSION,
            run,
            idempotency_key: row.text_or_null("idempotency_key")?,
            body_hash: row.text("body_hash")?,
            entries,
        }))
    }

    async fn restore(&self, archive: &Archive) -> Result<Restored, Error> {
        let sound = archive.check()?;
        let events = sound.events.iter();
        let changes = events.map(|(at, event)| {
            (
                *at,
                encoded_event::spent(event),
                encoded_event::change(event),
            )
        });
        let changes: Vec<_> = changes.collect();
        let input = (archive.clone(), sound.run, sound.head, changes);
        self.write(
            Durability::Machine,
            input,
            |tx, (archive, run, head, changes)| {
                Box::pin(async move {
                    let id = archive.run.to_string();
                    let mut run = run.clone();
                    let statement = "SELECT id FROM runs WHERE id = $1 OR idempotency_key = $2";
                    let values = vec![id.as_str().into(), archive.idempotency_key.clone().into()];
                    for row in tx.rows(statement, values).await? {
                        if row.text("id")? == id {
                            return Ok(Restored::Known);
                        }
                        // Another run in this database has the key, and keeps it.
                        run.idempotency_key = None;
                    }
                    tx.change(insert_run(&run)).await?;
                    let mut spent = 0;
                    for (entry, (at, cost, change)) in archive.entries.iter().zip(changes) {
                        let position = Position {
                            seq: entry.seq,
                            at_ms: entry.at_ms,
                        };
                        let body = StoredBody {
                            text: &entry.body,
                            packed: None,
                        };
                        tx.change(insert_entry(&id, position, &entry.key, body, &entry.hash))
                            .await?;
                        spent = cost.saturating_add(spent);
                        if let Some(change) = change.clone() {
                            for statement in project(&id, *at, change, Origin::Archive) {
                                tx.change(statement).await?;
                            }
                        }
                    }
                    let seq = archive.entries.len().try_into().unwrap_or(i64::MAX);
                    let hash = head.clone();
                    tx.change(set_head(&id, Head { seq, hash }, spent)).await?;
                    Ok(Restored::New)
                })
            },
        )
        .await
    }

    async fn prunable(&self, before: Timestamp) -> Result<u64, Error> {
        let values = vec![before.as_millisecond().into()];
        Ok(self.reader().await?.number(D::PRUNABLE, values).await?)
    }

    async fn prune(&self, before: Timestamp, most: u32) -> Result<u64, Error> {
        let values = vec![before.as_millisecond().into(), i64::from(most).into()];
        change(self, D::PRUNE, values).await
    }
}
