//! Who of the processes that share the file is alive: each holds a lock on a file of its own, which the kernel lets go
//! of when the process dies, however it dies.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::journal::Error;

pub(super) struct Owners {
    folder: PathBuf,
    me: String,
    _lock: File,
}

impl Owners {
    /// Registers this process beside the database file.
    pub fn register(database: &Path, owner: &str) -> Result<Self, Error> {
        let mut folder = database.as_os_str().to_owned();
        folder.push(".owners");
        let folder = PathBuf::from(folder);
        let open = || -> std::io::Result<File> {
            std::fs::create_dir_all(&folder)?;
            let file = File::create(folder.join(owner))?;
            file.lock()?;
            Ok(file)
        };
        let lock = open()
            .map_err(|e| Error::Unavailable(format!("cannot register beside the database file: {}", e.kind())))?;
        Ok(Self { folder, me: owner.to_owned(), _lock: lock })
    }

    /// The owners whose process is gone.
    pub fn dead(&self) -> Vec<String> {
        let Ok(files) = std::fs::read_dir(&self.folder) else { return vec![] };
        files
            .flatten()
            .filter_map(|file| file.file_name().into_string().ok())
            .filter(|owner| *owner != self.me)
            .filter(|owner| match File::open(self.folder.join(owner)).map(|file| file.try_lock()) {
                Ok(Ok(())) => true,
                Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => false,
            })
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
