//! Notifies other processes of new journal entries, by LISTEN and NOTIFY. These are hints: a lost
//! one does no harm.

use futures_util::stream::{self, BoxStream};
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};

use crate::domain::RunId;
use crate::journal::Error;

const CHANNEL: &str = "conclave_runs";

/// Returns the connection for announcements, which is made at the first one. It is apart from the
/// others, because its commits do not wait for the disk or a standby. A transaction that was dropped
/// while it began may still be open on a connection of the pool: a setting of that transaction would
/// hold for the next one.
pub(super) fn announcer(options: &PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(super::PATIENCE)
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute("SET synchronous_commit = off").await?;
                Ok(())
            })
        })
        .connect_lazy_with(options.clone())
}

/// Announces runs outside of the transactions that wrote to them: NOTIFY serializes commits, and a
/// hint need not reach the disk.
pub(super) async fn announce(announcer: &PgPool, me: &str, runs: &[RunId]) -> Result<(), Error> {
    let payloads: Vec<String> = runs.iter().map(|run| format!("{me} {run}")).collect();
    sqlx::query("SELECT pg_notify($1, payload) FROM unnest($2::TEXT[]) AS payload")
        .bind(CHANNEL)
        .bind(payloads)
        .execute(announcer)
        .await?;
    Ok(())
}

/// Returns the runs that other processes announce, until the connection is lost.
pub(super) async fn listen(
    options: &PgConnectOptions,
    me: &str,
) -> Result<BoxStream<'static, RunId>, Error> {
    // A pool of its own, since the connection is never returned.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(super::PATIENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    let me = me.to_owned();
    let news = stream::unfold((listener, me), |(mut listener, me)| async move {
        loop {
            let notification = listener.try_recv().await.ok().flatten()?;
            let payload = notification.payload().split_once(' ');
            let foreign = payload.filter(|(owner, _)| *owner != me);
            if let Some(run) = foreign.and_then(|(_, run)| run.parse().ok()) {
                return Some((run, (listener, me)));
            }
        }
    });
    Ok(Box::pin(news))
}
