//! Events of tool plans and their executions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{EvidenceFocus, RunId, ToolPlan};

/// How a run of tools was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolSubmission {
    /// A request for a plan, with the evidence that the model is shown.
    Plan {
        focus: EvidenceFocus,
        evidence: Value,
        /// The path of the workspace that the plan is for. Older journals have none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        workspace: String,
    },
    /// An authorization of steps.
    Execution(Box<Authorized>),
}

/// The steps that a user authorized.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Authorized {
    /// The run that proposed the plan.
    pub plan: RunId,
    pub mode: AuthorizationMode,
    /// The plan to execute, as the user authorized it.
    pub content: ToolPlan,
    /// The ids of the steps to execute, in order.
    pub steps: Vec<String>,
    /// The summaries that the plan was made from.
    pub evidence: Value,
    /// The path of the workspace. Older journals have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// The steps that change files, with the paths that the user saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<StepChanges>,
    /// The execution whose changes are taken back, with what is put back, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<RunId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restores: Vec<Restore>,
}

/// The files that a step will change.
// Older journals have an array of the two fields, which is read alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepChanges {
    pub step_id: String,
    pub paths: Vec<String>,
}

/// A file to be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    pub path: String,
    /// The SHA-256 that the file must have now; `None` if it must be absent.
    pub expected: Option<String>,
    /// The content to put back; `None` if the file was created and is removed.
    pub old: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum AuthorizationMode {
    /// One step.
    Step,
    /// All steps that are left.
    Plan,
    /// All steps of a plan that the user changed.
    Modified,
    /// None: the user closed the plan.
    Cancel,
    /// The old contents of the files that an execution changed.
    Undo,
}

/// The model's plan, and why it is rejected, if it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolPlanned {
    pub plan: ToolPlan,
    /// The steps that change files, with the paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<StepChanges>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
}

/// Why a plan is not executed. The same plan is always rejected in the same words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rejection {
    pub kind: RejectionKind,
    /// The step, if one is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    pub message: String,
    /// The tools that exist, or the schema of the tool's arguments.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub help: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RejectionKind {
    UnknownTool,
    InvalidArguments,
    InvalidPlan,
    PreconditionFailed,
    InsufficientEvidence,
    ForbiddenOperation,
}

/// A file before a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBefore {
    pub path: String,
    /// `None` if there is no such file.
    pub content: Option<String>,
}

/// A step is about to run. The old contents are kept, so that its changes can be taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStarted {
    pub step_id: String,
    pub tool: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<FileBefore>,
}

/// A changed file, by the SHA-256 of its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ChangeView")]
pub struct FileChange {
    pub path: String,
    /// Null if the file was created.
    pub before: Option<String>,
    /// Null if the file is gone.
    pub after: Option<String>,
    /// The old content, if the begin of the step does not have it. Clients do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub old: Option<String>,
}

/// A step ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StepView")]
pub struct StepFinished {
    pub step_id: String,
    pub tool: String,
    pub ok: bool,
    #[serde(default)]
    pub output: String,
    /// The tool's error, word for word.
    #[serde(default)]
    pub error: Option<String>,
    /// True if the process died while the step was under way.
    #[serde(default)]
    pub in_doubt: bool,
    #[serde(default)]
    pub changed: Vec<FileChange>,
    /// The output as data.
    // Only a check has some: a view of the database counts evidence from it.
    #[serde(default)]
    pub value: Value,
    /// The files that the step read or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub files: Vec<String>,
    /// The codes of the diagnostics in the output, once for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub codes: Vec<String>,
}

impl StepFinished {
    /// The end of a step without output. Without an error it is a success.
    pub fn new(step_id: &str, tool: &str, error: Option<String>) -> Self {
        Self {
            step_id: step_id.to_owned(),
            tool: tool.to_owned(),
            ok: error.is_none(),
            error,
            ..Self::default()
        }
    }
}

/// The explanation of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExplanationView")]
pub struct Explained {
    pub text: String,
    pub source: ExplanationSource,
    /// What was wrong with the model's texts.
    #[serde(default)]
    pub rejected: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplanationSource {
    Model,
    /// The model's second text, after the first was rejected.
    Restated,
    /// The raw output of the tools.
    Output,
}

/// Returns the key of the event that a step of a plan is about to run.
pub(super) fn step_started_key(step: &str) -> String {
    format!("step/{step}/started")
}

/// Returns the key of the event that a step of a plan ended.
pub(super) fn step_finished_key(step: &str) -> String {
    format!("step/{step}/finished")
}
