//! Finds the files under a folder as ripgrep does, within bounds.
//!
//! Each folder is opened beneath the workspace, and links are not followed, so the walk cannot leave
//! the workspace while folders are replaced. A walker by path would read what a swapped link names.
//! `.gitignore` and `.ignore` of the workspace and `.git/info/exclude` hold; files outside of it, such
//! as the user's own git configuration, do not. Hidden names are left out.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::FileType;

use super::output::{FailureKind, ToolError};
use super::path::{folders_above, join};
use super::workspace::{Workspace, not_text};

/// Upper bound of files and folders that one walk sees.
const MAX_ENTRIES: usize = 100_000;
/// Upper bound of the time of one walk, with the search of its files.
pub const MAX_TIME: Duration = Duration::from_secs(10);

/// Rules by the folder that they belong to.
type Rules = HashMap<String, Gitignore>;

/// Returns the files under `root`, which may be a file itself, in the order of their paths, and why
/// they are not all, in words.
pub fn files(
    workspace: &Workspace,
    root: &str,
    until: Instant,
) -> Result<(Vec<String>, BTreeSet<String>), ToolError> {
    let (mut files, mut notes) = (vec![], BTreeSet::new());
    match workspace.kind(root)? {
        Some(FileType::RegularFile) => return Ok((vec![root.to_owned()], notes)),
        Some(FileType::Directory) => {}
        Some(kind) => return Err(not_text(root, kind)),
        None => return Err(ToolError::missing(root)),
    }
    let mut rules = Rules::new();
    for above in folders_above(root) {
        add_rules(workspace, above, &mut rules, &mut notes);
    }
    let (mut folders, mut entries) = (vec![root.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        add_rules(workspace, &folder, &mut rules, &mut notes);
        let Ok(listed) = workspace.dir.read_dir(&folder) else {
            notes.insert("some folders could not be read".to_owned());
            continue;
        };
        for entry in listed.flatten() {
            entries += 1;
            if entries > MAX_ENTRIES || Instant::now() >= until {
                let many = format!("stopped after {MAX_ENTRIES} files and folders");
                let is_late = entries <= MAX_ENTRIES;
                notes.insert(if is_late { out_of_time() } else { many });
                folders.clear();
                break;
            }
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                notes.insert("names that are not UTF-8 are left out".to_owned());
                continue;
            };
            let path = join(&folder, &name);
            if name.starts_with('.') || is_ignored(&rules, &path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok((files, notes))
}

/// The reason that is given when the time of a walk is up.
pub fn out_of_time() -> String {
    format!("stopped after {} s", MAX_TIME.as_secs())
}

/// Reads the ignore files of a folder, the strongest last. As in git, a line that is not a valid
/// pattern has no effect.
fn add_rules(workspace: &Workspace, folder: &str, rules: &mut Rules, notes: &mut BTreeSet<String>) {
    let mut builder = GitignoreBuilder::new(".");
    for name in [".git/info/exclude", ".gitignore", ".ignore"] {
        let text = workspace.read(&join(folder, name)).unwrap_or_else(|error| {
            if error.kind != FailureKind::Missing {
                notes.insert("some ignore files could not be read".to_owned());
            }
            String::new()
        });
        for line in text.lines() {
            let _ = builder.add_line(None, line);
        }
    }
    if let Ok(own) = builder.build()
        && !own.is_empty()
    {
        rules.insert(folder.to_owned(), own);
    }
}

/// The rules of the nearest folder count first.
fn is_ignored(rules: &Rules, path: &str, is_folder: bool) -> bool {
    for above in folders_above(path) {
        let below = path.strip_prefix(above).and_then(|it| it.strip_prefix('/'));
        let relative = below.unwrap_or(path);
        let own = rules.get(above);
        match own.map_or(Match::None, |own| own.matched(relative, is_folder)) {
            Match::None => {}
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
        }
    }
    false
}
