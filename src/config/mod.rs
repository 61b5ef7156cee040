//! The configuration. It is parsed once and checked as a whole. All problems are reported at once,
//! each with its place.
//!
//! [`load`] reads the environment (with `.env`) and the config file. It returns a [`Config`] in
//! which every role has an enabled provider, a model id, and a price unless it is local.

mod actions;
mod check;
mod checker;
#[cfg(test)]
mod check_tests;
mod database;
mod decisions;
mod dotenv;
pub mod env;
mod file;
mod models;
mod passwords;
mod policy;
mod presets;
mod providers;
mod shape;
mod source;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use crate::domain::{
    Agent, Effort, Mode, Obtained, Price, Provider, ProviderKind, Role, ScoringPolicy, Settings,
    Traits, Usd, counted,
};

pub use actions::{ActionRules, ActionsPolicy, ProposerPolicy};
pub use check::{from_text, load, policy, without_models};
pub use database::Database;
pub use decisions::{Decisions, Strategy};
pub use env::Env;
pub use file::{CrossCheckWhen, Limits, OutputForm, PromptSet, json_schema};
pub use models::{ModelData, RETIREMENT_WARNING_DAYS, shipped as shipped_models};
pub use presets::{PRESETS, Preset};
pub use source::{BUILT_IN, built_in, current, providers_with_keys, user_folder};
pub use variables::GOOD_TOKEN_CHARS;

/// One mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: a JSON pointer into the file, or the name of an environment variable.
    pub place: String,
    pub detail: String,
}

impl Problem {
    fn new(place: impl Into<String>, detail: impl Into<String>) -> Self {
        let (place, detail) = (place.into(), detail.into());
        Self { place, detail }
    }

    /// Returns the problem of weights of the in-process model that are not there.
    pub fn weights_missing(path: &str) -> Self {
        let detail = format!(
            "there are no weights at {path}: scripts/fetch-model.sh of a checkout gets them into data/models \
             (make demo does it too); LOCAL_MODEL_PATH names another place"
        );
        Self::new("LOCAL_MODEL_PATH", detail)
    }
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
    /// Returns the problem of an address that is reachable from outside without any token.
    pub fn unguarded(bind: SocketAddr) -> Self {
        let detail = format!(
            "{bind} is reachable from outside: set CONCLAVE_TOKEN, make a token (conclave token create), \
             or bind to 127.0.0.1"
        );
        Self(vec![Problem::new("CONCLAVE_BIND", detail)])
    }
}

fn render(problems: &[Problem]) -> String {
    let count = counted(problems.len(), "problem", "problems");
    let lines: String = problems.iter().map(|p| format!("\n  - {p}")).collect();
    format!("{count} in the configuration:{lines}")
}

/// The whole configuration, resolved.
#[derive(Debug, Clone)]
pub struct Config {
    pub bind: SocketAddr,
    pub database: Database,
    /// The passwords of the database, as written and decoded. They must never be shown.
    pub database_passwords: Vec<SecretString>,
    /// The keys of all known providers in the environment, of disabled ones too. They must never be
    /// shown.
    pub provider_keys: Vec<SecretString>,
    /// The folder of the data, unless the database is a file in another one.
    pub data_folder: PathBuf,
    pub token: Option<SecretString>,
    pub prompts_dir: Option<PathBuf>,
    /// If it is empty, no attachment is fetched.
    pub attachment_hosts: BTreeSet<String>,
    /// The root of tool plans; `None` if they are off.
    pub tools_workspace: Option<PathBuf>,
    /// `PATH`, `HOME` and what else the programs of tool plans are given.
    pub program_variables: BTreeMap<String, String>,
    /// Origins whose pages may call the API from a browser; empty: none.
    pub cors_origins: BTreeSet<String>,
    /// The enabled providers that some role uses.
    pub providers: BTreeMap<String, Provider>,
    pub roles: BTreeMap<Role, RoleModel>,
    pub policy: Policy,
    /// Problems that do not prevent the start.
    pub warnings: Vec<Problem>,
    /// The origin of the config: a path, or "built-in NAME".
    pub source: String,
    /// Why this config was chosen, if none was named.
    pub notice: Option<String>,
    /// Fingerprint of the config file and of the resolved model ids. It includes no secret.
    pub hash: String,
}

impl Config {
    /// Returns all warnings: those of the check, and the retirements of models.
    pub fn all_warnings(&self, now: jiff::Timestamp) -> Vec<Problem> {
        [self.warnings.clone(), self.retirements(now)].concat()
    }

    /// Returns a warning for each model of a role that retires within [`RETIREMENT_WARNING_DAYS`],
    /// or has retired.
    pub fn retirements(&self, now: jiff::Timestamp) -> Vec<Problem> {
        let today = now.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
        let mut warnings = BTreeSet::new();
        for (role, model) in &self.roles {
            for model in model.with_fallbacks() {
                let Some(day) = model.retires else { continue };
                let days = (day - today).get_days();
                if days <= RETIREMENT_WARNING_DAYS {
                    let when = if days < 0 {
                        "stopped answering on"
                    } else {
                        "stops answering on"
                    };
                    let detail = format!("{} {when} {day}: configure a newer model", model.model);
                    warnings.insert(Problem::new(format!("/models/roles/{role}"), detail));
                }
            }
        }
        warnings.into_iter().collect()
    }
}

/// The model of a role.
#[derive(Debug, Clone)]
pub struct RoleModel {
    pub provider: String,
    pub kind: ProviderKind,
    /// The provider's model id; for the in-process model the path of its weights.
    pub model: String,
    /// Output tokens, thinking included.
    pub max_tokens: u32,
    /// The effort that is sent: the nearest one that the model accepts. `None`: the setting is
    /// omitted.
    pub effort: Option<Effort>,
    pub temperature: Option<f32>,
    pub traits: Traits,
    pub output: OutputForm,
    pub prompts: PromptSet,
    /// `None` only for the in-process model, which costs nothing.
    pub price: Option<Price>,
    pub retires: Option<jiff::civil::Date>,
    pub fallback: Option<Box<RoleModel>>,
}

/// A call with fewer output tokens after the thinking is not worthwhile.
const MIN_OUTPUT_TOKENS: u32 = 256;

/// The factor of the output limits in deep.
const DEEP_FACTOR: u32 = 2;

/// Tokens of one word in an answer, with room for long words and for JSON's own characters. Texts
/// in English take 1.3, in German and Spanish up to 2.
const TOKENS_PER_WORD: u32 = 2;

impl RoleModel {
    /// Returns the settings of its calls.
    pub fn settings(&self) -> Settings {
        self.traits.settings(self.effort, self.temperature)
    }

    /// Returns the model and its fallbacks, in the order in which they are called.
    pub fn with_fallbacks(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |model| model.fallback.as_deref())
    }

    /// Returns the names of the provider and of the model there.
    pub fn provider_and_model(&self) -> (&str, &str) {
        (&self.provider, &self.model)
    }

    /// Returns the same model with the least thinking that it allows.
    pub fn with_least_effort(&self) -> Self {
        let effort = match self.traits.effort {
            Some(_) => self.traits.effort(Some(Effort::None)),
            None => self.effort.map(|effort| effort.min(Effort::Low)),
        };
        Self {
            effort,
            ..self.clone()
        }
    }

    /// Returns the output limit of a call whose answer has up to `visible` tokens.
    pub fn limit_for(&self, visible: u32) -> u32 {
        self.effort
            .map_or(visible, |effort| effort.limit_for(visible))
            .min(self.max_tokens)
    }

    /// Returns the output limit in a mode: `maxTokens`, and in deep, which has the larger cap,
    /// twice as many.
    pub fn limit_in(&self, mode: Mode) -> u32 {
        let factor = if mode == Mode::Deep { DEEP_FACTOR } else { 1 };
        let most = self.traits.max_output.unwrap_or(u32::MAX);
        self.max_tokens
            .saturating_mul(factor)
            .min(most.max(self.max_tokens))
    }

    /// Returns the most tokens that other models are shown of a report of so many output tokens. One
    /// that is read from plain text has its key claim twice.
    pub fn report_tokens(&self, tokens: u32) -> u64 {
        let obtained = match self.output {
            OutputForm::Json => Obtained::Clean,
            OutputForm::Text => Obtained::Text,
        };
        obtained.shown_tokens(u64::from(tokens))
    }

    /// Returns the words that a model can be told to write under an output limit, besides `rest`
    /// tokens: what its thinking leaves, as a multiple of 50 and at least 50.
    pub fn words_in(&self, limit: u32, rest: u32) -> u32 {
        let visible = self.effort.map_or(limit, |effort| effort.visible_in(limit));
        let words = visible.saturating_sub(rest) / TOKENS_PER_WORD;
        (words / 50 * 50).max(50)
    }

    /// Returns the smallest output limit with which the model is asked.
    pub fn least_tokens(&self) -> u32 {
        self.limit_for(MIN_OUTPUT_TOKENS)
    }

    /// Returns the model's name for people: its id, or the file's name if the id is a path.
    pub fn shown(&self) -> String {
        match self.kind {
            ProviderKind::Local => std::path::Path::new(&self.model).file_stem().map_or_else(
                || self.model.clone(),
                |stem| stem.to_string_lossy().into_owned(),
            ),
            ProviderKind::Anthropic | ProviderKind::Openai => self.model.clone(),
        }
    }
}

/// Caps, thresholds, weights, limits and deadlines.
#[derive(Debug, Clone)]
pub struct Policy {
    pub normal_max: Usd,
    /// Cap of a tool plan, and of each execution.
    pub tools_max: Usd,
    pub deep_max: Usd,
    pub scoring: ScoringPolicy,
    pub llm_confidence_ceiling: f64,
    pub cross_check: CrossCheckWhen,
    /// The modes in which the core agents answer while the plan is made.
    pub speculate: BTreeSet<Mode>,
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
    /// Failures in a row of one model before its calls are suspended, and for how long.
    pub breaker_failures: u32,
    pub breaker_open: Duration,
    pub clarification_window: Duration,
    pub lease: Duration,
    pub actions: ActionsPolicy,
    pub decisions: Decisions,
}

impl Policy {
    pub fn cap(&self, mode: Mode) -> Usd {
        match mode {
            Mode::Ask | Mode::Audit => self.normal_max,
            Mode::Deep => self.deep_max,
        }
    }

    /// Returns the longest time that the pauses between the attempts at one output take together.
    pub fn all_pauses(&self) -> Duration {
        let pauses = (1..self.retry_attempts).map(|tries| {
            let factor = 2u32.saturating_pow(tries - 1);
            self.retry_base.saturating_mul(factor).min(self.retry_max)
        });
        pauses.fold(Duration::ZERO, Duration::saturating_add)
    }

    pub fn deadline(&self, mode: Mode) -> Duration {
        match mode {
            Mode::Ask => self.ask_deadline,
            Mode::Audit => self.audit_deadline,
            Mode::Deep => self.deep_deadline,
        }
    }
}
