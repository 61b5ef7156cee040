//! A provider as configured.

use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::domain::StructuredOutput;

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
