//! The arguments of one step: parsed once, checked against the tool's parameters.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::path::{ForbiddenOperation, check_changeable, normalise, quoted};
use super::tool::{Parameter, Role, Tool};
use super::workspace::MAX_FILE_BYTES;

/// Upper bound of an argument other than file contents, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 4096;

/// Checked arguments of one tool. Paths are normalised, an optional argument may be absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Arguments(BTreeMap<&'static str, String>);

/// Why arguments were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    #[error(transparent)]
    Invalid(#[from] InvalidArguments),
    #[error(transparent)]
    Forbidden(#[from] ForbiddenOperation),
}

/// Arguments that do not fit the tool's schema. `problems` is never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid arguments for '{tool}': {}", problems.join("; "))]
pub struct InvalidArguments {
    pub tool: Tool,
    pub problems: Vec<String>,
}

impl Arguments {
    /// Checks `given` against the parameters of `tool`.
    ///
    /// Problems come in the order of the parameters, unknown names last and sorted. An optional
    /// argument may be `null`. A forbidden path is reported only if nothing is invalid.
    ///
    /// # Errors
    /// `Invalid` with every problem, or `Forbidden` with the first forbidden path.
    pub fn parse(tool: Tool, given: &Map<String, Value>) -> Result<Self, ArgumentsError> {
        let (mut arguments, mut problems, mut forbidden) = (BTreeMap::new(), Vec::new(), None);
        for parameter in tool.parameters() {
            match check(parameter, given.get(parameter.name)) {
                Ok(Some(text)) if parameter.role == Role::Path => {
                    match checked_path(tool, parameter.name, text) {
                        Ok(path) => drop(arguments.insert(parameter.name, path)),
                        Err(refusal) => forbidden = forbidden.or(Some(refusal)),
                    }
                }
                Ok(Some(text)) => drop(arguments.insert(parameter.name, text.to_owned())),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        let mut unknown: Vec<&String> = given
            .keys()
            .filter(|name| !tool.parameters().iter().any(|it| it.name == name.as_str()))
            .collect();
        unknown.sort();
        problems.extend(
            unknown
                .iter()
                .map(|name| format!("unknown {}", quoted(name))),
        );
        if !problems.is_empty() {
            return Err(InvalidArguments { tool, problems }.into());
        }
        match forbidden {
            Some(refusal) => Err(refusal.into()),
            None => Ok(Self(arguments)),
        }
    }

    /// The argument, or `None` for an optional one that is absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A required argument. `parse` has made sure that it is there, so the empty text that stands
    /// for an absent one never occurs for the tool's own parameters.
    pub(super) fn required(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
}

fn check<'a>(parameter: &Parameter, given: Option<&'a Value>) -> Result<Option<&'a str>, String> {
    let name = parameter.name;
    let text = match given {
        None if parameter.required => return Err(format!("missing '{name}'")),
        None => return Ok(None),
        Some(Value::Null) if !parameter.required => return Ok(None),
        Some(Value::String(text)) => text.as_str(),
        Some(_) => return Err(format!("'{name}' must be a string")),
    };
    let limit = match parameter.role {
        Role::Contents => MAX_FILE_BYTES,
        Role::Path | Role::Text => MAX_ARGUMENT_BYTES,
    };
    if text.is_empty() && parameter.role != Role::Contents {
        return Err(format!("'{name}' must not be empty"));
    }
    if text.len() > limit {
        return Err(format!("'{name}' must not be longer than {limit} bytes"));
    }
    if text.contains('\0') {
        return Err(format!("'{name}' must not contain NUL"));
    }
    Ok(Some(text))
}

fn checked_path(tool: Tool, name: &str, text: &str) -> Result<String, ForbiddenOperation> {
    let path = normalise(text)?;
    let changed = match tool {
        Tool::FileWrite | Tool::FileCreate => name == "path",
        Tool::SplicePatch => name == "file",
        _ => false,
    };
    if changed {
        check_changeable(&path)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(tool: Tool, given: &Value) -> String {
        Arguments::parse(tool, given.as_object().unwrap())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_problem_is_named_in_the_order_of_the_parameters() {
        for (tool, given, expected) in [
            (
                Tool::SplicePatch,
                json!({ "file": "a.rs", "with": "b.rs" }),
                "Invalid arguments for 'splice_patch': missing 'symbol'",
            ),
            (
                Tool::FileRead,
                json!({ "path": "a", "foo": 1 }),
                "Invalid arguments for 'file_read': unknown 'foo'",
            ),
            (
                Tool::FileRead,
                json!({ "path": 7 }),
                "Invalid arguments for 'file_read': 'path' must be a string",
            ),
            (
                Tool::FileRead,
                json!({ "path": null }),
                "Invalid arguments for 'file_read': 'path' must be a string",
            ),
            (
                Tool::FileRead,
                json!({ "path": "" }),
                "Invalid arguments for 'file_read': 'path' must not be empty",
            ),
            (
                Tool::FileRead,
                json!({ "path": "a\0b" }),
                "Invalid arguments for 'file_read': 'path' must not contain NUL",
            ),
            (
                Tool::FileRead,
                json!({ "path": "x".repeat(4097) }),
                "Invalid arguments for 'file_read': 'path' must not be longer than 4096 bytes",
            ),
            (
                Tool::SplicePatch,
                json!({ "z\n": 1, "b": 2, "with": [], "symbol": "", "kind": "" }),
                "Invalid arguments for 'splice_patch': missing 'file'; 'symbol' must not be empty; 'kind' must not be empty; 'with' must be a string; unknown 'b'; unknown 'z\\n'",
            ),
            (
                Tool::FileRead,
                json!({ "path": "/etc/passwd", "x": 1 }),
                "Invalid arguments for 'file_read': unknown 'x'",
            ),
            (
                Tool::FileSearch,
                json!({ "pattern": "x", "root": "/" }),
                "Operation not allowed: path '/' leaves the workspace",
            ),
            (
                Tool::FileCreate,
                json!({ "path": ".git/hooks/pre-commit", "contents": "" }),
                "Operation not allowed: path '.git/hooks/pre-commit' is inside a '.git' folder",
            ),
        ] {
            assert_eq!(refusal(tool, &given), expected);
            assert_eq!(refusal(tool, &given), expected);
        }
    }

    #[test]
    fn paths_are_normalised_and_optional_arguments_may_be_null() {
        let given = json!({ "file": "./a//b.rs", "symbol": "f", "kind": null, "with": "p" });
        let arguments = Arguments::parse(Tool::SplicePatch, given.as_object().unwrap()).unwrap();
        assert_eq!(arguments.get("file"), Some("a/b.rs"));
        assert_eq!(arguments.get("kind"), None);
        assert_eq!(Tool::SplicePatch.changes(&arguments), ["a/b.rs"]);
    }

    #[test]
    fn contents_may_be_empty() {
        let given = json!({ "path": "a", "contents": "" });
        let arguments = Arguments::parse(Tool::FileCreate, given.as_object().unwrap()).unwrap();
        assert_eq!(arguments.get("contents"), Some(""));
    }
}
