//! The rules inside the committee: which of its folders may use which, and that no two of its files
//! need each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, crate_paths, files_under, report};

/// The folders of the committee and the files beside them, with what each may use of the others.
/// Files that are not listed (`mod.rs`, past runs, routines) may use everything.
const PARTS: &[(&str, &[&str])] = &[
    (
        "stages",
        &[
            "call",
            "call_names",
            "deps",
            "failure",
            "money",
            "output_shapes",
            "reply",
            "request_context",
            "rule_texts",
            "schemas",
        ],
    ),
    (
        "call",
        &["call_names", "deps", "failure", "money", "schemas"],
    ),
    (
        "money",
        &[
            "call_names",
            "deps",
            "failure",
            "output_shapes",
            "request_context",
            "schemas",
        ],
    ),
    (
        "reply",
        &["call_names", "output_shapes", "request_context", "schemas"],
    ),
    ("request_context", &["deps", "failure", "rule_texts"]),
    ("rule_texts", &[]),
    // The prompts are among the dependencies; a failed call is a reason to fail.
    ("deps", &["call", "output_shapes", "schemas"]),
    ("failure", &["call"]),
    ("output_shapes", &[]),
    ("call_names", &[]),
    ("schemas", &[]),
];

/// Returns the paths of a file inside the committee, without `crate::committee`, and where they are.
fn inner_paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let paths = crate_paths(code).into_iter();
    paths
        .filter(|(_, path)| path.len() > 1 && path[0] == "committee")
        .map(|(offset, path)| (offset, path[1..].to_vec()))
        .collect()
}

/// Returns the violations of the table in a file.
fn strangers(file: &File) -> Vec<String> {
    let ["committee", own, ..] = file.module()[..] else {
        return Vec::new();
    };
    let Some((_, may_use)) = PARTS.iter().find(|(part, _)| *part == own) else {
        return Vec::new();
    };
    let code = file.code();
    let mut broken: Vec<String> = inner_paths(&code)
        .into_iter()
        .filter(|(_, path)| path[0] != own && !may_use.contains(&path[0].as_str()))
        .map(|(offset, path)| {
            let rule = format!("committee::{own} must not use committee::{}", path[0]);
            file.at(&code, offset, &rule)
        })
        .collect();
    broken.extend(super::climbs(file, &code, file.module().len() - 1));
    broken
}

/// Returns the files that need each other, as the path from one of them back to itself.
fn cycle(files: &[File]) -> Option<Vec<String>> {
    let modules: BTreeSet<Vec<String>> = files.iter().map(own_path).collect();
    let mut uses: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for file in files {
        let own = own_path(file);
        let named = inner_paths(&file.code())
            .into_iter()
            .filter_map(|(_, path)| {
                let known = |length: &usize| modules.contains(&path[..*length]);
                (1..=path.len())
                    .rev()
                    .find(known)
                    .map(|length| path[..length].to_vec())
            });
        let others = named.filter(|path| *path != own).collect();
        uses.insert(own, others);
    }
    // A file that needs no other remaining file is in no cycle.
    loop {
        let before = uses.len();
        let left: BTreeSet<Vec<String>> = uses.keys().cloned().collect();
        uses.retain(|_, used| used.iter().any(|path| left.contains(path)));
        if uses.len() == before {
            break;
        }
    }
    let mut path = vec![uses.keys().next()?.clone()];
    loop {
        let next = uses[path.last()?]
            .iter()
            .find(|next| uses.contains_key(*next))?;
        let seen = path.iter().position(|known| known == next);
        path.push(next.clone());
        if let Some(start) = seen {
            return Some(
                path[start..]
                    .iter()
                    .map(|module| module.join("::"))
                    .collect(),
            );
        }
    }
}

fn own_path(file: &File) -> Vec<String> {
    let module = file.module();
    module[1..].iter().map(|part| (*part).to_owned()).collect()
}

/// Returns the files of the committee. Files of tests are left out: they may use what they test.
fn files() -> Vec<File> {
    let mut files = files_under(&["src/committee"]);
    files.retain(|file| file.path.ends_with(".rs") && !file.path.ends_with("tests.rs"));
    files
}

#[test]
fn every_folder_uses_only_the_folders_that_the_table_allows() {
    let broken: Vec<String> = files().iter().flat_map(strangers).collect();
    report(&broken);
}

#[test]
fn no_two_files_need_each_other() {
    assert_eq!(cycle(&files()), None);
}

#[test]
fn a_use_of_a_later_folder_is_found() {
    let strangers = |path: &str, text: &str| strangers(&File::new(path, text));
    assert_eq!(
        strangers(
            "src/committee/money/trim.rs",
            "use crate::committee::stages::rounds;\nuse crate::committee::Deps;\n"
        ),
        [
            "src/committee/money/trim.rs:1: committee::money must not use committee::stages",
            "src/committee/money/trim.rs:2: committee::money must not use committee::Deps",
        ]
    );
    assert_eq!(
        strangers(
            "src/committee/reply/audit.rs",
            "use super::super::stages::plan;"
        ),
        ["src/committee/reply/audit.rs:1: another module is named by crate::, not by super::"]
    );
    let text = "use crate::committee::{call, reply::render};\nuse super::plan;";
    assert_eq!(strangers("src/committee/stages/finish.rs", text), [""; 0]);
    assert_eq!(strangers("src/committee/replayed.rs", text), [""; 0]);
}

#[test]
fn files_that_need_each_other_are_found() {
    let tree = |back: &str| {
        [
            (
                "src/committee/stages/plan.rs",
                "use crate::committee::call::Typed;",
            ),
            (
                "src/committee/call/mod.rs",
                "use crate::committee::call::output::why;",
            ),
            ("src/committee/call/output.rs", back),
        ]
        .map(|(path, text)| File::new(path, text))
    };
    assert_eq!(cycle(&tree("use crate::domain::Role;")), None);
    assert_eq!(
        cycle(&tree("use crate::committee::{stages::plan::PLAN_TOKENS};")).unwrap(),
        ["call", "call::output", "stages::plan", "call"]
    );
}
