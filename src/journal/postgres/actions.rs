//! Actions, and the effects of their commands.

use sqlx::postgres::PgPool;

use super::transact::{TransactionFailure, begin as begun, millis, plain};
use super::{accept, append};
use crate::journal::{
    ActionStart, AfterAction, Claimed, Error, Event, Lease, MemoryRow, NewRun, Owner, Requester,
    SceneLine, SheetRow, chain, rows, statements,
};

pub(super) async fn begin(
    pool: &PgPool,
    run: &NewRun,
    then: &AfterAction,
) -> Result<ActionStart, TransactionFailure> {
    let mut tx = begun(pool).await?;
    if let Some(not) = accept::refusal(&mut tx, run).await? {
        return Ok(ActionStart::Not(not));
    }
    accept::insert(&mut tx, run).await?;
    let mut events = vec![Event::Accepted(Box::new(run.accepted.clone()))];
    let outcome = match then {
        AfterAction::End(more) => {
            events.extend(more.iter().cloned());
            ActionStart::Ended
        }
        AfterAction::Hold { owner, lease } => {
            sqlx::query(
                "UPDATE runs SET state = 'running', owner = $1, epoch = 1,
                                 lease_until = clock_timestamp() + $2 * INTERVAL '1 millisecond' WHERE id = $3",
            )
            .bind(owner)
            .bind(millis(*lease))
            .bind(run.id.to_string())
            .execute(&mut *tx)
            .await?;
            events.push(Event::Claimed(Claimed {
                epoch: 1,
                owner: owner.clone(),
            }));
            ActionStart::Held(Lease {
                run: run.id,
                owner: owner.clone(),
                epoch: 1,
            })
        }
    };
    append::write(
        &mut tx,
        run.id,
        run.at,
        &events,
        (0, chain::GENESIS.to_owned()),
    )
    .await?;
    tx.commit().await?;
    Ok(outcome)
}

pub(super) async fn sheets(pool: &PgPool, owner: &Owner) -> Result<Vec<SheetRow>, Error> {
    let found = sqlx::query(statements::SHEETS)
        .bind(owner.source.as_str())
        .bind(plain(owner.guild_id.as_deref().unwrap_or("")))
        .bind(plain(&owner.user_id))
        .fetch_all(pool)
        .await?;
    found.iter().map(rows::sheet).collect()
}

pub(super) async fn memories(
    pool: &PgPool,
    owner: &Owner,
    terms: &[String],
    most: u32,
) -> Result<Vec<MemoryRow>, Error> {
    // Keeps only letters and digits, so that a term cannot contain an operator of the query
    // language.
    let word = |term: &String| {
        term.chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
    };
    let query = terms
        .iter()
        .map(word)
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" | ");
    if query.is_empty() {
        return Ok(vec![]);
    }
    let found = sqlx::query(
        "SELECT run, content, created_ms FROM memories, to_tsquery('english', $1) AS query
         WHERE words @@ query AND source = $2 AND guild_id = $3 AND user_id = $4
         ORDER BY ts_rank(words, query) DESC, created_ms DESC LIMIT $5",
    )
    .bind(query)
    .bind(owner.source.as_str())
    .bind(plain(owner.guild_id.as_deref().unwrap_or("")))
    .bind(plain(&owner.user_id))
    .bind(i64::from(most))
    .fetch_all(pool)
    .await?;
    found.iter().map(rows::memory).collect()
}

pub(super) async fn memory_count(pool: &PgPool, owner: &Owner) -> Result<u64, Error> {
    let (count,): (i64,) = sqlx::query_as(statements::MEMORY_COUNT)
        .bind(owner.source.as_str())
        .bind(plain(owner.guild_id.as_deref().unwrap_or("")))
        .bind(plain(&owner.user_id))
        .fetch_one(pool)
        .await?;
    Ok(count.unsigned_abs())
}

pub(super) async fn scene(
    pool: &PgPool,
    scene: &Requester,
    most: u32,
) -> Result<Vec<SceneLine>, Error> {
    let found: Vec<(String, String, String)> = sqlx::query_as(statements::SCENE)
        .bind(scene.source.as_str())
        .bind(plain(scene.guild_id.as_deref().unwrap_or("")))
        .bind(plain(scene.channel_id.as_deref().unwrap_or("")))
        .bind(plain(&scene.user_id))
        .bind(i64::from(most))
        .fetch_all(pool)
        .await?;
    found.into_iter().rev().map(rows::scene_line).collect()
}
