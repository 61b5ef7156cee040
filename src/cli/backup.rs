//! `conclave backup`: a consistent copy of the database while the service runs.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::exit::{Done, Exit, fail};
use super::local::{check_files, database, open};
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
    // The file is created before it is filled, so that other users can never read it.
    private_file(&file)?;
    let copied = store.backup(&file).await;
    // SQLite does not sync this file to the disk.
    let synced = copied
        .map_err(|error| error.to_string())
        .and_then(|()| sync(&file).map_err(|error| error.to_string()));
    if let Err(error) = synced {
        // The file is useless, and it would block the next attempt.
        let _ = std::fs::remove_file(&file);
        return Err(fail(Exit::Unexpected, error));
    }
    let bytes = std::fs::metadata(&file).map_or(0, |meta| meta.len());
    say(format_args!("{}: {bytes} bytes", file.display()));
    Ok(())
}

/// Creates a file that only its owner can read.
///
/// # Errors
/// The exit code, after the reason was printed.
pub(super) fn private_file(path: &Path) -> Result<File, Exit> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|error| fail(Exit::Refused, format!("{}: {error}", path.display())))
}

fn sync(file: &Path) -> std::io::Result<()> {
    File::open(file)?.sync_all()
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
