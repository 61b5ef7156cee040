//! Files under one root, by capabilities: every path is resolved beneath an open directory.
//!
//! Reading follows a symbolic link that stays inside. Changing refuses a link anywhere in the path,
//! so the path that the user confirmed is the file that changes. A file with several hard links can
//! be read, because a link cannot be told from the file; changing it is refused.
//!
//! `change` holds the methods that change files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::file_error::{FileError, Kind};
use super::folder::{Folder, kind_of_mode, read_text};
use super::path::{join, normalise, split};

/// Upper bound of a text file that is read or written, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;
pub(super) const MAX_READ: u64 = 1 << 20;

/// The workspace. A clone is the same workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: Arc<Path>,
    dir: Arc<Dir>,
}

impl Workspace {
    /// Opens the folder `root`, which may be given through symbolic links.
    ///
    /// # Errors
    /// The system's error if `root` is not a folder that can be opened.
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self {
            root: root.into(),
            dir: Arc::new(dir),
        })
    }

    /// The real path of the root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The real path of a file for another program, which resolves it again by itself.
    ///
    /// # Errors
    /// `Forbidden` if the path leaves the workspace, `LinkedFolder` if a part of it is a symbolic
    /// link, `Io` if the root is not the opened folder any more.
    pub fn real_path(&self, path: &str) -> Result<PathBuf, FileError> {
        let path = normalise(path)?;
        let failed = |error: io::Error| FileError::of(&path, "find", error);
        let now = Dir::open_ambient_dir(&*self.root, ambient_authority()).map_err(failed)?;
        let id = |dir: &Dir| rustix::fs::fstat(dir).map(|stat| (stat.st_dev, stat.st_ino));
        if id(&now).map_err(|error| failed(error.into()))?
            != id(&self.dir).map_err(|error| failed(error.into()))?
        {
            return Err(failed(io::Error::other("the workspace was moved")));
        }
        let mut checked = ".".to_owned();
        for part in path.split('/') {
            checked = join(&checked, part);
            let found = self.dir.symlink_metadata(&checked).map_err(failed)?;
            if found.is_symlink() {
                return Err(FileError::LinkedFolder(path, checked));
            }
        }
        Ok(if path == "." {
            self.root.to_path_buf()
        } else {
            self.root.join(&path)
        })
    }

    /// What the path names after following links inside the workspace; `None`: nothing.
    ///
    /// # Errors
    /// `Forbidden` or `Io`.
    pub fn kind(&self, path: &str) -> Result<Option<Kind>, FileError> {
        let path = normalise(path)?;
        match self.dir.metadata(&path) {
            Ok(found) if found.is_file() => Ok(Some(Kind::File)),
            Ok(found) if found.is_dir() => Ok(Some(Kind::Folder)),
            Ok(found) => {
                let mode = cap_std::fs::PermissionsExt::mode(&found.permissions());
                Ok(Some(kind_of_mode(mode)))
            }
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(FileError::of(&path, "find", error)),
        }
    }

    /// True if nothing has this name, not even a link that leads nowhere.
    pub(super) fn is_free(&self, path: &str) -> bool {
        let found = self.dir.symlink_metadata(path);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// `Missing`, `NotAFile`, `TooLarge`, `NotText`, `Forbidden` or `Io`.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        let path = normalise(path)?;
        match self.kind(&path)? {
            None => return Err(FileError::Missing(path)),
            Some(Kind::File) => {}
            Some(kind) => return Err(FileError::NotAFile { path, kind }),
        }
        // A pipe or device that takes the file's place now does not block, and is refused below.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
        let file = self.dir.open_with(&path, &options);
        let file = file
            .map_err(|error| FileError::of(&path, "read", error))?
            .into_std();
        Ok(read_text(&file, &path, MAX_READ)?.text)
    }

    /// Opens a folder, for a walk. Follows links that stay inside.
    pub(super) fn open_folder(&self, path: &str) -> Result<Folder, FileError> {
        match self.dir.open_dir(path) {
            Ok(dir) => Ok(Folder::new(dir)),
            Err(error) if is_absent(&error) => Err(FileError::FolderMissing(path.to_owned())),
            Err(error) => Err(FileError::of(path, "open", error)),
        }
    }

    /// Opens the folder of a path, one name after the other and without following a link.
    pub(super) fn parent<'a>(&self, path: &'a str) -> Result<(Folder, &'a str), FileError> {
        let (above, name) = split(path);
        if name == "." {
            return Err(FileError::NotAFile {
                path: path.to_owned(),
                kind: Kind::Folder,
            });
        }
        let (mut folder, mut opened) = (self.open_folder(".")?, ".".to_owned());
        for part in above.split('/').filter(|part| *part != ".") {
            opened = join(&opened, part);
            folder = match (folder.kind(part), folder.open_folder(part)) {
                (Ok(Kind::Folder), Ok(next)) => next,
                (Ok(Kind::Link), _) => {
                    return Err(FileError::LinkedFolder(path.to_owned(), opened));
                }
                (Err(error), _) | (Ok(Kind::Folder), Err(error)) if !is_absent(&error) => {
                    return Err(FileError::of(&opened, "open", error));
                }
                _ => return Err(FileError::FolderMissing(opened)),
            };
        }
        Ok((folder, name))
    }
}

/// The SHA-256 of a text in hexadecimal digits.
#[must_use]
pub fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
