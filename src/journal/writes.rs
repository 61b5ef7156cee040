//! Writes that are the same on both databases.

use std::time::Duration;

use jiff::Timestamp;

use super::database::{Bound, Columns as _, Connection, Database, Failure, Statement, retried};
use super::reads::{BY_KEY, exposure};
use super::rows::{self, Change};
use super::{
    Acceptance, ActionStart, AfterAction, Annotated, Archive, ArchivedEntry, CancelOutcome, Claim,
    Claimed, Effect, Error, Event, Learned, LearnedChange, Lease, LeaseState, NewRun, Restored,
    chain,
};
use crate::domain::RunId;

/// The sequence number and the hash of a run's last entry.
pub(super) type Head = (i64, String);

/// Returns the head of a run without entries.
pub(super) fn genesis() -> Head {
    (0, chain::GENESIS.to_owned())
}

/// Returns why a run is not accepted, or `None` if it is.
async fn refusal<C: Connection>(
    connection: &mut C,
    run: &NewRun,
) -> Result<Option<Acceptance>, Failure> {
    if let Some(key) = &run.idempotency_key
        && let Some(row) = connection.row(BY_KEY, vec![key.as_str().into()]).await?
    {
        let (id, body_hash) = rows::by_key(&row)?;
        return Ok(Some(if body_hash == run.body_hash {
            Acceptance::Joined(id)
        } else {
            Acceptance::KeyReused(id)
        }));
    }
    if let Some(continues) = &run.accepted.continues {
        // The runs in flight that continue the same run.
        let statement = "
            SELECT runs.id, entries.body FROM runs JOIN entries ON entries.run = runs.id AND entries.key = 'accepted'
            WHERE runs.parent = $1 AND runs.state IN ('queued', 'running')";
        let parent = continues.parent.to_string().into();
        for row in connection.rows(statement, vec![parent]).await? {
            // Continued in the same way, such as the same answer sent twice.
            if matches!(serde_json::from_str(&row.text("body")?), Ok(Event::Accepted(a)) if a.continues.as_ref() == Some(continues))
            {
                let twin = rows::run_id(&row.text("id")?)?;
                return Ok(Some(Acceptance::Joined(twin)));
            }
        }
    }
    for limit in &run.limits {
        let left = limit.most - exposure(connection, limit).await?;
        if run.accepted.cap > left {
            return Ok(Some(Acceptance::OverLimit {
                scope: limit.scope.clone(),
                left,
            }));
        }
    }
    Ok(None)
}

/// Writes a run that is worked on later.
pub(super) async fn accept<D: Database>(database: &D, run: &NewRun) -> Result<Acceptance, Error> {
    retried::<D, _, _>(|| async {
        let mut tx = database.transaction().await?;
        D::lock(&mut tx, run).await?;
        if let Some(not) = refusal(&mut *tx, run).await? {
            return Ok(not);
        }
        insert(&mut *tx, run, &[]).await?;
        tx.commit().await?;
        Ok(Acceptance::New)
    })
    .await
}

/// Writes an action that has ended, or accepts and claims one.
pub(super) async fn begin<D: Database>(
    database: &D,
    run: &NewRun,
    then: &AfterAction,
) -> Result<ActionStart, Error> {
    retried::<D, _, _>(|| async {
        let mut tx = match then {
            AfterAction::End(_) => database.free_transaction().await?,
            AfterAction::Hold { .. } => database.transaction().await?,
        };
        D::lock(&mut tx, run).await?;
        if let Some(not) = refusal(&mut *tx, run).await? {
            return Ok(ActionStart::Not(not));
        }
        let start = match then {
            AfterAction::End(events) => {
                insert(&mut *tx, run, events).await?;
                ActionStart::Ended
            }
            AfterAction::Hold { owner, lease } => {
                let held = Lease {
                    run: run.id,
                    owner: owner.clone(),
                    epoch: 1,
                };
                insert(&mut *tx, run, &[claim_event(&held)]).await?;
                let values = held.values(D::lease(run.at, *lease));
                tx.change((D::HOLD, values)).await?;
                ActionStart::Held(held)
            }
        };
        tx.commit().await?;
        Ok(start)
    })
    .await
}

/// Inserts a run with its further events.
async fn insert<C: Connection>(
    connection: &mut C,
    run: &NewRun,
    more: &[Event],
) -> Result<(), Failure> {
    connection.change(insert_run(run)).await?;
    let mut events = vec![Event::Accepted(Box::new(run.accepted.clone()))];
    events.extend_from_slice(more);
    append(connection, run.id, run.at, &events, genesis()).await?;
    Ok(())
}

/// Inserts the row of a run that has no entries yet.
pub(super) fn insert_run(run: &NewRun) -> Statement {
    let question = &run.accepted.question;
    let context = &question.context;
    let values = vec![
        run.id.to_string().into(),
        question.mode.into_str().into(),
        question.source.into_str().into(),
        question.user.id.as_str().into(),
        context.guild_id.as_deref().unwrap_or("").into(),
        context.channel_id.as_deref().unwrap_or("").into(),
        rows::listed_message(&run.accepted).into(),
        run.accepted
            .parent()
            .map(|parent| parent.to_string())
            .into(),
        run.accepted.cap.nanos().cast_signed().into(),
        run.at.as_millisecond().into(),
        run.idempotency_key.clone().into(),
        run.body_hash.as_str().into(),
        chain::GENESIS.into(),
        run.accepted.kind().into_str().into(),
    ];
    let statement = "
        INSERT INTO runs (id, state, mode, source, user_id, guild_id, channel_id, message, parent, cap_nanos,
                          accepted_ms, idempotency_key, body_hash, head_seq, head_hash, kind)
        VALUES ($1, 'queued', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14)";
    (statement, values)
}

/// Inserts an entry, unless the run already has its key.
fn insert_entry(run: &str, entry: &ArchivedEntry) -> Statement {
    let statement = "
        INSERT INTO entries (run, seq, at_ms, key, body, prev, hash) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (run, key) DO NOTHING";
    let values = vec![
        run.into(),
        entry.seq.into(),
        entry.at_ms.into(),
        entry.key.as_str().into(),
        entry.body.as_str().into(),
        entry.prev.as_str().into(),
        entry.hash.as_str().into(),
    ];
    (statement, values)
}

fn set_head(run: &str, (seq, hash): Head) -> Statement {
    let statement = "UPDATE runs SET head_seq = $1, head_hash = $2 WHERE id = $3";
    (statement, vec![seq.into(), hash.into(), run.into()])
}

/// Returns the statement for what an event changes besides the journal.
pub(super) fn project(run: &str, at: Timestamp, event: &Event) -> Option<Statement> {
    let at_ms: Bound = at.as_millisecond().into();
    Some(match rows::change(event)? {
        Change::Spent(nanos) => (
            "UPDATE runs SET spent_nanos = spent_nanos + $1 WHERE id = $2",
            vec![nanos.into(), run.into()],
        ),
        Change::Ended {
            state,
            cause,
            c_final,
        } => (
            "UPDATE runs SET state = $1, cause = $2, c_final = $3, finished_ms = $4, owner = NULL WHERE id = $5",
            vec![
                state.into_str().into(),
                cause.into(),
                c_final.into(),
                at_ms,
                run.into(),
            ],
        ),
        // The owner comes from the run's row. A sheet that is newer stays: a restored archive may
        // bring an older one.
        Change::Changed(Effect::Sheet { name, sheet }) => (
            "
            INSERT INTO sheets (source, guild_id, user_id, name_key, name, sheet, updated_ms, run)
            SELECT source, guild_id, user_id, $2, $3, $4, $5, id FROM runs WHERE id = $1
            ON CONFLICT (source, guild_id, user_id, name_key)
            DO UPDATE SET name = excluded.name, sheet = excluded.sheet, updated_ms = excluded.updated_ms, run = excluded.run
            WHERE excluded.updated_ms >= sheets.updated_ms",
            vec![
                run.into(),
                name.to_lowercase().into(),
                name.into(),
                sheet.to_string().into(),
                at_ms,
            ],
        ),
        Change::Learned(learned) => return Some(project_learned(run, at_ms, *learned)),
        Change::Changed(Effect::Memory { content }) => (
            "
            INSERT INTO memories (run, source, guild_id, user_id, content, created_ms)
            SELECT id, source, guild_id, user_id, $2, $3 FROM runs WHERE id = $1
            ON CONFLICT (run) DO NOTHING",
            vec![run.into(), content.into(), at_ms],
        ),
    })
}

/// Returns the statement for a change of a learned answer.
fn project_learned(run: &str, at_ms: Bound, learned: Learned) -> Statement {
    let Learned {
        change,
        confidence,
        taught,
        ..
    } = learned;
    let Some(taught) = taught else {
        let is_revoked = i64::from(change == LearnedChange::Revoked);
        return (
            "UPDATE learned_answers SET confidence = $2, changed_ms = $3, revoked = $4 WHERE run = $1",
            vec![
                run.into(),
                Some(confidence).into(),
                at_ms,
                is_revoked.into(),
            ],
        );
    };
    (
        "
        INSERT INTO learned_answers (run, source, guild_id, user_id, content, answer, confidence, revoked, learned_ms, changed_ms)
        SELECT id, source, guild_id, CASE WHEN guild_id = '' THEN user_id ELSE '' END, $2, $3, $4, 0, $5, $5
        FROM runs WHERE id = $1
        ON CONFLICT (run) DO NOTHING",
        vec![
            run.into(),
            taught.condition.into(),
            serde_json::to_string(&taught.answer)
                .unwrap_or_default()
                .into(),
            Some(confidence).into(),
            at_ms,
        ],
    )
}

/// Appends to the chain after `head`, and updates the row. Returns the last sequence number.
pub(super) async fn append<C: Connection>(
    connection: &mut C,
    run: RunId,
    at: Timestamp,
    events: &[Event],
    head: Head,
) -> Result<i64, Failure> {
    let (mut seq, mut prev) = head;
    let id = run.to_string();
    for event in events {
        let line = rows::line(run, at, event, seq, &prev)?;
        if connection.change(insert_entry(&id, &line)).await? > 0 {
            (seq, prev) = (line.seq, line.hash);
            if let Some(change) = project(&id, at, event) {
                connection.change(change).await?;
            }
        }
    }
    connection.change(set_head(&id, (seq, prev))).await?;
    Ok(seq)
}

/// Returns the statements that write a run with all its events, of which the last ends it.
pub(super) fn script(run: &NewRun, more: &[Event]) -> Result<Vec<Statement>, Error> {
    let id = run.id.to_string();
    let (mut seq, mut prev) = genesis();
    let mut script = vec![insert_run(run)];
    let accepted = Event::Accepted(Box::new(run.accepted.clone()));
    for event in std::iter::once(&accepted).chain(more) {
        let line = rows::line(run.id, run.at, event, seq, &prev)?;
        script.push(insert_entry(&id, &line));
        script.extend(project(&id, run.at, event));
        (seq, prev) = (line.seq, line.hash);
    }
    script.push(set_head(&id, (seq, prev)));
    Ok(script)
}

/// Returns the parameters of [`Database::CLAIM`].
pub(super) fn claim_values<D: Database>(
    which: Claim,
    owner: &str,
    duration: Duration,
    at: Timestamp,
) -> Vec<Bound> {
    let one = match which {
        Claim::Oldest => None,
        Claim::Run(id) => Some(id.to_string()),
    };
    let mut values = vec![owner.into(), D::lease(at, duration).into(), one.into()];
    values.extend(D::now(at).map(Bound::from));
    values
}

pub(super) async fn claim<D: Database>(
    database: &D,
    which: Claim,
    owner: &str,
    duration: Duration,
    at: Timestamp,
) -> Result<Option<Lease>, Error> {
    let values = claim_values::<D>(which, owner, duration, at);
    retried::<D, _, _>(|| async {
        let mut tx = database.transaction().await?;
        let Some(row) = tx.row(D::CLAIM, values.clone()).await? else {
            return Ok(None);
        };
        let lease = Lease {
            run: rows::run_id(&row.text("id")?)?,
            owner: owner.to_owned(),
            epoch: row.whole("epoch")?,
        };
        let head = (row.whole("head_seq")?, row.text("head_hash")?);
        append(&mut *tx, lease.run, at, &[claim_event(&lease)], head).await?;
        tx.commit().await?;
        Ok(Some(lease))
    })
    .await
}

pub(super) async fn renew<D: Database>(
    database: &D,
    lease: &Lease,
    duration: Duration,
    now: Timestamp,
) -> Result<LeaseState, Error> {
    // A crash of the machine may lose this renewal, but it also ends the process that has the
    // lease.
    let mut tx = database.free_transaction().await?;
    let values = lease.values(D::lease(now, duration));
    let found = tx.row(D::RENEW, values).await?;
    tx.commit().await?;
    Ok(
        match found.map(|row| row.whole("cancel_requested")).transpose()? {
            None => LeaseState::Lost,
            Some(0) => LeaseState::Yes,
            Some(_) => LeaseState::CancelRequested,
        },
    )
}

pub(super) fn claim_event(lease: &Lease) -> Event {
    Event::Claimed(Claimed {
        epoch: lease.epoch,
        owner: lease.owner.clone(),
    })
}

impl Lease {
    /// Returns run, epoch and owner, and perhaps one more value.
    pub(super) fn values(&self, more: impl Into<Option<i64>>) -> Vec<Bound> {
        let mut values = vec![
            self.run.to_string().into(),
            self.epoch.into(),
            self.owner.as_str().into(),
        ];
        values.extend(more.into().map(Bound::from));
        values
    }
}

/// True if events may not be written while their run is being cancelled.
pub(super) fn needs_consent(events: &[Event]) -> bool {
    let stopped = |event: &Event| matches!(event, Event::CallSent(_) | Event::Executed(_));
    events.iter().any(stopped)
}

/// Appends to a finished run.
pub(super) async fn annotate<D: Database>(
    database: &D,
    run: RunId,
    at: Timestamp,
    event: &Event,
) -> Result<Annotated, Error> {
    retried::<D, _, _>(|| async {
        let mut tx = database.transaction().await?;
        let found = tx.row(D::LOCK_RUN, vec![run.to_string().into()]).await?;
        let Some(row) = found.as_ref().map(rows::run).transpose()? else {
            return Ok(Annotated::Unknown);
        };
        if !row.state.is_terminal() {
            return Ok(Annotated::Unfinished);
        }
        let head = (row.head_seq, row.head_hash);
        let seq = append(&mut *tx, run, at, std::slice::from_ref(event), head).await?;
        if seq == row.head_seq {
            return Ok(Annotated::Taken);
        }
        tx.commit().await?;
        Ok(Annotated::Written)
    })
    .await
}

pub(super) async fn cancel<D: Database>(database: &D, run: RunId) -> Result<CancelOutcome, Error> {
    let id: Bound = run.to_string().into();
    let mut tx = database.transaction().await?;
    let found = tx.row(D::LOCK_RUN, vec![id.clone()]).await?;
    let Some(row) = found.as_ref().map(rows::run).transpose()? else {
        return Ok(CancelOutcome::Unknown);
    };
    if row.state.is_terminal() {
        return Ok(CancelOutcome::AlreadyFinished(row.state));
    }
    let statement = "UPDATE runs SET cancel_requested = 1 WHERE id = $1";
    tx.change((statement, vec![id])).await?;
    tx.commit().await?;
    Ok(CancelOutcome::Requested)
}

pub(super) async fn restore<D: Database>(
    database: &D,
    archive: &Archive,
) -> Result<Restored, Error> {
    retried::<D, _, _>(|| async {
        let mut sound = archive.check()?;
        let id = archive.run.to_string();
        let statement = "SELECT id FROM runs WHERE id = $1 OR idempotency_key = $2";
        let values = vec![id.as_str().into(), archive.idempotency_key.clone().into()];
        let mut tx = database.transaction().await?;
        for row in tx.rows(statement, values).await? {
            if row.text("id")? == id {
                return Ok(Restored::Known);
            }
            // Another run in this database has the key, and keeps it.
            sound.run.idempotency_key = None;
        }
        tx.change(insert_run(&sound.run)).await?;
        for (entry, (at, event)) in archive.entries.iter().zip(&sound.events) {
            tx.change(insert_entry(&id, entry)).await?;
            if let Some(change) = project(&id, *at, event) {
                tx.change(change).await?;
            }
        }
        let seq = archive.entries.len().try_into().unwrap_or(i64::MAX);
        tx.change(set_head(&id, (seq, sound.head))).await?;
        tx.commit().await?;
        Ok(Restored::New)
    })
    .await
}

pub(super) async fn prune<D: Database>(
    database: &D,
    before: Timestamp,
    most: u32,
) -> Result<u64, Error> {
    let values = vec![before.as_millisecond().into(), i64::from(most).into()];
    let mut tx = database.transaction().await?;
    let pruned = tx.change((D::PRUNE, values)).await?;
    tx.commit().await?;
    Ok(pruned)
}
