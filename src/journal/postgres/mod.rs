//! The journal in PostgreSQL: one database, any number of replicas.
//!
//! Transactions are READ COMMITTED, independent of the server's default. An append first locks the
//! run's row, so entries of one run never interleave. An acceptance locks everything that it
//! depends on, in a fixed order.

mod failover;
mod notifications;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Postgres, SqlStr};
use tokio::time::{Instant, timeout_at};
use url::Url;

use self::failover::Failover;
use super::database::{
    Bound, Columns, Connection, Database, Durability, Failure, OUTAGE, RETRY, Statement, Work,
    is_old, migrations, millis,
};
use super::error::{Error, is_outage, is_read_only, postgres_code};
use super::reads;
use super::records::{DataStamp, NewRun, Owner, RunFilter, SpendingScope};
use super::store::BackendStore;
use crate::domain::{RunId, Source};

/// Connections of one process, besides the two for notifications.
const MAX_CONNECTIONS: u32 = 16;

/// How long a statement waits for a connection, before the database counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a transaction that conflicts with others is attempted in all.
const MAX_TRIES: u32 = 5;

/// Settings of each connection. A statement waits for a lock as long as on SQLite. A replica that
/// vanishes in the middle of a transaction keeps its locks no longer than this.
const SESSION: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'";

/// The journal in a PostgreSQL database.
pub struct PostgresStore {
    pool: PgPool,
    options: PgConnectOptions,
    failover: Failover,
    announcer: PgPool,
    /// This process's unique name.
    owner: String,
}

impl PostgresStore {
    /// Connects, and brings the schema up to date. If several replicas start at once, one changes
    /// the schema and the others wait.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database cannot be reached or the address is invalid,
    /// [`Error::Migration`] if its schema is unknown. No error contains the address.
    pub async fn open(url: &str, owner: &str) -> Result<Self, Error> {
        let options = parse(url)?;
        // Uses a connection of its own. The pool would retry until its timeout and then report only
        // that. Also, a schema change may take longer than the timeouts of the pool's sessions.
        let mut connection = match tokio::time::timeout(PATIENCE, options.connect()).await {
            Ok(connection) => connection?,
            Err(_) => return Err(Error::Unavailable("it does not answer".into())),
        };
        check_encoding(&mut connection).await?;
        Self::migrator().run(&mut connection).await?;
        connection.close().await?;
        let failover = Failover::default();
        let replaced = failover.clone();
        let pool = PgPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .before_acquire(move |_, idle| {
                let is_usable = replaced.is_usable(idle.age);
                Box::pin(async move { Ok(is_usable) })
            })
            .after_connect(|connection, _| {
                Box::pin(async move {
                    connection.execute(SESSION).await?;
                    Ok(())
                })
            })
            .connect_with(options.clone())
            .await?;
        Ok(Self {
            pool,
            announcer: notifications::announcer(&options),
            options,
            failover,
            owner: owner.to_owned(),
        })
    }
}

/// Parses `DATABASE_URL`. It may contain a password, so no error repeats its content.
fn parse(url: &str) -> Result<PgConnectOptions, Error> {
    let refused = |why: &str| Error::Unavailable(format!("DATABASE_URL {why}").into());
    let url = Url::parse(url)
        .map_err(|_| refused("is not an address: postgres://USER:PASSWORD@HOST/DATABASE"))?;
    let options = PgConnectOptions::from_url(&url)
        .map_err(|_| refused("has a parameter with an invalid value"))?;
    Ok(match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("conclave"),
    })
}

impl Database for PostgresStore {
    type Reading = PoolConnection<Postgres>;
    type Writing = PgConnection;

    const MIGRATIONS: &'static [(&'static str, &'static str)] = migrations!(
        "postgres":
        "0001_journal",
        "0002_actions",
        "0003_lists",
        "0004_tool_steps",
        "0005_undo_is_no_evidence",
        "0006_learned_answers",
        "0007_memory_words",
        "0008_step_diagnostics",
        "0009_packed_entries",
        "0010_learned_words",
        "0011_joined_keys",
        "0012_deleted_records",
    );

    async fn reader(&self) -> Result<PoolConnection<Postgres>, Error> {
        Ok(self.pool.acquire().await?)
    }

    async fn read_inline(
        &self,
        statement: &'static str,
        values: Vec<Bound>,
    ) -> Result<Vec<impl Columns + Send>, Error> {
        Ok(self.reader().await?.rows(statement, values).await?)
    }

    async fn write<I, T, W>(&self, durability: Durability, input: I, work: W) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        W: for<'a> Fn(&'a mut PgConnection, &'a I) -> Work<'a, T> + Send + Sync + 'static,
    {
        let waits = durability == Durability::Outage;
        let (mut tries, give_up) = (1, Instant::now() + OUTAGE);
        loop {
            let error = match self.attempt(&input, &work).await {
                Err(Failure::Database(error)) => error,
                done => return Ok(done?),
            };
            if is_read_only(&error) {
                self.failover.replace_connections();
            }
            if is_conflict(&error) && tries < MAX_TRIES {
                tokio::time::sleep(Duration::from_millis(5 << (tries - 1))).await;
                tries += 1;
            } else if waits && is_outage(&error) && Instant::now() < give_up {
                tokio::time::sleep(RETRY).await;
            } else {
                return Err(error.into());
            }
        }
    }

    async fn lock(connection: &mut PgConnection, run: &NewRun) -> Result<(), Failure> {
        take_locks(connection, locks(run)).await
    }

    async fn lock_data(connection: &mut PgConnection, stamp: &DataStamp) -> Result<(), Failure> {
        take_locks(connection, vec![data_lock(stamp.source, &stamp.user_id)]).await
    }

    const LOCK_RUN: &'static str = "SELECT * FROM runs WHERE id = $1 FOR UPDATE";

    // Skips a run that another process is claiming or writing to at this moment.
    const CLAIM: &'static str = "
        UPDATE runs SET state = 'running', owner = $1, epoch = epoch + 1,
                        lease_until = clock_timestamp() + $2 * INTERVAL '1 millisecond'
        WHERE id = (SELECT id FROM runs
                    WHERE (state = 'queued' OR (state = 'running' AND lease_until < clock_timestamp()))
                      AND ($3 IS NULL OR id = $3)
                    ORDER BY accepted_ms LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING id, epoch, head_seq, head_hash";

    const HOLD: &'static str = "
        UPDATE runs SET state = 'running', epoch = $2, owner = $3,
                        lease_until = clock_timestamp() + $4 * INTERVAL '1 millisecond'
        WHERE id = $1";

    const RENEW: &'static str = "
        UPDATE runs SET lease_until = clock_timestamp() + $4 * INTERVAL '1 millisecond'
        WHERE id = $1 AND epoch = $2 AND owner = $3 AND state = 'running'
        RETURNING cancel_requested";

    // Locks the row until the end of the transaction, so no other process can claim the run or
    // append in between.
    const FENCE: &'static str = "
        SELECT cancel_requested, head_seq, head_hash FROM runs
        WHERE id = $1 AND epoch = $2 AND owner = $3 AND state = 'running' FOR UPDATE";

    fn lease(_now: Timestamp, duration: Duration) -> i64 {
        millis(duration)
    }

    fn now(_at: Timestamp) -> Option<i64> {
        None
    }

    const PRUNABLE: &'static str = concat!("SELECT COUNT(*) AS n FROM runs WHERE ", is_old!(""));

    // Replicas that prune at the same time skip each other's rows.
    const PRUNE: &'static str = concat!(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE ",
        is_old!(""),
        " ORDER BY finished_ms LIMIT $2 FOR UPDATE SKIP LOCKED)"
    );

    // The English search knows no words such as "who" and "will". What has such words only is looked
    // for among all memories, or learned answers, of its owner.
    const MEMORIES: &'static str = "
        (SELECT run, content, created_ms FROM memories, to_tsquery('english', $4) AS query
         WHERE words @@ query AND source = $1 AND guild_id = $2 AND user_id = $3
         ORDER BY ts_rank(words, query) DESC, created_ms DESC LIMIT $5)
        UNION ALL
        (SELECT run, content, created_ms FROM memories, to_tsquery('simple', $4) AS query
         WHERE numnode(to_tsquery('english', $4)) = 0 AND to_tsvector('simple', words_of) @@ query
           AND source = $1 AND guild_id = $2 AND user_id = $3
         ORDER BY ts_rank(to_tsvector('simple', words_of), query) DESC, created_ms DESC LIMIT $5)";

    const LEARNED: &'static str = "
        (SELECT learned_answers.* FROM learned_answers, to_tsquery('english', $4) AS query
         WHERE words @@ query AND source = $1 AND guild_id = $2 AND user_id = $3 AND revoked = 0
         ORDER BY words_of = $6 DESC, ts_rank(words, query) DESC, learned_ms DESC LIMIT $5)
        UNION ALL
        (SELECT learned_answers.* FROM learned_answers, to_tsquery('simple', $4) AS query
         WHERE numnode(to_tsquery('english', $4)) = 0 AND to_tsvector('simple', words_of) @@ query
           AND source = $1 AND guild_id = $2 AND user_id = $3 AND revoked = 0
         ORDER BY words_of = $6 DESC, ts_rank(to_tsvector('simple', words_of), query) DESC, learned_ms DESC
         LIMIT $5)";

    fn memory_query(_owner: &Owner, words: &[Vec<String>]) -> Option<String> {
        // In quotes, a term has no operators, and is cut into the words that the index has for it.
        let words = words.iter().filter_map(|terms| {
            let has_words = |term: &&String| term.contains(char::is_alphanumeric);
            let quoted =
                |term: &String| format!("'{}'", term.replace('\\', "\\\\").replace('\'', "''"));
            let terms = terms.iter().filter(has_words).map(quoted);
            let terms: Vec<String> = terms.collect();
            (!terms.is_empty()).then(|| format!("({})", terms.join(" | ")))
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(" & "))
    }

    /// The server chooses the index from its statistics.
    fn listed(_filter: &RunFilter) -> &'static str {
        "runs"
    }
}

/// Checks that the database stores every text. In another encoding than UTF-8, the first text with a
/// character that it lacks would fail; SQL_ASCII stores the bytes as they are.
async fn check_encoding(connection: &mut PgConnection) -> Result<(), Error> {
    let encoding = "SELECT current_setting('server_encoding') AS encoding";
    let row = connection.row(encoding, vec![]).await?;
    match row.map(|row| row.text("encoding")).transpose()? {
        Some(encoding) if !matches!(encoding.as_str(), "UTF8" | "SQL_ASCII") => {
            let why = format!(
                "its encoding is {encoding}: make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
            );
            Err(Error::Unavailable(why.into()))
        }
        _ => Ok(()),
    }
}

/// Returns the advisory locks of everything that decides about an acceptance: its key, the run that
/// it continues, the scopes of its limits, and for an action the data of its user. So a run is
/// accepted once per key, once per answer, and within its limits, also if submissions meet.
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
    let question = &run.accepted.question;
    let action = run.accepted.action.iter();
    let data = action.map(|_| data_lock(question.source, &question.user.id));
    let names = key.chain(parent).chain(scopes);
    let mut locks: Vec<i64> = names.map(|name| number(&name)).chain(data).collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// Takes advisory locks until the transaction ends. One statement takes all of them in ascending
/// order, so two transactions cannot deadlock.
async fn take_locks(connection: &mut PgConnection, locks: Vec<i64>) -> Result<(), Failure> {
    sqlx::query("SELECT pg_advisory_xact_lock(lock) FROM unnest($1::BIGINT[]) AS lock")
        .bind(locks)
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns the advisory lock of a user's sheets and memories.
fn data_lock(source: Source, user_id: &str) -> i64 {
    number(&format!("data of {} {user_id}", source.into_str()))
}

/// Returns the lock number of a name. If two names collide, they only wait for each other
/// needlessly.
fn number(name: &str) -> i64 {
    let hash = Sha256::digest(format!("conclave {name}"));
    let bytes = hash.first_chunk::<8>().copied().unwrap_or_default();
    i64::from_be_bytes(bytes)
}

fn bind(
    mut query: Query<'_, Postgres, PgArguments>,
    values: Vec<Bound>,
) -> Query<'_, Postgres, PgArguments> {
    for value in values {
        query = match value {
            Bound::Text(text) => query.bind(text.map(plain)),
            Bound::Whole(whole) => query.bind(whole),
            Bound::Real(real) => query.bind(real),
            Bound::Bytes(bytes) => query.bind(bytes),
        };
    }
    query
}

/// Makes a text storable in a column, since PostgreSQL has no U+0000. The journal's JSON keeps the
/// character in its escaped form.
fn plain(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}

impl Connection for PgConnection {
    type Row = PgRow;

    async fn query(
        &mut self,
        statement: SqlStr,
        values: Vec<Bound>,
    ) -> Result<Vec<PgRow>, Failure> {
        Ok(bind(sqlx::query(statement), values).fetch_all(self).await?)
    }

    async fn change(&mut self, (statement, values): Statement) -> Result<u64, Failure> {
        let done = bind(sqlx::query(statement), values).execute(self).await?;
        Ok(done.rows_affected())
    }
}

impl Connection for PoolConnection<Postgres> {
    type Row = PgRow;

    async fn query(
        &mut self,
        statement: SqlStr,
        values: Vec<Bound>,
    ) -> Result<Vec<PgRow>, Failure> {
        (**self).query(statement, values).await
    }

    async fn change(&mut self, statement: Statement) -> Result<u64, Failure> {
        (**self).change(statement).await
    }
}

impl PostgresStore {
    /// Does `work` in one transaction. Each statement sees what was committed before it, independent
    /// of the server's default. The default of `default_transaction_read_only` is kept: operators
    /// fence a server with it.
    async fn attempt<I, T, W>(&self, input: &I, work: &W) -> Result<T, Failure>
    where
        W: for<'a> Fn(&'a mut PgConnection, &'a I) -> Work<'a, T>,
    {
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
        let mut tx = self.pool.begin_with(begin).await?;
        let done = work(&mut tx, input).await?;
        tx.commit().await?;
        Ok(done)
    }
}

/// True if a concurrent transaction caused the error, so that a retry may succeed.
fn is_conflict(error: &sqlx::Error) -> bool {
    // Serialization failure, deadlock, or a unique key that another transaction has inserted
    // meanwhile.
    matches!(postgres_code(error), Some("40001" | "40P01" | "23505"))
}

#[async_trait]
impl BackendStore for PostgresStore {
    async fn ready(&self) -> Result<(), Error> {
        let deadline = Instant::now() + failover::MAX_CHECK;
        // A connection of the pool, because that is what a run needs.
        let mut connection = match timeout_at(deadline, self.reader()).await {
            Ok(connection) => connection?,
            Err(_) => return Err(sqlx::Error::PoolTimedOut.into()),
        };
        let checked = timeout_at(deadline, async {
            self.failover.check(&mut connection).await?;
            // A table that is locked takes no run: as a write, this waits for the lock.
            let no_run = "UPDATE runs SET id = id WHERE FALSE";
            sqlx::query(no_run).execute(&mut *connection).await?;
            reads::schema(&mut *connection, Self::latest()).await
        });
        match checked.await {
            Ok(checked) => checked,
            Err(_) => Err(Error::Unavailable("it does not answer".into())),
        }
    }

    async fn announce(&self, runs: &[RunId]) -> Result<(), Error> {
        notifications::announce(&self.announcer, &self.owner, runs).await
    }

    async fn notifications(&self) -> Result<BoxStream<'static, RunId>, Error> {
        notifications::listen(&self.options, &self.owner).await
    }

    async fn backup(&self, _to: &Path) -> Result<(), Error> {
        Err(Error::Unsupported(
            "PostgreSQL has its own tools for a backup: use pg_dump",
        ))
    }
}
