//! Detects that another server has become the primary, and that the present one cannot commit.
//!
//! A balancer or a name in DNS may lead to a standby for a moment. A connection to a standby stays
//! read-only, so it must not stay in the pool.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use crate::journal::database::{Columns as _, Connection as _, unexpected};
use crate::journal::{Error, Unavailable};

/// How long the check of the database may take. Balancers and container runtimes wait little
/// longer.
pub(super) const MAX_CHECK: Duration = Duration::from_secs(4);

/// A standby, and a primary that was fenced, are read-only. A commit waits for a synchronous
/// standby as long as it is gone. The user may read the activity of its own sessions.
const STATE: &str = "
    SELECT CASE current_setting('transaction_read_only') WHEN 'on' THEN 1 ELSE 0 END::BIGINT AS read_only,
           COALESCE(host(inet_server_addr()) || ':' || inet_server_port(), 'a socket') AS server,
           (SELECT COUNT(*) FROM pg_stat_activity
            WHERE usename = current_user AND datname = current_database() AND wait_event = 'SyncRep'
              AND query_start < clock_timestamp() - INTERVAL '10 s') AS waiting";

/// What one process knows about the servers behind its address.
#[derive(Clone, Default)]
pub(super) struct Failover(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Connections that were made before this moment may be read-only.
    replaced: Option<Instant>,
    /// Address and port of the server that answered last.
    server: Option<String>,
}

impl Failover {
    /// True if a connection of this age may be used.
    pub fn is_usable(&self, age: Duration) -> bool {
        self.with(|known| known.replaced.is_none_or(|at| age < at.elapsed()))
    }

    /// Closes each connection of the pool before its next use.
    pub fn replace_connections(&self) {
        self.with(|known| known.replaced = Some(Instant::now()));
    }

    /// Checks that the server can be written to. Logs that another server answers.
    pub async fn check(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let row = connection.row(STATE, vec![]).await?;
        let row = row.ok_or_else(unexpected)?;
        if row.whole("read_only")? != 0 {
            self.replace_connections();
            return Err(Error::Unavailable(Unavailable::ReadOnly));
        }
        let server = row.text("server")?;
        let before = self.with(|known| known.server.replace(server.clone()));
        if let Some(before) = before
            && before != server
        {
            tracing::warn!(before, server, "another database server is the primary now");
        }
        match row.whole("waiting")? {
            0 => Ok(()),
            commits => {
                let why = format!(
                    "{commits} commits wait for its synchronous standby for more than 10 s"
                );
                Err(Error::Unavailable(why.into()))
            }
        }
    }

    fn with<T>(&self, read: impl FnOnce(&mut Known) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
