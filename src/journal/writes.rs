//! Writes that are the same on both databases.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::chain::Position;
use super::database::{Bound, Columns, Connection, Database, Durability, Failure, Statement};
use super::effects::{Origin, project_effect};
use super::encoded_event::{self, Change, EncodedEvent, End};
use super::packed::{Batch, StoredBody};
use super::reads::{BY_KEY, exposure, is_current};
use super::rows;
use super::{
    AcceptThen, Acceptance, Accepted, AckTiming, Annotated, CancelOutcome, Claim, Claimed,
    Continues, DataStamp, Error, Event, JournalStore, Learned, LearnedChange, Lease, LeaseState,
    NewRun, Note, StartOutcome, chain,
};
use crate::domain::{RunId, Usd, search_words};

/// A run's last entry.
pub(super) struct Head {
    pub seq: i64,
    pub hash: String,
}

impl Head {
    fn of(row: &impl Columns) -> Result<Self, Error> {
        Ok(Self {
            seq: row.whole("head_seq")?,
            hash: row.text("head_hash")?,
        })
    }
}

/// Keeps the key of a request that joins a run, so that its repetition gets the same reply.
const KEEP_KEY: &str = "
    INSERT INTO joined_keys (idempotency_key, run, body_hash) VALUES ($1, $2, $3)
    ON CONFLICT (idempotency_key) DO NOTHING";

/// True if two runs continue another one in the same way, and give the same kind of reply.
fn is_same(known: &Accepted, new: &Accepted, continues: &Continues) -> bool {
    let (asked, asks) = (&known.question, &new.question);
    known.continues.as_ref() == Some(continues)
        && asked.mode == asks.mode
        && asked.attachments == asks.attachments
}

/// Returns why a run is not accepted, or `None` if it is. `cap` is what its limits must leave for it.
async fn refusal<C: Connection>(
    connection: &mut C,
    run: &NewRun,
    cap: Usd,
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
            WHERE runs.parent = $1 AND (runs.state = 'queued' OR runs.state = 'running')";
        let parent = continues.parent.to_string().into();
        for row in connection.rows(statement, vec![parent]).await? {
            // Continued in the same way, such as the same answer sent twice.
            if matches!(row.text("body")?.parse(), Ok(Event::Accepted(a)) if is_same(&a, &run.accepted, continues))
            {
                let twin = rows::run_id(&row.text("id")?)?;
                if let Some(key) = &run.idempotency_key {
                    let id = twin.to_string();
                    let values = [key.as_str(), &id, &run.body_hash];
                    connection
                        .change((KEEP_KEY, values.map(Bound::from).into()))
                        .await?;
                }
                return Ok(Some(Acceptance::Joined(twin)));
            }
        }
    }
    for limit in &run.limits {
        let left = limit.most - exposure(connection, limit).await?;
        if cap > left {
            return Ok(Some(Acceptance::OverLimit {
                scope: limit.scope.clone(),
                left,
            }));
        }
    }
    Ok(None)
}

/// Executes one statement in a transaction of its own. Returns the number of changed rows.
pub(super) fn change<'a, D: Database>(
    database: &'a D,
    statement: &'static str,
    values: Vec<Bound>,
) -> BoxFuture<'a, Result<u64, Error>> {
    Box::pin(
        database.write(Durability::Machine, values, move |tx, values| {
            Box::pin(async move { tx.change((statement, values.clone())).await })
        }),
    )
}

#[async_trait]
impl<D: Database> JournalStore for D {
    /// Writes a run that is worked on later.
    async fn accept(&self, run: NewRun) -> Result<Acceptance, Error> {
        let started = start(self, run, Durability::Machine, Beginning::default()).await?;
        Ok(match started {
            StartOutcome::Refused(why) => why,
            StartOutcome::Finished | StartOutcome::Leased(_) | StartOutcome::Conflict => {
                Acceptance::New
            }
        })
    }

    /// Writes an action that has ended, or accepts and claims a run.
    async fn begin(&self, run: NewRun, then: AcceptThen) -> Result<StartOutcome, Error> {
        let (mut stamp, mut narrator) = (None, None);
        let (durability, events, held) = match then {
            AcceptThen::Finish {
                events,
                if_stamp,
                narrator: narrating,
            } => {
                (stamp, narrator) = (if_stamp, narrating);
                (Durability::Process, events, None)
            }
            AcceptThen::Claim { owner, lease, ack } => {
                let held = Lease {
                    run: run.id,
                    owner,
                    epoch: 1,
                };
                let durability = match ack {
                    AckTiming::Immediate => Durability::Machine,
                    AckTiming::WithReply => Durability::Process,
                };
                let claimed = vec![Event::Claimed(held.claimed())];
                (durability, claimed, Some((held, lease)))
            }
        };
        let beginning = Beginning {
            events,
            stamp,
            held,
            narrator,
        };
        start(self, run, durability, beginning).await
    }

    async fn claim(
        &self,
        which: Claim,
        owner: &str,
        duration: Duration,
        at: Timestamp,
    ) -> Result<Option<Lease>, Error> {
        let one = match which {
            Claim::Oldest => None,
            Claim::Run(id) => Some(id.to_string()),
        };
        let mut values: Vec<Bound> = vec![owner.into(), D::lease(at, duration).into(), one.into()];
        values.extend(D::now(at).map(Bound::from));
        let input = (values, owner.to_owned(), at);
        self.write(Durability::Machine, input, |tx, (values, owner, at)| {
            Box::pin(async move {
                let Some(row) = tx.row(D::CLAIM, values.clone()).await? else {
                    return Ok(None);
                };
                let lease = Lease {
                    run: rows::run_id(&row.text("id")?)?,
                    owner: owner.clone(),
                    epoch: row.whole("epoch")?,
                };
                let head = Head::of(&row)?;
                let claimed = EncodedEvent::of(&Event::Claimed(lease.claimed()))?;
                link(tx, lease.run, *at, &Batch::plain(vec![claimed]), head).await?;
                Ok(Some(lease))
            })
        })
        .await
    }

    async fn renew(
        &self,
        lease: &Lease,
        duration: Duration,
        now: Timestamp,
    ) -> Result<LeaseState, Error> {
        let values = lease.values(D::lease(now, duration));
        // A crash of the machine may lose this renewal, but it also ends the process that has the
        // lease.
        self.write(Durability::Process, values, |tx, values| {
            Box::pin(async move {
                let Some(row) = tx.row(D::RENEW, values.clone()).await? else {
                    return Ok(LeaseState::Lost);
                };
                Ok(match row.whole("cancel_requested")? {
                    0 => LeaseState::Yes,
                    _ => LeaseState::CancelRequested,
                })
            })
        })
        .await
    }

    /// Appends to a run that a lease permits to write. A result that was paid for is worth the wait for
    /// the next primary, or for space on the disk. An entry that was written before a connection broke is
    /// not written again: its key is unique. With a stamp there is no second attempt, because the first
    /// may have changed it.
    async fn append_if(
        &self,
        stamp: Option<&DataStamp>,
        lease: &Lease,
        at: Timestamp,
        events: &[&Event],
    ) -> Result<bool, Error> {
        let batch = Batch::packed(EncodedEvent::all(events.iter().copied())?);
        let durability = match stamp {
            None => Durability::Outage,
            Some(_) => Durability::Machine,
        };
        let input = (stamp.cloned(), lease.clone(), at, batch);
        let written = self
            .write(durability, input, |tx, (stamp, lease, at, batch)| {
                Box::pin(async move {
                    if let Some(stamp) = stamp {
                        D::lock_data(tx, stamp).await?;
                        if !is_current(tx, stamp).await? {
                            return Ok(false);
                        }
                    }
                    let Some(row) = tx.row(D::FENCE, lease.values(None)).await? else {
                        return Err(Error::LeaseLost.into());
                    };
                    let needs_consent = batch.entries.iter().any(|entry| entry.needs_consent);
                    if row.whole("cancel_requested")? != 0 && needs_consent {
                        return Err(Error::CancelRequested.into());
                    }
                    link(tx, lease.run, *at, batch, Head::of(&row)?).await?;
                    Ok(true)
                })
            })
            .await;
        self.noted(written)
    }

    async fn annotate(&self, at: Timestamp, mut notes: Vec<Note>) -> Result<Annotated, Error> {
        // Rows are locked in the same order everywhere.
        notes.sort_by_key(|note| note.run);
        let packed = notes.into_iter().map(|note| {
            let batch = Batch::packed(EncodedEvent::all(&note.events)?);
            Ok((note.run, note.head_seq, batch))
        });
        let packed = packed.collect::<Result<Vec<_>, Error>>()?;
        self.write(Durability::Machine, (at, packed), |tx, (at, notes)| {
            Box::pin(async move {
                let mut heads = Vec::with_capacity(notes.len());
                for (run, head_seq, _) in notes.iter() {
                    let found = tx.row(D::LOCK_RUN, vec![run.to_string().into()]).await?;
                    let Some(row) = found.as_ref().map(rows::run).transpose()? else {
                        return Ok(Annotated::Unknown);
                    };
                    if !row.state.is_terminal() {
                        return Ok(Annotated::Unfinished);
                    }
                    if row.head_seq != *head_seq {
                        return Ok(Annotated::Changed);
                    }
                    heads.push(Head {
                        seq: row.head_seq,
                        hash: row.head_hash,
                    });
                }
                for ((run, _, batch), head) in notes.iter().zip(heads) {
                    link(tx, *run, *at, batch, head).await?;
                }
                Ok(Annotated::Written)
            })
        })
        .await
    }

    async fn cancel(&self, run: RunId) -> Result<CancelOutcome, Error> {
        let id: Bound = run.to_string().into();
        self.write(Durability::Machine, id, |tx, id| {
            Box::pin(async move {
                let found = tx.row(D::LOCK_RUN, vec![id.clone()]).await?;
                let Some(row) = found.as_ref().map(rows::run).transpose()? else {
                    return Ok(CancelOutcome::Unknown);
                };
                if row.state.is_terminal() {
                    return Ok(CancelOutcome::AlreadyFinished(row.state));
                }
                let statement = "UPDATE runs SET cancel_requested = 1 WHERE id = $1";
                tx.change((statement, vec![id.clone()])).await?;
                Ok(CancelOutcome::Requested)
            })
        })
        .await
    }
}

/// What is written together with the acceptance of a run.
#[derive(Default)]
struct Beginning {
    events: Vec<Event>,
    /// Nothing is written unless the user's sheets and memories still have this stamp.
    stamp: Option<DataStamp>,
    /// The lease of the first claim, with its duration.
    held: Option<(Lease, Duration)>,
    /// A run that is accepted with it, under the same limits.
    narrator: Option<Box<NewRun>>,
}

/// Accepts a run, in one transaction with all of its beginning.
async fn start<D: Database>(
    database: &D,
    run: NewRun,
    durability: Durability,
    beginning: Beginning,
) -> Result<StartOutcome, Error> {
    database.in_place()?;
    database.has_reserve()?;
    let accepted = Event::Accepted(Box::new(run.accepted.clone()));
    let Beginning {
        events,
        stamp,
        held,
        narrator,
    } = beginning;
    // A statement reads the body of the first.
    let batch = Batch::plain(EncodedEvent::all(
        std::iter::once(&accepted).chain(&events),
    )?);
    let narrator = match narrator {
        None => None,
        Some(narrator) => {
            let accepted = Event::Accepted(Box::new(narrator.accepted.clone()));
            Some((narrator, Batch::plain(EncodedEvent::all([&accepted])?)))
        }
    };
    let narrating = narrator.as_ref().map(|(narrator, _)| narrator.accepted.cap);
    let cap = run.accepted.cap + narrating.unwrap_or(Usd::ZERO);
    let written = database
        .write(
            durability,
            (run, batch, held, stamp, narrator),
            move |tx, (run, batch, held, stamp, narrator)| {
                Box::pin(async move {
                    D::lock(tx, run).await?;
                    if let Some(not) = refusal(tx, run, cap).await? {
                        return Ok(StartOutcome::Refused(not));
                    }
                    if let Some(stamp) = stamp
                        && !is_current(tx, stamp).await?
                    {
                        return Ok(StartOutcome::Conflict);
                    }
                    insert(tx, run, batch).await?;
                    if let Some((narrator, accepted)) = narrator {
                        insert(tx, narrator, accepted).await?;
                    }
                    let Some((held, duration)) = held else {
                        return Ok(StartOutcome::Finished);
                    };
                    let values = held.values(D::lease(run.at, *duration));
                    tx.change((D::HOLD, values)).await?;
                    Ok(StartOutcome::Leased(held.clone()))
                })
            },
        )
        .await;
    database.noted(written)
}

/// Inserts a run with its first entries.
async fn insert<C: Connection>(tx: &mut C, run: &NewRun, batch: &Batch) -> Result<(), Failure> {
    tx.change(insert_run(run)).await?;
    let head = Head {
        seq: 0,
        hash: chain::GENESIS.to_owned(),
    };
    link(tx, run.id, run.at, batch, head).await
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
        encoded_event::listed_message(&run.accepted).into(),
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
pub(super) fn insert_entry(
    run: &str,
    position: Position,
    key: &str,
    body: StoredBody<'_>,
    hash: &str,
) -> Statement {
    let statement = "
        INSERT INTO entries (run, seq, at_ms, key, body, prev, hash, packed) VALUES ($1, $2, $3, $4, $5, '', $6, $7)
        ON CONFLICT (run, key) DO NOTHING";
    let values = vec![
        run.into(),
        position.seq.into(),
        position.at_ms.into(),
        key.into(),
        body.text.into(),
        hash.into(),
        body.packed.into(),
    ];
    (statement, values)
}

/// Sets the head of a run, and adds nano-dollars to its spent amount.
pub(super) fn set_head(run: &str, head: Head, spent: i64) -> Statement {
    let statement = "
        UPDATE runs SET head_seq = $1, head_hash = $2, spent_nanos = spent_nanos + $3 WHERE id = $4";
    let values = vec![head.seq.into(), head.hash.into(), spent.into(), run.into()];
    (statement, values)
}

/// Returns the statements for what an event changes besides the journal and the spent amount.
pub(super) fn project(run: &str, at: Timestamp, change: Change, origin: Origin) -> Vec<Statement> {
    let at_ms: Bound = at.as_millisecond().into();
    let statement = match change {
        Change::Ended(End {
            state,
            cause,
            c_final,
        }) => (
            "UPDATE runs SET state = $1, cause = $2, c_final = $3, finished_ms = $4, owner = NULL WHERE id = $5",
            vec![
                state.into_str().into(),
                cause.into(),
                c_final.into(),
                at_ms,
                run.into(),
            ],
        ),
        Change::Learned(learned) => project_learned(run, at_ms, *learned),
        Change::Changed(effect) => {
            return project_effect(run, at.as_millisecond(), effect, origin);
        }
    };
    vec![statement]
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
        INSERT INTO learned_answers (run, source, guild_id, user_id, content, words_of, answer, confidence, revoked, learned_ms, changed_ms)
        SELECT id, source, guild_id, CASE WHEN guild_id = '' THEN user_id ELSE '' END, $2, $3, $4, $5, 0, $6, $6
        FROM runs WHERE id = $1
        ON CONFLICT (run) DO NOTHING",
        vec![
            run.into(),
            taught.condition.as_str().into(),
            search_words(&taught.condition).into(),
            serde_json::to_string(&taught.answer)
                .unwrap_or_default()
                .into(),
            Some(confidence).into(),
            at_ms,
        ],
    )
}

/// Appends to the chain after `head`, and updates the row.
async fn link<C: Connection>(
    connection: &mut C,
    run: RunId,
    at: Timestamp,
    batch: &Batch,
    mut head: Head,
) -> Result<(), Failure> {
    let (id, mut spent) = (run.to_string(), 0_i64);
    let mut written = Vec::with_capacity(batch.entries.len());
    for (index, entry) in batch.entries.iter().enumerate() {
        let position = Position {
            seq: head.seq + 1,
            at_ms: at.as_millisecond(),
        };
        let hash = chain::link(run, position, &entry.key, &entry.body, &head.hash);
        let stored = batch.stored(index, written.len());
        let inserted = insert_entry(&id, position, &entry.key, stored, &hash);
        if connection.change(inserted).await? > 0 {
            let seq = position.seq;
            head = Head { seq, hash };
            written.push(entry);
            spent = entry.spent.saturating_add(spent);
            if let Some(change) = entry.change.clone() {
                for statement in project(&id, at, change, Origin::Command) {
                    connection.change(statement).await?;
                }
            }
        }
    }
    if let Some(packed) = batch.of_rest(&written)? {
        let statement = "UPDATE entries SET packed = $1 WHERE run = $2 AND seq = $3";
        let values = vec![Some(packed).into(), id.as_str().into(), head.seq.into()];
        connection.change((statement, values)).await?;
    }
    connection.change(set_head(&id, head, spent)).await?;
    Ok(())
}

impl Lease {
    /// Returns the data of the event that records this claim.
    pub(super) fn claimed(&self) -> Claimed {
        Claimed {
            epoch: self.epoch,
            owner: self.owner.clone(),
        }
    }

    /// Returns run, epoch and owner, and perhaps one more value.
    fn values(&self, more: impl Into<Option<i64>>) -> Vec<Bound> {
        let mut values = vec![
            self.run.to_string().into(),
            self.epoch.into(),
            self.owner.as_str().into(),
        ];
        values.extend(more.into().map(Bound::from));
        values
    }
}
