//! Files under one root, by capabilities: `cap_std` resolves every path beneath an open directory.
//!
//! Reading follows a symbolic link that stays inside. Changing refuses a link anywhere in the path,
//! so the path that the user confirmed is the file that changes. A file with several hard links can
//! be read, because a link cannot be told from the file; changing it is refused.
//!
//! A write is a new file, flushed and then renamed over the old one, so readers see the old or the
//! new content. It fails if the old content changed meanwhile. A crash can leave a hidden file
//! `.conclave-*.tmp`. Its name follows from the path and the content, so what is repeated or reported as
//! in doubt can remove it, and no other file.

use std::fs::Permissions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{FileType, OFlags};
use sha2::{Digest as _, Sha256};

use super::output::{FailureKind, ToolError, quoted};
use super::path::{changeable, join, normalise, split};
use crate::domain::hex;
use crate::journal::FileChange;

/// Upper bound of a text file that is read or written, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// The workspace. A clone is the same workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The real path of the root.
    pub root: Arc<Path>,
    pub dir: Arc<Dir>,
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
        self.refuse_links(&path)?;
        match self.kind(&path)? {
            Some(_) => Ok(self.root.join(&path)),
            None => Err(ToolError::missing(&path)),
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

    /// Returns the normal form of a path that may be changed.
    fn changeable(&self, path: &str) -> Result<String, ToolError> {
        let path = changeable(path)?;
        self.refuse_links(&path)?;
        Ok(path)
    }

    /// Fails if no file can be created at a path that may change.
    pub fn check_free(&self, path: &str) -> Result<(), ToolError> {
        let path = self.changeable(path)?;
        let above = split(&path).0;
        if self.kind(above)? != Some(FileType::Directory) {
            return Err(format!("folder {} does not exist", quoted(above)).into());
        }
        match self.dir.symlink_metadata(&path) {
            Ok(_) => Err(ToolError::exists(&path)),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(ToolError::io(&path, "create", error)),
        }
    }

    /// Reads a text file.
    pub fn read(&self, path: &str) -> Result<String, ToolError> {
        self.read_text(&normalise(path)?).map(|(text, _)| text)
    }

    /// Opens a file for reading. Returns at once for a pipe or device too.
    pub fn open_file(&self, path: &str) -> io::Result<File> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(flags.bits().cast_signed());
        self.dir.open_with(path, options)
    }

    fn read_text(&self, path: &str) -> Result<(String, Metadata), ToolError> {
        let failed = |error: io::Error| ToolError::io(path, "read", error);
        match self.kind(path)? {
            None => return Err(ToolError::missing(path)),
            Some(FileType::RegularFile) => {}
            Some(kind) => return Err(not_text(path, kind)),
        }
        let file = self.open_file(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        // Something else may have taken its place.
        if !metadata.is_file() {
            return Err(not_text(path, FileType::from_raw_mode(metadata.mode())));
        }
        let limit = MAX_FILE_BYTES as u64;
        let mut bytes = vec![];
        let read = file.take(limit + 1).read_to_end(&mut bytes);
        if read.map_err(failed)? > MAX_FILE_BYTES {
            let (bytes, path) = (metadata.len().max(limit + 1), quoted(path));
            let why = format!("file {path} has {bytes} bytes, more than the limit of {limit}");
            return Err(why.into());
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok((text, metadata)),
            _ => Err(format!("file {} is not UTF-8 text", quoted(path)).into()),
        }
    }

    /// The content that a change of `path` would replace; `None` if there is no file. Fails if it
    /// could not be put back.
    pub fn content_before(&self, path: &str) -> Result<Option<String>, ToolError> {
        match self.replaceable(&self.changeable(path)?) {
            Ok((text, _)) => Ok(Some(text)),
            Err(error) if error.kind == FailureKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a file that an undo could put back, and its mode.
    fn replaceable(&self, path: &str) -> Result<(String, u32), ToolError> {
        let (text, metadata) = self.read_text(path)?;
        self.refuse_other_names(path)?;
        Ok((text, metadata.mode()))
    }

    /// Puts `new` at a path, or removes what is there. Fails, and changes nothing, if there is
    /// something else before, or what could not be put back. Keeps the mode of a file.
    pub fn change(
        &self,
        path: &str,
        before: Before<'_>,
        new: Option<&str>,
    ) -> Result<FileChange, ToolError> {
        let path = self.changeable(path)?;
        let found = match before {
            Before::Nothing => self.check_free(&path).map(|()| None)?,
            Before::Anything | Before::Hash(_) => Some(self.replaceable(&path)?),
        };
        let (old, mode) = found.unzip();
        if let (Before::Hash(expected), Some(old)) = (before, &old)
            && hash(old) != expected
        {
            let (path, found) = (quoted(&path), hash(old));
            let why = format!("file {path} changed since: expected {expected}, found {found}");
            return Err(why.into());
        }
        let (action, changed_so) = match new {
            Some(text) => ("write", self.write(&path, mode, old.as_deref(), text)),
            None => ("remove", self.dir.remove_file(&path)),
        };
        changed_so.map_err(|error| ToolError::io(&path, action, error))?;
        // The change is visible already, so a failure to flush it must not hide it.
        let folder = self.dir.open(split(&path).0);
        let _ = folder.and_then(|folder| folder.sync_all());
        Ok(changed(&path, old, new))
    }

    /// Puts the content of a file back, whatever a program left there.
    pub fn put_back(&self, path: &str, old: &str) -> Result<(), ToolError> {
        self.refuse_links(split(path).0)?;
        let found = self.dir.symlink_metadata(path).ok();
        let mode = found
            .filter(Metadata::is_file)
            .map_or(0o644, |it| it.mode());
        let written = self.write(path, Some(mode), None, old);
        written.map_err(|error| ToolError::io(path, "write", error))
    }

    /// Writes a new file, which replaces the one with this mode, if there is one. It is complete when
    /// it gets its name. Fails if the `old` content, if given, is no longer there.
    fn write(
        &self,
        path: &str,
        replaced: Option<u32>,
        old: Option<&str>,
        text: &str,
    ) -> io::Result<()> {
        let aside = unfinished(path, text);
        let mut options = OpenOptions::new();
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let options = options.write(true).create_new(true).mode(mode);
        let file = self.dir.open_with(&aside, options);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::other(format!("{} exists", quoted(&aside))),
            _ => error,
        })?;
        let mut file = file.into_std();
        let mut complete = || {
            file.write_all(text.as_bytes())?;
            // A write clears the set-user-id bit, as the kernel does for a write in place.
            if let Some(mode) = replaced {
                file.set_permissions(Permissions::from_mode(mode & 0o777))?;
            }
            file.sync_all()?;
            if old.is_some() && self.content_before(path).ok().flatten().as_deref() != old {
                return Err(io::Error::other("it changed meanwhile"));
            }
            if replaced.is_some() {
                return self.dir.rename(&aside, &self.dir, path);
            }
            // Unlike a rename, a link replaces nothing.
            self.dir.hard_link(&aside, &self.dir, path)?;
            self.dir.remove_file(&aside)
        };
        complete().inspect_err(|_| drop(self.dir.remove_file(&aside)))
    }

    /// Removes what a killed write of `text` left.
    pub fn remove_unfinished(&self, path: &str, text: &str) {
        let _ = self.dir.remove_file(unfinished(path, text));
    }
}

/// The path of the content of a file until it is complete.
pub fn unfinished(path: &str, text: &str) -> String {
    let name = hash(&format!("{path}\0{text}"));
    join(
        split(path).0,
        &format!(".conclave-{}.tmp", name.get(..24).unwrap_or(&name)),
    )
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

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

pub fn not_text(path: &str, kind: FileType) -> ToolError {
    let kind = match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => "a device",
    };
    format!("{} is {kind}, not a text file", quoted(path)).into()
}
