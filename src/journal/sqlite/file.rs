//! Checks of the database file: private to its owner, writable, not replaced, enough free space.

use std::fs::{File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::journal::{Error, Unavailable};

/// Only the owner may read and write.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// With less free space, the disk counts as full. The reserve lets runs in progress finish.
const MIN_FREE_BYTES: u64 = 16 * 1024 * 1024;

/// How long a failed write for lack of space is remembered.
const MEMORY: Duration = Duration::from_secs(30);

/// The opened database file.
pub(super) struct DatabaseFile {
    path: PathBuf,
    /// Device and inode of the file that was opened.
    identity: (u64, u64),
    /// When a write last failed for lack of space, and how.
    disk_full_since: Mutex<Option<(Instant, Unavailable)>>,
    /// True once a write found the file damaged.
    damaged: AtomicBool,
}

/// True if the file is missing or empty beside its log, which may have what no file has.
pub(super) fn is_log_alone(path: &Path) -> bool {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |it| it.len());
    bytes(path) == 0 && bytes(&beside(path, "-wal")) > 0
}

/// Fails if the log is alone. A new file would make it useless.
pub(super) fn refuse_orphan(path: &Path) -> Result<(), Error> {
    if !is_log_alone(path) {
        return Ok(());
    }
    let why = "its file is missing or empty, but its log is there (its name ends with -wal): put the file back, \
               or delete the log if the file is lost";
    Err(Error::Unavailable(why.into()))
}

/// Creates the file and its folder if they are missing. Removes the permissions of group and others
/// from the file and its log.
///
/// # Errors
/// [`Error::Unavailable`] if the file cannot be written. SQLite would open it to read only.
pub(super) fn prepare(path: &Path) -> Result<(), Error> {
    let folder = folder_of(path);
    make_folder(folder).map_err(unwritable(folder, "cannot make the folder of the database"))?;
    // SQLite creates its log with the mode and the owner of the database.
    open_private(path).map_err(unwritable(path, "cannot open its file"))?;
    for suffix in ["", "-wal", "-shm"] {
        make_private(&beside(path, suffix), PRIVATE_FILE);
    }
    Ok(())
}

/// Opens a file to append to it. Creates it if it is missing, readable only by its owner.
pub(super) fn open_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).mode(PRIVATE_FILE);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => options.create(true).open(path),
        made => {
            let made = made?;
            leave_to_folder_owner(path);
            Ok(made)
        }
    }
}

/// Gives a new file or folder to the owner of the folder that it is in, if root made it. A command of
/// root thus leaves its files to the user of the service.
pub fn leave_to_folder_owner(made: &Path) {
    let given = std::fs::symlink_metadata(made).and_then(|it| {
        let owner = std::fs::metadata(folder_of(made))?;
        if it.uid() == 0 && (it.uid(), it.gid()) != (owner.uid(), owner.gid()) {
            std::os::unix::fs::lchown(made, Some(owner.uid()), Some(owner.gid()))?;
        }
        Ok(())
    });
    if let Err(error) = given {
        tracing::warn!(%error, "cannot set the owner of a file of the database");
    }
}

/// Describes why a file or folder cannot be written. Names the one that forbids it, and its owner.
pub(super) fn unwritable(path: &Path, failed: &str) -> impl FnOnce(std::io::Error) -> Error {
    move |error| {
        let known = path.ancestors().find_map(|it| {
            let it = if it.as_os_str().is_empty() {
                Path::new(".")
            } else {
                it
            };
            Some((it, std::fs::metadata(it).ok()?))
        });
        let why = match (error.kind(), known) {
            (ErrorKind::PermissionDenied, Some((it, meta))) => {
                let kind = if meta.is_dir() { "folder" } else { "file" };
                let name = it.file_name().unwrap_or(it.as_os_str()).to_string_lossy();
                let (owner, mode) = (meta.uid(), meta.mode() & 0o777);
                let me = rustix::process::geteuid().as_raw();
                format!(
                    "the {kind} {name} cannot be written: it belongs to the user {owner} (mode {mode:o}), and this \
                     process runs as the user {me}"
                )
            }
            (kind, _) => format!("{failed}: {kind}"),
        };
        Error::Unavailable(why.into())
    }
}

/// Returns the path of a file with a suffix at its name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the folder of a file.
pub fn folder_of(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Creates a folder that only its owner can enter, and those that it is in. Does not change existing
/// ones.
pub(super) fn make_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    make_folder(folder_of(folder))?;
    match std::fs::DirBuilder::new()
        .mode(PRIVATE_FOLDER)
        .create(folder)
    {
        // Another process made it.
        Err(_) if folder.is_dir() => Ok(()),
        made => made.map(|()| leave_to_folder_owner(folder)),
    }
}

/// As [`make_folder`], but also makes an existing folder private.
pub(super) fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    make_folder(folder)?;
    make_private(folder, PRIVATE_FOLDER);
    Ok(())
}

/// Removes the permissions of group and others, if this process may change them.
fn make_private(path: &Path, mode: u32) {
    let Ok(meta) = std::fs::metadata(path) else {
        return;
    };
    if meta.mode() & 0o777 & !mode != 0
        && let Err(error) =
            std::fs::set_permissions(path, Permissions::from_mode(meta.mode() & mode))
    {
        tracing::warn!(%error, "cannot set the permissions of a database file");
    }
}

impl DatabaseFile {
    pub fn opened(path: &Path) -> Result<Self, Error> {
        let identity = identity(path).ok_or_else(gone)?;
        Ok(Self {
            path: path.to_owned(),
            identity,
            disk_full_since: Mutex::default(),
            damaged: AtomicBool::default(),
        })
    }

    /// Fails if the path no longer names the opened file. Writes would then go to a file that has
    /// no name.
    pub fn in_place(&self) -> Result<(), Error> {
        if identity(&self.path) == Some(self.identity) {
            Ok(())
        } else {
            Err(gone())
        }
    }

    /// Fails after a write has found the file damaged.
    pub fn is_whole(&self) -> Result<(), Error> {
        if self.damaged.load(Ordering::Relaxed) {
            Err(Error::Unavailable(Unavailable::Damaged))
        } else {
            Ok(())
        }
    }

    /// Fails if the disk has too little space for runs.
    pub fn has_room(&self) -> Result<(), Error> {
        let disk_full_since = self
            .disk_full_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*disk_full_since {
            Some((at, why)) if at.elapsed() < MEMORY => Err(Error::Unavailable(why.clone())),
            _ => self.has_reserve(),
        }
    }

    /// Fails if the disk has too little space for a new run beside those in progress.
    pub fn has_reserve(&self) -> Result<(), Error> {
        if self.is_disk_full() {
            let why = format!("its disk has less than {} MiB left", MIN_FREE_BYTES >> 20);
            return Err(Error::Unavailable(why.into()));
        }
        Ok(())
    }

    fn is_disk_full(&self) -> bool {
        let free = rustix::fs::statvfs(folder_of(&self.path))
            .map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize));
        free.is_ok_and(|free| free < MIN_FREE_BYTES)
    }

    /// Records whether a write found the file damaged, or failed for lack of space although the disk
    /// has space: at a quota, or at a limit on the size of files. A full disk shows by itself when it
    /// has space again.
    pub fn noted<T>(&self, written: Result<T, Error>) -> Result<T, Error> {
        let mut disk_full_since = self
            .disk_full_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &written {
            Ok(_) => *disk_full_since = None,
            Err(error @ Error::Unavailable(why))
                if error.is_disk_full() && !self.is_disk_full() =>
            {
                *disk_full_since = Some((Instant::now(), why.clone()));
            }
            Err(error) if error.is_damaged() => self.damaged.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
        written
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path)
        .ok()
        .map(|meta| (meta.dev(), meta.ino()))
}

fn gone() -> Error {
    Error::Unavailable("its file was deleted or replaced while the service ran".into())
}
