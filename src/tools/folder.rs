//! An open folder and the single names in it.
//!
//! No function here resolves more than one name, and none follows a symbolic link. Therefore
//! renaming or replacing folders above cannot lead an operation elsewhere.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use cap_std::fs::Dir;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fsync, openat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::output::{ToolError, quoted};
use crate::domain::hex;

/// How the name of the hidden file of a change begins and ends.
const ASIDE: &str = ".conclave-";
const ASIDE_END: &str = ".tmp";

/// Upper bound of a text file that is read or written, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// A text file as it was read.
pub struct TextFile {
    pub text: String,
    pub mode: u32,
    pub links: u64,
}

/// An open folder. `Folder` is a capability: it stays the same folder when its path changes.
pub struct Folder(pub Dir);

impl Folder {
    fn open(&self, name: &str, flags: OFlags, mode: u32) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Opens a folder in this folder; a symbolic link is an error.
    pub fn open_folder(&self, name: &str) -> io::Result<Self> {
        let folder = self.open(name, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        Ok(Self(Dir::from_std_file(folder)))
    }

    /// Opens a file in this folder for reading; returns at once for a pipe too.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        self.open(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, 0)
    }

    pub fn kind(&self, name: &str) -> io::Result<FileType> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    /// Reads a text file; `path` is its path for error messages.
    pub fn read_text(&self, name: &str, path: &str) -> Result<TextFile, ToolError> {
        let failed = |error: io::Error| ToolError::io(path, "read", error);
        match self.kind(name).map_err(failed)? {
            FileType::RegularFile => read_text(&self.open_file(name).map_err(failed)?, path),
            kind => Err(not_text(path, kind)),
        }
    }

    /// Writes a new file and flushes it to disk. Without `mode` the umask decides. Returns the
    /// identity of the file.
    pub fn write_new(&self, name: &str, text: &str, mode: Option<u32>) -> io::Result<(u64, u64)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = self.open(name, flags, mode.map_or(0o666, |_| 0o600))?;
        let written = file.write_all(text.as_bytes()).and_then(|()| {
            if let Some(mode) = mode {
                // A write clears the set-user-id bit, as the kernel does for a write in place.
                file.set_permissions(Permissions::from_mode(mode & 0o777))?;
            }
            file.sync_all()?;
            file.metadata()
        });
        if written.is_err() {
            let _ = self.remove(name);
        }
        written.map(|metadata| (metadata.dev(), metadata.ino()))
    }

    /// Renames a file. Returns false if the file system cannot exchange names and the file
    /// replaced the other one.
    pub fn rename(&self, from: &str, to: &str, flags: RenameFlags) -> io::Result<bool> {
        match renameat_with(&self.0, from, &self.0, to, flags) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if flags == RenameFlags::EXCHANGE => {
                renameat_with(&self.0, from, &self.0, to, RenameFlags::empty())?;
                Ok(false)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                self.0.hard_link(from, &self.0, to)?;
                self.remove(from).map(|()| true)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes a name only if it still is the file with this identity.
    pub fn remove_own(&self, name: &str, id: Option<(u64, u64)>) {
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|stat| Some((stat.st_dev, stat.st_ino)) == id) {
            let _ = self.remove(name);
        }
    }

    /// Removes the hidden files of changes whose texts are those of a change.
    pub fn remove_asides(&self, is_of_change: impl Fn(&str) -> bool) {
        let names = self.0.entries().into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let is_aside = |name: &String| name.starts_with(ASIDE) && name.ends_with(ASIDE_END);
        for name in names.filter(is_aside) {
            let read = self.read_text(&name, &name);
            if read.is_ok_and(|file| is_of_change(&file.text)) {
                let _ = self.remove(&name);
            }
        }
    }

    /// Flushes the names of this folder to disk, where the file system can do that. A change is
    /// visible already, so a failure here must not hide what was changed.
    pub fn sync(&self) {
        // cap-std opens folders as mere paths, which cannot be flushed.
        let folder = self.open(".", OFlags::RDONLY | OFlags::DIRECTORY, 0);
        let _ = folder.map(fsync);
    }
}

/// Returns a new name for the hidden file of a change.
pub fn name_aside() -> io::Result<String> {
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    Ok(format!("{ASIDE}{}{ASIDE_END}", hex(&random)))
}

/// Reads an open file that must be a regular text file within the limit.
pub fn read_text(file: &File, path: &str) -> Result<TextFile, ToolError> {
    let failed = |error: io::Error| ToolError::io(path, "read", error);
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(not_text(path, FileType::from_raw_mode(metadata.mode())));
    }
    let limit = MAX_FILE_BYTES as u64;
    let mut bytes = vec![];
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    if read.map_err(failed)? > MAX_FILE_BYTES {
        let bytes = metadata.len().max(limit + 1);
        let path = quoted(path);
        let why = format!("file {path} has {bytes} bytes, more than the limit of {limit}");
        return Err(why.into());
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(TextFile {
            text,
            mode: metadata.mode(),
            links: metadata.nlink(),
        }),
        _ => Err(format!("file {} is not UTF-8 text", quoted(path)).into()),
    }
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
