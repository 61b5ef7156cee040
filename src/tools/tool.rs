//! The eleven tools as data: names, parameters, JSON schemas, effects. `run` performs them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::{Display, EnumString, IntoStaticStr};

use super::arguments::Arguments;

/// A tool that a plan step names.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
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

/// What a parameter holds; it decides how the argument is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A path inside the workspace; normalised.
    Path,
    /// Text that is not empty, such as a pattern or a symbol.
    Text,
    /// The contents of a file; may be empty.
    Contents,
}

/// One parameter of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    /// The type as the tool's signature writes it: `String`, `PathBuf` or `Option<String>`.
    pub kind: &'static str,
    pub required: bool,
    pub role: Role,
    /// What the planner is told about it.
    pub description: &'static str,
}

impl Tool {
    /// All tools, in the order in which users and models see them.
    pub const ALL: [Self; 11] = [
        Self::FileRead,
        Self::FileWrite,
        Self::FileCreate,
        Self::FileSearch,
        Self::FileGlob,
        Self::SplicePatch,
        Self::SplicePlan,
        Self::SymbolsInFile,
        Self::ReferencesToSymbolName,
        Self::ReferencesFromFileToSymbolName,
        Self::LspCheck,
    ];

    /// The name in plans, such as `file_read`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The parameters, in the order in which problems are reported.
    #[must_use]
    pub const fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::FileRead => &[FILE_PATH],
            Self::FileWrite | Self::FileCreate => &[FILE_PATH, CONTENTS],
            Self::FileSearch => &[REGEX, ROOT],
            Self::FileGlob => &[GLOB, ROOT],
            Self::SplicePatch => &[SOURCE_FILE, SYMBOL, KIND, WITH],
            Self::SplicePlan => &[PLAN_FILE],
            Self::SymbolsInFile => &[INDEXED_FILES],
            Self::ReferencesToSymbolName => &[SYMBOL_NAME],
            Self::ReferencesFromFileToSymbolName => &[SOURCE_FILE, SYMBOL_NAME],
            Self::LspCheck => &[PROJECT_PATH],
        }
    }

    /// What the tool does, for the planner's prompt.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::FileRead => "Read a text file of at most 1 MiB.",
            Self::FileWrite => "Replace the whole content of an existing text file.",
            Self::FileCreate => {
                "Create a text file in an existing folder. The file must not exist."
            }
            Self::FileSearch => {
                "Search the lines of files under a folder by a regular expression (Rust syntax). Files that .gitignore names, hidden files and binary files are left out."
            }
            Self::FileGlob => {
                "List files under a folder by a glob relative to that folder. '*' does not cross '/', '**' does. Files that .gitignore names and hidden files are left out."
            }
            Self::SplicePatch => {
                "Replace one symbol of a source file by the content of another file."
            }
            Self::SplicePlan => "Perform the replacements of a splice plan file.",
            Self::SymbolsInFile => {
                "List the indexed symbols of the files that match a path pattern."
            }
            Self::ReferencesToSymbolName => "List the indexed references to a symbol.",
            Self::ReferencesFromFileToSymbolName => {
                "List the indexed references to a symbol that one file contains."
            }
            Self::LspCheck => {
                "Run 'cargo check' on a Cargo project and list its errors and warnings."
            }
        }
    }

    /// The JSON schema of the arguments.
    #[must_use]
    pub fn schema(self) -> Value {
        let property = |parameter: &Parameter| {
            let mut schema = json!({ "type": "string", "description": parameter.description });
            if parameter.role != Role::Contents
                && let Some(schema) = schema.as_object_mut()
            {
                schema.insert("minLength".to_owned(), json!(1));
            }
            (parameter.name.to_owned(), schema)
        };
        let required: Vec<_> = self
            .parameters()
            .iter()
            .filter(|it| it.required)
            .map(|it| it.name)
            .collect();
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": self.parameters().iter().map(property).collect::<Map<_, _>>(),
            "required": required,
        })
    }

    /// Whether the tool changes files of the workspace on purpose.
    #[must_use]
    pub const fn is_mutating(self) -> bool {
        match self {
            Self::FileWrite | Self::FileCreate | Self::SplicePatch | Self::SplicePlan => true,
            Self::FileRead
            | Self::FileSearch
            | Self::FileGlob
            | Self::SymbolsInFile
            | Self::ReferencesToSymbolName
            | Self::ReferencesFromFileToSymbolName
            | Self::LspCheck => false,
        }
    }

    /// The paths that the arguments alone say will change.
    ///
    /// For `splice_plan` these stand in the plan file; `run::changes` reads it.
    #[must_use]
    pub fn changes(self, arguments: &Arguments) -> Vec<String> {
        let name = match self {
            Self::FileWrite | Self::FileCreate => "path",
            Self::SplicePatch => "file",
            Self::SplicePlan
            | Self::FileRead
            | Self::FileSearch
            | Self::FileGlob
            | Self::SymbolsInFile
            | Self::ReferencesToSymbolName
            | Self::ReferencesFromFileToSymbolName
            | Self::LspCheck => return Vec::new(),
        };
        arguments.get(name).map(str::to_owned).into_iter().collect()
    }
}

const fn path(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        required: true,
        role: Role::Path,
        description,
    }
}

const fn text(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        kind: "String",
        required: true,
        role: Role::Text,
        description,
    }
}

const FILE_PATH: Parameter = path(
    "path",
    "String",
    "Path of the file, relative to the workspace.",
);
const CONTENTS: Parameter = Parameter {
    role: Role::Contents,
    ..text(
        "contents",
        "The whole new content of the file, at most 1 MiB.",
    )
};
const REGEX: Parameter = text("pattern", "Regular expression, matched within one line.");
const GLOB: Parameter = text("pattern", "Glob relative to the root, such as '**/*.rs'.");
const ROOT: Parameter = path(
    "root",
    "PathBuf",
    "Folder or file to look in; '.' is the whole workspace.",
);
const SOURCE_FILE: Parameter = path(
    "file",
    "PathBuf",
    "Path of the source file, relative to the workspace.",
);
const SYMBOL: Parameter = text("symbol", "Name of the symbol that is replaced.");
const KIND: Parameter = Parameter {
    kind: "Option<String>",
    required: false,
    ..text(
        "kind",
        "Kind of the symbol, such as 'fn', 'struct' or 'enum'.",
    )
};
const WITH: Parameter = path(
    "with",
    "PathBuf",
    "Path of the file that holds the replacement.",
);
const PLAN_FILE: Parameter = path("file", "PathBuf", "Path of the splice plan file.");
const INDEXED_FILES: Parameter = text(
    "pattern",
    "Path of an indexed file, or a glob such as 'src/**/*.rs'.",
);
const SYMBOL_NAME: Parameter = text("name", "Name of the symbol.");
const PROJECT_PATH: Parameter = path(
    "path",
    "PathBuf",
    "A folder or file of the Cargo project; '.' is the workspace.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_for_serde_and_strum() {
        for tool in Tool::ALL {
            assert_eq!(json!(tool), json!(tool.name()));
            assert_eq!(tool.name().parse(), Ok(tool));
        }
        assert_eq!(Tool::LspCheck.to_string(), "lsp_check");
    }

    #[test]
    fn parameters_are_those_of_the_specification() {
        let listed: Vec<String> = Tool::ALL
            .iter()
            .map(|tool| {
                let parameters: Vec<String> = tool
                    .parameters()
                    .iter()
                    .map(|it| {
                        let required = if it.required { "required" } else { "optional" };
                        format!("{}: {} ({required})", it.name, it.kind)
                    })
                    .collect();
                format!("{tool} - {}", parameters.join(", "))
            })
            .collect();
        assert_eq!(
            listed,
            [
                "file_read - path: String (required)",
                "file_write - path: String (required), contents: String (required)",
                "file_create - path: String (required), contents: String (required)",
                "file_search - pattern: String (required), root: PathBuf (required)",
                "file_glob - pattern: String (required), root: PathBuf (required)",
                "splice_patch - file: PathBuf (required), symbol: String (required), kind: Option<String> (optional), with: PathBuf (required)",
                "splice_plan - file: PathBuf (required)",
                "symbols_in_file - pattern: String (required)",
                "references_to_symbol_name - name: String (required)",
                "references_from_file_to_symbol_name - file: PathBuf (required), name: String (required)",
                "lsp_check - path: PathBuf (required)",
            ]
        );
    }

    #[test]
    fn the_schema_lists_required_arguments_and_allows_no_others() {
        assert_eq!(
            Tool::SplicePatch.schema(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "file": { "type": "string", "minLength": 1, "description": "Path of the source file, relative to the workspace." },
                    "symbol": { "type": "string", "minLength": 1, "description": "Name of the symbol that is replaced." },
                    "kind": { "type": "string", "minLength": 1, "description": "Kind of the symbol, such as 'fn', 'struct' or 'enum'." },
                    "with": { "type": "string", "minLength": 1, "description": "Path of the file that holds the replacement." },
                },
                "required": ["file", "symbol", "with"],
            })
        );
    }
}
