//! The tools on real folders and with real programs.

mod files;
mod programs;
mod races;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};
use tempfile::TempDir;

use super::call::Toolbox;
use super::in_doubt::before;
use super::output::{Output, ToolError};
use super::tool::{Step, Tool};

/// A folder with `inside` (the workspace) and `outside/secret`.
struct Place {
    folder: TempDir,
    toolbox: Toolbox,
}

impl Place {
    /// A workspace without programs.
    fn new() -> Self {
        Self::with(&[], |_| None)
    }

    fn with(files: &[(&str, &str)], variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("inside")).unwrap();
        fs::create_dir(path.join("outside")).unwrap();
        fs::write(path.join("outside/secret"), "secret").unwrap();
        let toolbox = Toolbox::open(&path.join("inside"), variable).unwrap();
        let place = Self { folder, toolbox };
        for (path, text) in files {
            place.put(path, text);
        }
        place
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.folder.path().join("inside").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.folder.path().join("outside").join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let file = self.inside(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn content(&self, path: &str) -> String {
        fs::read_to_string(self.inside(path)).unwrap()
    }

    /// Makes a step with values for the tool's parameters in order; `-` leaves one out.
    fn step(&self, tool: Tool, values: &[&str]) -> Result<Step, ToolError> {
        let names = tool.parameters().iter().map(|it| it.name.to_owned());
        let given = names.zip(values).filter(|(_, value)| **value != "-");
        let given: Map<String, Value> = given.map(|(name, it)| (name, Value::from(*it))).collect();
        Step::new("s", tool, &given, &self.toolbox)
    }

    /// Returns what the tool returned, or its error in the words of the journal.
    fn run(&self, tool: Tool, values: &[&str]) -> Result<Output, String> {
        let words = |error: ToolError| error.of(&format!("{tool} failed"));
        let step = self.step(tool, values).map_err(words)?;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let done = async { step.run(&before(&step).await).await };
        runtime.block_on(done).map_err(words)
    }

    fn text(&self, tool: Tool, values: &[&str]) -> String {
        let done = self.run(tool, values);
        done.map_or_else(|error| error, |output| output.text)
    }

    fn check(&self, tool: Tool, values: &[&str]) -> String {
        let checked = self.step(tool, values).and_then(|step| step.check());
        let words = |error: ToolError| error.of("Precondition failed");
        checked.map_or_else(words, |()| "holds".to_owned())
    }

    /// Holds a table. A row has a tool with its arguments, and what comes of it: after `?` what its
    /// condition says, after `!` how it fails, after `X` the forbidden path, after `=` its output.
    fn hold(&self, table: &str) {
        for row in table.trim().lines().map(str::trim) {
            let (step, words) = row.split_once(" -> ").unwrap();
            let (tool, values) = step.split_once(' ').unwrap();
            let (tool, values) = (tool.parse::<Tool>().unwrap(), values.split(' '));
            let values: Vec<&str> = values.collect();
            let text = || self.text(tool, &values);
            let check = || self.check(tool, &values);
            let (kind, words) = words.split_at(2);
            let words = words.replace("\\n", "\n");
            let forbidden = format!("Operation not allowed: path {words}");
            match kind {
                "? " if words == "holds" => assert_eq!(check(), words, "{row}"),
                "? " => assert_eq!(check(), format!("Precondition failed: {words}"), "{row}"),
                "! " => assert_eq!(text(), format!("{tool} failed: {words}"), "{row}"),
                "X " => assert_eq!([text(), check()], [forbidden.clone(), forbidden], "{row}"),
                _ => assert_eq!(text(), words, "{row}"),
            }
        }
    }

    /// No temporary file is left, and the outside is as it was.
    fn assert_clean(&self) {
        let secret = fs::read_to_string(self.outside("secret"));
        assert_eq!(secret.unwrap(), "secret");
        assert_eq!(fs::read_dir(self.outside("")).unwrap().count(), 1);
        for entry in fs::read_dir(self.inside("")).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().ends_with(".tmp"), "{name:?}");
        }
    }
}

fn made(program: &str, path: &Path, arguments: &[&str]) -> bool {
    let status = Command::new(program).arg(path).args(arguments).status();
    status.unwrap().success()
}
