//! Actions, and the effects of their commands.
//!
//! An action that ends at once is one transaction with `synchronous = NORMAL`. It does not wait for
//! the disk, and survives any end of the process. Only a crash of the machine may lose the latest
//! of these actions, which are free.

use std::fmt::Write as _;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{QueryBuilder, Sqlite};

use super::writer::Writer;
use super::{append, chain, effects, insert, spending, until};
use crate::journal::rows::Change;
use crate::journal::{
    Acceptance, ActionStart, AfterAction, ArchivedEntry, Claimed, Effect, Error, Event, Lease,
    MemoryRow, NewRun, Owner, Requester, RunState, SceneLine, SheetRow, rows, statements,
};

pub(super) async fn begin(
    writer: &Writer,
    run: NewRun,
    then: AfterAction,
) -> Result<ActionStart, Error> {
    match then {
        AfterAction::End(events) => end(writer, &run, events).await,
        AfterAction::Hold { owner, lease } => hold(writer, run, owner, lease).await,
    }
}

/// Writes an action that has ended.
async fn end(writer: &Writer, run: &NewRun, events: Vec<Event>) -> Result<ActionStart, Error> {
    let whole = Whole::new(run, events)?;
    if run.limits.is_empty() {
        match writer
            .at_once(|statements| whole.push(statements, run))
            .await
        {
            Ok(()) => return Ok(ActionStart::Ended),
            // Another run has the key. The transaction below finds out which.
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut tx = writer.free_transaction().await?;
    if let Some(not) = refusal(&mut tx, run).await? {
        return Ok(ActionStart::Not(not));
    }
    let mut statements = QueryBuilder::new("");
    whole.push(&mut statements, run);
    statements.build().execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(ActionStart::Ended)
}

/// Accepts an action and claims it.
async fn hold(
    writer: &Writer,
    run: NewRun,
    owner: String,
    lease: Duration,
) -> Result<ActionStart, Error> {
    let mut tx = writer.transaction().await?;
    if let Some(not) = refusal(&mut tx, &run).await? {
        return Ok(ActionStart::Not(not));
    }
    insert(&mut tx, &run).await?;
    sqlx::query("UPDATE runs SET state = 'running', owner = $1, epoch = 1, lease_until_ms = $2 WHERE id = $3")
        .bind(&owner)
        .bind(until(run.at, lease))
        .bind(run.id.to_string())
        .execute(&mut *tx)
        .await?;
    let (id, epoch) = (run.id, 1);
    let claimed = Event::Claimed(Claimed {
        epoch,
        owner: owner.clone(),
    });
    let events = [Event::Accepted(Box::new(run.accepted)), claimed];
    append(&mut tx, id, run.at, &events).await?;
    tx.commit().await?;
    Ok(ActionStart::Held(Lease {
        run: id,
        owner,
        epoch,
    }))
}

/// Returns why a run is not accepted, or `None` if it is.
pub(super) async fn refusal(
    tx: &mut SqliteConnection,
    run: &NewRun,
) -> Result<Option<Acceptance>, Error> {
    if let Some(key) = &run.idempotency_key {
        let same = sqlx::query_as(statements::BY_KEY).bind(key);
        if let Some(other) = rows::same_key(same.fetch_optional(&mut *tx).await?, run)? {
            return Ok(Some(other));
        }
    }
    if let Some(continues) = &run.accepted.continues {
        let live =
            sqlx::query_as(statements::LIVE_CONTINUATIONS).bind(continues.parent.to_string());
        if let Some(twin) = rows::twin(live.fetch_all(&mut *tx).await?, continues)? {
            return Ok(Some(Acceptance::Joined(twin)));
        }
    }
    for limit in &run.limits {
        let left = limit.most - spending::exposure(&mut *tx, limit).await?;
        if run.accepted.cap > left {
            return Ok(Some(Acceptance::OverLimit {
                scope: limit.scope.clone(),
                left,
            }));
        }
    }
    Ok(None)
}

/// The complete journal of a run, with the final values of its row.
struct Whole {
    lines: Vec<ArchivedEntry>,
    effects: Vec<Effect>,
    state: RunState,
    cause: Option<String>,
    c_final: Option<f64>,
}

impl Whole {
    fn new(run: &NewRun, more: Vec<Event>) -> Result<Self, Error> {
        let mut prev = chain::GENESIS.to_owned();
        let (mut lines, mut effects, mut end) = (vec![], vec![], None);
        let accepted = Event::Accepted(Box::new(run.accepted.clone()));
        for (seq, event) in (0..).zip(std::iter::once(accepted).chain(more)) {
            let line = rows::line(run.id, run.at, &event, seq, &prev)?;
            prev.clone_from(&line.hash);
            lines.push(line);
            match rows::change(&event) {
                Some(Change::Changed(effect)) => effects.push(effect),
                Some(Change::Ended {
                    state,
                    cause,
                    c_final,
                }) => end = Some((state, cause, c_final)),
                Some(Change::Spent(_)) | None => {}
            }
        }
        let Some((state, cause, c_final)) = end else {
            return Err(Error::Unwritable(
                "an action that ends at once has no end".into(),
            ));
        };
        Ok(Self {
            lines,
            effects,
            state,
            cause,
            c_final,
        })
    }

    /// Appends the statements that write it, each followed by a semicolon.
    fn push(&self, statements: &mut QueryBuilder<Sqlite>, run: &NewRun) {
        let (id, question, at_ms) = (
            run.id.to_string(),
            &run.accepted.question,
            run.at.as_millisecond(),
        );
        let head = self
            .lines
            .last()
            .map_or(chain::GENESIS, |line| &line.hash)
            .to_owned();
        statements.push(
            "INSERT INTO runs (id, state, mode, source, user_id, guild_id, channel_id, message, parent, cap_nanos,
                               accepted_ms, idempotency_key, body_hash, head_seq, head_hash, kind, cause, c_final,
                               finished_ms) VALUES (",
        );
        let mut row = statements.separated(", ");
        row.push_bind(id.clone())
            .push_bind(self.state.as_str())
            .push_bind(question.mode.as_str());
        row.push_bind(question.source.as_str())
            .push_bind(question.user.id.clone());
        row.push_bind(question.context.guild_id.clone().unwrap_or_default());
        row.push_bind(question.context.channel_id.clone().unwrap_or_default())
            .push_bind(rows::listed_message(&run.accepted));
        row.push_bind(run.accepted.parent().map(|parent| parent.to_string()));
        row.push_bind(run.accepted.cap.nanos().cast_signed())
            .push_bind(at_ms);
        row.push_bind(run.idempotency_key.clone())
            .push_bind(run.body_hash.clone());
        row.push_bind(i64::try_from(self.lines.len()).unwrap_or(i64::MAX))
            .push_bind(head);
        row.push_bind(run.accepted.kind().as_str())
            .push_bind(self.cause.clone())
            .push_bind(self.c_final);
        row.push_bind(at_ms);
        statements.push("); INSERT INTO entries (run, seq, at_ms, key, body, prev, hash) ");
        statements.push_values(&self.lines, |mut row, line| {
            row.push_bind(id.clone())
                .push_bind(line.seq)
                .push_bind(line.at_ms)
                .push_bind(line.key.clone());
            row.push_bind(line.body.clone())
                .push_bind(line.prev.clone())
                .push_bind(line.hash.clone());
        });
        statements.push(";");
        for effect in &self.effects {
            effects::push(statements, &id, run.at, effect);
        }
    }
}

pub(super) async fn sheets(pool: &SqlitePool, owner: &Owner) -> Result<Vec<SheetRow>, Error> {
    let found = sqlx::query(statements::SHEETS)
        .bind(owner.source.as_str())
        .bind(owner.guild_id.as_deref().unwrap_or(""))
        .bind(&owner.user_id)
        .fetch_all(pool)
        .await?;
    found.iter().map(rows::sheet).collect()
}

pub(super) async fn memories(
    pool: &SqlitePool,
    owner: &Owner,
    terms: &[String],
    most: u32,
) -> Result<Vec<MemoryRow>, Error> {
    // In quotes, a term is a word and never an operator of the query language.
    let words = terms
        .iter()
        .map(|term| format!("\"{}\"", term.replace('"', "")))
        .collect::<Vec<_>>()
        .join(" OR ");
    if words.is_empty() {
        return Ok(vec![]);
    }
    let query = format!("owner : \"{}\" AND content : ({words})", owner_word(owner));
    let found = sqlx::query(
        "SELECT memories.run, memories.content, memories.created_ms
         FROM memory_words JOIN memories ON memories.id = memory_words.rowid
         WHERE memory_words MATCH $1 AND memories.source = $2 AND memories.guild_id = $3 AND memories.user_id = $4
         ORDER BY bm25(memory_words, 0.0, 1.0), memories.id DESC LIMIT $5",
    )
    .bind(query)
    .bind(owner.source.as_str())
    .bind(owner.guild_id.as_deref().unwrap_or(""))
    .bind(&owner.user_id)
    .bind(i64::from(most))
    .fetch_all(pool)
    .await?;
    found.iter().map(rows::memory).collect()
}

/// Encodes an owner as one word of the full-text index. The migration computes the same from a
/// memory's columns.
fn owner_word(owner: &Owner) -> String {
    let whole = format!(
        "{}\u{1f}{}\u{1f}{}",
        owner.source.as_str(),
        owner.guild_id.as_deref().unwrap_or(""),
        owner.user_id
    );
    whole.bytes().fold(String::new(), |mut word, byte| {
        let _ = write!(word, "{byte:02X}");
        word
    })
}

pub(super) async fn memory_count(pool: &SqlitePool, owner: &Owner) -> Result<u64, Error> {
    let (count,): (i64,) = sqlx::query_as(statements::MEMORY_COUNT)
        .bind(owner.source.as_str())
        .bind(owner.guild_id.as_deref().unwrap_or(""))
        .bind(&owner.user_id)
        .fetch_one(pool)
        .await?;
    Ok(count.unsigned_abs())
}

pub(super) async fn scene(
    pool: &SqlitePool,
    scene: &Requester,
    most: u32,
) -> Result<Vec<SceneLine>, Error> {
    let found: Vec<(String, String, String)> = sqlx::query_as(statements::SCENE)
        .bind(scene.source.as_str())
        .bind(scene.guild_id.as_deref().unwrap_or(""))
        .bind(scene.channel_id.as_deref().unwrap_or(""))
        .bind(&scene.user_id)
        .bind(i64::from(most))
        .fetch_all(pool)
        .await?;
    found.into_iter().rev().map(rows::scene_line).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::SqliteStore;
    use super::*;
    use crate::domain::{Context, Mode, Question, RunId, Source, Usd, User};
    use crate::journal::{Accepted, ActionIntake, ActionOutcome, Ending, Finished, Store as _};

    const FULL: i64 = 2;

    async fn synchronous(store: &SqliteStore) -> i64 {
        let mut tx = store.transaction().await.unwrap();
        let (level,): (i64,) = sqlx::query_as("PRAGMA synchronous")
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        level
    }

    #[tokio::test]
    async fn what_costs_money_waits_for_the_disk_also_after_an_action_that_did_not() {
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db"), "o")
            .await
            .unwrap();
        assert_eq!(synchronous(&store).await, FULL);
        let question = Question {
            source: Source::Http,
            mode: Mode::Ask,
            user: User {
                id: "u".into(),
                name: String::new(),
            },
            context: Context::default(),
            message: "roll 1d6".into(),
            attachments: vec![],
        };
        let accepted = Accepted {
            question,
            action: Some(ActionIntake::default()),
            continues: None,
            correlation_id: None,
            cap: Usd::ZERO,
            seed: 1,
            config_hash: String::new(),
            prompts_hash: String::new(),
            version: String::new(),
        };
        for n in 1..=3_u128 {
            let (id, at) = (
                RunId::from_uuid(uuid::Uuid::from_u128(n)),
                jiff::Timestamp::UNIX_EPOCH,
            );
            let ending = Ending::Acted {
                outcome: ActionOutcome::Executed,
                response: serde_json::json!({}),
            };
            let end = Event::Finished(Box::new(Finished {
                ending,
                spent: Usd::ZERO,
            }));
            let run = NewRun {
                id,
                at,
                accepted: accepted.clone(),
                idempotency_key: None,
                body_hash: String::new(),
                limits: vec![],
            };
            assert_eq!(
                store.begin(run, AfterAction::End(vec![end])).await.unwrap(),
                ActionStart::Ended
            );
            assert_eq!(synchronous(&store).await, FULL);
        }
    }
}
