//! A provider of models, as configured.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::StructuredOutput;

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// The Anthropic Messages API.
    Anthropic,
    /// Chat Completions, as OpenAI, xAI, Ollama, llama.cpp, vLLM and OpenRouter speak it.
    Openai,
    /// A GGUF model inside this process.
    Local,
}

/// A provider with its resolved settings.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The name that roles and errors use.
    pub name: String,
    pub kind: ProviderKind,
    /// May end in `/v1` or not. `None` for the in-process model.
    pub base_url: Option<Url>,
    pub api_key: Option<SecretString>,
    /// The environment variable of the key. `None` for the in-process model.
    pub key_variable: Option<String>,
    /// Maximum number of concurrent calls, at least 1.
    pub max_concurrent: usize,
    pub structured_output: StructuredOutput,
    /// True if replies are streamed. A stream that falls silent is noticed early.
    pub stream: bool,
    /// Headers sent with every call, besides those of the API.
    pub headers: Vec<(String, SecretString)>,
    /// The address of an HTTP proxy for all calls. It may contain a password.
    pub proxy: Option<SecretString>,
    /// The secrets in the headers and in the addresses of the server and the proxy. Like the key, they
    /// must never be shown.
    pub secrets: Vec<SecretString>,
    /// In-process model only: the number of threads that it may use.
    pub threads: Option<usize>,
}
