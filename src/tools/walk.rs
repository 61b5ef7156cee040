//! Visits the files under a folder as ripgrep does, in sorted order and within bounds.
//!
//! Each folder is opened by its name in the open folder above it and links are not followed, so the
//! walk cannot leave the workspace while folders are replaced. `.gitignore` and `.ignore` of the
//! workspace and `.git/info/exclude` hold; files outside of it, such as the user's own git
//! configuration, do not. Hidden names are left out.

use std::ops::ControlFlow::{self, Break, Continue};
use std::path::Path;
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::FileType;

use super::folder::{Folder, not_text};
use super::output::{ToolError, Why};
use super::path::{folders_above, join, split};
use super::workspace::Workspace;

/// Upper bound of files and folders that one walk sees.
const MAX_ENTRIES: usize = 100_000;
/// Upper bound of folders within folders.
const MAX_DEPTH: usize = 64;
/// Upper bound of the time of one walk.
const MAX_TIME: Duration = Duration::from_secs(10);

/// A file that the walk found.
pub struct Found<'a> {
    /// Path in the workspace.
    pub path: &'a str,
    pub folder: &'a Folder,
    pub name: &'a str,
    pub deadline: Instant,
}

/// Receives the files. What it breaks with, or returns, is a reason why the result is incomplete.
type Visit<'v> = dyn FnMut(&Found<'_>) -> ControlFlow<String, Option<String>> + 'v;

struct Walk<'v> {
    deadline: Instant,
    entries: usize,
    /// Rules with the folder that they belong to, the strongest last.
    rules: Vec<(String, Gitignore)>,
    notes: Vec<String>,
    visit: &'v mut Visit<'v>,
}

/// Visits the files under `root`, which may be a file itself. Returns why the walk is not complete,
/// in words, without repetition.
pub fn walk<'v>(
    workspace: &Workspace,
    root: &str,
    visit: &'v mut Visit<'v>,
) -> Result<Vec<String>, ToolError> {
    let mut walk = Walk {
        deadline: Instant::now() + MAX_TIME,
        entries: 0,
        rules: vec![],
        notes: vec![],
        visit,
    };
    let ended = match workspace.kind(root)? {
        Some(FileType::RegularFile) => {
            let (above, name) = split(root);
            walk.file(root, &workspace.open_folder(above)?, name)
        }
        Some(FileType::Directory) => {
            if let Ok(exclude) = workspace.read(".git/info/exclude") {
                walk.rules.push((".".to_owned(), rules(&exclude)));
            }
            for above in folders_above(root).into_iter().rev() {
                walk.add_rules(above, &workspace.open_folder(above)?);
            }
            walk.folder(root, &workspace.open_folder(root)?, 0)
        }
        Some(kind) => return Err(not_text(root, kind)),
        None => return Err(ToolError::missing(root)),
    };
    if let Break(why) = ended {
        walk.note(why);
    }
    Ok(walk.notes)
}

/// The reason that a walk gives when its time is up.
pub fn out_of_time() -> String {
    format!("stopped after {} s", MAX_TIME.as_secs())
}

impl Walk<'_> {
    fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn file(&mut self, path: &str, folder: &Folder, name: &str) -> ControlFlow<String> {
        let deadline = self.deadline;
        let found = Found {
            path,
            folder,
            name,
            deadline,
        };
        if let Some(note) = (self.visit)(&found)? {
            self.note(note);
        }
        Continue(())
    }

    fn folder(&mut self, path: &str, folder: &Folder, depth: usize) -> ControlFlow<String> {
        let rules = self.rules.len();
        self.add_rules(path, folder);
        for (name, is_folder) in self.sorted(folder)? {
            if Instant::now() >= self.deadline {
                return Break(out_of_time());
            }
            let below = join(path, &name);
            if self.is_ignored(&below, is_folder) {
                continue;
            }
            if !is_folder {
                self.file(&below, folder, &name)?;
            } else if depth >= MAX_DEPTH {
                self.note(format!("folders deeper than {MAX_DEPTH} are left out"));
            } else {
                match folder.open_folder(&name) {
                    Ok(next) => self.folder(&below, &next, depth + 1)?,
                    Err(_) => self.note("some folders could not be read"),
                }
            }
        }
        self.rules.truncate(rules);
        Continue(())
    }

    /// Files and folders that are not hidden, in the order of their paths; true for a folder.
    fn sorted(&mut self, folder: &Folder) -> ControlFlow<String, Vec<(String, bool)>> {
        let mut sorted = vec![];
        let Ok(entries) = folder.0.entries() else {
            self.note("some folders could not be read");
            return Continue(sorted);
        };
        for entry in entries {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Break(format!("stopped after {MAX_ENTRIES} files and folders"));
            }
            let entry = entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?)));
            match entry.map(|(name, kind)| (name.into_string(), kind)) {
                Ok((Ok(name), _)) if name.starts_with('.') => {}
                Ok((Ok(name), kind)) if kind.is_file() || kind.is_dir() => {
                    sorted.push((name, kind.is_dir()));
                }
                Ok((Ok(_), _)) => {}
                Ok((Err(_), _)) => self.note("names that are not UTF-8 are left out"),
                Err(_) => self.note("some folders could not be read"),
            }
        }
        // A folder counts as its path with a slash, so that whole paths come out sorted.
        sorted.sort_by_cached_key(|(name, is_folder)| {
            if *is_folder {
                format!("{name}/")
            } else {
                name.clone()
            }
        });
        Continue(sorted)
    }

    fn add_rules(&mut self, path: &str, folder: &Folder) {
        for name in [".gitignore", ".ignore"] {
            match folder.read_text(name, name) {
                Ok(file) => self.rules.push((path.to_owned(), rules(&file.text))),
                Err(error) if error.why == Why::Missing => {}
                Err(_) => self.note("some ignore files could not be read"),
            }
        }
    }

    fn is_ignored(&self, path: &str, is_folder: bool) -> bool {
        for (folder, rules) in self.rules.iter().rev() {
            let below = path.strip_prefix(folder.as_str());
            let relative = match folder.as_str() {
                "." => Some(path),
                _ => below.and_then(|rest| rest.strip_prefix('/')),
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
