//! From text and environment to a [`Config`], or to every problem there is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jsonschema::error::ValidationErrorKind;
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::file::{File, ProviderFile, RoleFile, json_schema};
use super::{Config, Env, OutputForm, Policy, Problem, Problems, PromptSet, Provider, ProviderKind, RoleModel};
use crate::domain::{Agent, CORE_AGENTS, Role, Thresholds, Usd, fingerprint};

const DEFAULT_CONFIG: &str = "llm.config.json";
const LOCAL_HINT: &str = "to try it without any key, on a weak in-process model: CONCLAVE_CONFIG=llm.config.local.json";

/// Reads the file that `CONCLAVE_CONFIG` names.
///
/// # Errors
/// Every problem of the file and of the environment, in one list.
pub fn load(env: &Env) -> Result<Config, Problems> {
    let path = env.get_or("CONCLAVE_CONFIG", DEFAULT_CONFIG);
    match std::fs::read_to_string(path) {
        Ok(text) => from_text(&text, env),
        Err(error) => {
            let detail = format!("cannot read the config file {path:?}: {}", error.kind());
            Err(Problems(vec![Problem { place: "CONCLAVE_CONFIG".into(), detail }]))
        }
    }
}

/// Checks the text of a config file against an environment.
///
/// # Errors
/// Every problem of the file and of the environment, in one list.
pub fn from_text(text: &str, env: &Env) -> Result<Config, Problems> {
    let mut check = Check { env, problems: vec![] };
    let file = match serde_json::from_str::<Value>(text) {
        Ok(value) => check.shape(value),
        Err(error) => {
            check.add("/", format!("not valid JSON: {error}"));
            File::default()
        }
    };
    let broken = check.problems.iter().any(|p| p.place == "/");
    let config = check.resolve(&file, text, broken);
    check.problems.sort();
    check.problems.dedup();
    match config {
        Some(config) if check.problems.is_empty() => Ok(config),
        _ => Err(Problems(check.problems)),
    }
}

struct Check<'a> {
    env: &'a Env,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn add(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), detail: detail.into() });
    }

    /// Reports what breaks the schema and takes it out, so that the rest can be checked too.
    fn shape(&mut self, mut value: Value) -> File {
        let Ok(schema) = jsonschema::validator_for(&json_schema()) else {
            self.add("/", "the schema of the config is broken");
            return File::default();
        };
        let mut found = vec![];
        for error in schema.iter_errors(&value) {
            let place = error.instance_path().to_string();
            match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    for key in unexpected {
                        let at = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
                        found.push((at, "unknown setting".to_owned()));
                    }
                }
                _ => found.push((place, error.to_string())),
            }
        }
        for (place, detail) in found {
            remove_at(&mut value, &place);
            self.add(if place.is_empty() { "/".to_owned() } else { place }, detail);
        }
        serde_json::from_value(value).unwrap_or_else(|error| {
            self.add("/", error.to_string());
            File::default()
        })
    }

    fn resolve(&mut self, file: &File, text: &str, broken: bool) -> Option<Config> {
        let policy = self.policy(file);
        let (bind, token) = self.bind();
        let mut roles = BTreeMap::new();
        if !broken {
            for (name, role) in &file.models.roles {
                let place = format!("/models/roles/{name}");
                match name.parse::<Role>() {
                    Ok(key) => {
                        if let Some(model) = self.role(file, &place, role) {
                            roles.insert(key, model);
                        }
                    }
                    Err(()) => self.add(place, format!("unknown role; the roles are {}", role_names())),
                }
            }
            for core in std::iter::once(Role::Master).chain(CORE_AGENTS.map(Role::Agent)) {
                if !file.models.roles.contains_key(core.as_str()) {
                    self.add(format!("/models/roles/{core}"), "this role is needed and not configured");
                }
            }
        }
        let providers = self.providers(file, &roles);
        let mut models: Vec<u8> = text.as_bytes().to_vec();
        for (role, model) in &roles {
            models.extend(format!("\n{role}={}", model.model).bytes());
        }
        Some(Config {
            bind: bind?,
            database_url: self.env.get_or("DATABASE_URL", "sqlite://data/conclave.db").to_owned(),
            token,
            prompts_dir: self.prompts_dir(),
            attachment_hosts: self.attachment_hosts(),
            providers,
            roles,
            policy: policy?,
            hash: fingerprint(&[&models]),
        })
    }

    fn bind(&mut self) -> (Option<SocketAddr>, Option<SecretString>) {
        let token = self.env.get("CONCLAVE_TOKEN").map(SecretString::from);
        let text = self.env.get_or("CONCLAVE_BIND", "127.0.0.1:8080");
        let Ok(bind) = text.parse::<SocketAddr>() else {
            self.add("CONCLAVE_BIND", format!("{text:?} is not an address with a port, such as 127.0.0.1:8080"));
            return (None, token);
        };
        if !bind.ip().is_loopback() && token.is_none() {
            let detail = format!("{bind} is reachable from outside: set CONCLAVE_TOKEN, or bind to 127.0.0.1");
            self.add("CONCLAVE_BIND", detail);
        }
        (Some(bind), token)
    }

    fn prompts_dir(&mut self) -> Option<PathBuf> {
        let dir = PathBuf::from(self.env.get("CONCLAVE_PROMPTS_DIR")?);
        if !dir.is_dir() {
            self.add("CONCLAVE_PROMPTS_DIR", format!("{} is not a directory", dir.display()));
        }
        Some(dir)
    }

    fn attachment_hosts(&self) -> BTreeSet<String> {
        let hosts = self.env.get_or("ATTACHMENT_HOSTS", "cdn.discordapp.com,media.discordapp.net");
        hosts.split([',', ' ']).map(|h| h.trim().to_lowercase()).filter(|h| !h.is_empty()).collect()
    }

    fn role(&mut self, file: &File, place: &str, role: &RoleFile) -> Option<RoleModel> {
        let before = self.problems.len();
        let name = role.provider.clone().unwrap_or_default();
        let provider = file.providers.get(&name);
        let kind = provider.map(|p| kind_of(&name, p));
        match provider {
            _ if role.provider.is_none() => self.add(place, "no provider is named"),
            None => self.add(format!("{place}/provider"), format!("there is no provider {name:?}")),
            Some(p) if p.enabled == Some(false) => {
                self.add(format!("{place}/provider"), format!("provider {name:?} is disabled"));
            }
            Some(_) if kind.flatten().is_none() => {
                self.add(format!("/providers/{name}/kind"), "say what it speaks: anthropic, openai or local");
            }
            Some(_) => {}
        }
        let variable = role.model.as_deref().unwrap_or_default();
        let default_path = crate::config::env::LOCAL_MODEL_DEFAULT;
        let model = match self.env.get(variable) {
            Some(model) => model.to_owned(),
            None if variable == "LOCAL_MODEL_PATH" => default_path.to_owned(),
            None if variable.is_empty() => {
                self.add(place, "no model is named: give the environment variable that holds the model id");
                String::new()
            }
            None => {
                let detail = format!("environment variable {variable} (the model id) is not set");
                self.add(format!("{place}/model"), detail);
                String::new()
            }
        };
        let kind = kind.flatten();
        let price = price_of(file, &model);
        if !model.is_empty() && price.is_none() && kind.is_some_and(|k| k != ProviderKind::Local) {
            let detail = format!("model {model:?} has no price: add it to /pricing, or its cost cannot be capped");
            self.add(format!("{place}/model"), detail);
        }
        let fallback = role.fallback.as_ref().and_then(|f| self.role(file, &format!("{place}/fallback"), f));
        if role.fallback.as_ref().is_some_and(|f| f.output != role.output || f.prompts != role.prompts) {
            let detail = "a fallback is given the role's own prompt: output and prompts must be as the role's";
            self.add(format!("{place}/fallback"), detail);
        }
        let kind = kind.filter(|_| self.problems.len() == before)?;
        let text = role.output == OutputForm::Text;
        Some(RoleModel {
            provider: name,
            kind,
            model,
            max_tokens: role.max_tokens.unwrap_or(1200),
            temperature: role.temperature,
            output: role.output,
            prompts: role.prompts.unwrap_or(if text { PromptSet::Text } else { PromptSet::Full }),
            price: if kind == ProviderKind::Local { None } else { price },
            fallback: fallback.map(Box::new),
        })
    }

    /// The providers that the resolved roles use, with their keys and addresses.
    fn providers(&mut self, file: &File, roles: &BTreeMap<Role, RoleModel>) -> BTreeMap<String, Provider> {
        let used: BTreeSet<&str> = file
            .models
            .roles
            .values()
            .flat_map(|r| std::iter::successors(Some(r), |r| r.fallback.as_deref()))
            .filter_map(|r| r.provider.as_deref())
            .collect();
        let mut providers = BTreeMap::new();
        for (name, provider) in &file.providers {
            let Some(kind) = kind_of(name, provider) else {
                if !used.contains(name.as_str()) {
                    self.add(format!("/providers/{name}/kind"), "say what it speaks: anthropic, openai or local");
                }
                continue;
            };
            let upper = name.to_uppercase().replace(['-', '.'], "_");
            let base_url = self.base_url(name, &upper, kind, provider);
            if provider.enabled == Some(false) || !used.contains(name.as_str()) {
                continue;
            }
            let api_key = if kind == ProviderKind::Local { None } else { self.api_key(name, &upper, provider) };
            if kind == ProviderKind::Local && !cfg!(feature = "local") {
                self.add(format!("/providers/{name}"), "this build has no in-process model (cargo feature `local`)");
            }
            let default_concurrent = if kind == ProviderKind::Local { 4 } else { 16 };
            let resolved = Provider {
                kind,
                base_url,
                api_key,
                max_concurrent: provider.max_concurrent.unwrap_or(default_concurrent),
                structured_output: provider.structured_output,
                threads: provider.threads,
            };
            providers.insert(name.clone(), resolved);
        }
        let local: BTreeSet<&str> =
            roles.values().filter(|r| r.kind == ProviderKind::Local).map(|r| r.model.as_str()).collect();
        if local.len() > 1 {
            self.add("/models/roles", "the in-process provider holds one model at a time, and the roles name several");
        }
        providers
    }

    fn base_url(&mut self, name: &str, upper: &str, kind: ProviderKind, provider: &ProviderFile) -> Option<Url> {
        let variable = format!("{upper}_BASE_URL");
        let (place, text) = match (self.env.get(&variable), provider.base_url.as_deref()) {
            (Some(url), _) => (variable, url.to_owned()),
            (None, Some(url)) => (format!("/providers/{name}/baseUrl"), url.to_owned()),
            (None, None) => match (name, kind) {
                (_, ProviderKind::Local) => return None,
                (_, ProviderKind::Anthropic) => return Url::parse("https://api.anthropic.com").ok(),
                ("openai", _) => return Url::parse("https://api.openai.com/v1").ok(),
                ("xai", _) => return Url::parse("https://api.x.ai/v1").ok(),
                _ => {
                    self.add(format!("/providers/{name}/baseUrl"), "this provider needs an address");
                    return None;
                }
            },
        };
        match Url::parse(&text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
            _ => {
                self.add(place, "not an http or https address");
                None
            }
        }
    }

    fn api_key(&mut self, name: &str, upper: &str, provider: &ProviderFile) -> Option<SecretString> {
        let variable = provider.api_key_env.clone().unwrap_or_else(|| format!("{upper}_API_KEY"));
        let key = self.env.get(&variable).map(SecretString::from);
        if key.is_none() && provider.key_required.unwrap_or(true) {
            self.add(&variable, format!("not set, and provider {name:?} needs it; {LOCAL_HINT}"));
        }
        key
    }

    fn policy(&mut self, file: &File) -> Option<Policy> {
        let p = &file.policy;
        let d = &p.deadlines;
        let normal_max = self.cap("NORMAL_MAX_USD", p.normal_max_usd.unwrap_or(0.10));
        let deep_max = self.cap("DEEP_MAX_USD", p.deep_max_usd.unwrap_or(0.50));
        let thresholds = Thresholds { tau_hard: p.tau_hard.unwrap_or(0.35), tau_soft: p.tau_soft.unwrap_or(0.55) };
        if thresholds.tau_hard > thresholds.tau_soft {
            let detail = format!("tauHard {} is above tauSoft {}", thresholds.tau_hard, thresholds.tau_soft);
            self.add("/policy/tauHard", detail);
        }
        let (connect, call) = (d.connect.unwrap_or(10), d.call.unwrap_or(60));
        let (ask, audit, deep) = (d.ask.unwrap_or(120), d.audit.unwrap_or(180), d.deep.unwrap_or(300));
        if connect > call {
            self.add("/policy/deadlines/connect", format!("{connect} s do not fit into a call's {call} s"));
        }
        if let Some((mode, run)) = [("ask", ask), ("audit", audit), ("deep", deep)].into_iter().find(|m| call > m.1) {
            self.add("/policy/deadlines/call", format!("{call} s do not fit into the {run} s of a run in {mode}"));
        }
        let role_weights = self.role_weights(&p.role_weights);
        let mut disabled_agents = BTreeSet::new();
        for (i, name) in p.disabled_agents.iter().enumerate() {
            match name.parse::<Agent>() {
                Ok(agent) if !agent.is_core() => {
                    disabled_agents.insert(agent);
                }
                Ok(_) => self.add(format!("/policy/disabledAgents/{i}"), "an agent of the core always runs"),
                Err(()) => self.add(format!("/policy/disabledAgents/{i}"), format!("there is no agent {name:?}")),
            }
        }
        Some(Policy {
            normal_max: normal_max?,
            deep_max: deep_max?,
            ask_user_threshold: p.ask_user_threshold.unwrap_or(0.70),
            thresholds,
            llm_confidence_ceiling: p.llm_confidence_ceiling.unwrap_or(0.8),
            max_conflict_penalty: p.max_conflict_penalty.unwrap_or(0.30),
            max_coverage_bonus: p.max_coverage_bonus.unwrap_or(0.10),
            role_weights,
            disabled_agents,
            limits: p.limits.clone(),
            call_timeout: Duration::from_secs(call),
            connect_timeout: Duration::from_secs(connect),
            ask_deadline: Duration::from_secs(ask),
            audit_deadline: Duration::from_secs(audit),
            deep_deadline: Duration::from_secs(deep),
            retry_attempts: p.retry.attempts.unwrap_or(3),
            retry_base: Duration::from_millis(p.retry.base_ms.unwrap_or(500)),
            retry_max: Duration::from_millis(p.retry.max_ms.unwrap_or(8000)),
            clarification_window: Duration::from_secs(60 * p.clarification_minutes.unwrap_or(30)),
            lease: Duration::from_secs(p.lease_seconds.unwrap_or(30)),
        })
    }

    fn cap(&mut self, variable: &str, from_file: f64) -> Option<Usd> {
        let dollars = match self.env.get(variable) {
            None => from_file,
            Some(text) => match text.parse::<f64>() {
                Ok(dollars) if dollars.is_finite() && dollars >= 0.0 => dollars,
                _ => {
                    self.add(variable, format!("{text:?} is not an amount in US dollars"));
                    return None;
                }
            },
        };
        Some(Usd::from_dollars(dollars))
    }

    fn role_weights(&mut self, weights: &BTreeMap<String, f64>) -> BTreeMap<Agent, f64> {
        let mut known = BTreeMap::new();
        for (name, weight) in weights {
            match name.parse::<Agent>() {
                Ok(agent) if weight.is_finite() && *weight >= 0.0 => {
                    known.insert(agent, *weight);
                }
                Ok(_) => self.add(format!("/policy/roleWeights/{name}"), "a weight is a number from 0 up"),
                Err(()) => self.add(format!("/policy/roleWeights/{name}"), "there is no such agent"),
            }
        }
        known
    }
}

fn kind_of(name: &str, provider: &ProviderFile) -> Option<ProviderKind> {
    provider.kind.or(match name {
        "anthropic" => Some(ProviderKind::Anthropic),
        "openai" | "xai" => Some(ProviderKind::Openai),
        "local" => Some(ProviderKind::Local),
        _ => None,
    })
}

/// The price of a model id, or of the same id without a date or "latest" at its end.
fn price_of(file: &File, model: &str) -> Option<super::Price> {
    let family = model.rsplit_once('-').and_then(|(family, tail)| {
        let dated = tail.len() == 8 && tail.bytes().all(|b| b.is_ascii_digit());
        (dated || tail == "latest").then_some(family)
    });
    file.pricing.get(model).or_else(|| file.pricing.get(family?)).copied()
}

fn role_names() -> String {
    let agents = Agent::ALL.map(Agent::as_str).join(", ");
    format!("master, {agents}")
}

/// Removes what stands at a JSON pointer, if it is there.
fn remove_at(value: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    let key = key.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(&key);
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = key.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../../llm.config.json");
    const LOCAL: &str = include_str!("../../llm.config.local.json");

    fn env(variables: &[(&str, &str)]) -> Env {
        Env::of(variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())))
    }

    fn places(result: Result<Config, Problems>) -> Vec<String> {
        result.err().map(|p| p.0.into_iter().map(|p| p.place).collect()).unwrap_or_default()
    }

    #[test]
    fn the_shipped_config_needs_only_a_key() {
        assert_eq!(places(from_text(SHIPPED, &env(&[]))), ["ANTHROPIC_API_KEY"]);
        let config = from_text(SHIPPED, &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap();
        assert_eq!(config.policy.normal_max, Usd::from_dollars(0.10));
        assert_eq!(config.roles.len(), 7);
    }

    #[test]
    fn the_local_config_needs_nothing() {
        let config = from_text(LOCAL, &env(&[])).unwrap();
        assert!(config.roles.values().all(|r| r.price.is_none() && r.output == OutputForm::Text));
    }

    #[test]
    fn a_missing_key_is_named_with_the_way_out() {
        let problems = from_text(SHIPPED, &env(&[])).unwrap_err().to_string();
        assert!(problems.contains("ANTHROPIC_API_KEY") && problems.contains("CONCLAVE_CONFIG=llm.config.local.json"));
    }

    #[test]
    fn five_mistakes_are_five_problems() {
        let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
        value["polcy"] = 1.into();
        value["policy"]["tauHard"] = "high".into();
        value["policy"]["deadlines"]["call"] = 200.into();
        value["models"]["roles"]["solver"]["provider"] = "openai".into();
        value["models"]["roles"]["critic"]["model"] = "NO_SUCH_VARIABLE".into();
        let problems = places(from_text(&value.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")])));
        let expected = [
            "/models/roles/critic/model",
            "/models/roles/solver/provider",
            "/policy/deadlines/call",
            "/policy/tauHard",
            "/polcy",
        ];
        let mut sorted = expected.map(str::to_owned).to_vec();
        sorted.sort();
        assert_eq!(problems, sorted);
    }

    #[test]
    fn a_model_without_a_price_is_refused() {
        let variables = env(&[("ANTHROPIC_API_KEY", "k"), ("SOLVER_MODEL", "claude-unknown")]);
        assert_eq!(places(from_text(SHIPPED, &variables)), ["/models/roles/solver/model"]);
    }

    #[test]
    fn outside_addresses_need_a_token() {
        let open = [("ANTHROPIC_API_KEY", "k"), ("CONCLAVE_BIND", "0.0.0.0:8080")];
        assert_eq!(places(from_text(SHIPPED, &env(&open))), ["CONCLAVE_BIND"]);
        let guarded = [open[0], open[1], ("CONCLAVE_TOKEN", "t")];
        assert!(from_text(SHIPPED, &env(&guarded)).is_ok());
    }

    #[test]
    fn no_secret_shows_in_debug_output() {
        let variables = env(&[("ANTHROPIC_API_KEY", "planted-secret"), ("CONCLAVE_TOKEN", "planted-secret")]);
        let config = from_text(SHIPPED, &variables).unwrap();
        assert!(!format!("{config:?} {variables:?}").contains("planted-secret"));
    }

    #[test]
    fn the_published_schema_is_the_one_in_force() {
        let published: Value = serde_json::from_str(include_str!("../../docs/llm.config.schema.json")).unwrap();
        assert_eq!(published, json_schema(), "regenerate it: conclave config schema > docs/llm.config.schema.json");
    }
}
