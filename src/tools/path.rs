//! Paths of the workspace as text: relative, UTF-8, without `..`.
//!
//! These are checks of text only. `Workspace` resolves a path through directory handles, so a
//! symbolic link cannot lead out of the workspace either.

use std::fmt::Write as _;

/// An operation that no plan may do, whatever the user confirms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenOperation {
    /// The path is absolute, has more `..` than folders, or follows a link to the outside.
    #[error("Operation not allowed: path {} leaves the workspace", quoted(.0))]
    LeavesWorkspace(String),
    /// The path stays inside as text, but `..` after a symbolic link means another folder.
    #[error("Operation not allowed: path {} contains '..'", quoted(.0))]
    ContainsParent(String),
    /// Hooks and configuration in `.git` are programs that run later.
    #[error("Operation not allowed: path {} is inside a '.git' folder", quoted(.0))]
    InsideGit(String),
}

/// Returns `path` without `.`, empty parts and a final slash; the workspace itself is `.`.
///
/// The backslash is an ordinary character of a name, as everywhere on Unix.
///
/// # Errors
/// `ForbiddenOperation` if the path is absolute or contains `..`.
pub fn normalise(path: &str) -> Result<String, ForbiddenOperation> {
    if path.starts_with('/') {
        return Err(ForbiddenOperation::LeavesWorkspace(path.to_owned()));
    }
    let (mut parts, mut depth, mut has_parent) = (Vec::new(), 0_usize, false);
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                has_parent = true;
                let Some(above) = depth.checked_sub(1) else {
                    return Err(ForbiddenOperation::LeavesWorkspace(path.to_owned()));
                };
                depth = above;
            }
            name => {
                depth = depth.saturating_add(1);
                parts.push(name);
            }
        }
    }
    if has_parent {
        return Err(ForbiddenOperation::ContainsParent(path.to_owned()));
    }
    Ok(if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    })
}

/// Refuses a path that a tool may read but not change.
///
/// # Errors
/// `ForbiddenOperation::InsideGit` if a part of the path is `.git`.
pub fn check_changeable(path: &str) -> Result<(), ForbiddenOperation> {
    if path
        .split('/')
        .any(|part| part.eq_ignore_ascii_case(".git"))
    {
        return Err(ForbiddenOperation::InsideGit(path.to_owned()));
    }
    Ok(())
}

/// Joins a folder and a name; the folder `.` adds nothing.
#[must_use]
pub fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        (".", _) => name.to_owned(),
        (_, ".") => folder.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// Splits a path into its folder and its last name.
#[must_use]
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

/// Returns the folder of a path and every folder above it, the workspace (`.`) last.
#[must_use]
pub fn folders_above(path: &str) -> Vec<String> {
    let mut folders = Vec::new();
    let mut rest = path;
    while rest != "." {
        rest = split(rest).0;
        folders.push(rest.to_owned());
    }
    folders
}

/// Returns the text in single quotes, with control characters escaped, so that it stays on one
/// line.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text))
}

/// Escapes control characters, so that the text stays on one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            let _ = write!(line, "{}", character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for (given, expected) in [
            ("src/lib.rs", "src/lib.rs"),
            ("./src//lib.rs", "src/lib.rs"),
            ("src/", "src"),
            (".", "."),
            ("./", "."),
            ("...", "..."),
            ("a\\..\\b", "a\\..\\b"),
        ] {
            assert_eq!(normalise(given).unwrap(), expected, "{given}");
        }
    }

    #[test]
    fn paths_that_leave_the_workspace_are_forbidden_in_fixed_words() {
        for (given, expected) in [
            (
                "../x",
                "Operation not allowed: path '../x' leaves the workspace",
            ),
            (
                "a/../../x",
                "Operation not allowed: path 'a/../../x' leaves the workspace",
            ),
            (
                "/etc/passwd",
                "Operation not allowed: path '/etc/passwd' leaves the workspace",
            ),
            (
                "a/../b",
                "Operation not allowed: path 'a/../b' contains '..'",
            ),
            (
                "../a\nb",
                "Operation not allowed: path '../a\\nb' leaves the workspace",
            ),
        ] {
            assert_eq!(normalise(given).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn git_folders_are_not_changeable() {
        assert!(check_changeable("a/.GIT/config").is_err());
        assert!(check_changeable(".gitignore").is_ok());
    }

    #[test]
    fn folders_above_end_with_the_workspace() {
        assert_eq!(folders_above("a/b/c"), ["a/b", "a", "."]);
        assert_eq!(folders_above("c"), ["."]);
        assert!(folders_above(".").is_empty());
    }
}
