//! Enforces the structure of the source: which modules may use which, where each external crate is
//! used, and the limits of a file. The compiler enforces privacy. This test reads `crate::...`
//! paths, so a path through an imported name (`use crate::llm; llm::local::...`) is followed only
//! as far as its import.

mod committee;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

struct Module {
    name: &'static str,
    may_know: &'static [&'static str],
    /// The files and folders inside it that other modules may use. Its `mod.rs` re-exports
    /// everything else.
    open: &'static [&'static str],
}

/// The table of modules. A new module needs a row here and a line in ARCHITECTURE.md.
const MODULES: &[Module] = &[
    Module {
        name: "domain",
        may_know: &[],
        open: &[],
    },
    Module {
        name: "clock",
        may_know: &[],
        open: &[],
    },
    Module {
        name: "compute",
        may_know: &["domain"],
        open: &[],
    },
    Module {
        name: "journal",
        may_know: &["clock", "compute", "domain"],
        open: &["step", "views"],
    },
    Module {
        name: "llm",
        may_know: &["domain", "text"],
        open: &[],
    },
    Module {
        name: "config",
        may_know: &["domain"],
        open: &[],
    },
    Module {
        name: "attachments",
        may_know: &["domain", "llm"],
        open: &[],
    },
    Module {
        name: "text",
        may_know: &[],
        open: &[],
    },
    Module {
        name: "scoring",
        may_know: &["domain", "text"],
        open: &[],
    },
    Module {
        name: "committee",
        may_know: &[
            "attachments",
            "config",
            "domain",
            "journal",
            "llm",
            "scoring",
            "text",
        ],
        open: &["invariants", "routines"],
    },
    Module {
        name: "actions",
        may_know: &["committee", "config", "domain", "journal", "llm", "text"],
        open: &["catalog", "commands", "gates", "parser", "reply"],
    },
    Module {
        name: "tools",
        may_know: &["committee", "domain", "journal", "llm"],
        open: &["answers", "validate", "view"],
    },
    Module {
        name: "strategies",
        may_know: &["clock", "committee", "config", "domain", "journal", "text"],
        open: &["learning", "report", "strategy"],
    },
    Module {
        name: "app",
        may_know: &[
            "actions",
            "attachments",
            "clock",
            "committee",
            "compute",
            "config",
            "domain",
            "journal",
            "llm",
            "strategies",
            "text",
            "tools",
        ],
        open: &[],
    },
    Module {
        name: "http",
        may_know: &[
            "actions",
            "app",
            "attachments",
            "clock",
            "committee",
            "config",
            "domain",
            "journal",
            "llm",
            "tools",
        ],
        open: &[],
    },
    // `doctor` uses the requests of llm, `show` uses the audit view of the committee.
    Module {
        name: "cli",
        may_know: &[
            "actions",
            "app",
            "clock",
            "committee",
            "config",
            "domain",
            "http",
            "journal",
            "llm",
            "scoring",
            "strategies",
            "text",
            "tools",
        ],
        open: &[],
    },
];

/// External crates, with the modules that may use them.
const HOMES: &[(&str, &[&str])] = &[
    ("sqlx", &["journal"]),
    ("reqwest", &["attachments", "cli", "llm"]),
    ("axum", &["cli", "http"]),
    (
        "conclave_lenient_json",
        &["actions", "cli", "committee", "llm", "tools"],
    ),
];

const NAMES_THAT_SAY_NOTHING: &[&str] =
    &["utils", "common", "helpers", "types", "manager", "service"];

const MAX_LINES: usize = 600;

#[test]
fn every_module_uses_only_the_modules_that_the_table_allows() {
    let files = files_under(&["src"]);
    let insides = insides(&files);
    report(
        &files
            .iter()
            .flat_map(|file| strangers(file, &insides))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_file_is_short_finished_and_named_for_its_content() {
    let files = files_under(&["src", "tests", "crates"]);
    report(
        &files
            .iter()
            .flat_map(|file| shape(file).into_iter().chain(unfinished(file)))
            .collect::<Vec<_>>(),
    );
}

/// A file: its path from the root, with `/`, and its text if it is Rust source.
struct File {
    path: String,
    text: String,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Returns the module path: `["committee", "score", "answer"]` for
    /// `src/committee/score/answer.rs`.
    fn module(&self) -> Vec<&str> {
        let inner = self
            .path
            .trim_start_matches("src/")
            .trim_end_matches(".rs")
            .trim_end_matches("/mod");
        inner.split('/').collect()
    }

    /// Returns the text without whole-line comments, because a link in a doc comment is no
    /// dependency. Line numbers stay the same.
    fn code(&self) -> String {
        let kept = self.text.lines().map(|line| {
            if line.trim_start().starts_with("//") {
                ""
            } else {
                line
            }
        });
        kept.collect::<Vec<_>>().join("\n")
    }

    fn at(&self, code: &str, offset: usize, rule: &str) -> String {
        format!(
            "{}:{}: {rule}",
            self.path,
            code[..offset].matches('\n').count() + 1
        )
    }
}

/// Returns the files and folders inside each module, such as `("journal", "sqlite")`.
fn insides(files: &[File]) -> BTreeSet<(String, String)> {
    let module = |file: &File| match file.module()[..] {
        [outer, inner, ..] => Some((outer.to_owned(), inner.to_owned())),
        _ => None,
    };
    files.iter().filter_map(module).collect()
}

/// Returns the violations of the two tables in a file.
fn strangers(file: &File, insides: &BTreeSet<(String, String)>) -> Vec<String> {
    let module = file.module();
    let own = module[0];
    if !file.path.ends_with(".rs") || ["lib", "main"].contains(&own) {
        return Vec::new();
    }
    let Some(row) = MODULES.iter().find(|row| row.name == own) else {
        return vec![format!(
            "{}:1: the module {own} has no row in the table of tests/it/architecture.rs",
            file.path
        )];
    };
    let code = file.code();
    let mut broken = Vec::new();
    for (offset, path) in crate_paths(&code) {
        let Some(other) = MODULES
            .iter()
            .find(|row| row.name == path[0] && row.name != own)
        else {
            continue;
        };
        let name = other.name;
        if !row.may_know.contains(&name) {
            let known = if row.may_know.is_empty() {
                "no other module".to_owned()
            } else {
                row.may_know.join(", ")
            };
            broken.push(file.at(
                &code,
                offset,
                &format!("{own} must not know {name}; it may know {known}"),
            ));
        } else if let Some(inner) = path.get(1)
            && insides.contains(&(name.to_owned(), inner.clone()))
            && !other.open.contains(&inner.as_str())
        {
            let rule =
                format!("{name}::{inner} is an inside of {name}: take what its mod.rs re-exports");
            broken.push(file.at(&code, offset, &rule));
        }
    }
    for (outside, homes) in HOMES.iter().filter(|(_, homes)| !homes.contains(&own)) {
        let used = Regex::new(&format!(r"\b{outside}(::|;)")).unwrap();
        let rule = format!("{outside} is used only in {}", homes.join(", "));
        broken.extend(
            used.find_iter(&code)
                .map(|found| file.at(&code, found.start(), &rule)),
        );
    }
    broken.extend(climbs(file, &code, module.len()));
    broken.dedup();
    broken
}

/// Finds `super::` chains that leave the top-level module, because the tables cannot check what
/// they reach. Files of tests have one more module level and are skipped.
fn climbs(file: &File, code: &str, depth: usize) -> Vec<String> {
    if file.path.ends_with("tests.rs") {
        return Vec::new();
    }
    let house = code.split("#[cfg(test)]\nmod ").next().unwrap_or(code);
    let chains = Regex::new(r"\b(super::)+").unwrap();
    let out = chains
        .find_iter(house)
        .filter(|chain| chain.as_str().matches("super").count() >= depth);
    out.map(|chain| {
        file.at(
            code,
            chain.start(),
            "another module is named by crate::, not by super::",
        )
    })
    .collect()
}

/// Returns every path that starts at `crate::`, with groups expanded, and the offset at which it
/// starts. No path is empty.
fn crate_paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut paths = Vec::new();
    for found in Regex::new(r"\bcrate\s*::").unwrap().find_iter(code) {
        let mut ends = Vec::new();
        branches(&code[found.end()..], Vec::new(), &mut ends);
        paths.extend(
            ends.into_iter()
                .filter(|path| !path.is_empty())
                .map(|path| (found.start(), path)),
        );
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
    let length = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
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

fn shape(file: &File) -> Vec<String> {
    let mut broken = Vec::new();
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        broken.push(format!(
            "{}:{MAX_LINES}: {lines} lines, at most {MAX_LINES}: split it",
            file.path
        ));
    }
    let parts = file
        .path
        .split('/')
        .map(|part| part.split('.').next().unwrap_or(part));
    for part in parts.filter(|part| NAMES_THAT_SAY_NOTHING.contains(part)) {
        broken.push(format!(
            "{}:1: `{part}` says nothing of what is inside: name it for the problem",
            file.path
        ));
    }
    broken
}

fn unfinished(file: &File) -> Vec<String> {
    let code = file.code();
    let marks = Regex::new(r"\b(todo|unimplemented|dbg)!|#\[ignore").unwrap();
    let rule =
        "unfinished code, debugging output and tests that are left out do not go into the tree";
    marks
        .find_iter(&code)
        .map(|mark| file.at(&code, mark.start(), rule))
        .collect()
}

fn files_under(folders: &[&str]) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut open: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            let text = if name.ends_with(".rs") {
                fs::read_to_string(&path).unwrap()
            } else {
                String::new()
            };
            files.push(File { path: name, text });
        }
    }
    assert!(!files.is_empty(), "no file under {folders:?}");
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn report(broken: &[String]) {
    assert!(
        broken.is_empty(),
        "the rules of the architecture are broken:\n  {}",
        broken.join("\n  ")
    );
}

fn strangers_in(path: &str, text: &str) -> Vec<String> {
    let tree = [
        "src/journal/sqlite/mod.rs",
        "src/journal/views.rs",
        "src/llm/local.rs",
    ];
    strangers(
        &File::new(path, text),
        &insides(&tree.map(|path| File::new(path, ""))),
    )
}

#[test]
fn an_import_that_the_table_does_not_allow_is_found() {
    assert_eq!(
        strangers_in(
            "src/domain/plan.rs",
            "//! Plans.\nuse crate::journal::Event;\n"
        ),
        ["src/domain/plan.rs:2: domain must not know journal; it may know no other module"]
    );
    assert_eq!(
        strangers_in(
            "src/llm/registry.rs",
            "fn f() {\n    crate::config::load();\n}"
        ),
        ["src/llm/registry.rs:2: llm must not know config; it may know domain, text"]
    );
    assert_eq!(
        strangers_in("src/decide/mod.rs", ""),
        [
            "src/decide/mod.rs:1: the module decide has no row in the table of tests/it/architecture.rs"
        ]
    );
}

#[test]
fn a_forbidden_import_in_a_multi_line_group_is_found() {
    let text = "use crate::{\n    domain::{Plan, Usd as Money},\n    http::Router,\n};\n";
    assert_eq!(
        strangers_in("src/app/mod.rs", text),
        [
            "src/app/mod.rs:1: app must not know http; it may know actions, attachments, clock, committee, compute, config, domain, journal, llm, strategies, text, tools"
        ]
    );
}

#[test]
fn other_modules_use_only_re_exports_and_listed_submodules() {
    let text = "use crate::journal::sqlite::SqliteStore;\nuse crate::llm::{self, local};\n";
    assert_eq!(
        strangers_in("src/committee/deps.rs", text),
        [
            "src/committee/deps.rs:1: journal::sqlite is an inside of journal: take what its mod.rs re-exports",
            "src/committee/deps.rs:2: llm::local is an inside of llm: take what its mod.rs re-exports",
        ]
    );
    let allowed = "use crate::journal::{Event, views::{self, calls}};\nuse crate::llm::Error;\n";
    assert_eq!(strangers_in("src/committee/deps.rs", allowed), [""; 0]);
    assert_eq!(
        strangers_in("src/journal/store.rs", "use crate::journal::sqlite::Row;"),
        [""; 0]
    );
}

#[test]
fn an_external_crate_in_a_wrong_module_is_found_except_in_comments() {
    assert_eq!(
        strangers_in(
            "src/committee/deps.rs",
            "use reqwest::Client;\n// sqlx::query\nlet my_axum = 1;"
        ),
        ["src/committee/deps.rs:1: reqwest is used only in attachments, cli, llm"]
    );
    assert_eq!(
        strangers_in(
            "src/llm/http.rs",
            "use reqwest::Client;\n/// See [`crate::http::x`].\n"
        ),
        [""; 0]
    );
}

#[test]
fn super_does_not_lead_out_of_a_module() {
    let text =
        "use super::super::journal::Event;\n#[cfg(test)]\nmod tests { use super::super::Case; }";
    assert_eq!(
        strangers_in("src/committee/deps.rs", text),
        ["src/committee/deps.rs:1: another module is named by crate::, not by super::"]
    );
    assert_eq!(
        strangers_in("src/scoring/answer/plain.rs", "use super::super::Output;"),
        [""; 0]
    );
}

#[test]
fn long_files_vague_names_and_unfinished_code_are_found() {
    assert_eq!(
        shape(&File::new("src/llm/utils/mod.rs", &"\n".repeat(601))),
        [
            "src/llm/utils/mod.rs:600: 601 lines, at most 600: split it",
            "src/llm/utils/mod.rs:1: `utils` says nothing of what is inside: name it for the problem",
        ]
    );
    assert_eq!(
        shape(&File::new(
            "src/actions/service_level.rs",
            &"\n".repeat(600)
        )),
        [""; 0]
    );
    let text = format!(
        "fn f() {{\n    {}!()\n}}\n#[{}]\nfn todo() {{}}\n",
        "todo", "ignore"
    );
    let lines: Vec<_> = unfinished(&File::new("src/a.rs", &text))
        .iter()
        .map(|rule| rule[..11].to_owned())
        .collect();
    assert_eq!(lines, ["src/a.rs:2:", "src/a.rs:4:"]);
}
