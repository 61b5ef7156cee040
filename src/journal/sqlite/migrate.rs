//! Brings the schema of a SQLite file up to date. The record of what was applied has the form that sqlx
//! gives it, which applies the migrations of PostgreSQL and applied these in earlier releases.

use std::collections::BTreeMap;

use rusqlite::Connection;
use sqlx::migrate::MigrateError;

use super::SqliteStore;
use crate::journal::Error;
use crate::journal::database::Database as _;

const RECORD: &str = "
    CREATE TABLE IF NOT EXISTS _sqlx_migrations (
        version BIGINT PRIMARY KEY,
        description TEXT NOT NULL,
        installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
        success BOOLEAN NOT NULL,
        checksum BLOB NOT NULL,
        execution_time BIGINT NOT NULL
    )";

/// Applies the migrations that the file does not have, in one transaction. The caller must keep other
/// processes away.
///
/// # Errors
/// [`Error::Migration`] if the file has a migration that this program does not know, or another one of
/// the same number.
pub(super) fn run(connection: &mut Connection) -> Result<(), Error> {
    // For a new database, one transaction takes half the time of many.
    let changes = connection.transaction()?;
    changes.execute_batch(RECORD)?;
    let applied = changes
        .prepare("SELECT version, checksum FROM _sqlx_migrations")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<BTreeMap<i64, Vec<u8>>>>()?;
    let migrator = SqliteStore::migrator();
    if let Some(version) = applied.keys().find(|it| !migrator.version_exists(**it)) {
        return Err(MigrateError::VersionMissing(*version).into());
    }
    for migration in migrator.iter() {
        match applied.get(&migration.version) {
            Some(checksum) if *checksum == *migration.checksum => {}
            Some(_) => return Err(MigrateError::VersionMismatch(migration.version).into()),
            None => {
                changes.execute_batch(migration.sql.as_str())?;
                changes.execute(
                    "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (?1, ?2, TRUE, ?3, 0)",
                    (migration.version, &*migration.description, &*migration.checksum),
                )?;
            }
        }
    }
    Ok(changes.commit()?)
}
