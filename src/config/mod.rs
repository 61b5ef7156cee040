//! The configuration: parsed once, checked whole, all problems reported at once, each with its place.
//!
//! [`load`] reads the environment (with `.env`) and the config file and gives a [`Config`] in which every role has a
//! provider that is enabled, a model id, and a price unless it is local.

mod actions;
mod check;
#[cfg(test)]
mod check_tests;
pub mod env;
mod file;
mod policy;
mod shape;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use crate::domain::{Agent, Calibration, Mode, ReviewWeights, Role, Thresholds, Usd};

pub use actions::{ActionRules, ActionsPolicy, GuildPolicy, ProposerPolicy};
pub use check::{from_text, load, policy, without_models};
pub use env::Env;
pub use file::{Limits, OutputForm, PromptSet, ProviderKind, StructuredOutput, json_schema};
pub use variables::GOOD_TOKEN_CHARS;

/// One mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: a JSON pointer into the file, or the name of an environment variable.
    pub place: String,
    pub detail: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.detail)
    }
}

/// Every mistake found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", render(.0))]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// The one for an address that strangers reach while nothing keeps them out.
    pub fn unguarded(bind: SocketAddr) -> Self {
        let detail = format!(
            "{bind} is reachable from outside: set CONCLAVE_TOKEN, make a token (conclave token create), \
             or bind to 127.0.0.1"
        );
        Self(vec![Problem { place: "CONCLAVE_BIND".into(), detail }])
    }
}

fn render(problems: &[Problem]) -> String {
    let plural = if problems.len() == 1 { "problem" } else { "problems" };
    let lines: String = problems.iter().map(|p| format!("\n  - {p}")).collect();
    format!("{} {plural} in the configuration:{lines}", problems.len())
}

/// The whole configuration, resolved.
#[derive(Debug, Clone)]
pub struct Config {
    pub bind: SocketAddr,
    /// It may hold a password.
    pub database_url: SecretString,
    pub token: Option<SecretString>,
    pub prompts_dir: Option<PathBuf>,
    /// Empty: no attachment is fetched.
    pub attachment_hosts: BTreeSet<String>,
    /// Origins whose pages may call the API from a browser; empty: none.
    pub cors_origins: BTreeSet<String>,
    /// The enabled providers that some role uses.
    pub providers: BTreeMap<String, Provider>,
    pub roles: BTreeMap<Role, RoleModel>,
    pub policy: Policy,
    /// What is not as good as it could be, and stops nothing.
    pub warnings: Vec<Problem>,
    /// Fingerprint of the config file and of the resolved model ids; no secret goes into it.
    pub hash: String,
}

/// A provider as the config names it.
#[derive(Debug, Clone)]
pub struct Provider {
    pub kind: ProviderKind,
    /// `None` for the in-process model.
    pub base_url: Option<Url>,
    pub api_key: Option<SecretString>,
    pub max_concurrent: usize,
    pub structured_output: StructuredOutput,
    pub stream: bool,
    /// In-process model only: how many threads it may use.
    pub threads: Option<usize>,
}

/// A model's price in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// `None`: as input.
    pub cache_read: Option<f64>,
    /// `None`: with Anthropic 1.25 times input, else as input.
    pub cache_write: Option<f64>,
}

/// The model that a role speaks with.
#[derive(Debug, Clone)]
pub struct RoleModel {
    pub provider: String,
    pub kind: ProviderKind,
    /// The provider's model id; for the in-process model the path of its weights.
    pub model: String,
    pub max_tokens: u32,
    pub temperature: Option<f32>,
    pub output: OutputForm,
    pub prompts: PromptSet,
    /// `None` exactly for the in-process model, which costs nothing.
    pub price: Option<Price>,
    pub fallback: Option<Box<RoleModel>>,
}

impl RoleModel {
    /// The model's name for people: its id, or the file's name where the id is a path.
    pub fn shown(&self) -> String {
        match self.kind {
            ProviderKind::Local => std::path::Path::new(&self.model)
                .file_stem()
                .map_or_else(|| self.model.clone(), |stem| stem.to_string_lossy().into_owned()),
            ProviderKind::Anthropic | ProviderKind::Openai => self.model.clone(),
        }
    }
}

/// Caps, thresholds, weights, limits and deadlines.
#[derive(Debug, Clone)]
pub struct Policy {
    pub normal_max: Usd,
    pub deep_max: Usd,
    pub ask_user_threshold: f64,
    pub thresholds: Thresholds,
    pub llm_confidence_ceiling: f64,
    pub max_conflict_penalty: f64,
    pub max_coverage_bonus: f64,
    pub calibration: Calibration,
    pub review: ReviewWeights,
    pub role_weights: BTreeMap<Agent, f64>,
    pub disabled_agents: BTreeSet<Agent>,
    pub limits: Limits,
    pub call_timeout: Duration,
    pub connect_timeout: Duration,
    pub ask_deadline: Duration,
    pub audit_deadline: Duration,
    pub deep_deadline: Duration,
    pub retry_attempts: u32,
    pub retry_base: Duration,
    pub retry_max: Duration,
    /// Failures in a row of one model before it is spared, and for how long.
    pub breaker_failures: u32,
    pub breaker_open: Duration,
    pub hedge: HedgePolicy,
    pub clarification_window: Duration,
    pub lease: Duration,
    pub actions: ActionsPolicy,
}

/// When a call that everything waits for is made a second time.
#[derive(Debug, Clone)]
pub struct HedgePolicy {
    pub enabled: bool,
    /// Answers of the model that must be known before.
    pub least_samples: usize,
    /// The shortest wait.
    pub least: Duration,
}

impl Policy {
    pub fn cap(&self, mode: Mode) -> Usd {
        match mode {
            Mode::Ask | Mode::Audit => self.normal_max,
            Mode::Deep => self.deep_max,
        }
    }

    pub fn deadline(&self, mode: Mode) -> Duration {
        match mode {
            Mode::Ask => self.ask_deadline,
            Mode::Audit => self.audit_deadline,
            Mode::Deep => self.deep_deadline,
        }
    }
}
