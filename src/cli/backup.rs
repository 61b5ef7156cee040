//! `conclave backup`: a consistent copy of the database while the service runs.

use std::path::PathBuf;

use super::exit::{Done, Exit, fail};
use super::local::{check_files, database, open};
use super::new_file::NewFile;
use super::terminal::say;
use crate::config::{Database, Env};

pub(super) async fn run(env: &Env, file: PathBuf) -> Done {
    let database = sqlite_file(env)?;
    // Without this check a wrong DATABASE_URL would give a new, empty database and an empty backup
    // of it.
    if !database.exists() {
        let hint = "set DATABASE_URL, or run this in the folder of the service";
        let why = format!("there is no database {}; {hint}", database.display());
        return Err(fail(Exit::Refused, why));
    }
    let store = open(env).await?;
    let new = NewFile::create(&file)?;
    let copied = store.backup(new.draft()).await;
    copied.map_err(|error| fail(Exit::Unexpected, error))?;
    new.finish(env)?;
    let bytes = std::fs::metadata(&file).map_or(0, |meta| meta.len());
    say(format_args!("{}: {bytes} bytes", file.display()));
    Ok(())
}

/// Returns the SQLite file of the environment. For PostgreSQL it prints which tools to use.
///
/// # Errors
/// The exit code, after the reason was printed.
pub(super) fn sqlite_file(env: &Env) -> Result<PathBuf, Exit> {
    check_files(env)?;
    match database(env)? {
        Database::Sqlite(path) => Ok(path),
        Database::Postgres(_) => {
            let why = "DATABASE_URL names a PostgreSQL database; use its own tools: \
                       pg_dump --format=custom --file=FILE \"$DATABASE_URL\", and \
                       pg_restore --clean --if-exists --dbname=\"$DATABASE_URL\" FILE";
            Err(fail(Exit::Usage, why))
        }
    }
}
