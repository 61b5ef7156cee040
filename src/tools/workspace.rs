//! Files under one root, by capabilities: every path is resolved beneath an open directory.
//!
//! Reading follows a symbolic link that stays inside. Changing refuses a link anywhere in the path,
//! so the path that the user confirmed is the file that changes. A file with several hard links can
//! be read, because a link cannot be told from the file; changing it is refused.
//!
//! A change is a new file, flushed and then exchanged with the old one. Readers see the old or the
//! new content, and the content that is reported as replaced is the one that was replaced, even
//! when another program wrote meanwhile. A crash can leave a hidden file `.conclave-*.tmp`, which
//! [`Workspace::remove_left`] removes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{FileType, OFlags, RenameFlags};
use sha2::{Digest as _, Sha256};

use super::folder::{Folder, TextFile, name_aside, not_text, read_text};
use super::output::{ToolError, Why, quoted};
use super::path::{changeable, join, normalise, split};
use crate::domain::hex;
use crate::journal::FileChange;

/// The workspace. A clone is the same workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The real path of the root.
    pub root: Arc<Path>,
    dir: Arc<Dir>,
}

/// What must be at a path before it is changed.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    Nothing,
    Anything,
    /// A file with this SHA-256.
    Hash(&'a str),
}

impl Workspace {
    /// Opens the folder `root`, which may be given through symbolic links.
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self {
            root: root.into(),
            dir: Arc::new(dir),
        })
    }

    /// Returns the workspace as it is now. If another folder has its path, as after a new clone of a
    /// project, that one is opened. If none has, the old one stays and its steps fail.
    pub fn current(&self) -> Self {
        match Self::open(&self.root) {
            Ok(now) if now.root == self.root => now,
            _ => self.clone(),
        }
    }

    /// The real path of a file for another program, which resolves it again by itself. No part of
    /// it is a symbolic link, and the root is still the opened folder.
    pub fn real_path(&self, path: &str) -> Result<PathBuf, ToolError> {
        let path = normalise(path)?;
        let failed = |error: io::Error| ToolError::io(&path, "find", error);
        let id = |dir: &Dir| dir.dir_metadata().map(|found| (found.dev(), found.ino()));
        let now = Dir::open_ambient_dir(&*self.root, ambient_authority()).map_err(failed)?;
        if id(&now).map_err(failed)? != id(&self.dir).map_err(failed)? {
            return Err(failed(io::Error::other("the workspace was moved")));
        }
        if path == "." {
            return Ok(self.root.to_path_buf());
        }
        let (folder, name) = self.parent(&path)?;
        match folder.kind(name).map_err(failed)? {
            FileType::Symlink => Err(through_link(&path, &path)),
            _ => Ok(self.root.join(&path)),
        }
    }

    /// What the path names after following links inside the workspace; `None`: nothing.
    pub fn kind(&self, path: &str) -> Result<Option<FileType>, ToolError> {
        let path = normalise(path)?;
        match self.dir.metadata(&path) {
            Ok(found) => Ok(Some(FileType::from_raw_mode(found.mode()))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(ToolError::io(&path, "find", error)),
        }
    }

    /// Fails if something, be it a link that leads nowhere, has the name of a path that may change.
    pub fn check_free(&self, path: &str) -> Result<(), ToolError> {
        let path = changeable(path)?;
        let (folder, name) = self.parent(&path)?;
        match folder.kind(name) {
            Ok(_) => Err(ToolError::exists(&path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(ToolError::io(&path, "find", error)),
        }
    }

    /// Reads a text file.
    pub fn read(&self, path: &str) -> Result<String, ToolError> {
        let path = normalise(path)?;
        match self.kind(&path)? {
            None => return Err(ToolError::missing(&path)),
            Some(FileType::RegularFile) => {}
            Some(kind) => return Err(not_text(&path, kind)),
        }
        // A pipe or device that takes the file's place now does not block, and is refused below.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(flags.bits().cast_signed());
        let file = self.dir.open_with(&path, options);
        let file = file.map_err(|error| ToolError::io(&path, "read", error))?;
        Ok(read_text(&file.into_std(), &path)?.text)
    }

    /// Opens a folder. Follows links that stay inside.
    pub fn open_folder(&self, path: &str) -> Result<Folder, ToolError> {
        let opened = self.dir.open_dir(path);
        opened.map(Folder).map_err(|error| no_folder(path, error))
    }

    /// Opens the folder of a path, one name after the other and without following a link.
    fn parent<'a>(&self, path: &'a str) -> Result<(Folder, &'a str), ToolError> {
        let (above, name) = split(path);
        if name == "." {
            return Err(not_text(path, FileType::Directory));
        }
        let (mut folder, mut opened) = (self.open_folder(".")?, ".".to_owned());
        for part in above.split('/').filter(|part| *part != ".") {
            opened = join(&opened, part);
            folder = match (folder.kind(part), folder.open_folder(part)) {
                (Ok(FileType::Symlink), _) => return Err(through_link(path, &opened)),
                (Ok(_), Ok(next)) => next,
                (Err(error), _) | (_, Err(error)) => return Err(no_folder(&opened, error)),
            };
        }
        Ok((folder, name))
    }

    /// The content that a change of `path` would replace; `None` if there is no file. Fails if it
    /// could not be put back.
    pub fn content_before(&self, path: &str) -> Result<Option<String>, ToolError> {
        let path = changeable(path)?;
        let (folder, name) = self.parent(&path)?;
        match checked(&folder, name, &path, Before::Anything) {
            Ok(file) => Ok(Some(file.text)),
            Err(error) if error.why == Why::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts `new` at a path, or removes what is there. Fails, and changes nothing, if there is
    /// something else before, or what could not be put back. Keeps the mode of a file.
    pub fn change(
        &self,
        path: &str,
        before: Before<'_>,
        new: Option<&str>,
    ) -> Result<FileChange, ToolError> {
        let path = changeable(path)?;
        let (folder, name) = self.parent(&path)?;
        let found = match before {
            Before::Nothing if folder.kind(name).is_ok() => return Err(ToolError::exists(&path)),
            Before::Nothing => None,
            Before::Anything | Before::Hash(_) => Some(checked(&folder, name, &path, before)?),
        };
        let action = match (&found, new) {
            (None, _) => "create",
            (Some(_), Some(_)) => "write",
            (Some(_), None) => "remove",
        };
        let failed = |error: io::Error| ToolError::io(&path, action, error);
        let aside = name_aside().map_err(failed)?;
        let mode = found.as_ref().map(|found| found.mode);
        let own = new.map(|text| folder.write_new(&aside, text, mode));
        let own = own.transpose().map_err(failed)?;
        let (from, to, flags) = match action {
            "create" => (aside.as_str(), name, RenameFlags::NOREPLACE),
            "write" => (aside.as_str(), name, RenameFlags::EXCHANGE),
            _ => (name, aside.as_str(), RenameFlags::NOREPLACE),
        };
        let renamed = folder.rename(from, to, flags);
        let kept = renamed.inspect_err(|_| folder.remove_own(&aside, own));
        let old = match (kept.map_err(failed)?, found) {
            (_, None) => None,
            (false, Some(found)) => Some(found.text),
            // The other name holds the old file now, whatever happened since it was read.
            (true, Some(_)) => match checked(&folder, &aside, &path, before) {
                Ok(replaced) => {
                    let _ = folder.remove(&aside);
                    Some(replaced.text)
                }
                Err(error) => {
                    let _ = folder.rename(to, from, flags);
                    folder.remove_own(&aside, own);
                    return Err(error);
                }
            },
        };
        folder.sync();
        Ok(changed(&path, old, new))
    }

    /// Puts a file back that a change left with the hash `expected`; `None` means that it is absent.
    pub fn restore(
        &self,
        path: &str,
        expected: Option<&str>,
        old: Option<&str>,
    ) -> Result<FileChange, ToolError> {
        if expected.is_none() && old.is_none() {
            return Ok(changed(path, None, None));
        }
        self.change(path, expected.map_or(Before::Nothing, Before::Hash), old)
    }

    /// Removes the hidden files that a change of `path` left when the process was killed:
    /// `is_of_change` recognises them by their text.
    pub fn remove_left(&self, path: &str, is_of_change: impl Fn(&str) -> bool) {
        if let Ok((folder, _)) = self.parent(path) {
            folder.remove_asides(is_of_change);
        }
    }

    /// Removes files beside `path` that a program left there; what is not there is no error.
    pub fn remove_siblings(&self, path: &str, names: &[&str]) {
        if let Ok((folder, _)) = self.parent(path) {
            for name in names {
                let _ = folder.remove(name);
            }
        }
    }
}

/// Describes a change by its contents.
pub fn changed(path: &str, old: Option<String>, new: Option<&str>) -> FileChange {
    FileChange {
        path: path.to_owned(),
        before: old.as_deref().map(hash),
        after: new.map(hash),
        old,
    }
}

/// The SHA-256 of a text in hexadecimal digits.
pub fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Reads a file that an undo could put back.
fn checked(
    folder: &Folder,
    name: &str,
    path: &str,
    before: Before<'_>,
) -> Result<TextFile, ToolError> {
    let file = folder.read_text(name, path)?;
    let (links, found) = (file.links, hash(&file.text));
    let path = quoted(path);
    match before {
        _ if links > 1 => {
            let why = format!("file {path} has {links} hard links; a write would separate them");
            Err(why.into())
        }
        Before::Hash(expected) if found != expected => {
            let why = format!("file {path} changed since: expected {expected}, found {found}");
            Err(why.into())
        }
        _ => Ok(file),
    }
}

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn no_folder(path: &str, error: io::Error) -> ToolError {
    if is_absent(&error) {
        let message = format!("folder {} does not exist", quoted(path));
        return ToolError::new(Why::FolderMissing, message);
    }
    ToolError::io(path, "open", error)
}

fn through_link(path: &str, link: &str) -> ToolError {
    let (path, link) = (quoted(path), quoted(link));
    format!("{path} goes through the symbolic link {link}").into()
}
