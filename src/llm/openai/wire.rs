//! Wire types of Chat Completions, with only the fields that are used.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::domain::Effort;

#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    pub model: &'a str,
    pub messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// OpenRouter only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Routing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
}

/// How OpenRouter may choose among the hosts of a model.
#[derive(Debug, Serialize)]
pub(super) struct Routing {
    /// Use only hosts that support every parameter. Others silently ignore the schema.
    pub require_parameters: bool,
}

/// Without this option a stream reports no usage, and the call would be settled at its reservation.
#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub include_usage: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub role: &'static str,
    pub content: Content<'a>,
}

/// Plain text is sent as a string, because some compatible servers do not accept parts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Debug, Serialize)]
pub(super) struct ImageUrl {
    pub url: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: JsonSchema<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct JsonSchema<'a> {
    pub name: &'a str,
    pub strict: bool,
    pub schema: &'a RawValue,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Tool<'a> {
    Function { function: Function<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Function<'a> {
    pub name: &'a str,
    pub description: &'static str,
    pub strict: bool,
    pub parameters: &'a RawValue,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolChoice<'a> {
    Function { function: FunctionName<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionName<'a> {
    pub name: &'a str,
}

#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub id: Option<String>,
    pub model: Option<String>,
    #[serde(default)]
    pub choices: Vec<Choice>,
    #[serde(default)]
    pub usage: Value,
    /// OpenRouter reports errors of the upstream provider with status 200.
    #[serde(default)]
    pub error: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub message: Reply,
    pub finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Reply {
    /// Text, or a list of parts from some compatible servers.
    #[serde(default)]
    pub content: Value,
    pub refusal: Option<String>,
    pub tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCall {
    pub function: Called,
}

#[derive(Debug, Deserialize)]
pub(super) struct Called {
    /// JSON as text, or an object from some compatible servers.
    #[serde(default)]
    pub arguments: Value,
}
