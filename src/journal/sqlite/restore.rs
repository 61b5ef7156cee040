//! Replaces the database file by a backup. The backup is copied first; the copy is verified and
//! then renamed, so that exactly the verified bytes are restored. No data of the former database is
//! deleted.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _};

use super::file::{beside, folder_of};
use super::migrator;
use super::owners::{LOCK, LockFile};
use crate::journal::database::{Columns as _, Connection as _};
use crate::journal::{Error, prove, reads, rows};

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
    /// SQLite rejects the file, or the verification of a run fails.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    #[error("this is not a backup: {0}")]
    NotABackup(&'static str),
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
pub async fn restore(
    backup: &Path,
    database: &Path,
    existing: Existing,
) -> Result<Restoration, RestoreError> {
    standalone(backup)?;
    let folder = folder_of(database);
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    let lock = LockFile::of(database)?;
    if lock.in_use()? {
        return Err(RestoreError::InUse);
    }
    let former = match existing {
        _ if is_empty(database).await => None,
        Existing::Refuse => return Err(RestoreError::NotEmpty),
        Existing::Keep(time) => Some(beside(
            database,
            &time.strftime(".%Y-%m-%dT%H-%M-%S%.3fZ").to_string(),
        )),
    };
    let copy = Copy::of(backup, database)?;
    let (runs, damaged) = verified(&copy.path).await?;
    if !damaged.is_empty() && existing == Existing::Refuse {
        let why = "with --force it is restored with these runs";
        let damaged = damaged.join("; ");
        return Err(RestoreError::Damaged(format!("{damaged}; {why}")));
    }
    copy.put_in_place(database, former.as_deref())?;
    Ok(Restoration {
        runs,
        damaged,
        former,
    })
}

/// Checks that the backup is one file. A database that is open, or was copied while open, has a log
/// next to it.
fn standalone(backup: &Path) -> Result<(), RestoreError> {
    if !std::fs::metadata(backup).map_err(at(backup))?.is_file() {
        return Err(RestoreError::NotABackup("it is not a regular file"));
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

/// True if there is no database, or it has neither runs nor tokens. All its other rows come from
/// runs. A file that cannot be read may have data.
async fn is_empty(database: &Path) -> bool {
    match std::fs::metadata(database) {
        Ok(metadata) if metadata.len() == 0 => return true,
        Err(error) if error.kind() == ErrorKind::NotFound => return true,
        Ok(_) | Err(_) => {}
    }
    let options = SqliteConnectOptions::new().filename(database);
    let Ok(mut connection) = options.read_only(true).connect().await else {
        return false;
    };
    let statement = "SELECT NOT EXISTS (SELECT 1 FROM runs UNION ALL SELECT 1 FROM tokens)";
    let is_empty = sqlx::query_scalar(statement)
        .fetch_one(&mut connection)
        .await;
    let _ = connection.close().await;
    is_empty.unwrap_or(false)
}

/// Brings the copy's schema up to date and verifies all of its runs. Returns their number, and what
/// is wrong with them.
async fn verified(copy: &Path) -> Result<(u64, Vec<String>), RestoreError> {
    let options = SqliteConnectOptions::new()
        .filename(copy)
        .journal_mode(SqliteJournalMode::Delete)
        .foreign_keys(true);
    let mut connection = options.connect().await.map_err(damage)?;
    let found: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check(3)")
        .fetch_all(&mut connection)
        .await
        .map_err(damage)?;
    if found != ["ok"] {
        let found = format!("SQLite finds: {}", found.join("; "));
        return Err(RestoreError::Damaged(found));
    }
    let tables: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('_sqlx_migrations', 'runs', 'entries')",
    )
    .fetch_one(&mut connection)
    .await
    .map_err(damage)?;
    if tables < 3 {
        return Err(RestoreError::NotABackup("it holds no Conclave database"));
    }
    migrator().run(&mut connection).await.map_err(Error::from)?;
    let runs = prove_all(&mut connection).await?;
    connection.close().await.map_err(damage)?;
    Ok(runs)
}

/// Verifies all runs, some at a time. Returns their number, and what is wrong with them.
async fn prove_all(connection: &mut SqliteConnection) -> Result<(u64, Vec<String>), RestoreError> {
    let (mut last, mut count, mut damaged) = (String::new(), 0, vec![]);
    loop {
        let statement = "SELECT * FROM runs WHERE id > $1 ORDER BY id LIMIT 100";
        let page = connection.rows(statement, vec![last.as_str().into()]).await;
        let page = page.map_err(damage)?;
        if page.is_empty() {
            return Ok((count, damaged));
        }
        for row in &page {
            last = row.text("id").map_err(damage)?;
            let values = vec![last.as_str().into(), 0.into()];
            let found = connection.rows(reads::ENTRIES, values).await;
            let found = found.map_err(damage)?;
            let read = rows::run(row).and_then(|row| Ok((rows::entries(row.id, 0, &found)?, row)));
            let fault = match read {
                Ok((entries, row)) => prove(&row, &entries).err().map(|fault| fault.to_string()),
                Err(error) => Some(error.to_string()),
            };
            damaged.extend(fault.map(|fault| format!("run {last}: {fault}")));
            count += 1;
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

    /// Renames the copy to the database. The former database gets a second name first, so that a
    /// database exists at every moment.
    fn put_in_place(self, database: &Path, former: Option<&Path>) -> Result<(), RestoreError> {
        File::open(&self.path)
            .and_then(|file| file.sync_all())
            .map_err(at(&self.path))?;
        if let Some(former) = former {
            std::fs::hard_link(database, former).map_err(at(former))?;
        }
        for companion in COMPANIONS {
            let stale = beside(database, companion);
            let result = match former {
                Some(former) => std::fs::rename(&stale, beside(former, companion)),
                None => std::fs::remove_file(&stale),
            };
            match result {
                Err(error) if error.kind() != ErrorKind::NotFound => {
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
    let files = [copy.to_owned(), owners.join(LOCK), owners];
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

/// Converts an error of the copy.
fn damage(error: impl Into<Error>) -> RestoreError {
    RestoreError::Damaged(match error.into() {
        error if error.is_damaged() => "SQLite cannot read it".to_owned(),
        Error::Unavailable(why) => why,
        error => error.to_string(),
    })
}
