//! Who of the processes that share the file is alive: each holds a lock on a file of its own, which the kernel lets go
//! of when the process dies, however it dies.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::file::make_private_folder;
use crate::journal::Error;

/// The name of the lock under which owners come, and under which the schema is changed; no owner is called so.
pub(super) const DOOR: &str = ".door";

pub(super) struct Owners {
    folder: PathBuf,
    me: String,
    _lock: File,
}

/// One process at a time stands in the door: it may change the schema, and register.
pub(super) struct LockFile {
    folder: PathBuf,
    _lock: File,
}

impl LockFile {
    /// Waits for whoever stands there; that is a matter of milliseconds, but for a change of the schema.
    pub fn of(database: &Path) -> Result<Self, Error> {
        let mut folder = database.as_os_str().to_owned();
        folder.push(".owners");
        let folder = PathBuf::from(folder);
        let lock = make_private_folder(&folder)
            .and_then(|()| locked(&folder.join(DOOR)))
            .map_err(unregistered)?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }
}

impl LockFile {
    /// Whether another process has the database open. While the door is held, no further one can open it.
    pub fn in_use(&self) -> Result<bool, Error> {
        for file in std::fs::read_dir(&self.folder).map_err(unregistered)? {
            let file = file.map_err(unregistered)?;
            if file.file_name() == DOOR {
                continue;
            }
            match File::open(file.path()).map_err(unregistered)?.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(true),
                Err(TryLockError::Error(error)) => return Err(unregistered(error)),
            }
        }
        Ok(false)
    }
}

fn locked(path: &Path) -> std::io::Result<File> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn unregistered(error: std::io::Error) -> Error {
    Error::Unavailable(format!(
        "cannot register beside the database file: {}",
        error.kind()
    ))
}

impl Owners {
    /// Registers this process beside the database file.
    pub fn register(door: LockFile, owner: &str) -> Result<Self, Error> {
        let lock = locked(&door.folder.join(owner)).map_err(unregistered)?;
        Ok(Self {
            folder: door.folder,
            me: owner.to_owned(),
            _lock: lock,
        })
    }

    /// The owners whose process is gone.
    pub fn dead(&self) -> Vec<String> {
        // Somebody who is just coming has a file already, and no lock on it yet.
        let Ok(_door) = locked(&self.folder.join(DOOR)) else {
            return vec![];
        };
        let Ok(files) = std::fs::read_dir(&self.folder) else {
            return vec![];
        };
        files
            .flatten()
            .filter_map(|file| file.file_name().into_string().ok())
            .filter(|owner| *owner != self.me && owner != DOOR)
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
