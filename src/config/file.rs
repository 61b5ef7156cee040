//! The config file as it is written. Every field is optional, so that one mistake does not hide the
//! others.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::models::ModelData;
use crate::domain::{Calibration, Effort, Mode, ProviderKind, StructuredOutput};

/// `llm.config.json`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct File {
    /// The schema that editors complete from.
    #[serde(rename = "$schema")]
    #[allow(dead_code, reason = "for editors")]
    pub schema: Option<String>,
    /// LLM providers by name. The names `anthropic`, `openai`, `xai`, `openrouter`, `ollama` and
    /// `local` know their kind and address.
    pub providers: BTreeMap<String, ProviderFile>,
    pub models: Models,
    /// Prices by model id, in US dollars per million tokens. Known models have theirs; these
    /// override them.
    pub pricing: BTreeMap<String, PriceFile>,
    /// What models take, by model id: adds to what is known of them and overrides it.
    pub model_data: BTreeMap<String, ModelData>,
    pub policy: PolicyFile,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ProviderFile {
    pub enabled: Option<bool>,
    pub kind: Option<ProviderKind>,
    /// `<NAME>_BASE_URL` in the environment overrides it.
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the key; default `<NAME>_API_KEY`.
    pub api_key_env: Option<String>,
    /// Whether calls need a key; default true. A server of your own usually needs none.
    pub key_required: Option<bool>,
    /// Without its key this provider is left out: roles that name it are given their fallback.
    /// Default false.
    pub optional: bool,
    /// Calls cost nothing, as on a server of your own: its models need no price. Default false.
    pub free: bool,
    /// Sent with every call, such as a gateway's own key. A value may name an environment variable:
    /// `${NAME}`.
    pub headers: BTreeMap<String, String>,
    /// The address of an HTTP proxy; `env` takes `HTTPS_PROXY` (`HTTP_PROXY` for http addresses) of
    /// the environment. Default: none.
    pub proxy: Option<String>,
    /// Most calls under way at once; default 512, for the in-process model 4. The service makes
    /// fewer while the provider refuses calls or is slow.
    #[schemars(range(min = 1, max = 4096))]
    pub max_concurrent: Option<usize>,
    pub structured_output: StructuredOutput,
    /// Stream replies, so that a reply that stops arriving is given up after 20 s; default false.
    pub stream: bool,
    /// In-process model only: CPU threads; default the number of cores less one.
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<usize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Models {
    /// master, solver, critic, verifier; optionally editor, implementer, visual, and proposer (for
    /// actions; default: the master's model at the provider that `PROPOSER_PROVIDER` names).
    pub roles: BTreeMap<String, RoleFile>,
}

/// Free text that becomes a command.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ActionsFile {
    /// Commands that may be executed; default: all.
    #[schemars(with = "Option<Vec<String>>")]
    pub commands: Option<Vec<Option<String>>>,
    /// Of those, what a model may propose; default: all.
    #[schemars(with = "Option<Vec<String>>")]
    pub proposer_commands: Option<Vec<Option<String>>>,
    /// The most that one proposal may cost, in US dollars; default 0.05.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub max_usd: Option<f64>,
    /// How long a proposal is waited for, in milliseconds; default 5000.
    #[schemars(range(min = 100, max = 60_000))]
    pub timeout_ms: Option<u64>,
    /// How long a model's understanding of a text is used again in its scene, in seconds; default
    /// 30.
    #[schemars(range(min = 0, max = 3600))]
    pub cache_seconds: Option<u64>,
    /// How long a proposal can be confirmed, in seconds; default 900.
    #[schemars(range(min = 10, max = 86_400))]
    pub proposal_seconds: Option<u64>,
    /// Actions of one user a minute, on average; default 60. Each process counts for itself.
    #[schemars(range(min = 1, max = 100_000))]
    pub user_per_minute: Option<u32>,
    /// How many of them may come at once; default 20.
    #[schemars(range(min = 1, max = 100_000))]
    pub user_burst: Option<u32>,
    /// The most bytes of a user's sheets and memories in all guilds together; default 1048576.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub user_bytes: Option<u64>,
    /// Whether the committee narrates the result of `do`; default false. Each narration costs as
    /// much as a question.
    pub narration: Option<bool>,
    /// Record what was understood, and execute nothing; default false.
    pub shadow: Option<bool>,
    /// What differs in a guild, by its id.
    pub guilds: BTreeMap<String, GuildFile>,
}

/// What differs in a guild.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct GuildFile {
    /// false: the guild has opted out of actions.
    pub enabled: Option<bool>,
    /// Of the commands that may be executed, those that the guild wants; default: all.
    #[schemars(with = "Option<Vec<String>>")]
    pub commands: Option<Vec<Option<String>>>,
    pub narration: Option<bool>,
    pub shadow: Option<bool>,
}

/// Whether a role is asked for JSON or for prose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputForm {
    #[default]
    Json,
    /// For models that cannot follow a schema: the model writes prose, and fixed rules build the
    /// report.
    Text,
}

/// Which set of prompts a role is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptSet {
    Full,
    /// For a small context window.
    Compact,
    Text,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RoleFile {
    pub provider: Option<String>,
    /// Name of the environment variable that holds the model id.
    pub model: Option<String>,
    /// The model id where that variable is not set.
    #[schemars(length(min = 1))]
    pub default_model: Option<String>,
    /// Output tokens, thinking included. Default: 1200, or for a fallback the value of its role.
    #[schemars(range(min = 16, max = 200_000))]
    pub max_tokens: Option<u32>,
    /// How much the model may think before it answers: none, low, medium or high. A model that does
    /// not accept it is sent the next one that it accepts. Default: the least that the model
    /// accepts.
    pub effort: Option<Effort>,
    /// Sent only where the model takes it.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f32>,
    pub output: OutputForm,
    pub prompts: Option<PromptSet>,
    /// The model to ask when this one's provider is in trouble. It gets the same prompt: `output`
    /// and `prompts` are the same, and it writes at most as much as the role may.
    pub fallback: Option<Box<RoleFile>>,
}

/// A model's price in US dollars per million tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PriceFile {
    /// Needed.
    #[schemars(required, range(min = 0.0))]
    pub input: Option<f64>,
    /// Needed.
    #[schemars(required, range(min = 0.0))]
    pub output: Option<f64>,
    /// At most `input`; default: as input.
    #[schemars(range(min = 0.0))]
    pub cache_read: Option<f64>,
    /// Default: 1.25 times input.
    #[schemars(range(min = 0.0))]
    pub cache_write: Option<f64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PolicyFile {
    /// Cap of a run in ask and audit, in US dollars; default 0.10. `NORMAL_MAX_USD` overrides it.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub normal_max_usd: Option<f64>,
    /// Cap of a run in deep, in US dollars; default 0.50. `DEEP_MAX_USD` overrides it.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub deep_max_usd: Option<f64>,
    /// Cap of a tool plan, and of each execution of it, in US dollars; default `normalMaxUsd`.
    /// `TOOLS_MAX_USD` overrides it.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub tools_max_usd: Option<f64>,
    /// Below this c_final the committee asks instead of answering; default 0.70.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub ask_user_threshold: Option<f64>,
    /// Below this Cred an agent's status is DISCARD; default 0.35.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tau_hard: Option<f64>,
    /// Below this Cred an agent's status is QUARANTINE; default 0.55.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tau_soft: Option<f64>,
    /// Upper bound of the confidence that a model states itself; default 0.8.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub llm_confidence_ceiling: Option<f64>,
    /// The most learned answers that the master is shown for context; default 3.
    #[schemars(range(min = 0, max = 5))]
    pub max_candidates: Option<u8>,
    /// Shifts of the decision strategy by name; `confidence_threshold` shifts the confidence that a
    /// learned answer needs.
    pub personality_biases: BTreeMap<String, f64>,
    /// The most that conflict takes from c_final; default 0.60.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_conflict_penalty: Option<f64>,
    /// The most that coverage adds to c_final; default 0.10.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_coverage_bonus: Option<f64>,
    /// How the evidence for a final answer is weighed; default: the weights of the last fit.
    pub calibration: Calibration,
    /// Whether a model compares the key claims of all reports after round 1; default always.
    pub cross_check: CrossCheckWhen,
    /// Whether the core agents answer while the plan is made; default in ask.
    pub speculate: SpeculateFile,
    /// How much an agent's Cred counts in the BaseScore; default 1.
    pub role_weights: BTreeMap<String, f64>,
    /// Optional agents that never run.
    #[schemars(with = "Vec<String>")]
    pub disabled_agents: Vec<Option<String>>,
    pub limits: Limits,
    pub deadlines: Deadlines,
    pub retry: RetryFile,
    pub breaker: BreakerFile,
    /// How long a question waits for its answer, in minutes; default 30.
    #[schemars(range(min = 1, max = 10_080))]
    pub clarification_minutes: Option<u64>,
    /// How long a process may be silent before its runs are taken over, in seconds; default 30.
    #[schemars(range(min = 2, max = 3600))]
    pub lease_seconds: Option<u64>,
    pub actions: ActionsFile,
}

/// In which modes reports are cross-checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CrossCheckWhen {
    #[default]
    Always,
    /// In audit and deep.
    Audit,
    Never,
}

impl CrossCheckWhen {
    pub fn covers(self, mode: Mode) -> bool {
        match self {
            CrossCheckWhen::Always => true,
            CrossCheckWhen::Audit => mode.has_audit(),
            CrossCheckWhen::Never => false,
        }
    }
}

/// In which modes the core agents answer while the plan is made: in all, in none, or in those named.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum SpeculateFile {
    All(bool),
    In(BTreeSet<Mode>),
}

impl Default for SpeculateFile {
    fn default() -> Self {
        SpeculateFile::In(BTreeSet::from([Mode::Ask]))
    }
}

impl SpeculateFile {
    pub(super) fn modes(&self) -> BTreeSet<Mode> {
        match self {
            SpeculateFile::All(true) => BTreeSet::from([Mode::Ask, Mode::Audit, Mode::Deep]),
            SpeculateFile::All(false) => BTreeSet::new(),
            SpeculateFile::In(modes) => modes.clone(),
        }
    }
}

/// Limits on requests, runs and connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Runs in flight at once, including those that wait for a run slot, before 503.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_in_flight: usize,
    /// Bytes of a request body before 413.
    #[schemars(range(min = 1024))]
    pub body_bytes: usize,
    /// Characters of a message.
    #[schemars(range(min = 1))]
    pub message_chars: usize,
    pub attachments: usize,
    /// Bytes of one fetched attachment.
    pub attachment_bytes: usize,
    #[schemars(range(min = 1))]
    pub attachment_seconds: u64,
    /// What all runs accepted in one day (UTC) may cost together, in US dollars; null: no limit. A
    /// run counts with its cap until it has ended. Not below `deepMaxUsd`, or deep could never be
    /// served; likewise the two that follow.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub daily_usd: Option<f64>,
    /// The same for the runs of one user.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub user_daily_usd: Option<f64>,
    /// The same for the runs of one guild.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub guild_daily_usd: Option<f64>,
    /// Runs that one user may begin a minute, on average; null: no limit. Each process counts for
    /// itself.
    #[schemars(range(min = 1, max = 100_000))]
    pub user_per_minute: Option<u32>,
    /// How many of them may come at once; null: all.
    #[schemars(range(min = 1, max = 100_000))]
    pub user_burst: Option<u32>,
    /// Requests (POST) with one token a minute; null: no limit. Each process counts for itself.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub token_per_minute: Option<u32>,
    /// Requests (POST) from one address a minute, of IPv6 one /64 network; null: no limit. Behind a
    /// reverse proxy all clients have its address.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub address_per_minute: Option<u32>,
    /// Connections open at once; further ones wait.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: usize,
    /// How long a connection may take to send a request's headers, or be idle between two requests.
    #[schemars(range(min = 1, max = 3600))]
    pub header_seconds: u64,
    /// How long a request's body may take to arrive.
    #[schemars(range(min = 1, max = 3600))]
    pub body_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_in_flight: 2048,
            body_bytes: 256 * 1024,
            message_chars: 32_000,
            attachments: 10,
            attachment_bytes: 5 * 1024 * 1024,
            attachment_seconds: 10,
            daily_usd: None,
            user_daily_usd: None,
            guild_daily_usd: None,
            user_per_minute: None,
            user_burst: None,
            token_per_minute: None,
            address_per_minute: None,
            connections: 8192,
            header_seconds: 30,
            body_seconds: 30,
        }
    }
}

/// In seconds, at most a day. A call's deadline is at most a run's, and connecting takes at most a
/// call's.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Deadlines {
    #[schemars(range(min = 1, max = 86_400))]
    pub connect: Option<u64>,
    #[schemars(range(min = 1, max = 86_400))]
    pub call: Option<u64>,
    #[schemars(range(min = 1, max = 86_400))]
    pub ask: Option<u64>,
    #[schemars(range(min = 1, max = 86_400))]
    pub audit: Option<u64>,
    #[schemars(range(min = 1, max = 86_400))]
    pub deep: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RetryFile {
    /// Attempts at one call, the first included; default 4.
    #[schemars(range(min = 1, max = 10))]
    pub attempts: Option<u32>,
    /// The first delay in milliseconds, doubled each time with jitter; default 500.
    pub base_ms: Option<u64>,
    /// The longest delay in milliseconds; default 8000. All pauses together fit into a run.
    pub max_ms: Option<u64>,
}

/// When calls to a failing model are suspended.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct BreakerFile {
    /// Failures in a row of one model at one provider before its calls are suspended; default 8.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub failures: Option<u32>,
    /// For how many seconds; then one call at a time is tried; default 15.
    #[schemars(range(min = 1, max = 3600))]
    pub open_seconds: Option<u64>,
}

/// Returns the published schema of the config file.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}
