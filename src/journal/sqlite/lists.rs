//! Lists of runs, newest first. Each list reads one index in its order: the index of the user, or
//! that of kind, mode and state. SQLite has no statistics here and would have to guess, so each
//! statement names its index.

use sqlx::sqlite::SqlitePool;
use sqlx::{QueryBuilder, Sqlite};

use crate::journal::rows::{self, Bound, Condition};
use crate::journal::{Error, RunFilter, RunRow};

pub(super) async fn runs(pool: &SqlitePool, filter: &RunFilter) -> Result<Vec<RunRow>, Error> {
    let mut listed = vec![];
    for filter in rows::by_kind(filter) {
        let found = statement(&filter, "").build().fetch_all(pool).await?;
        listed.extend(found.iter().map(rows::run).collect::<Result<Vec<_>, _>>()?);
    }
    rows::merge(&mut listed, filter.limit);
    Ok(listed)
}

fn index(filter: &RunFilter) -> &'static str {
    match (&filter.user_id, filter.mode, filter.state) {
        (Some(_), ..) => "runs_by_user",
        (None, Some(_), Some(_)) => "runs_by_mode_and_state",
        (None, Some(_), None) => "runs_by_mode",
        (None, None, Some(_)) => "runs_by_kind_and_state",
        (None, None, None) => "runs_by_kind",
    }
}

fn statement(filter: &RunFilter, explain: &str) -> QueryBuilder<Sqlite> {
    let mut statement = QueryBuilder::new(explain);
    statement
        .push("SELECT * FROM runs INDEXED BY ")
        .push(index(filter))
        .push(" WHERE TRUE");
    for Condition {
        column,
        operator,
        bound,
    } in rows::conditions(filter)
    {
        statement.push(" AND ").push(column).push(operator);
        match bound {
            Bound::Text(text) => statement.push_bind(text),
            Bound::Whole(whole) => statement.push_bind(whole),
        };
    }
    if let Some(since) = filter.since {
        statement
            .push(rows::FLOOR)
            .push_bind(rows::floor(since))
            .push(rows::FLOOR_END);
    }
    statement
        .push(" ORDER BY id DESC LIMIT ")
        .push_bind(i64::from(filter.limit));
    statement
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sqlx::Row as _;
    use tempfile::TempDir;

    use super::*;
    use crate::domain::{Mode, RunId, RunKind};
    use crate::journal::{RunState, SqliteStore};

    /// Returns SQLite's query plan for a list.
    async fn plan(store: &SqliteStore, filter: &RunFilter) -> Vec<String> {
        let mut statement = statement(filter, "EXPLAIN QUERY PLAN ");
        let rows = statement.build().fetch_all(&store.readers).await.unwrap();
        rows.iter()
            .map(|row| row.get::<String, _>("detail"))
            .collect()
    }

    #[tokio::test]
    async fn every_list_of_runs_is_read_from_an_index_in_its_order() {
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db"), "o")
            .await
            .unwrap();
        let id = RunId::from_uuid(uuid::Uuid::from_u128(7));
        for bits in 0..64_u32 {
            let chosen = |bit: u32| bits >> bit & 1 == 1;
            let filter = RunFilter {
                kind: chosen(0).then_some(RunKind::Chat),
                mode: chosen(1).then_some(Mode::Deep),
                user_id: chosen(2).then(|| "u".to_owned()),
                state: chosen(3).then_some(RunState::Failed),
                since: chosen(4).then_some(Timestamp::UNIX_EPOCH),
                before: chosen(5).then_some(id),
                limit: 10,
            };
            for filter in rows::by_kind(&filter) {
                let plan = plan(&store, &filter).await;
                let scans = plan
                    .iter()
                    .filter(|step| step.starts_with("SCAN") || step.contains("TEMP B-TREE"));
                assert_eq!(scans.collect::<Vec<_>>(), [""; 0], "{filter:?}: {plan:?}");
                let index = match (&filter.user_id, filter.mode, filter.state) {
                    (Some(_), ..) => "runs_by_user (user_id=?",
                    (None, Some(_), Some(_)) => {
                        "runs_by_mode_and_state (kind=? AND mode=? AND state=?"
                    }
                    (None, Some(_), None) => "runs_by_mode (kind=? AND mode=?",
                    (None, None, Some(_)) => "runs_by_kind_and_state (kind=? AND state=?",
                    (None, None, None) => "runs_by_kind (kind=?",
                };
                assert!(plan[0].contains(index), "{filter:?}: {plan:?}");
            }
        }
    }
}
