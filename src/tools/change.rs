//! Changes of files in the workspace: atomic, with the old content, and undoable.
//!
//! A change is a new file, flushed and then exchanged with the old one. Readers see the old or the
//! new content, and the content that is reported as replaced is the one that was replaced, even
//! when another program wrote meanwhile. A crash can leave a hidden file `.conclave-*.tmp`.

use std::io;

use super::file_error::FileError;
use super::folder::{Folder, TextFile};
use super::output::Change;
use super::path::{check_changeable, normalise};
use super::workspace::{MAX_READ, Workspace, hash, hex};

impl Workspace {
    /// The content that a change of `path` would replace; `None` if there is no file.
    ///
    /// # Errors
    /// As `write`, except `Missing`.
    pub fn content_before(&self, path: &str) -> Result<Option<String>, FileError> {
        let path = changeable(path)?;
        let (folder, name) = self.parent(&path)?;
        match read_changeable(&folder, name, &path) {
            Ok(file) => Ok(Some(file.text)),
            Err(FileError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a text file; of two that create the same file, one fails.
    ///
    /// # Errors
    /// `Exists`, `FolderMissing`, `Forbidden` or `Io`.
    pub fn create(&self, path: &str, contents: &str) -> Result<Change, FileError> {
        let path = changeable(path)?;
        let (folder, name) = self.parent(&path)?;
        let failed = |error: io::Error| FileError::of(&path, "create", error);
        if folder.kind(name).is_ok() {
            return Err(FileError::Exists(path));
        }
        let new = temporary_name().map_err(failed)?;
        let id = folder.write_new(&new, contents, None).map_err(failed)?;
        if let Err(error) = folder.rename_new(&new, name) {
            folder.remove_own(&new, id);
            return Err(failed(error));
        }
        folder.sync();
        Ok(Change::new(&path, None, Some(contents)))
    }

    /// Replaces the content of an existing text file and keeps its mode.
    ///
    /// # Errors
    /// `Missing`, `NotAFile`, `TooLarge`, `NotText`, `HardLinked`, `Forbidden` or `Io`. The
    /// last but one three protect the undo: what it could not put back is not overwritten.
    pub fn write(&self, path: &str, contents: &str) -> Result<Change, FileError> {
        self.replace(path, contents, None)
    }

    /// Puts `old` back where a change left content with the hash `expected_now`.
    ///
    /// `None` as hash means that the file must be absent, `None` as content removes it.
    ///
    /// # Errors
    /// `Changed` if the file has other content by now; else as `write` and `create`.
    pub fn restore(
        &self,
        path: &str,
        expected_now: Option<&str>,
        old: Option<&str>,
    ) -> Result<Change, FileError> {
        match (expected_now, old) {
            (Some(expected), Some(old)) => self.replace(path, old, Some(expected)),
            (Some(expected), None) => self.remove(path, expected),
            (None, Some(old)) => self.create(path, old),
            (None, None) => Ok(Change::new(path, None, None)),
        }
    }

    /// Removes files beside `path` that a program left there; what is not there is no error.
    pub(super) fn remove_siblings(&self, path: &str, names: &[&str]) {
        if let Ok((folder, _)) = self.parent(path) {
            for name in names {
                let _ = folder.remove(name);
            }
        }
    }

    fn replace(
        &self,
        path: &str,
        contents: &str,
        expected: Option<&str>,
    ) -> Result<Change, FileError> {
        let path = changeable(path)?;
        let (folder, name) = self.parent(&path)?;
        let failed = |error: io::Error| FileError::of(&path, "write", error);
        let found = read_changeable(&folder, name, &path)?;
        check_hash(&path, expected, &found.text)?;
        let new = temporary_name().map_err(failed)?;
        let id = folder
            .write_new(&new, contents, Some(found.permissions))
            .map_err(failed)?;
        let exchanged = folder
            .exchange(&new, name)
            .inspect_err(|_| folder.remove_own(&new, id));
        let before = if exchanged.map_err(failed)? {
            // The new name holds the old file now, whatever happened since it was read.
            let replaced = read_changeable(&folder, &new, &path)
                .and_then(|old| check_hash(&path, expected, &old.text).map(|()| old.text));
            if replaced.is_err() {
                let _ = folder.exchange(&new, name);
                folder.remove_own(&new, id);
            }
            let replaced = replaced?;
            let _ = folder.remove(&new);
            replaced
        } else {
            let renamed = folder.rename_over(&new, name);
            renamed
                .inspect_err(|_| folder.remove_own(&new, id))
                .map_err(failed)?;
            found.text
        };
        folder.sync();
        Ok(Change::new(&path, Some(before), Some(contents)))
    }

    fn remove(&self, path: &str, expected: &str) -> Result<Change, FileError> {
        let path = changeable(path)?;
        let (folder, name) = self.parent(&path)?;
        let failed = |error: io::Error| FileError::of(&path, "remove", error);
        check_hash(
            &path,
            Some(expected),
            &read_changeable(&folder, name, &path)?.text,
        )?;
        let aside = temporary_name().map_err(failed)?;
        folder.rename_new(name, &aside).map_err(failed)?;
        let removed = read_changeable(&folder, &aside, &path)
            .and_then(|old| check_hash(&path, Some(expected), &old.text).map(|()| old.text));
        if removed.is_err() {
            let _ = folder.rename_new(&aside, name);
        }
        let removed = removed?;
        let _ = folder.remove(&aside);
        folder.sync();
        Ok(Change::new(&path, Some(removed), None))
    }
}

fn temporary_name() -> io::Result<String> {
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    Ok(format!(".conclave-{}.tmp", hex(&random)))
}

fn changeable(path: &str) -> Result<String, FileError> {
    let path = normalise(path)?;
    check_changeable(&path)?;
    Ok(path)
}

fn read_changeable(folder: &Folder, name: &str, path: &str) -> Result<TextFile, FileError> {
    let file = folder.read_text(name, path, MAX_READ)?;
    if file.links > 1 {
        return Err(FileError::HardLinked {
            path: path.to_owned(),
            links: file.links,
        });
    }
    Ok(file)
}

fn check_hash(path: &str, expected: Option<&str>, text: &str) -> Result<(), FileError> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let found = hash(text);
    if found == expected {
        return Ok(());
    }
    Err(FileError::Changed {
        path: path.to_owned(),
        expected: expected.to_owned(),
        found,
    })
}
