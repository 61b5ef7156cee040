//! Accepts runs and actions: once per idempotency key, once per answer, and within their spending
//! limits, also under concurrent submissions. Searches memories.

use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::PostgresStore;
use crate::journal::database::{Connection as _, Database as _, Failure, millis};
use crate::journal::{
    Acceptance, ActionStart, AfterAction, Error, Lease, MemoryRow, NewRun, Owner, SpendingScope,
    reads, rows, writes,
};

pub(super) async fn accept(store: &PostgresStore, run: &NewRun) -> Result<Acceptance, Failure> {
    let mut tx = store.transaction().await?;
    if let Some(not) = refusal(&mut tx, run).await? {
        return Ok(not);
    }
    writes::accept(&mut *tx, run, &[]).await?;
    tx.commit().await?;
    Ok(Acceptance::New)
}

pub(super) async fn begin(
    store: &PostgresStore,
    run: &NewRun,
    then: &AfterAction,
) -> Result<ActionStart, Failure> {
    let mut tx = store.transaction().await?;
    if let Some(not) = refusal(&mut tx, run).await? {
        return Ok(ActionStart::Not(not));
    }
    let start = match then {
        AfterAction::End(events) => {
            writes::accept(&mut *tx, run, events).await?;
            ActionStart::Ended
        }
        AfterAction::Hold { owner, lease } => {
            let held = Lease {
                run: run.id,
                owner: owner.clone(),
                epoch: 1,
            };
            writes::accept(&mut *tx, run, &[writes::claim_event(&held)]).await?;
            let statement = "
                UPDATE runs SET state = 'running', epoch = $2, owner = $3,
                                lease_until = clock_timestamp() + $4 * INTERVAL '1 millisecond'
                WHERE id = $1";
            tx.change((statement, held.values(millis(*lease)))).await?;
            ActionStart::Held(held)
        }
    };
    tx.commit().await?;
    Ok(start)
}

/// Returns why a run is not accepted, or `None` if it is. Locks everything that this decision
/// depends on until the end of the transaction.
async fn refusal(tx: &mut PgConnection, run: &NewRun) -> Result<Option<Acceptance>, Failure> {
    // One statement takes all locks in ascending order, so two acceptances cannot deadlock.
    sqlx::query("SELECT pg_advisory_xact_lock(lock) FROM unnest($1::BIGINT[]) AS lock")
        .bind(locks(run))
        .execute(&mut *tx)
        .await?;
    writes::refusal(tx, run).await
}

/// Returns the advisory locks of everything that decides about an acceptance: its key, the run that
/// it continues, and the scopes of its limits.
fn locks(run: &NewRun) -> Vec<i64> {
    let key = run.idempotency_key.iter().map(|key| format!("key {key}"));
    let parent = run
        .accepted
        .continues
        .iter()
        .map(|continues| format!("parent {}", continues.parent));
    let scopes = run.limits.iter().map(|limit| match &limit.scope {
        SpendingScope::User(id) => format!("user {id}"),
        SpendingScope::Guild(id) => format!("guild {id}"),
        SpendingScope::Everyone => "everyone".to_owned(),
    });
    let mut locks: Vec<i64> = key
        .chain(parent)
        .chain(scopes)
        .map(|name| number(&name))
        .collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// Returns the lock number of a name. If two names collide, they only wait for each other
/// needlessly.
fn number(name: &str) -> i64 {
    let hash = Sha256::digest(format!("conclave {name}"));
    let bytes = hash.first_chunk::<8>().copied().unwrap_or_default();
    i64::from_be_bytes(bytes)
}

pub(super) async fn memories(
    store: &PostgresStore,
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
    let statement = "
        SELECT run, content, created_ms FROM memories, to_tsquery('english', $4) AS query
        WHERE words @@ query AND source = $1 AND guild_id = $2 AND user_id = $3
        ORDER BY ts_rank(words, query) DESC, created_ms DESC LIMIT $5";
    let mut values = reads::owner_values(owner);
    values.extend([query.into(), i64::from(most).into()]);
    let found = store.reader().await?.rows(statement, values).await?;
    found.iter().map(rows::memory).collect()
}
