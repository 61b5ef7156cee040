//! Compares the documentation with the program: generated parts, metrics and links.

mod api_tables;
mod players;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use conclave::config::Limits;
use conclave::{cli, http};
use regex::Regex;

use crate::language::rust_files;
use api_tables::ApiTables;

/// The command that regenerates every generated document.
const AGAIN: &str = "UPDATE_DOCS=1 cargo nextest run -E 'test(/^docs::/) or test(published_schemas) or test(every_panel) or test(the_listing_in)'";

/// Returns the path of a file in the repository.
fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap()
}

/// Compares a generated file with the one in the repository. Writes it instead if `UPDATE_DOCS` is
/// set.
pub fn held(file: &str, generated: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(file), generated).unwrap();
    }
    let kept = read(file);
    let mut lines = kept.lines().zip(generated.lines());
    let differs = lines.find(|(kept, new)| kept != new);
    assert!(
        kept == generated,
        "{file} is stale; to write it again: {AGAIN}; the first line that differs, or none: {differs:?}"
    );
}

#[test]
fn the_command_line_reference_matches_the_program() {
    let mut text = format!(
        "# Command line\n\n<!-- Generated from the program. To write it again: {AGAIN} -->\n\n\
         What `--help` prints, for each command. The exit codes are listed below the first one. Progress, warnings and errors go to\n\
         standard error; replies and `--json` go to standard output.\n"
    );
    // A fixed width, so that line breaks do not depend on the terminal.
    let mut all = cli::command_line().term_width(110);
    all.build();
    describe(&mut all, &mut text);
    held("docs/cli.md", &text);
}

#[test]
fn the_map_and_the_scoring_page_stay_short() {
    for file in ["ARCHITECTURE.md", "docs/scoring.md"] {
        let lines = read(file).lines().count();
        assert!(
            lines <= 200,
            "{file} has {lines} lines, and at most 200 are allowed"
        );
    }
}

#[test]
fn the_price_in_the_readme_is_the_one_that_is_quoted() {
    let text = read("README.md");
    let (head, rest) = text.split_once("$ conclave quote \"").unwrap();
    let (question, rest) = rest.split_once("\"\n").unwrap();
    let (_, behind) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let quoted = std::process::Command::new(env!("CARGO_BIN_EXE_conclave"))
        .args(["quote", question])
        .current_dir(folder.path())
        .env_clear()
        .envs([
            ("CONCLAVE_CONFIG", "anthropic"),
            ("ANTHROPIC_API_KEY", "unused"),
        ])
        .env("DATABASE_URL", "sqlite://no/such/folder/conclave.db")
        .output()
        .unwrap();
    let quoted = String::from_utf8(quoted.stdout).unwrap();
    let written = format!("{head}$ conclave quote \"{question}\"\n{quoted}```{behind}");
    held("README.md", &written);
    let left = fs::read_dir(folder.path()).unwrap();
    assert_eq!(left.count(), 0, "a price needs no file");
}

/// Appends the help of a command and of its subcommands.
fn describe(command: &mut clap::Command, text: &mut String) {
    let name = command
        .get_bin_name()
        .unwrap_or(command.get_name())
        .to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    text.push_str(&format!(
        "\n## `{name}`\n\n```text\n{}\n```\n",
        lines.join("\n")
    ));
    let shown =
        |command: &&mut clap::Command| !command.is_hide_set() && command.get_name() != "help";
    for subcommand in command.get_subcommands_mut().filter(shown) {
        describe(subcommand, text);
    }
}

#[test]
fn the_tables_of_the_api_reference_match_the_openapi_document() {
    let tables = ApiTables::of(http::document(&Limits::default()));
    let marked = Regex::new(r"(?s)(<!-- generated: ([^\n]*?) -->\n).*?(\n<!-- end -->)").unwrap();
    let text = read("docs/api.md");
    assert!(marked.find_iter(&text).count() >= 10, "the marks are there");
    let made = marked.replace_all(&text, |found: &regex::Captures<'_>| {
        format!("{}{}{}", &found[1], tables.make(&found[2]), &found[3])
    });
    held("docs/api.md", &made);
}

#[test]
fn every_recorded_metric_is_described_and_documented_and_no_other() {
    let names = |pattern: &str, text: &str| -> BTreeSet<String> {
        let found = Regex::new(pattern).unwrap();
        let names = found.captures_iter(text).map(|found| found[1].to_owned());
        names.collect()
    };
    let described = names(r"(?m)^(conclave_\w+): ", &read("src/app/metrics.txt"));
    let documented = names(r"`(conclave_\w+)", &read("docs/operations.md"));
    let source: String = rust_files(&path("src"))
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let recorded = names(r#"\b(?:counter|gauge|histogram)!\(\s*"(\w+)""#, &source);
    assert!(described.len() > 25, "{described:?}");
    assert_eq!(described, documented);
    assert_eq!(described, recorded);
}

#[test]
fn every_link_between_the_documents_resolves() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut followed = 0;
    for file in documents() {
        let text = read(&file);
        let folder = Path::new(&file).parent().unwrap();
        for target in link
            .captures_iter(&text)
            .map(|found| found.extract::<1>().1[0].to_owned())
        {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (to, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let to = if to.is_empty() {
                PathBuf::from(&file)
            } else {
                folder.join(to)
            };
            let there = path(to.to_str().unwrap());
            assert!(there.exists(), "{file}: {target}");
            if !anchor.is_empty() {
                let headings = fs::read_to_string(there).unwrap();
                assert!(
                    anchors(&headings).contains(&anchor.to_owned()),
                    "{file}: {target}"
                );
            }
            followed += 1;
        }
    }
    assert!(followed > 30, "{followed} links");
}

/// Returns the Markdown documents for readers, relative to the root.
fn documents() -> Vec<String> {
    let mut files = vec![];
    for folder in ["", "docs", "docs/adr"] {
        for entry in fs::read_dir(path(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                files.push(if folder.is_empty() {
                    name
                } else {
                    format!("{folder}/{name}")
                });
            }
        }
    }
    files.sort();
    files
}

/// Returns the anchors that GitHub generates for the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let headings = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|heading| {
            heading
                .to_lowercase()
                .chars()
                .filter(kept)
                .collect::<String>()
                .replace(' ', "-")
        })
        .collect()
}
