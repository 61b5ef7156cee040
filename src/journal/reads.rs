//! Reads that are the same on both databases.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

use super::database::{Bound, Columns as _, Connection, Database, Failure};
use super::records::{
    DataStamp, Entry, Listed, MemoryRow, Owner, Requester, RunFilter, RunRow, SheetRow,
    SpendingLimit, SpendingScope,
};
use super::store::{ActionStore, LearnedStore, RunReader};
use super::{Error, LearnedRow, rows, tool_evidence};
use crate::domain::{EvidenceFocus, Mode, RunId, RunKind, Source, Usd};

pub(super) const RUN: &str = "SELECT * FROM runs WHERE id = $1";

pub(super) const LAST_REPLY: &str = "
    SELECT * FROM runs
    WHERE source = $1 AND guild_id = $2 AND channel_id = $3 AND user_id = $4 AND kind = 'chat'
      AND state IN ('answered', 'clarification', 'heuristic') AND finished_ms >= $5
    ORDER BY finished_ms DESC, id DESC LIMIT 1";

pub(super) const IN_FLIGHT: &str =
    "SELECT COUNT(*) AS n FROM runs WHERE (state = 'queued' OR state = 'running')";

pub(super) const BY_KEY: &str = "
    SELECT id, body_hash FROM runs WHERE idempotency_key = $1
    UNION ALL SELECT run AS id, body_hash FROM joined_keys WHERE idempotency_key = $1";

/// The entries from `$2` on. The one at `$2` tells what came before the next.
pub(super) const ENTRIES: &str = "SELECT seq, at_ms, key, body, prev, hash, packed FROM entries WHERE run = $1 AND seq >= $2 ORDER BY seq";

pub(super) const LEARNED_FROM: &str = "SELECT * FROM learned_answers WHERE run = $1";

pub(super) const SCHEMA: &str =
    "SELECT MAX(version) AS version FROM _sqlx_migrations WHERE success";

#[async_trait]
impl<D: Database> RunReader for D {
    async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error> {
        one(self, RUN, vec![id.to_string().into()]).await
    }

    async fn listed(&self, filter: &RunFilter) -> Result<Vec<Listed>, Error> {
        let mut listed = vec![];
        for filter in parts(filter) {
            let (statement, values) = list::<D>(&filter);
            let mut reader = self.reader().await?;
            let statement = AssertSqlSafe(statement).into_sql_str();
            for row in &reader.query(statement, values).await? {
                match rows::run(row) {
                    read @ (Ok(_) | Err(Error::Corrupt { .. })) => {
                        listed.push((row.text("id")?, read));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        listed.sort_by(|(one, _), (other, _)| other.cmp(one));
        listed.truncate(usize::try_from(filter.limit).unwrap_or(usize::MAX));
        Ok(listed)
    }

    async fn entries(&self, run: RunId, after: i64) -> Result<Vec<Entry>, Error> {
        let values = vec![run.to_string().into(), after.into()];
        let found = self.reader().await?.rows(ENTRIES, values).await?;
        rows::entries(run, after, &found)
    }

    async fn by_key(&self, key: &str) -> Result<Option<(RunId, String)>, Error> {
        self.in_place()?;
        let found = self.reader().await?.row(BY_KEY, vec![key.into()]).await?;
        found.as_ref().map(rows::by_key).transpose()
    }

    async fn last_reply(
        &self,
        asker: &Requester,
        since: Timestamp,
    ) -> Result<Option<RunRow>, Error> {
        self.in_place()?;
        let mut values = place(asker);
        values.push(since.as_millisecond().into());
        one(self, LAST_REPLY, values).await
    }

    async fn executions(&self, plan: RunId) -> Result<Vec<RunRow>, Error> {
        let statement = "SELECT * FROM runs WHERE parent = $1 AND kind = 'execution' ORDER BY id";
        let mut reader = self.reader().await?;
        let found = reader
            .rows(statement, vec![plan.to_string().into()])
            .await?;
        found.iter().map(rows::run).collect()
    }

    async fn tool_evidence(&self, focus: &EvidenceFocus) -> Result<Value, Error> {
        tool_evidence::gather(self, focus).await
    }

    async fn in_flight(&self) -> Result<u64, Error> {
        Ok(self.reader().await?.number(IN_FLIGHT, vec![]).await?)
    }

    async fn exposure(&self, limit: &SpendingLimit) -> Result<Usd, Error> {
        Ok(exposure(&mut self.reader().await?, limit).await?)
    }
}

async fn one<D: Database>(
    database: &D,
    statement: &'static str,
    values: Vec<Bound>,
) -> Result<Option<RunRow>, Error> {
    let found = database.read_inline(statement, values).await?;
    found.first().map(rows::run).transpose()
}

/// Sums up the spending of finished runs and the caps of runs in flight, accepted at or after the
/// limit's moment.
pub(super) async fn exposure<C: Connection>(
    connection: &mut C,
    limit: &SpendingLimit,
) -> Result<Usd, Failure> {
    let (condition, id) = match &limit.scope {
        SpendingScope::User(id) => (" AND user_id = $2", Some(id)),
        // Runs outside of guilds are not in the index of guilds.
        SpendingScope::Guild(id) => (" AND guild_id = $2 AND guild_id <> ''", Some(id)),
        SpendingScope::Everyone => ("", None),
    };
    let statement = format!(
        "
        SELECT CAST(COALESCE(SUM(CASE WHEN state IN ('queued', 'running') AND cap_nanos > spent_nanos THEN cap_nanos ELSE spent_nanos END), 0) AS BIGINT) AS n
        FROM runs WHERE accepted_ms >= $1{condition}"
    );
    let mut values = vec![limit.since.as_millisecond().into()];
    values.extend(id.map(|id| id.as_str().into()));
    let statement = AssertSqlSafe(statement).into_sql_str();
    let found = connection.query(statement, values).await?;
    let nanos = found.first().map_or(Ok(0), |row| row.whole("n"))?;
    Ok(Usd::from_nanos(nanos.unsigned_abs()))
}

/// Splits a filter into one for each kind, and unless it is for one user, for each mode. An index
/// has each part in its order.
pub(super) fn parts(filter: &RunFilter) -> Vec<RunFilter> {
    let kinds = filter
        .kind
        .map_or_else(|| RunKind::ALL.to_vec(), |kind| vec![kind]);
    let modes = match (&filter.user_id, filter.mode) {
        (Some(_), mode) => vec![mode],
        (None, Some(mode)) => vec![Some(mode)],
        (None, None) => [Mode::Ask, Mode::Audit, Mode::Deep].map(Some).to_vec(),
    };
    let parts = kinds.iter().flat_map(|kind| {
        modes.iter().map(|mode| RunFilter {
            kind: Some(*kind),
            mode: *mode,
            ..filter.clone()
        })
    });
    parts.collect()
}

/// Builds the statement for a part of a list of runs.
pub(super) fn list<D: Database>(filter: &RunFilter) -> (String, Vec<Bound>) {
    let since_ms = filter.since.map(Timestamp::as_millisecond);
    // Bounds a list since a time by id as well, so that the scan can end early. Ids are in order of
    // time, except that a clock may be set back. One day is assumed to cover that.
    let floor = since_ms.map(|ms| ms.saturating_sub(24 * 60 * 60 * 1000));
    let kind = filter.kind.map(|kind| kind.into_str().to_owned());
    let mode = filter.mode.map(|mode| mode.into_str().to_owned());
    let state = filter.state.map(|state| state.into_str().to_owned());
    let conditions: [(&str, Bound); 7] = [
        ("user_id = $", filter.user_id.clone().into()),
        ("kind = $", kind.into()),
        ("mode = $", mode.into()),
        ("state = $", state.into()),
        ("id < $", filter.before.map(|id| id.to_string()).into()),
        ("accepted_ms >= $", since_ms.into()),
        (
            "id >= (SELECT id FROM runs WHERE accepted_ms >= $ ORDER BY accepted_ms LIMIT 1)",
            floor.into(),
        ),
    ];
    let mut statement = format!("SELECT * FROM {} WHERE TRUE", D::listed(filter));
    let mut values = vec![];
    for (condition, value) in conditions {
        if !matches!(value, Bound::Text(None) | Bound::Whole(None)) {
            values.push(value);
            statement.push_str(" AND ");
            statement.push_str(&condition.replace('$', &format!("${}", values.len())));
        }
    }
    values.push(i64::from(filter.limit).into());
    statement.push_str(&format!(" ORDER BY id DESC LIMIT ${}", values.len()));
    (statement, values)
}

/// Returns source, guild, channel and user, with empty texts for what is missing.
fn place(requester: &Requester) -> Vec<Bound> {
    vec![
        requester.source.into_str().into(),
        requester.guild_id.as_deref().unwrap_or("").into(),
        requester.channel_id.as_deref().unwrap_or("").into(),
        requester.user_id.as_str().into(),
    ]
}

/// Returns source, guild and user.
fn owner_values(owner: &Owner) -> Vec<Bound> {
    vec![
        owner.source.into_str().into(),
        owner.guild_id.as_deref().unwrap_or("").into(),
        owner.user_id.as_str().into(),
    ]
}

#[async_trait]
impl<D: Database> LearnedStore for D {
    async fn learned_like(
        &self,
        scope: &Owner,
        words: &str,
        terms: &[String],
        most: u32,
    ) -> Result<Vec<LearnedRow>, Error> {
        let Some(query) = D::memory_query(scope, &[terms.to_vec()]) else {
            return Ok(vec![]);
        };
        let mut values = owner_values(scope);
        values.extend([query.into(), i64::from(most).into(), words.into()]);
        let found = self.reader().await?.rows(D::LEARNED, values).await?;
        found.iter().map(rows::learned).collect()
    }

    async fn learned_from(&self, run: RunId) -> Result<Option<LearnedRow>, Error> {
        let values = vec![run.to_string().into()];
        let found = self.reader().await?.row(LEARNED_FROM, values).await?;
        found.as_ref().map(rows::learned).transpose()
    }

    async fn learned(&self, most: u32) -> Result<Vec<Result<LearnedRow, Error>>, Error> {
        let statement = "SELECT * FROM learned_answers ORDER BY changed_ms DESC, run DESC LIMIT $1";
        let values = vec![i64::from(most).into()];
        let found = self.reader().await?.rows(statement, values).await?;
        Ok(found.iter().map(rows::learned).collect())
    }
}

/// A run changes one sheet or memory, so the last runs with their number tell one state from another.
/// `$1`: source, `$2`: user.
const STAMP: &str = "
    SELECT (SELECT COUNT(*) || ' ' || COALESCE(SUM(updated_ms), 0) || ' ' || COALESCE(MAX(run), '')
            FROM sheets WHERE source = $1 AND user_id = $2) || ' ' ||
           (SELECT COUNT(*) || ' ' || COALESCE(MAX(run), '')
            FROM memories WHERE source = $1 AND user_id = $2) AS stamp";

/// True if the user's data still have a stamp.
pub(super) async fn is_current<C: Connection>(
    connection: &mut C,
    stamp: &DataStamp,
) -> Result<bool, Failure> {
    let values = user_values(stamp.source, &stamp.user_id);
    let now = connection.row(STAMP, values).await?;
    let now = now.map(|row| row.text("stamp")).transpose()?;
    Ok(now.as_ref() == Some(&stamp.text))
}

/// Returns source and user, for the data of a user in all guilds.
fn user_values(source: Source, user: &str) -> Vec<Bound> {
    vec![source.into_str().into(), user.into()]
}

#[async_trait]
impl<D: Database> ActionStore for D {
    async fn sheets(&self, owner: &Owner) -> Result<Vec<SheetRow>, Error> {
        let statement = "
            SELECT name, sheet, updated_ms FROM sheets WHERE source = $1 AND guild_id = $2 AND user_id = $3
            ORDER BY updated_ms DESC, run DESC";
        let mut reader = self.reader().await?;
        let found = reader.rows(statement, owner_values(owner)).await?;
        found.iter().map(rows::sheet).collect()
    }

    async fn memories(
        &self,
        owner: &Owner,
        words: &[Vec<String>],
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error> {
        let Some(query) = D::memory_query(owner, words) else {
            return Ok(vec![]);
        };
        let mut values = owner_values(owner);
        values.extend([query.into(), i64::from(most).into()]);
        let found = self.reader().await?.rows(D::MEMORIES, values).await?;
        found.iter().map(rows::memory).collect()
    }

    async fn memory_count(&self, owner: &Owner) -> Result<u64, Error> {
        let statement = "SELECT COUNT(*) AS n FROM memories WHERE source = $1 AND guild_id = $2 AND user_id = $3";
        let mut reader = self.reader().await?;
        Ok(reader.number(statement, owner_values(owner)).await?)
    }

    async fn memory_page(
        &self,
        owner: &Owner,
        skip: usize,
        most: u32,
    ) -> Result<Vec<MemoryRow>, Error> {
        let statement = "
            SELECT run, content, created_ms FROM memories WHERE source = $1 AND guild_id = $2 AND user_id = $3
            ORDER BY created_ms DESC, run DESC LIMIT $4 OFFSET $5";
        let mut values = owner_values(owner);
        let skip = i64::try_from(skip).unwrap_or(i64::MAX);
        values.extend([i64::from(most).into(), skip.into()]);
        let found = self.reader().await?.rows(statement, values).await?;
        found.iter().map(rows::memory).collect()
    }

    async fn memory(&self, owner: &Owner, run: RunId) -> Result<Option<MemoryRow>, Error> {
        let statement = "
            SELECT run, content, created_ms FROM memories
            WHERE source = $1 AND guild_id = $2 AND user_id = $3 AND run = $4";
        let mut values = owner_values(owner);
        values.push(run.to_string().into());
        let found = self.reader().await?.row(statement, values).await?;
        found.as_ref().map(rows::memory).transpose()
    }

    async fn stamp(&self, owner: &Owner) -> Result<DataStamp, Error> {
        let values = user_values(owner.source, &owner.user_id);
        let found = self.read_inline(STAMP, values).await?;
        let text = found
            .first()
            .map_or(Ok(String::new()), |row| row.text("stamp"))?;
        Ok(DataStamp {
            source: owner.source,
            user_id: owner.user_id.clone(),
            text,
        })
    }

    async fn stored_bytes(&self, owner: &Owner) -> Result<u64, Error> {
        let statement = "
            SELECT COALESCE((SELECT SUM(OCTET_LENGTH(content)) FROM memories WHERE source = $1 AND user_id = $2), 0)
                 + COALESCE((SELECT SUM(OCTET_LENGTH(sheet)) FROM sheets WHERE source = $1 AND user_id = $2), 0) AS n";
        let values = user_values(owner.source, &owner.user_id);
        let mut reader = self.reader().await?;
        Ok(reader.number(statement, values).await?)
    }

    /// Outside of guilds, a scene contains only one user's lines.
    async fn recent_lines(&self, scene: &Requester, most: u32) -> Result<Vec<String>, Error> {
        let statement = "
            SELECT message FROM runs
            WHERE kind = 'action' AND source = $1 AND guild_id = $2 AND channel_id = $3 AND ($2 <> '' OR user_id = $4)
              AND parent IS NULL
            ORDER BY id DESC LIMIT $5";
        let mut values = place(scene);
        values.push(i64::from(most).into());
        let found = self.reader().await?.rows(statement, values).await?;
        found.iter().rev().map(|row| row.text("message")).collect()
    }
}

/// Checks that the schema is the current one.
pub(super) async fn schema<C: Connection>(connection: &mut C, latest: i64) -> Result<(), Error> {
    let found = connection.row(SCHEMA, vec![]).await?;
    let version = match found {
        Some(row) => row.whole_or_null("version")?,
        None => None,
    };
    if version == Some(latest) {
        return Ok(());
    }
    let found = version.map_or("none".to_owned(), |version| version.to_string());
    Err(Error::Migration(format!(
        "schema version {found}, expected {latest}"
    )))
}
