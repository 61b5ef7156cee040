//! Actions, and what their commands have changed.
//!
//! An action that ends at once is one transaction with `synchronous = NORMAL`: it survives the end of the process, however
//! that comes, and waits for no disk. Only a crash of the machine may lose the last of them; none has cost money.

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{Connection as _, Executor as _};

use super::{append, insert, spending, until};
use crate::journal::{
    Acceptance, Asker, Begun, Claimed, Effect, Error, Event, Lease, MemoryRow, NewRun, Owner, SceneLine, SheetRow,
    Then, rows, statements,
};

/// Commits need not wait for the disk.
const NORMAL: &str = "PRAGMA synchronous = NORMAL";

pub(super) async fn begin(writer: &SqlitePool, run: NewRun, then: Then) -> Result<Begun, Error> {
    let mut connection = writer.acquire().await?;
    if matches!(then, Then::Hold { .. }) {
        return write(&mut connection, run, then).await;
    }
    // The pool sets it back to FULL before it lends the connection to anybody else.
    connection.execute(NORMAL).await?;
    write(&mut connection, run, then).await
}

async fn write(connection: &mut SqliteConnection, run: NewRun, then: Then) -> Result<Begun, Error> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    if let Some(key) = &run.idempotency_key {
        let same: Option<(String, String)> =
            sqlx::query_as(statements::BY_KEY).bind(key).fetch_optional(&mut *tx).await?;
        if let Some((id, body_hash)) = same {
            let id = rows::run_id(&id)?;
            let same = body_hash == run.body_hash;
            return Ok(Begun::Not(if same { Acceptance::Joined(id) } else { Acceptance::KeyReused(id) }));
        }
    }
    for limit in &run.limits {
        let left = limit.most - spending::exposure(&mut tx, limit).await?;
        if run.accepted.cap > left {
            return Ok(Begun::Not(Acceptance::OverLimit { scope: limit.scope.clone(), left }));
        }
    }
    insert(&mut tx, &run).await?;
    let (id, at) = (run.id, run.at);
    let mut events = vec![Event::Accepted(Box::new(run.accepted))];
    let begun = match then {
        Then::End(more) => {
            events.extend(more);
            Begun::Ended
        }
        Then::Hold { owner, lease } => {
            sqlx::query("UPDATE runs SET state = 'running', owner = $1, epoch = 1, lease_until_ms = $2 WHERE id = $3")
                .bind(&owner)
                .bind(until(at, lease))
                .bind(id.to_string())
                .execute(&mut *tx)
                .await?;
            events.push(Event::Claimed(Claimed { epoch: 1, owner: owner.clone() }));
            Begun::Held(Lease { run: id, owner, epoch: 1 })
        }
    };
    append(&mut tx, id, at, &events).await?;
    tx.commit().await?;
    Ok(begun)
}

/// What a command changed, within the transaction that writes its event. Whose it is, is in the run's row.
pub(super) async fn change(tx: &mut SqliteConnection, run: &str, at: Timestamp, effect: &Effect) -> Result<(), Error> {
    let query = match effect {
        Effect::Sheet { name, sheet } => sqlx::query(statements::PUT_SHEET)
            .bind(run.to_owned())
            .bind(name.to_lowercase())
            .bind(name.clone())
            .bind(sheet.to_string())
            .bind(at.as_millisecond()),
        Effect::Memory { content } => {
            sqlx::query(statements::PUT_MEMORY).bind(run.to_owned()).bind(content.clone()).bind(at.as_millisecond())
        }
    };
    query.execute(tx).await?;
    Ok(())
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
    // Quoted, a term is a word and never an operator of the query language.
    let query = terms.iter().map(|term| format!("\"{}\"", term.replace('"', ""))).collect::<Vec<_>>().join(" OR ");
    if query.is_empty() {
        return Ok(vec![]);
    }
    let found = sqlx::query(
        "SELECT memories.run, memories.content, memories.created_ms
         FROM memory_words JOIN memories ON memories.id = memory_words.rowid
         WHERE memory_words MATCH $1 AND memories.source = $2 AND memories.guild_id = $3 AND memories.user_id = $4
         ORDER BY bm25(memory_words), memories.id DESC LIMIT $5",
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

pub(super) async fn memory_count(pool: &SqlitePool, owner: &Owner) -> Result<u64, Error> {
    let (count,): (i64,) = sqlx::query_as(statements::MEMORY_COUNT)
        .bind(owner.source.as_str())
        .bind(owner.guild_id.as_deref().unwrap_or(""))
        .bind(&owner.user_id)
        .fetch_one(pool)
        .await?;
    Ok(count.unsigned_abs())
}

pub(super) async fn scene(pool: &SqlitePool, scene: &Asker, most: u32) -> Result<Vec<SceneLine>, Error> {
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
