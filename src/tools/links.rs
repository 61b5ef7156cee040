//! Refuses links, through which a write would leave the workspace or change another file.

use cap_std::fs::MetadataExt as _;

use super::output::{ToolError, quoted};
use super::path::{folders_above, join};
use super::workspace::Workspace;

impl Workspace {
    /// Fails if a part of a path is a symbolic link.
    pub fn refuse_links(&self, path: &str) -> Result<(), ToolError> {
        for part in std::iter::once(path).chain(folders_above(path)) {
            let found = self.dir.symlink_metadata(part);
            if found.is_ok_and(|found| found.is_symlink()) {
                let (path, link) = (quoted(path), quoted(part));
                return Err(format!("{path} goes through the symbolic link {link}").into());
            }
        }
        Ok(())
    }

    /// As [`Self::refuse_links`], for a folder and all that is below it.
    pub fn refuse_links_in(&self, folder: &str) -> Result<(), ToolError> {
        self.refuse_links(folder)?;
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = self.dir.read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries {
                let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type())
                else {
                    continue;
                };
                let path = join(&folder, &name);
                if kind.is_symlink() {
                    self.refuse_links(&path)?;
                }
                // What build scripts write is theirs. Cargo itself writes nothing there.
                if kind.is_dir() && name != "out" {
                    folders.push(path);
                }
            }
        }
        Ok(())
    }

    /// Fails if a file has several hard links.
    pub fn refuse_other_names(&self, path: &str) -> Result<(), ToolError> {
        let links = self.dir.metadata(path).map_or(0, |found| found.nlink());
        if links > 1 {
            let path = quoted(path);
            let why = format!("file {path} has {links} hard links; a write would separate them");
            return Err(why.into());
        }
        Ok(())
    }
}
