//! Runs the scripted panels of `scripts/panels` against the real program: conversations of users with
//! the service, with what each reader must get. Ten of them are the examples of the documentation.

use std::process::Command;

use tempfile::TempDir;

use crate::docs::held;

#[test]
fn every_panel_gives_its_reader_what_it_must() {
    let folder = TempDir::new().unwrap();
    let examples = folder.path().join("examples.md");
    let out = Command::new("python3")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/scripts/panels/run.py"
        ))
        .args(["--binary", env!("CARGO_BIN_EXE_conclave"), "--markdown"])
        .arg(&examples)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let failed: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("ok "))
        .collect();
    assert!(out.status.success(), "{}", failed.join("\n"));
    held(
        "docs/examples.md",
        &std::fs::read_to_string(examples).unwrap(),
    );
}
