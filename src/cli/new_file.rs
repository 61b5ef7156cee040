//! A file that a command makes. It gets its name when it is complete, so that a command that is
//! killed leaves no part of it under that name.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::exit::{Exit, fail};
use crate::config::{Database, Env};
use crate::journal::{folder_of, leave_to_folder_owner};

/// How the name of an incomplete file ends.
const PARTIAL: &str = ".partial";

/// A file under a name of its own, beside its final one. Only its owner can read it. Removed on drop,
/// unless it was finished.
pub(super) struct NewFile {
    path: PathBuf,
    draft: NamedTempFile,
}

impl NewFile {
    /// # Errors
    /// The exit code, after the reason was printed: the file exists, or its folder cannot be written.
    pub fn create(path: &Path) -> std::result::Result<Self, Exit> {
        Self::begun(path).map_err(|error| failed(path, &error))
    }

    fn begun(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(Errno::EXIST.into());
        }
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let prefix = [name, ".".as_ref()].into_iter().collect::<OsString>();
        let mut draft = tempfile::Builder::new();
        let draft = draft.prefix(&prefix).suffix(PARTIAL);
        Ok(Self {
            path: path.to_owned(),
            draft: draft.tempfile_in(folder_of(path))?,
        })
    }

    /// Returns the path of the incomplete file.
    pub fn draft(&self) -> &Path {
        self.draft.path()
    }

    /// Returns the incomplete file, to write to it.
    ///
    /// # Errors
    /// As [`NewFile::create`].
    pub fn writer(&self) -> std::result::Result<File, Exit> {
        let file = self.draft.as_file().try_clone();
        file.map_err(|error| failed(&self.path, &error))
    }

    /// Gives the file its name, once its disk has it. Never replaces another file. In the folder of the
    /// database, a file of root is left to the owner of the folder.
    ///
    /// # Errors
    /// As [`NewFile::create`].
    pub fn finish(self, env: &Env) -> std::result::Result<(), Exit> {
        let path = self.path.clone();
        self.named().map_err(|error| failed(&path, &error))?;
        let is_beside = |database: &Path| {
            let [one, other] = [&path, database].map(|it| folder_of(it).canonicalize().ok());
            one.is_some() && one == other
        };
        if let Ok(Database::Sqlite(database)) = Database::of(env)
            && is_beside(&database)
        {
            leave_to_folder_owner(&path);
        }
        Ok(())
    }

    fn named(self) -> Result<()> {
        self.draft.as_file().sync_all()?;
        self.draft
            .persist_noclobber(&self.path)
            .map_err(Error::from)?;
        File::open(folder_of(&self.path))?.sync_all()
    }
}

fn failed(path: &Path, error: &Error) -> Exit {
    fail(Exit::Refused, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write as _};
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_file_has_its_name_when_it_is_complete_and_replaces_none() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("runs.jsonl");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        let new = NewFile::begun(&path).unwrap();
        write!(new.writer().unwrap(), "half").unwrap();
        assert!(!path.exists() && names() == 1);
        drop(new);
        assert_eq!(names(), 0);

        let new = NewFile::begun(&path).unwrap();
        write!(new.writer().unwrap(), "whole").unwrap();
        let late = NewFile::begun(&path).unwrap();
        new.named().unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let exists = |refused: Result<()>| refused.unwrap_err().kind() == ErrorKind::AlreadyExists;
        assert!(exists(late.named()) && exists(NewFile::begun(&path).map(drop)));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(names(), 1);
    }
}
