//! Writes that are the same on both databases, within the caller's transaction.

use jiff::Timestamp;

use super::database::{Bound, Columns, Connection, Failure, Statement};
use super::reads::{BY_KEY, exposure};
use super::rows::{self, Change};
use super::{
    Acceptance, Annotated, Archive, ArchivedEntry, CancelOutcome, Claimed, Effect, Error, Event,
    Lease, LeaseState, NewRun, Restored, chain,
};
use crate::domain::RunId;

/// The sequence number and the hash of a run's last entry.
pub(super) type Head = (i64, String);

/// Returns the head of a run without entries.
pub(super) fn genesis() -> Head {
    (0, chain::GENESIS.to_owned())
}

/// Returns why a run is not accepted, or `None` if it is.
pub(super) async fn refusal<C: Connection>(
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

/// Accepts a run with its further events.
pub(super) async fn accept<C: Connection>(
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
        question.mode.as_str().into(),
        question.source.as_str().into(),
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
        run.accepted.kind().as_str().into(),
    ];
    let statement = "
        INSERT INTO runs (id, state, mode, source, user_id, guild_id, channel_id, message, parent, cap_nanos,
                          accepted_ms, idempotency_key, body_hash, head_seq, head_hash, kind)
        VALUES ($1, 'queued', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14)";
    (statement, values)
}

/// Inserts an entry, unless the run already has its key.
pub(super) fn insert_entry(run: &str, entry: &ArchivedEntry) -> Statement {
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

pub(super) fn set_head(run: &str, (seq, hash): Head) -> Statement {
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
                state.as_str().into(),
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
        Change::Changed(Effect::Memory { content }) => (
            "
            INSERT INTO memories (run, source, guild_id, user_id, content, created_ms)
            SELECT id, source, guild_id, user_id, $2, $3 FROM runs WHERE id = $1
            ON CONFLICT (run) DO NOTHING",
            vec![run.into(), content.into(), at_ms],
        ),
    })
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

/// Records the claim of a run. `row` has its id, epoch and head.
pub(super) async fn claimed<C: Connection>(
    connection: &mut C,
    row: Option<C::Row>,
    owner: &str,
    at: Timestamp,
) -> Result<Option<Lease>, Failure> {
    let Some(row) = row else {
        return Ok(None);
    };
    let lease = Lease {
        run: rows::run_id(&row.text("id")?)?,
        owner: owner.to_owned(),
        epoch: row.whole("epoch")?,
    };
    let head = (row.whole("head_seq")?, row.text("head_hash")?);
    append(connection, lease.run, at, &[claim_event(&lease)], head).await?;
    Ok(Some(lease))
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

/// Reads the result of a renewal. `row` says whether the run is being cancelled.
pub(super) fn renewed(row: Option<&impl Columns>) -> Result<LeaseState, Error> {
    Ok(
        match row.map(|row| row.whole("cancel_requested")).transpose()? {
            None => LeaseState::Lost,
            Some(0) => LeaseState::Yes,
            Some(_) => LeaseState::CancelRequested,
        },
    )
}

/// Checks that the events may be written. `row` is what the fence found: the head of the run if the
/// lease is valid, and whether the run is being cancelled.
pub(super) fn fenced(row: Option<&impl Columns>, events: &[Event]) -> Result<Head, Error> {
    let row = row.ok_or(Error::LeaseLost)?;
    let stopped = |event: &Event| matches!(event, Event::CallSent(_) | Event::Executed(_));
    if row.whole("cancel_requested")? != 0 && events.iter().any(stopped) {
        return Err(Error::CancelRequested);
    }
    Ok((row.whole("head_seq")?, row.text("head_hash")?))
}

/// Appends to a finished run.
pub(super) async fn annotate<C: Connection>(
    connection: &mut C,
    run: RunId,
    at: Timestamp,
    event: &Event,
) -> Result<Annotated, Failure> {
    let found = connection
        .row(C::LOCK_RUN, vec![run.to_string().into()])
        .await?;
    let Some(row) = found.as_ref().map(rows::run).transpose()? else {
        return Ok(Annotated::Unknown);
    };
    if !row.state.is_terminal() {
        return Ok(Annotated::Unfinished);
    }
    let head = (row.head_seq, row.head_hash);
    let seq = append(connection, run, at, std::slice::from_ref(event), head).await?;
    Ok(if seq == row.head_seq {
        Annotated::Taken
    } else {
        Annotated::Written
    })
}

pub(super) async fn cancel<C: Connection>(
    connection: &mut C,
    run: RunId,
) -> Result<CancelOutcome, Failure> {
    let id: Bound = run.to_string().into();
    let found = connection.row(C::LOCK_RUN, vec![id.clone()]).await?;
    let Some(row) = found.as_ref().map(rows::run).transpose()? else {
        return Ok(CancelOutcome::Unknown);
    };
    if row.state.is_terminal() {
        return Ok(CancelOutcome::AlreadyFinished(row.state));
    }
    let statement = "UPDATE runs SET cancel_requested = 1 WHERE id = $1";
    connection.change((statement, vec![id])).await?;
    Ok(CancelOutcome::Requested)
}

pub(super) async fn restore<C: Connection>(
    connection: &mut C,
    archive: &Archive,
) -> Result<Restored, Failure> {
    let mut sound = archive.check()?;
    let id = archive.run.to_string();
    let statement = "SELECT id FROM runs WHERE id = $1 OR idempotency_key = $2";
    let values = vec![id.as_str().into(), archive.idempotency_key.clone().into()];
    for row in connection.rows(statement, values).await? {
        if row.text("id")? == id {
            return Ok(Restored::Known);
        }
        // Another run in this database has the key, and keeps it.
        sound.run.idempotency_key = None;
    }
    connection.change(insert_run(&sound.run)).await?;
    for (entry, (at, event)) in archive.entries.iter().zip(&sound.events) {
        connection.change(insert_entry(&id, entry)).await?;
        if let Some(change) = project(&id, *at, event) {
            connection.change(change).await?;
        }
    }
    let seq = archive.entries.len().try_into().unwrap_or(i64::MAX);
    connection.change(set_head(&id, (seq, sound.head))).await?;
    Ok(Restored::New)
}
