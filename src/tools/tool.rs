//! The catalog of the tools, and the steps that use them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::call::{Call, Parameter, Role, Run, Spec, Toolbox};
use super::output::{Output, ToolError, quoted};
use super::path::{changeable, normalise};
use super::workspace::{MAX_FILE_BYTES, hash};
use super::{
    file_create, file_glob, file_read, file_search, file_write, lsp_check,
    references_from_file_to_symbol_name, references_to_symbol_name, splice, splice_patch,
    splice_plan, symbols_in_file,
};
use crate::domain::is_invisible;
use crate::journal::{FileBefore, StepFinished};

/// Upper bound of an argument other than file contents, in bytes.
const MAX_ARGUMENT_BYTES: usize = 4096;

/// A tool that a plan step names.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Tool {
    FileRead,
    FileWrite,
    FileCreate,
    FileSearch,
    FileGlob,
    SplicePatch,
    SplicePlan,
    SymbolsInFile,
    ReferencesToSymbolName,
    ReferencesFromFileToSymbolName,
    LspCheck,
}

impl Tool {
    /// All tools, in the order in which users and models see them.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// The name in plans, such as `file_read`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub(super) const fn spec(self) -> &'static Spec {
        match self {
            Self::FileRead => &file_read::SPEC,
            Self::FileWrite => &file_write::SPEC,
            Self::FileCreate => &file_create::SPEC,
            Self::FileSearch => &file_search::SPEC,
            Self::FileGlob => &file_glob::SPEC,
            Self::SplicePatch => &splice_patch::SPEC,
            Self::SplicePlan => &splice_plan::SPEC,
            Self::SymbolsInFile => &symbols_in_file::SPEC,
            Self::ReferencesToSymbolName => &references_to_symbol_name::SPEC,
            Self::ReferencesFromFileToSymbolName => &references_from_file_to_symbol_name::SPEC,
            Self::LspCheck => &lsp_check::SPEC,
        }
    }

    /// The parameters, in the order in which problems are reported.
    #[must_use]
    pub const fn parameters(self) -> &'static [Parameter] {
        self.spec().parameters
    }

    /// Returns what a planner is told of a parameter; of the tool itself without a name.
    pub(super) fn described(self, parameter: &str) -> &'static str {
        let begin = format!("{self}\t{parameter}\t");
        let mut rows = include_str!("descriptions.tsv").lines();
        let row = rows.find_map(|row| row.strip_prefix(&begin));
        row.unwrap_or_default()
    }

    /// The JSON schema of the arguments.
    #[must_use]
    pub fn schema(self) -> Value {
        let property = |parameter: &Parameter| {
            let description = self.described(parameter.name);
            let schema = match parameter.role {
                Role::Contents => json!({ "type": "string", "description": description }),
                _ => json!({ "type": "string", "minLength": 1, "description": description }),
            };
            (parameter.name.to_owned(), schema)
        };
        let parameters = self.parameters().iter();
        let required = parameters.clone().filter(|it| it.role != Role::Optional);
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": parameters.map(property).collect::<Map<_, _>>(),
            "required": required.map(|it| it.name).collect::<Vec<_>>(),
        })
    }

    /// Checks `given` against the parameters. Problems come in the order of the parameters, unknown
    /// names last and sorted. A forbidden path is reported only if nothing is invalid.
    ///
    /// # Errors
    /// The words of all problems, or the first forbidden path.
    pub(super) fn arguments(
        self,
        given: &Map<String, Value>,
    ) -> Result<BTreeMap<&'static str, String>, ToolError> {
        let (mut arguments, mut problems, mut forbidden) = (BTreeMap::new(), vec![], None);
        for parameter in self.parameters() {
            let checked = match check(parameter, given.get(parameter.name)) {
                Ok(None) => continue,
                Ok(Some(text)) => match parameter.role {
                    Role::Changed => changeable(text),
                    Role::File | Role::Path => normalise(text),
                    Role::Text | Role::Optional | Role::Contents => Ok(text.to_owned()),
                },
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            match checked {
                Ok(text) => drop(arguments.insert(parameter.name, text)),
                Err(refusal) => forbidden = forbidden.or(Some(refusal)),
            }
        }
        let is_known = |name: &str| self.parameters().iter().any(|it| it.name == name);
        let unknown: BTreeSet<&String> = given.keys().filter(|name| !is_known(name)).collect();
        problems.extend(unknown.iter().map(|it| format!("unknown {}", quoted(it))));
        if !problems.is_empty() {
            let problems = problems.join("; ");
            return Err(format!("Invalid arguments for '{self}': {problems}").into());
        }
        forbidden.map_or(Ok(arguments), Err)
    }
}

fn check<'a>(parameter: &Parameter, given: Option<&'a Value>) -> Result<Option<&'a str>, String> {
    let (name, role) = (parameter.name, parameter.role);
    let text = match given {
        None | Some(Value::Null) if role == Role::Optional => return Ok(None),
        None => return Err(format!("missing '{name}'")),
        Some(Value::String(text)) => text.as_str(),
        Some(_) => return Err(format!("'{name}' must be a string")),
    };
    let limit = match role {
        Role::Contents => MAX_FILE_BYTES,
        _ => MAX_ARGUMENT_BYTES,
    };
    if text.is_empty() && role != Role::Contents {
        return Err(format!("'{name}' must not be empty"));
    }
    if text.len() > limit {
        return Err(format!("'{name}' must not be longer than {limit} bytes"));
    }
    if text.contains('\0') {
        return Err(format!("'{name}' must not contain NUL"));
    }
    // A user would authorize another name than the one that is seen.
    let is_path = matches!(role, Role::File | Role::Changed | Role::Path);
    if is_path && text.contains(|c: char| is_invisible(c)) {
        return Err(format!("'{name}' must not contain invisible characters"));
    }
    if matches!(role, Role::File | Role::Changed) && text.ends_with('/') {
        return Err(format!("'{name}' must not end with a slash"));
    }
    Ok(Some(text))
}

/// A step whose tool exists and whose arguments fit it.
#[derive(Clone)]
pub struct Step {
    pub step_id: String,
    pub tool: Tool,
    pub call: Call,
}

impl Step {
    /// Checks the arguments of a step.
    ///
    /// # Errors
    /// As [`Tool::arguments`].
    pub fn new(
        step_id: &str,
        tool: Tool,
        given: &Map<String, Value>,
        toolbox: &Toolbox,
    ) -> Result<Self, ToolError> {
        let (arguments, toolbox) = (tool.arguments(given)?, toolbox.clone());
        Ok(Self {
            step_id: step_id.to_owned(),
            tool,
            call: Call {
                arguments,
                toolbox,
                before: None,
            },
        })
    }

    /// Checks what has to hold right before the step. Reads files, so call it where blocking is
    /// allowed. The same workspace gives the same words.
    ///
    /// # Errors
    /// The first condition that does not hold.
    pub fn check(&self) -> Result<(), ToolError> {
        (self.tool.spec().check)(&self.call)
    }

    /// Performs the step. The caller has asked the user, checked the conditions, and recorded the files
    /// as they were `before`. A tool that replaces another content than that one fails.
    ///
    /// # Errors
    /// Why the tool failed, with what changed all the same.
    pub async fn run(&self, before: &[FileBefore]) -> Result<Output, ToolError> {
        let mut call = self.call.clone();
        call.before = before.iter().find_map(|it| it.content.as_deref().map(hash));
        match self.tool.spec().run {
            Run::Files(work) => call.blocking(work).await,
            Run::Program(work) => work(call).await,
        }
    }

    /// Returns the paths that the step will change, for the user's confirmation. Those of
    /// `splice_plan` are in its file, which is read: call it where blocking is allowed.
    ///
    /// # Errors
    /// If that file is no plan.
    pub fn changes(&self) -> Result<Vec<String>, ToolError> {
        match self.tool {
            Tool::SplicePlan => splice::files_of_plan(&self.call),
            _ => Ok(self.paths(|role| role == Role::Changed)),
        }
    }

    /// Returns the paths that the step may write: those that it changes, and the lock files of cargo,
    /// which writes them by itself.
    pub fn written(&self) -> Vec<String> {
        let changed = self.changes().unwrap_or_default();
        let checked = match self.tool {
            Tool::LspCheck => vec![self.call.argument("path").to_owned()],
            Tool::SplicePatch | Tool::SplicePlan => changed.clone(),
            _ => vec![],
        };
        let mut written = BTreeSet::from_iter(changed);
        for path in checked {
            written.extend(lsp_check::lock_files(self.call.workspace(), &path));
        }
        written.into_iter().collect()
    }

    /// True if the step changes files, or runs a program that may.
    pub fn may_change_files(&self) -> bool {
        self.tool.spec().is_mutating || self.tool == Tool::LspCheck
    }

    /// Returns the end of the step, without an output.
    pub fn ended(&self, error: Option<String>) -> StepFinished {
        StepFinished {
            files: self.files(),
            ..StepFinished::new(&self.step_id, self.tool.name(), error)
        }
    }

    /// The files that the arguments name.
    pub fn files(&self) -> Vec<String> {
        self.paths(|role| matches!(role, Role::File | Role::Changed))
    }

    fn paths(&self, is_meant: impl Fn(Role) -> bool) -> Vec<String> {
        let parameters = self.tool.parameters().iter();
        let meant = parameters.filter(|parameter| is_meant(parameter.role));
        let value = |it: &Parameter| self.call.argument(it.name).to_owned();
        meant.map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_parameters_are_those_of_the_specification() {
        let listed = Tool::ALL.iter().map(|tool| {
            let names = tool.parameters().iter().map(|it| match it.role {
                Role::Optional => format!("[{}]", it.name),
                _ => it.name.to_owned(),
            });
            format!("{tool} {}", names.collect::<Vec<_>>().join(" "))
        });
        let listed: Vec<String> = listed.collect();
        let expected = "file_read path\nfile_write path contents\nfile_create path contents\n\
            file_search pattern root\nfile_glob pattern root\nsplice_patch file symbol [kind] with\n\
            splice_plan file\nsymbols_in_file pattern\nreferences_to_symbol_name name\n\
            references_from_file_to_symbol_name file name\nlsp_check path";
        assert_eq!(listed.join("\n"), expected);
    }

    #[test]
    fn every_problem_is_named_in_the_order_of_the_parameters() {
        let table = r#"splice_patch | { "file": "a.rs", "with": "b" } | missing 'symbol'
            file_read | { "path": "a", "foo": 1 } | unknown 'foo'
            file_read | { "path": 7 } | 'path' must be a string
            file_read | { "path": null } | 'path' must be a string
            file_read | { "path": "" } | 'path' must not be empty
            file_read | { "path": "a\u0000b" } | 'path' must not contain NUL
            file_create | { "path": "a/", "contents": "" } | 'path' must not end with a slash
            file_read | { "path": "/etc/passwd", "x": 1 } | unknown 'x'
            splice_patch | { "z\n": 1, "b": 2, "with": [], "symbol": "", "kind": "" } | missing 'file'; 'symbol' must not be empty; 'kind' must not be empty; 'with' must be a string; unknown 'b'; unknown 'z\n'"#;
        let long = json!({ "path": "x".repeat(4097) });
        let long = format!("file_read | {long} | 'path' must not be longer than 4096 bytes");
        for row in table.lines().chain([long.as_str()]) {
            let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
            let tool: Tool = cells[0].parse().unwrap();
            let given = serde_json::from_str(cells[1]).unwrap();
            let error = tool.arguments(&given).unwrap_err();
            let expected = format!("Invalid arguments for '{tool}': {}", cells[2]);
            assert_eq!(error.message, expected);
        }
    }
}
