//! Actions, and the effects of their commands.
//!
//! An action that ends at once is one transaction with `synchronous = NORMAL`. It does not wait for
//! the disk, and survives any end of the process. Only a crash of the machine may lose the latest
//! of these actions, which are free.

use std::fmt::Write as _;
use std::time::Duration;

use sqlx::{QueryBuilder, Sqlite};

use super::writer::Writer;
use super::{SqliteStore, until};
use crate::journal::database::{Bound, Connection as _, Database as _, Statement};
use crate::journal::{
    Acceptance, ActionStart, AfterAction, Error, Event, Lease, MemoryRow, NewRun, Owner, reads,
    rows, writes,
};

/// Accepts a run that is worked on later.
pub(super) async fn accept(writer: &Writer, run: &NewRun) -> Result<Acceptance, Error> {
    let mut tx = writer.transaction().await?;
    if let Some(not) = writes::refusal(&mut *tx, run).await? {
        return Ok(not);
    }
    writes::accept(&mut *tx, run, &[]).await?;
    tx.commit().await?;
    Ok(Acceptance::New)
}

pub(super) async fn begin(
    writer: &Writer,
    run: &NewRun,
    then: AfterAction,
) -> Result<ActionStart, Error> {
    match then {
        AfterAction::End(events) => end(writer, run, events).await,
        AfterAction::Hold { owner, lease } => hold(writer, run, owner, lease).await,
    }
}

/// Writes an action that has ended.
async fn end(writer: &Writer, run: &NewRun, events: Vec<Event>) -> Result<ActionStart, Error> {
    if run.limits.is_empty() {
        let script = writes::script(run, &events)?;
        let written = writer.at_once(|statements| {
            for statement in &script {
                push_numbered(statements, statement);
            }
        });
        match written.await {
            Ok(()) => return Ok(ActionStart::Ended),
            // Another run has the key. The transaction below finds out which.
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut tx = writer.free_transaction().await?;
    if let Some(not) = writes::refusal(&mut *tx, run).await? {
        return Ok(ActionStart::Not(not));
    }
    writes::accept(&mut *tx, run, &events).await?;
    tx.commit().await?;
    Ok(ActionStart::Ended)
}

/// Accepts an action and claims it.
async fn hold(
    writer: &Writer,
    run: &NewRun,
    owner: String,
    duration: Duration,
) -> Result<ActionStart, Error> {
    let mut tx = writer.transaction().await?;
    if let Some(not) = writes::refusal(&mut *tx, run).await? {
        return Ok(ActionStart::Not(not));
    }
    let lease = Lease {
        run: run.id,
        owner,
        epoch: 1,
    };
    writes::accept(&mut *tx, run, &[writes::claim_event(&lease)]).await?;
    let statement = "
        UPDATE runs SET state = 'running', epoch = $2, owner = $3, lease_until_ms = $4 WHERE id = $1";
    let values = lease.values(until(run.at, duration));
    tx.change((statement, values)).await?;
    tx.commit().await?;
    Ok(ActionStart::Held(lease))
}

/// Appends a statement with numbered parameters (`$1`, `$2`, ...) to `statements`.
fn push_numbered(statements: &mut QueryBuilder<Sqlite>, (sql, values): &Statement) {
    let mut pieces = sql.split('$');
    statements.push(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        match index.and_then(|index| values.get(index)).cloned() {
            Some(Bound::Text(text)) => statements.push_bind(text),
            Some(Bound::Whole(whole)) => statements.push_bind(whole),
            Some(Bound::Real(real)) => statements.push_bind(real),
            None => statements.push("NULL"),
        };
        statements.push(rest);
    }
    statements.push(";");
}

pub(super) async fn memories(
    store: &SqliteStore,
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
    let statement = "
        SELECT memories.run, memories.content, memories.created_ms
        FROM memory_words JOIN memories ON memories.id = memory_words.rowid
        WHERE memory_words MATCH $4 AND memories.source = $1 AND memories.guild_id = $2 AND memories.user_id = $3
        ORDER BY bm25(memory_words, 0.0, 1.0), memories.id DESC LIMIT $5";
    let mut values = reads::owner_values(owner);
    values.extend([query.into(), i64::from(most).into()]);
    let found = store.reader().await?.rows(statement, values).await?;
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

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::domain::{Context, Mode, Question, RunId, Source, Usd, User};
    use crate::journal::{
        Accepted, ActionIntake, ActionOutcome, ActionStore as _, Ending, Finished,
    };

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
