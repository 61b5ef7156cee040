//! A provider as configured.

use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

/// A provider as configured.
#[derive(Debug, Clone)]
pub struct ProviderSpec {
    /// The name that roles and errors use.
    pub name: String,
    pub kind: ProviderKind,
    /// May end in `/v1` or not.
    pub base_url: Url,
    pub api_key: Option<SecretString>,
    /// Maximum number of concurrent calls, at least 1.
    pub max_concurrent: usize,
    pub connect_timeout: Duration,
    pub structured_output: StructuredOutput,
    pub seeding: Seeding,
    /// True if replies are streamed. A stream that falls silent is noticed early.
    pub stream: bool,
    /// Headers sent with every call, besides those of the API.
    pub headers: Vec<(String, SecretString)>,
    /// The address of an HTTP proxy. It may contain a password.
    pub proxy: Option<SecretString>,
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// The Messages API.
    Anthropic,
    /// Chat Completions, of OpenAI and compatible servers.
    #[serde(rename = "openai")]
    OpenAi,
}

/// How a JSON schema is enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// The API's own schema output, or a forced tool for older Claude models.
    #[default]
    Auto,
    /// The API's own schema output: `output_config.format` or `response_format: json_schema`.
    JsonSchema,
    /// A forced call of one tool whose input is the reply.
    Tool,
    /// JSON mode, with the schema in the prompt. Anthropic has no such mode, so there it is the
    /// same as `None`.
    JsonObject,
    /// Only the schema in the prompt.
    None,
}

/// Whether the seed is sent to a provider. Hosted providers often refuse or ignore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seeding {
    #[default]
    Omit,
    /// Sent to OpenAI-compatible servers. The Messages API has no seed.
    Send,
}
