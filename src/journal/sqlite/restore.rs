//! Replaces the database file by a backup. The backup is copied first; the copy is verified and
//! then renamed, so that exactly the verified bytes are restored. No data of the former database is
//! deleted.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode};

use super::connection::SqliteConnection;
use super::file::{beside, folder_of, is_log_alone, make_folder};
use super::owners::LockFile;
use super::{INTEGRITY, SqliteStore, faults, migrate};
use crate::journal::database::{Columns as _, Database as _};
use crate::journal::proof::prove_with_learned;
use crate::journal::{Error, reads, rows};

/// How long to wait for another process's transaction, before the database counts as in use.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many runs are read at a time.
const PAGE: i64 = 100;

/// Suffixes of the files that SQLite keeps next to a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What to do with a database that has data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    /// Renames it to a name with this time, next to the restored one.
    Keep(Timestamp),
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// The number of runs in the backup, all with a verified chain but for the damaged ones.
    pub runs: u64,
    /// What is wrong with the runs that are damaged or were altered.
    pub damaged: Vec<String>,
    /// The former database's new path.
    pub former: Option<PathBuf>,
    /// The new path of the former database's log, if its file was missing.
    pub former_log: Option<PathBuf>,
}

/// Why nothing was restored. The database is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("the database is in use by a running service or by another process; stop it first")]
    InUse,
    #[error(
        "the database has data; with --force it is kept beside the restored one, under a name with the date"
    )]
    NotEmpty,
    #[error(
        "the database's file is missing or empty, but its log is there and may have runs: put the file back; \
         with --force the log is kept under a name with the date"
    )]
    LogAlone,
    #[error("this is the database itself, not a backup of it")]
    Same,
    /// SQLite rejects the file, or the verification of a run fails.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    #[error("this is not a backup: {0}")]
    NotABackup(&'static str),
    #[error(
        "the backup has schema version {found}, this program knows versions up to {known}: use a newer release"
    )]
    Newer { found: i64, known: i64 },
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Journal(#[from] Error),
}

/// Restores `backup` as the SQLite file `database`, readable only by its owner.
///
/// # Errors
/// [`RestoreError`]; then the database is unchanged.
pub fn restore(
    backup: &Path,
    database: &Path,
    existing: Existing,
) -> Result<Restoration, RestoreError> {
    standalone(backup, database)?;
    let folder = folder_of(database);
    make_folder(folder).map_err(at(folder))?;
    let lock = LockFile::of(database)?;
    if lock.in_use()? {
        return Err(RestoreError::InUse);
    }
    let contents = contents(database)?;
    let former = match (contents, existing) {
        (Contents::Nothing, _) => None,
        (Contents::Log, Existing::Refuse) => return Err(RestoreError::LogAlone),
        (_, Existing::Refuse) => return Err(RestoreError::NotEmpty),
        (_, Existing::Keep(time)) => Some(beside(
            database,
            &time.strftime(".%Y-%m-%dT%H-%M-%S%.3fZ").to_string(),
        )),
    };
    let copy = Copy::of(backup, database)?;
    let (runs, damaged) = verified(&copy.path)?;
    if !damaged.is_empty() && existing == Existing::Refuse {
        let why = "with --force it is restored with these runs";
        return Err(RestoreError::Damaged(format!(
            "{}; {why}",
            damaged.join("; ")
        )));
    }
    let has_file = contents != Contents::Log && database.exists();
    if has_file && contents != Contents::Unreadable {
        alone(database)?;
    }
    if let Some(former) = former.as_ref().filter(|_| has_file) {
        // A second name, so that a database exists at every moment.
        std::fs::hard_link(database, former).map_err(at(former))?;
    }
    copy.put_in_place(database, former.as_deref())?;
    let log = |former: &PathBuf| beside(former, "-wal");
    Ok(Restoration {
        runs,
        damaged,
        former_log: former.as_ref().filter(|_| !has_file).map(log),
        former: former.filter(|_| has_file),
    })
}

/// Checks that the backup is one file. A database that is open, or was copied while open, has a log
/// next to it.
fn standalone(backup: &Path, database: &Path) -> Result<(), RestoreError> {
    let one = std::fs::metadata(backup).map_err(at(backup))?;
    if !one.is_file() {
        return Err(RestoreError::NotABackup("it is not a regular file"));
    }
    if std::fs::metadata(database)
        .is_ok_and(|other| (one.dev(), one.ino()) == (other.dev(), other.ino()))
    {
        return Err(RestoreError::Same);
    }
    let has_log =
        |name: &&str| std::fs::metadata(beside(backup, name)).is_ok_and(|log| log.len() > 0);
    if ["-wal", "-journal"].iter().any(has_log) {
        return Err(RestoreError::NotABackup(
            "it has a log beside it; make backups with conclave backup",
        ));
    }
    Ok(())
}

/// What the database file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// There is no file, or all its tables are empty.
    Nothing,
    Readable,
    /// There is only its log.
    Log,
    /// It is kept together with its log. It must not be opened, since SQLite would remove the log.
    Unreadable,
}

fn contents(database: &Path) -> Result<Contents, RestoreError> {
    if is_log_alone(database) {
        return Ok(Contents::Log);
    }
    match std::fs::metadata(database) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Contents::Nothing),
        Err(error) => return Err(at(database)(error)),
        Ok(metadata) if metadata.len() == 0 => return Ok(Contents::Nothing),
        Ok(_) => {}
    }
    let filled = SqliteConnection::reading(database, PATIENCE).and_then(|it| any_row(&it.0));
    match filled {
        Ok(true) => Ok(Contents::Readable),
        Ok(false) => Ok(Contents::Nothing),
        Err(error) if is_locked(&error) => Err(RestoreError::InUse),
        Err(_) => Ok(Contents::Unreadable),
    }
}

fn any_row(connection: &Connection) -> rusqlite::Result<bool> {
    // Skips the full-text indexes. They have internal rows, but no data of their own.
    let mut tables = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'
         AND name <> '_sqlx_migrations' AND name NOT LIKE 'memory~_words%' ESCAPE '~'
         AND name NOT LIKE 'learned~_words%' ESCAPE '~'",
    )?;
    for table in tables.query_map([], |row| row.get::<_, String>(0))? {
        let table = table?.replace('"', "\"\"");
        let statement = format!("SELECT EXISTS (SELECT 1 FROM \"{table}\")");
        if connection.query_row(&statement, [], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Fails if another program has the database open. Moves the log into the file.
fn alone(database: &Path) -> Result<(), RestoreError> {
    let connection = Connection::open(database).map_err(Error::from)?;
    connection.busy_timeout(PATIENCE).map_err(Error::from)?;
    let mode: rusqlite::Result<String> =
        connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0));
    let exclusive = connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK");
    let kept_log = mode.as_ref().is_ok_and(|mode| mode != "delete");
    if kept_log || mode.as_ref().is_err_and(is_locked) || exclusive.as_ref().is_err_and(is_locked) {
        return Err(RestoreError::InUse);
    }
    Ok(())
}

/// Brings the copy's schema up to date and verifies all of its runs. Returns the number of runs, and
/// what is wrong with them.
fn verified(copy: &Path) -> Result<(u64, Vec<String>), RestoreError> {
    let mut connection = SqliteConnection(Connection::open(copy).map_err(damage)?);
    let pragmas = "PRAGMA journal_mode = DELETE; PRAGMA foreign_keys = TRUE";
    connection.0.execute_batch(pragmas).map_err(damage)?;
    let found = connection.query_now(INTEGRITY, &[]).map_err(damage)?;
    if let Some(found) = faults(&found)? {
        return Err(RestoreError::Damaged(format!("SQLite finds: {found}")));
    }
    let known = SqliteStore::latest();
    match version(&connection.0).map_err(damage)? {
        None => return Err(RestoreError::NotABackup("it holds no Conclave database")),
        Some(found) if found > known => return Err(RestoreError::Newer { found, known }),
        Some(_) => {}
    }
    migrate::run(&mut connection.0)?;
    prove_all(&connection)
}

fn version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let tables: i64 = connection.query_row(
        "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('_sqlx_migrations', 'runs', 'entries')",
        [],
        |row| row.get(0),
    )?;
    if tables < 3 {
        return Ok(None);
    }
    connection.query_row(reads::SCHEMA, [], |row| row.get(0))
}

fn prove_all(connection: &SqliteConnection) -> Result<(u64, Vec<String>), RestoreError> {
    let (mut before, mut count, mut damaged): (Option<String>, u64, _) = (None, 0, vec![]);
    loop {
        let statement =
            "SELECT * FROM runs WHERE ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2";
        let values = vec![before.clone().into(), PAGE.into()];
        let page = connection.query_now(statement, &values).map_err(damage)?;
        for row in &page {
            let id = row.text("id").map_err(corrupt)?;
            let found = connection.query_now(reads::ENTRIES, &[id.as_str().into(), 0.into()]);
            let found = found.map_err(damage)?;
            let learned = connection.query_now(reads::LEARNED_FROM, &[id.as_str().into()]);
            let learned = learned.map_err(damage)?;
            let learned = learned.first().map(rows::learned).transpose();
            let read = rows::run(row).and_then(|row| {
                let entries = rows::entries(row.id, 0, &found)?;
                prove_with_learned(&row, &entries, learned)
            });
            let broken = match read {
                Ok(fault) => fault.map(|it| it.to_string()),
                Err(error @ Error::Corrupt { .. }) => Some(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            damaged.extend(broken.map(|broken| format!("run {id}: {broken}")));
            (before, count) = (Some(id), count.saturating_add(1));
        }
        if page.is_empty() {
            return Ok((count, damaged));
        }
    }
}

/// The copy of a backup in the database's folder. Removed on drop.
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn of(backup: &Path, database: &Path) -> Result<Self, RestoreError> {
        let copy = Self {
            path: beside(database, ".restoring"),
        };
        // Removes the rest of an interrupted restore.
        copy.remove();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&copy.path);
        let mut file = file.map_err(at(&copy.path))?;
        let mut source = File::open(backup).map_err(at(backup))?;
        std::io::copy(&mut source, &mut file).map_err(at(&copy.path))?;
        keep_owner(database, &copy.path).map_err(at(&copy.path))?;
        Ok(copy)
    }

    /// Renames the copy to the database, and the former database's log to the name of `former`.
    fn put_in_place(self, database: &Path, former: Option<&Path>) -> Result<(), RestoreError> {
        File::open(&self.path)
            .and_then(|file| file.sync_all())
            .map_err(at(&self.path))?;
        for companion in COMPANIONS {
            let stale = beside(database, companion);
            let result = match former {
                Some(former) => std::fs::rename(&stale, beside(former, companion)),
                None => std::fs::remove_file(&stale),
            };
            match result {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(at(&stale)(error));
                }
                _ => {}
            }
        }
        std::fs::rename(&self.path, database).map_err(at(database))?;
        let folder = folder_of(database);
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(at(folder))
    }

    fn remove(&self) {
        for name in ["", "-journal"] {
            let _ = std::fs::remove_file(beside(&self.path, name));
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Lets a restore by root leave the files to the user of the service: the owner of the former
/// database, or of its folder.
fn keep_owner(database: &Path, copy: &Path) -> std::io::Result<()> {
    let owner = std::fs::metadata(database).or_else(|_| std::fs::metadata(folder_of(database)))?;
    let owners = beside(database, ".owners");
    let files = [copy.to_owned(), owners.join(super::owners::LOCK), owners];
    for file in files {
        let now = std::fs::metadata(&file)?;
        // Only root can change the owner of a file. Any other user already owns the new file.
        if now.uid() == 0 && (now.uid(), now.gid()) != (owner.uid(), owner.gid()) {
            std::os::unix::fs::chown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
    }
    Ok(())
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> RestoreError {
    let path = path.to_owned();
    |error| RestoreError::File { path, error }
}

fn is_locked(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked)
    )
}

/// Converts an error of the copy. It means that the backup is damaged, unless the disk failed.
fn damage(error: rusqlite::Error) -> RestoreError {
    let Some(code) = error.sqlite_error() else {
        return RestoreError::Damaged("a value of the wrong kind".into());
    };
    match code.code {
        ErrorCode::SystemIoFailure | ErrorCode::DiskFull => Error::from(error).into(),
        ErrorCode::NotADatabase => RestoreError::Damaged("it is no SQLite database".into()),
        _ => {
            // The low byte is the primary result code, <https://www.sqlite.org/rescode.html>.
            let primary = code.extended_code & 0xff;
            RestoreError::Damaged(format!("SQLite error {primary}"))
        }
    }
}

fn corrupt(error: Error) -> RestoreError {
    match error {
        Error::Corrupt { .. } => RestoreError::Damaged(error.to_string()),
        other => other.into(),
    }
}
