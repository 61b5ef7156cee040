//! An open folder and the single names in it.
//!
//! No function here resolves more than one name, and none follows a symbolic link. Therefore
//! renaming or replacing folders above cannot lead an operation elsewhere.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use cap_std::fs::Dir;
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fsync, openat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::file_error::{FileError, Kind};

/// Identity of a file: device and inode.
pub type FileId = (u64, u64);

/// A text file as it was read.
pub struct TextFile {
    pub text: String,
    pub permissions: Permissions,
    pub links: u64,
}

/// An open folder. `Folder` is a capability: it stays the same folder when its path changes.
pub struct Folder(Dir);

impl Folder {
    pub fn new(dir: Dir) -> Self {
        Self(dir)
    }

    /// Opens a folder in this folder; a symbolic link is an error.
    pub fn open_folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty())?;
        Ok(Self(Dir::from_std_file(file.into())))
    }

    /// Opens a file in this folder for reading; returns at once for a pipe too.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags | OFlags::NOCTTY, Mode::empty())?.into())
    }

    pub fn kind(&self, name: &str) -> io::Result<Kind> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(kind_of_mode(stat.st_mode))
    }

    /// The entries, without `.` and `..`, in no order. Names that are not UTF-8 are `None`.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<(Option<String>, Kind)>>> {
        Ok(self.0.entries()?.map(|entry| {
            let entry = entry?;
            let kind = entry.file_type()?;
            let kind = if kind.is_dir() {
                Kind::Folder
            } else if kind.is_file() {
                Kind::File
            } else {
                Kind::Link
            };
            Ok((entry.file_name().into_string().ok(), kind))
        }))
    }

    /// Reads a text file; `path` is its path for error messages.
    pub fn read_text(&self, name: &str, path: &str, limit: u64) -> Result<TextFile, FileError> {
        let failed = |error: io::Error| FileError::of(path, "read", error);
        let kind = self.kind(name).map_err(failed)?;
        if kind != Kind::File {
            return Err(FileError::NotAFile {
                path: path.to_owned(),
                kind,
            });
        }
        read_text(&self.open_file(name).map_err(failed)?, path, limit)
    }

    /// Writes a new file and flushes it to disk. Without `permissions` the umask decides.
    pub fn write_new(
        &self,
        name: &str,
        contents: &str,
        permissions: Option<Permissions>,
    ) -> io::Result<FileId> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = if permissions.is_some() { 0o600 } else { 0o666 };
        let mut file: File = openat(&self.0, name, flags, Mode::from_raw_mode(mode))?.into();
        let written = file.write_all(contents.as_bytes()).and_then(|()| {
            if let Some(permissions) = permissions {
                // A write clears the set-user-id bit, as the kernel does for a write in place.
                file.set_permissions(Permissions::from_mode(permissions.mode() & 0o777))?;
            }
            file.sync_all()?;
            file.metadata()
        });
        if written.is_err() {
            let _ = self.remove(name);
        }
        written.map(|metadata| (metadata.dev(), metadata.ino()))
    }

    /// Exchanges two names in one step. `Ok(false)`: the file system cannot do it.
    pub fn exchange(&self, one: &str, other: &str) -> io::Result<bool> {
        match renameat_with(&self.0, one, &self.0, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a file; fails with `AlreadyExists` if the new name is taken.
    pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        match renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                self.0.hard_link(from, &self.0, to)?;
                self.remove(from)
            }
            done => Ok(done?),
        }
    }

    /// Renames a file over another.
    pub fn rename_over(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat_with(
            &self.0,
            from,
            &self.0,
            to,
            RenameFlags::empty(),
        )?)
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes a name only if it still is the file `id`.
    pub fn remove_own(&self, name: &str, id: FileId) {
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == id) {
            let _ = self.remove(name);
        }
    }

    /// Flushes the names of this folder to disk, where the file system can do that. A change is
    /// visible already, so a failure here must not hide what was changed.
    pub fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // cap-std opens folders as mere paths, which cannot be flushed.
        let _ = openat(&self.0, ".", flags, Mode::empty()).and_then(fsync);
    }
}

/// Reads an open file that must be a regular text file of at most `limit` bytes.
pub fn read_text(file: &File, path: &str, limit: u64) -> Result<TextFile, FileError> {
    let failed = |error: io::Error| FileError::of(path, "read", error);
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        let kind = kind_of_mode(metadata.mode());
        return Err(FileError::NotAFile {
            path: path.to_owned(),
            kind,
        });
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read > limit) {
        let bytes = file
            .metadata()
            .map_err(failed)?
            .len()
            .max(limit.saturating_add(1));
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            bytes,
            limit,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| FileError::NotText(path.to_owned()))?;
    if text.contains('\0') {
        return Err(FileError::NotText(path.to_owned()));
    }
    Ok(TextFile {
        text,
        permissions: metadata.permissions(),
        links: metadata.nlink(),
    })
}

/// The kind that the type bits of a mode name.
pub fn kind_of_mode(mode: u32) -> Kind {
    use rustix::fs::FileType;
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Device,
    }
}
