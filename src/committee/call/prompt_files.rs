//! The files of the prompts: those of the program, replaced by those of a folder. Finds the files of
//! the folder that cannot replace one. It does not read the templates in them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use include_dir::{Dir, DirEntry, include_dir};

use crate::config::Problem;

/// The prompts of the program: a folder for each set but the full one, and one of shared parts.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/prompts");

/// Separates the system text from the user text of a prompt file.
const SEPARATOR: &str = "=== user ===";

/// The folder of the files that others include. Only they may be empty.
const PARTS: &str = "parts/";

/// The text of each prompt by its path, such as `compact/solver.md`.
pub(super) type Texts = BTreeMap<String, String>;

/// Returns the prompts of the program.
pub(super) fn built_in() -> Texts {
    let folders = std::iter::once(&FILES).chain(FILES.dirs());
    let files = folders.flat_map(Dir::files);
    files
        .filter_map(|file| Some((file.path().to_str()?.into(), file.contents_utf8()?.into())))
        .collect()
}

/// Replaces texts by the files of a folder. Returns a problem for each file that is none of the
/// prompts, cannot be read, or lacks a part.
pub(super) fn replace(texts: &mut Texts, directory: &Path) -> Vec<Problem> {
    let mut problems = vec![];
    let mut folders = vec![&FILES];
    while let Some(folder) = folders.pop() {
        let here = directory.join(folder.path());
        let mut problem = |path: &Path, detail: String| {
            let place = path.display().to_string();
            problems.push(Problem { place, detail });
        };
        let names = match names_in(&here) {
            Ok(names) => names,
            Err(error) => {
                problem(&here, format!("cannot be read: {}", error.kind()));
                continue;
            }
        };
        for name in names {
            let (path, file) = (folder.path().join(&name), here.join(&name));
            match FILES.get_entry(&path) {
                Some(DirEntry::Dir(known)) if file.is_dir() => folders.push(known),
                Some(DirEntry::Dir(_)) => problem(&file, "is not a folder".into()),
                Some(DirEntry::File(known)) => {
                    let path = path.to_string_lossy().into_owned();
                    match read(&file, &path, known.contents_utf8().unwrap_or_default()) {
                        Ok(text) => drop(texts.insert(path, text)),
                        Err(fault) => problem(&file, fault),
                    }
                }
                None => {
                    let known = folder.entries().iter();
                    let known = known.filter_map(|it| it.path().file_name());
                    let known: Vec<_> = known.map(|name| name.to_string_lossy()).collect();
                    let known = known.join(", ");
                    let detail = format!("replaces no prompt; the names here are {known}");
                    problem(&file, detail);
                }
            }
        }
    }
    problems
}

/// Returns the names in a folder. Leaves out hidden ones, such as `..data` of a mounted
/// ConfigMap.
fn names_in(folder: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
    let entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut names: Vec<_> = entries.iter().map(std::fs::DirEntry::file_name).collect();
    names.retain(|name| !name.to_string_lossy().starts_with('.'));
    Ok(names)
}

/// Reads the file that replaces a prompt of the program.
fn read(file: &Path, path: &str, replaced: &str) -> Result<String, String> {
    // Reading a pipe would block.
    if !file.is_file() {
        return Err("is not a file".into());
    }
    let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => "is not UTF-8".to_owned(),
        kind => format!("cannot be read: {kind}"),
    })?;
    let is_blank = |part: &str| part.trim().is_empty();
    match (text.split_once(SEPARATOR), replaced.contains(SEPARATOR)) {
        (None, true) => Err(format!(
            "has no line {SEPARATOR:?}: the system part stands before it, the user part after it"
        )),
        (Some(_), false) => Err(format!(
            "must not have a line {SEPARATOR:?}: it has no user part"
        )),
        (Some((system, _)), true) if is_blank(system) => {
            Err(format!("has an empty system part, before {SEPARATOR:?}"))
        }
        (Some((_, user)), true) if is_blank(user) => {
            Err(format!("has an empty user part, after {SEPARATOR:?}"))
        }
        (None, false) if is_blank(&text) && !path.starts_with(PARTS) => Err("is empty".into()),
        _ => Ok(text),
    }
}

/// Returns the sources of the templates of all files by their names.
pub(super) fn templates(texts: &Texts) -> BTreeMap<String, String> {
    let of_file = |(path, text): (&String, &String)| match text.split_once(SEPARATOR) {
        Some((system, user)) => vec![
            (system_part(path), system.to_owned()),
            (user_part(path), user.to_owned()),
        ],
        None => vec![(path.clone(), text.clone())],
    };
    texts.iter().flat_map(of_file).collect()
}

/// Returns the path of the file that has a template.
pub(super) fn file_of(template: &str) -> &str {
    template.split_once('#').map_or(template, |(path, _)| path)
}

/// Returns the name of the template of a file's system part.
pub(super) fn system_part(path: &str) -> String {
    format!("{path}#system")
}

/// Returns the name of the template of a file's user part.
pub(super) fn user_part(path: &str) -> String {
    format!("{path}#user")
}

pub(super) fn is_system_part(template: &str) -> bool {
    template.ends_with("#system")
}

/// True if other templates include it.
pub(super) fn is_part(template: &str) -> bool {
    template.starts_with(PARTS)
}
