//! Visits the files under a folder as ripgrep does, in sorted order and within bounds.
//!
//! Each folder is opened by its name in the open folder above it and links are not followed, so the
//! walk cannot leave the workspace while folders are replaced. `.gitignore` and `.ignore` of the
//! workspace and `.git/info/exclude` hold; files outside of it, such as the user's own git
//! configuration, do not. Hidden names are left out.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::file_error::{FileError, Kind};
use super::folder::Folder;
use super::path::{folders_above, join, split};
use super::workspace::{MAX_FILE_BYTES, Workspace};

/// Upper bound of files and folders that one walk sees.
pub const MAX_ENTRIES: usize = 100_000;
/// Upper bound of folders within folders.
pub const MAX_DEPTH: usize = 64;
/// Upper bound of the time of one walk.
pub const MAX_TIME: Duration = Duration::from_secs(10);

const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// A file that the walk found.
pub struct Found<'a> {
    /// Path in the workspace.
    pub path: &'a str,
    pub folder: &'a Folder,
    pub name: &'a str,
}

type Visit<'v> = dyn FnMut(&Found<'_>) -> ControlFlow<()> + 'v;

/// A walk and what it met.
pub struct Walk {
    deadline: Instant,
    entries: usize,
    /// Rules with the folder that they belong to, the strongest last.
    rules: Vec<(String, Gitignore)>,
    /// Why the walk is not complete, in words, without repetition.
    pub notes: Vec<String>,
}

impl Walk {
    /// Visits the files under `root`, which may be a file itself.
    pub fn run(
        workspace: &Workspace,
        root: &str,
        visit: &mut Visit<'_>,
    ) -> Result<Self, FileError> {
        let deadline = Instant::now()
            .checked_add(MAX_TIME)
            .unwrap_or_else(Instant::now);
        let mut walk = Self {
            deadline,
            entries: 0,
            rules: Vec::new(),
            notes: Vec::new(),
        };
        match workspace.kind(root)? {
            Some(Kind::File) => {
                let (above, name) = split(root);
                let folder = &workspace.open_folder(above)?;
                let _ = visit(&Found {
                    path: root,
                    folder,
                    name,
                });
            }
            Some(Kind::Folder) => {
                if let Ok(exclude) = workspace.read(".git/info/exclude") {
                    walk.rules.push((".".to_owned(), rules(&exclude)));
                }
                for above in folders_above(root).iter().rev() {
                    walk.add_rules(above, &workspace.open_folder(above)?);
                }
                let _ = walk.folder(root, &workspace.open_folder(root)?, 0, visit);
            }
            Some(kind) => {
                return Err(FileError::NotAFile {
                    path: root.to_owned(),
                    kind,
                });
            }
            None => return Err(FileError::Missing(root.to_owned())),
        }
        Ok(walk)
    }

    /// Records a reason why the result is not complete.
    pub fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|it| it == note) {
            self.notes.push(note.to_owned());
        }
    }

    fn folder(
        &mut self,
        path: &str,
        folder: &Folder,
        depth: usize,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let rules = self.rules.len();
        self.add_rules(path, folder);
        let result = self.entries(path, folder, depth, visit);
        self.rules.truncate(rules);
        result
    }

    fn entries(
        &mut self,
        path: &str,
        folder: &Folder,
        depth: usize,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        for (name, kind) in self.sorted(folder)? {
            if Instant::now() >= self.deadline {
                self.note(&format!("stopped after {} s", MAX_TIME.as_secs()));
                return ControlFlow::Break(());
            }
            let below = join(path, &name);
            if self.is_ignored(&below, kind == Kind::Folder) {
                continue;
            }
            if kind == Kind::File {
                visit(&Found {
                    path: &below,
                    folder,
                    name: &name,
                })?;
            } else if depth >= MAX_DEPTH {
                self.note(&format!("folders deeper than {MAX_DEPTH} are left out"));
            } else {
                match folder.open_folder(&name) {
                    Ok(next) => self.folder(&below, &next, depth.saturating_add(1), visit)?,
                    Err(_) => self.note("some folders could not be read"),
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Files and folders that are not hidden, in the order of their paths.
    fn sorted(&mut self, folder: &Folder) -> ControlFlow<(), Vec<(String, Kind)>> {
        let Ok(entries) = folder.entries() else {
            self.note("some folders could not be read");
            return ControlFlow::Continue(Vec::new());
        };
        let mut sorted = Vec::new();
        for entry in entries {
            self.entries = self.entries.saturating_add(1);
            if self.entries > MAX_ENTRIES {
                self.note(&format!("stopped after {MAX_ENTRIES} files and folders"));
                return ControlFlow::Break(());
            }
            match entry {
                Ok((Some(name), _)) if name.starts_with('.') => {}
                Ok((Some(name), kind @ (Kind::File | Kind::Folder))) => sorted.push((name, kind)),
                Ok((Some(_), _)) => {}
                Ok((None, _)) => self.note("names that are not UTF-8 are left out"),
                Err(_) => self.note("some folders could not be read"),
            }
        }
        // A folder counts as its path with a slash, so that whole paths come out sorted.
        sorted.sort_by_cached_key(|(name, kind)| match kind {
            Kind::Folder => format!("{name}/"),
            _ => name.clone(),
        });
        ControlFlow::Continue(sorted)
    }

    fn add_rules(&mut self, path: &str, folder: &Folder) {
        let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
        for name in IGNORE_FILES {
            match folder.read_text(name, name, limit) {
                Ok(file) => self.rules.push((path.to_owned(), rules(&file.text))),
                Err(FileError::Missing(_)) => {}
                Err(_) => self.note("some ignore files could not be read"),
            }
        }
    }

    fn is_ignored(&self, path: &str, is_folder: bool) -> bool {
        for (folder, rules) in self.rules.iter().rev() {
            let relative = match folder.as_str() {
                "." => Some(path),
                folder => path
                    .strip_prefix(folder)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            match relative.map_or(Match::None, |relative| rules.matched(relative, is_folder)) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// Parses an ignore file. As in git, a line that is not a valid pattern has no effect.
fn rules(text: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new(Path::new("."));
    for line in text.lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
