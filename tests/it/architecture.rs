//! Enforces the structure of the source: which modules may use which, where each external crate is
//! used, and the limits of a file. The compiler enforces privacy. This test reads `crate::...`
//! paths, so a path through an imported name (`use crate::llm; llm::local::...`) is followed only
//! as far as its import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");

/// What a module may use, and which of its files and folders other modules may use. Its `mod.rs`
/// re-exports everything else.
struct Module {
    may_use: Vec<String>,
    open: Vec<String>,
}

/// Returns the table of modules in ARCHITECTURE.md.
fn modules() -> BTreeMap<String, Module> {
    let (_, table) = ARCHITECTURE.split_once("| module | may use |").unwrap();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let words = Regex::new(r"\w+").unwrap();
    let list = |cell: &str| -> Vec<String> {
        let found = words.find_iter(cell).map(|word| word.as_str().to_owned());
        found.filter(|word| word != "nothing").collect()
    };
    let module = |row: &str| {
        let cells: Vec<&str> = row.split('|').collect();
        let (may_use, open) = (list(cells[2]), list(cells[3]));
        (cells[1].trim().to_owned(), Module { may_use, open })
    };
    rows.map(module).collect()
}

/// The folders of the committee and the files beside them, with what each may use of the others.
/// Files that are not listed (`mod.rs`, past runs, routines) may use everything. The prompts are
/// among the dependencies; a failed call is a reason to fail.
const COMMITTEE: &str = "
stages: call deps failure money output_shapes reply request_context rule_texts schemas
call: deps failure money schemas
money: deps failure output_shapes request_context schemas
reply: output_shapes request_context schemas
request_context: deps failure rule_texts
rule_texts:
deps: call output_shapes schemas
failure: call
output_shapes:
schemas:
";

/// External crates, with the modules that may use them.
const HOMES: &[(&str, &[&str])] = &[
    ("rusqlite", &["journal"]),
    ("sqlx", &["journal"]),
    ("reqwest", &["attachments", "cli", "llm"]),
    ("axum", &["cli", "http"]),
    (
        "conclave_lenient_json",
        &[
            "actions",
            "cli",
            "committee",
            "config",
            "http",
            "llm",
            "tools",
        ],
    ),
];

const NAMES_THAT_SAY_NOTHING: &[&str] =
    &["utils", "common", "helpers", "types", "manager", "service"];

const MAX_LINES: usize = 600;

/// A file: its path from the root, and its text if it is Rust source.
struct File {
    path: String,
    text: String,
}

impl File {
    /// Returns the module path: `["committee", "score", "answer"]` for
    /// `src/committee/score/answer.rs`.
    fn module(&self) -> Vec<&str> {
        let inner = self.path.trim_start_matches("src/");
        let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod");
        inner.split('/').collect()
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("tests.rs")
    }

    /// Returns the text without whole-line comments, because a link in a doc comment is no
    /// dependency. Line numbers stay the same.
    fn code(&self) -> String {
        let is_comment = |line: &str| line.trim_start().starts_with("//");
        let kept = |line| if is_comment(line) { "" } else { line };
        let lines: Vec<&str> = self.text.lines().map(kept).collect();
        lines.join("\n")
    }

    /// Returns "PATH:LINE: RULE" for each match of a pattern in the code.
    fn found(&self, pattern: &str, rule: &str) -> Vec<String> {
        let (pattern, code) = (Regex::new(pattern).unwrap(), self.code());
        let found = pattern.find_iter(&code);
        found.map(|it| self.at(&code, it.start(), rule)).collect()
    }

    fn at(&self, code: &str, offset: usize, rule: &str) -> String {
        let line = code[..offset].matches('\n').count() + 1;
        format!("{}:{line}: {rule}", self.path)
    }
}

/// Returns the violations of the table of modules in a file. `inner` has the files and folders
/// inside each module, such as `["journal", "sqlite"]`.
fn strangers(
    file: &File,
    modules: &BTreeMap<String, Module>,
    inner: &BTreeSet<[String; 2]>,
) -> Vec<String> {
    let own = file.module()[0];
    if !file.path.ends_with(".rs") || ["lib", "main"].contains(&own) {
        return vec![];
    }
    let Some(row) = modules.get(own) else {
        return vec![format!("{own} is not in the table of ARCHITECTURE.md")];
    };
    let code = file.code();
    let mut broken = vec![];
    for (offset, path) in crate_paths(&code) {
        let name = &path[0];
        let Some(other) = modules.get(name).filter(|_| name != own) else {
            continue;
        };
        if !row.may_use.contains(name) {
            let rule = format!("{own} must not use {name}");
            broken.push(file.at(&code, offset, &rule));
        } else if let Some(part) = path.get(1)
            && inner.contains(&[name.clone(), part.clone()])
            && !other.open.contains(part)
        {
            let rule = format!("{name}::{part} is not open: use what {name}/mod.rs re-exports");
            broken.push(file.at(&code, offset, &rule));
        }
    }
    for (outside, homes) in HOMES.iter().filter(|(_, homes)| !homes.contains(&own)) {
        let rule = format!("{outside} is used only in {}", homes.join(", "));
        broken.extend(file.found(&format!(r"\b{outside}(::|;)"), &rule));
    }
    broken.extend(climbs(file, file.module().len()));
    broken
}

/// Finds `super::` chains of this length, which leave the module, because the tables cannot check
/// what they reach. Tests have one more module level and are skipped.
fn climbs(file: &File, length: usize) -> Vec<String> {
    if file.is_test() {
        return vec![];
    }
    let text = file.text.split("#[cfg(test)]\nmod ").next().unwrap();
    let (path, text) = (file.path.clone(), text.to_owned());
    let rule = "another module is named by crate::, not by super::";
    File { path, text }.found(&format!(r"\b(super::){{{length},}}"), rule)
}

/// Returns every path that starts at `crate::`, with groups expanded, and the offset at which it
/// starts. No path is empty.
fn crate_paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut paths = vec![];
    for found in Regex::new(r"\bcrate\s*::").unwrap().find_iter(code) {
        let mut ends = vec![];
        branches(&code[found.end()..], vec![], &mut ends);
        ends.retain(|path| !path.is_empty());
        paths.extend(ends.into_iter().map(|path| (found.start(), path)));
    }
    paths
}

/// Reads a use tree, appends each of its full paths to `ends`, and returns the text after it.
fn branches<'a>(text: &'a str, mut path: Vec<String>, ends: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = text.trim_start();
    if let Some(mut group) = rest.strip_prefix('{') {
        loop {
            // Skips what follows a branch (` as name`).
            group = branches(group, path.clone(), ends);
            let Some(end) = group.find([',', '}']) else {
                return "";
            };
            let (at, after) = (&group[end..=end], &group[end + 1..]);
            if at == "}" {
                return after;
            }
            group = after;
        }
    }
    let is_end = |c: char| !c.is_alphanumeric() && c != '_';
    let length = rest.find(is_end).unwrap_or(rest.len());
    if length > 0 {
        path.push(rest[..length].to_owned());
        rest = &rest[length..];
        if let Some(deeper) = rest.trim_start().strip_prefix("::") {
            return branches(deeper, path, ends);
        }
    }
    ends.push(path);
    rest
}

fn files_under(folders: &[&str]) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    let mut open: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            let is_rust = name.ends_with(".rs");
            let text = is_rust.then(|| fs::read_to_string(&path).unwrap());
            let (path, text) = (name.to_owned(), text.unwrap_or_default());
            files.push(File { path, text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Returns the paths of a file inside the committee, without `crate::committee`, and where they are.
fn committee_paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut paths = crate_paths(code);
    paths.retain(|(_, path)| path.len() > 1 && path[0] == "committee");
    let inner = paths.into_iter();
    inner.map(|(at, path)| (at, path[1..].to_vec())).collect()
}

/// Returns the violations of the table of the committee in a file.
fn committee_strangers(file: &File) -> Vec<String> {
    let ["committee", own, ..] = file.module()[..] else {
        return vec![];
    };
    let parts = COMMITTEE.lines().filter_map(|line| line.split_once(':'));
    let Some((_, may_use)) = parts.clone().find(|(part, _)| *part == own) else {
        return vec![];
    };
    let may_use: Vec<&str> = may_use.split(' ').collect();
    let code = file.code();
    let mut broken = climbs(file, file.module().len() - 1);
    for (offset, path) in committee_paths(&code) {
        if path[0] != own && !may_use.contains(&path[0].as_str()) {
            let rule = format!("committee::{own} must not use committee::{}", path[0]);
            broken.push(file.at(&code, offset, &rule));
        }
    }
    broken
}

/// Returns the absolute paths that a file names by `crate::` and by `super::`, without its tests.
fn named_paths(file: &File) -> Vec<Vec<String>> {
    let own: Vec<String> = file.module().into_iter().map(str::to_owned).collect();
    let root = own
        .iter()
        .position(|part| part == "src")
        .map_or(0, |at| at + 1);
    // A visibility names no file.
    let text = file.code().replace("(in crate::", "(in ");
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let supers = Regex::new(r"\b(?:super\s*::\s*)+").unwrap();
    let mut paths: Vec<_> = crate_paths(code)
        .into_iter()
        .map(|(_, path)| path)
        .collect();
    for path in &mut paths {
        path.splice(0..0, own[..root].iter().cloned());
    }
    for found in supers.find_iter(code) {
        let climbed = found.as_str().matches("super").count();
        let above = own[..own.len().saturating_sub(climbed)].to_vec();
        branches(&code[found.end()..], above, &mut paths);
    }
    paths
}

/// Returns the files that name each other, and those between them. What a `mod.rs` re-exports counts
/// as its own, so a circle through one is not found.
fn cycles(files: &[File]) -> BTreeSet<String> {
    let own = |file: &File| file.module().join("::");
    let known: BTreeSet<String> = files.iter().map(own).collect();
    let uses = |file: &File| {
        let modules = named_paths(file).into_iter().filter_map(|path| {
            let mut heads = (1..=path.len())
                .rev()
                .map(|length| path[..length].join("::"));
            heads.find(|head| known.contains(head) && *head != own(file))
        });
        modules.collect::<BTreeSet<String>>()
    };
    let mut left: BTreeMap<_, _> = files.iter().map(|file| (own(file), uses(file))).collect();
    // A file that needs no other remaining file, or that none needs, is in no cycle.
    loop {
        let (before, names) = (left.len(), left.keys().cloned().collect::<BTreeSet<_>>());
        let needed: BTreeSet<String> = left.values().flatten().cloned().collect();
        left.retain(|own, uses| needed.contains(own) && !uses.is_disjoint(&names));
        if left.len() == before {
            return names;
        }
    }
}

#[test]
fn every_module_uses_only_the_modules_that_the_table_allows() {
    let (files, modules) = (files_under(&["src"]), modules());
    assert_eq!(modules.len(), 16);
    let inner = files.iter().filter_map(|file| match file.module()[..] {
        [outer, inner, ..] => Some([outer, inner].map(str::to_owned)),
        _ => None,
    });
    let inner = inner.collect();
    let broken = files.iter().flat_map(|it| strangers(it, &modules, &inner));
    assert_eq!(broken.collect::<Vec<_>>(), [""; 0]);

    let planted = |path: &str, text: &str| {
        let (path, text) = (path.to_owned(), text.to_owned());
        strangers(&File { path, text }, &modules, &inner).join("\n")
    };
    for (path, text, rule) in [
        (
            "src/domain/a.rs",
            "use crate::journal::Event;",
            "domain must not use journal",
        ),
        (
            "src/app/a.rs",
            "use crate::{\n    domain::{Usd as U},\n    http::R,\n};",
            "must not use http",
        ),
        (
            "src/llm/a.rs",
            "\nfn f() { crate::config::load() }",
            ":2: llm must not use config",
        ),
        (
            "src/committee/a.rs",
            "use crate::llm::{self, local};",
            "llm::local is not open",
        ),
        (
            "src/committee/a.rs",
            "use reqwest::Client;",
            "used only in attachments, cli, llm",
        ),
        (
            "src/committee/a.rs",
            "use super::super::journal::Event;",
            "by crate::",
        ),
        ("src/decide/a.rs", "", "decide is not in the table"),
    ] {
        assert!(planted(path, text).contains(rule), "{path}: {text}");
    }
    let text =
        "use crate::journal::{Event, views::{self, calls}};\n// sqlx::query\nlet my_axum = 1;";
    assert_eq!(planted("src/committee/a.rs", text), "");
}

#[test]
fn the_folders_of_the_committee_have_their_order() {
    let mut files = files_under(&["src/committee"]);
    files.retain(|file| file.path.ends_with(".rs") && !file.is_test());
    let broken: Vec<String> = files.iter().flat_map(committee_strangers).collect();
    assert_eq!(broken, [""; 0]);

    let planted = File {
        path: "src/committee/money/a.rs".to_owned(),
        text: "use crate::committee::stages::b;".to_owned(),
    };
    let rule = "src/committee/money/a.rs:1: committee::money must not use committee::stages";
    assert_eq!(committee_strangers(&planted), [rule]);
}

#[test]
fn no_two_files_name_each_other() {
    let mut files = files_under(&["src", "crates"]);
    let is_source = |path: &str| path.starts_with("src/") || path.contains("/src/");
    files.retain(|it| it.path.ends_with(".rs") && is_source(&it.path) && !it.is_test());
    assert!(files.len() > 300, "{}", files.len());
    assert_eq!(cycles(&files), BTreeSet::new());

    let planted = |first: &str, second: &str| {
        let file = |(path, text): (&str, &str)| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        cycles(&[("src/cli/a.rs", first), ("src/cli/b/c.rs", second)].map(file)).len()
    };
    assert_eq!(
        planted("use crate::cli::{b::c};", "use crate::cli::a::A;"),
        2
    );
    assert_eq!(
        planted("use super::b::c::{self, D};", "use super::super::a;"),
        2
    );
    assert_eq!(
        planted(
            "use super::b::c;",
            "#[cfg(test)]\nmod tests { use crate::cli::a; }"
        ),
        0
    );
}

#[test]
fn every_file_is_short_and_named_for_its_content() {
    for file in files_under(&["src", "tests", "crates"]) {
        let lines = file.text.lines().count();
        assert!(lines <= MAX_LINES, "{}: {lines} lines: split it", file.path);
        let parts = file.path.split('/');
        let mut names = parts.filter_map(|part| part.split('.').next());
        let vague = names.find(|name| NAMES_THAT_SAY_NOTHING.contains(name));
        assert_eq!(vague, None, "{}", file.path);
    }
}
