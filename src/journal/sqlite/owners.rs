//! Detects which of the processes on the file are alive. Each process locks a file of its own. The
//! kernel releases the lock when the process ends, for any reason.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::file::{beside, make_private_folder, open_private, unwritable};
use crate::journal::Error;

/// Name of the lock file under which processes register and change the schema. No owner has this
/// name.
pub(super) const LOCK: &str = ".door";

pub(super) struct Owners {
    folder: PathBuf,
    me: String,
    _lock: File,
}

/// The lock that a process needs to change the schema or to register.
pub(super) struct LockFile {
    folder: PathBuf,
    _lock: File,
}

impl LockFile {
    /// Waits for the lock. This takes milliseconds, or longer during a change of the schema.
    pub fn of(database: &Path) -> Result<Self, Error> {
        let folder = beside(database, ".owners");
        let file = folder.join(LOCK);
        let lock = make_private_folder(&folder).and_then(|()| locked(&file));
        let lock = lock.map_err(unregistered(&file))?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// True if another process has the database open. No further process can open it while this
    /// lock exists.
    pub fn in_use(&self) -> Result<bool, Error> {
        for file in std::fs::read_dir(&self.folder).map_err(unregistered(&self.folder))? {
            let file = file.map_err(unregistered(&self.folder))?;
            if file.file_name() == LOCK {
                continue;
            }
            let path = file.path();
            match File::open(&path).map_err(unregistered(&path))?.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(true),
                Err(TryLockError::Error(error)) => return Err(unregistered(&path)(error)),
            }
        }
        Ok(false)
    }
}

fn locked(path: &Path) -> std::io::Result<File> {
    let file = open_private(path)?;
    file.lock()?;
    Ok(file)
}

fn unregistered(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    unwritable(path, "cannot register beside its file")
}

impl Owners {
    /// Registers this process, in the folder next to the database file.
    pub fn register(file: LockFile, owner: &str) -> Result<Self, Error> {
        let path = file.folder.join(owner);
        let lock = locked(&path).map_err(unregistered(&path))?;
        Ok(Self {
            folder: file.folder,
            me: owner.to_owned(),
            _lock: lock,
        })
    }

    /// Returns the owners whose process has ended.
    pub fn dead(&self) -> Vec<String> {
        // Without this lock, a process that is registering may have a file that it has not locked
        // yet.
        let Ok(_lock) = locked(&self.folder.join(LOCK)) else {
            return vec![];
        };
        let Ok(files) = std::fs::read_dir(&self.folder) else {
            return vec![];
        };
        files
            .flatten()
            .filter_map(|file| file.file_name().into_string().ok())
            .filter(|owner| *owner != self.me && owner != LOCK)
            .filter(
                |owner| match File::open(self.folder.join(owner)).map(|file| file.try_lock()) {
                    Ok(Ok(())) => true,
                    Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => false,
                },
            )
            .collect()
    }

    pub fn forget(&self, owner: &str) {
        let _ = std::fs::remove_file(self.folder.join(owner));
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        self.forget(&self.me.clone());
    }
}
