//! The files of the prompts: those of the program, replaced by those of a folder. Finds the files of
//! the folder that cannot replace one. It does not read the templates in them.

use std::collections::BTreeMap;
use std::path::Path;

use ignore::WalkBuilder;
use include_dir::{Dir, include_dir};

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
    let mut problem = |path: &Path, detail: String| {
        let place = path.display().to_string();
        problems.push(Problem { place, detail });
    };
    for (path, text) in &mut *texts {
        let file = directory.join(path);
        if file.exists() {
            match read(&file, path, text) {
                Ok(replacing) => *text = replacing,
                Err(fault) => problem(&file, fault),
            }
        }
    }
    let replaces = |path: &Path| {
        let path = path.strip_prefix(directory).ok().and_then(Path::to_str);
        path.is_some_and(|path| texts.contains_key(path))
    };
    // Hidden files are left out, such as `..data` of a mounted ConfigMap.
    let mut walk = WalkBuilder::new(directory);
    walk.standard_filters(false).hidden(true).follow_links(true);
    for entry in walk.build() {
        match entry {
            Ok(entry) if entry.path().is_dir() || replaces(entry.path()) => {}
            Ok(entry) => problem(entry.path(), "replaces no prompt".into()),
            Err(error) => problem(directory, error.to_string()),
        }
    }
    problems
}

/// Reads the file that replaces a prompt of the program.
fn read(file: &Path, path: &str, replaced: &str) -> Result<String, String> {
    // Reading a pipe would block.
    if !file.is_file() {
        return Err("is not a file".into());
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot be read: {error}"))?;
    let is_blank = |part: &str| part.trim().is_empty();
    match (text.split_once(SEPARATOR), replaced.contains(SEPARATOR)) {
        (Some((system, user)), true) if !is_blank(system) && !is_blank(user) => Ok(text),
        (None, false) if !is_blank(&text) || path.starts_with(PARTS) => Ok(text),
        (_, true) => Err(format!(
            "needs a system part, a line {SEPARATOR:?} and a user part"
        )),
        (_, false) => Err(format!("needs a text without a line {SEPARATOR:?}")),
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
