//! Paths of the workspace as text: relative, UTF-8, without `..`.
//!
//! These are checks of text only. `Workspace` resolves a path through directory handles, so a
//! symbolic link cannot lead out of the workspace either.

use super::output::ToolError;

/// Returns `path` without `.`, empty parts and a final slash; the workspace itself is `.`.
///
/// The backslash is an ordinary character of a name, as everywhere on Unix.
///
/// # Errors
/// Forbidden if the path is absolute, or contains `..`, which means another folder after a link.
pub fn normalise(path: &str) -> Result<String, ToolError> {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    if path.starts_with('/') || parts.contains(&"..") {
        return Err(ToolError::forbidden(path, "leaves the workspace"));
    }
    if parts.is_empty() {
        return Ok(".".to_owned());
    }
    Ok(parts.join("/"))
}

/// As [`normalise`], for a path that is to be changed: hooks and settings in `.git` are programs
/// that run later.
///
/// # Errors
/// Also forbidden if a part of the path is `.git`.
pub fn changeable(path: &str) -> Result<String, ToolError> {
    let path = normalise(path)?;
    let is_git = |part: &str| part.eq_ignore_ascii_case(".git");
    if path.split('/').any(is_git) {
        return Err(ToolError::forbidden(&path, "is inside a '.git' folder"));
    }
    Ok(path)
}

/// Joins a folder and a name; the folder `.` adds nothing.
pub fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        (".", _) => name.to_owned(),
        (_, ".") => folder.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// Splits a path into its folder and its last name.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

/// Returns the folder of a path and every folder above it, the workspace (`.`) last.
pub fn folders_above(path: &str) -> Vec<&str> {
    let (mut folders, mut rest) = (vec![], path);
    while rest != "." {
        rest = split(rest).0;
        folders.push(rest);
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_or_forbidden_in_fixed_words() {
        let table = r"src/lib.rs -> src/lib.rs
            ./src//lib.rs -> src/lib.rs
            src/ -> src
            . -> .
            ./ -> .
            ... -> ...
            a\..\b -> a\..\b
            .gitignore -> .gitignore
            ../x -> path '../x' leaves the workspace
            /etc/passwd -> path '/etc/passwd' leaves the workspace
            a/../b -> path 'a/../b' leaves the workspace
            a/.GIT/config -> path 'a/.GIT/config' is inside a '.git' folder";
        for row in table.lines() {
            let (given, expected) = row.trim().split_once(" -> ").unwrap();
            let found = changeable(given).unwrap_or_else(|error| error.message);
            let found = found.trim_start_matches("Operation not allowed: ");
            assert_eq!(found, expected);
        }
        let refused = changeable("../a\nb").unwrap_err().message;
        assert!(refused.contains("path '../a\\nb' leaves"), "{refused}");
        assert_eq!(folders_above("a/b/c"), ["a/b", "a", "."]);
        assert!(folders_above(".").is_empty());
    }
}
