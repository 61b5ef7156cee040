//! From text and environment to a [`Config`], or to every problem there is.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::env::LOCAL_MODEL_DEFAULT;
use super::file::{File, PriceFile, ProviderFile, RoleFile};
use super::shape::{Shaped, below, shape};
use super::{Config, Env, OutputForm, Price, Problem, Problems, PromptSet, Provider, ProviderKind, RoleModel};
use crate::domain::{Agent, CORE_AGENTS, Role, fingerprint};

const DEFAULT_MAX_TOKENS: u32 = 1200;
const DEFAULT_CONFIG: &str = "llm.config.json";
const LOCAL_HINT: &str = "to try it without any key, on a weak in-process model: CONCLAVE_CONFIG=llm.config.local.json";

/// The longest proposal.
const PROPOSAL_TOKENS: u32 = 400;

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
            check(&Shaped::unreadable(Problem { place: "CONCLAVE_CONFIG".into(), detail }), "", env)
        }
    }
}

/// The config file's text; that of an empty file if there is none and nobody named one.
fn text_or_nothing(env: &Env) -> Result<String, Problems> {
    let path = env.get_or("CONCLAVE_CONFIG", DEFAULT_CONFIG);
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && env.get("CONCLAVE_CONFIG").is_none() => {
            Ok("{}".into())
        }
        Err(error) => {
            let detail = format!("cannot read the config file {path:?}: {}", error.kind());
            Err(Problems(vec![Problem { place: "CONCLAVE_CONFIG".into(), detail }]))
        }
    }
}

/// The policy alone, for what calls no model and needs no key. Without a config file it is the built-in one.
///
/// # Errors
/// Every problem of the file's shape and of its policy, in one list.
pub fn policy(env: &Env) -> Result<super::Policy, Problems> {
    let text = text_or_nothing(env)?;
    let shaped = match serde_json::from_str::<Value>(&text) {
        Ok(value) => shape(value),
        Err(error) => {
            let detail = format!("not valid JSON: {error}");
            return Err(Problems(vec![Problem { place: "/".into(), detail }]));
        }
    };
    let mut check = Check { env, shaped: &shaped, problems: shaped.problems.clone(), warnings: vec![] };
    let policy = check.policy(&shaped.file.policy);
    check.problems.sort();
    check.problems.dedup();
    match policy {
        Some(policy) if check.problems.is_empty() => Ok(policy),
        _ => Err(Problems(check.problems)),
    }
}

/// The configuration for what asks no model: its roles and providers are empty, and nothing is said of them. Without a
/// config file the policy is the built-in one.
///
/// # Errors
/// Every problem of the file's shape, of its policy and of the environment, in one list.
pub fn without_models(env: &Env) -> Result<Config, Problems> {
    let text = text_or_nothing(env)?;
    let shaped = match serde_json::from_str::<Value>(&text) {
        Ok(value) => shape(value),
        Err(error) => Shaped::unreadable(Problem { place: "/".into(), detail: format!("not valid JSON: {error}") }),
    };
    let mut check = Check { env, shaped: &shaped, problems: shaped.problems.clone(), warnings: vec![] };
    let config = check.everything_but_models(&text);
    check.problems.sort();
    check.problems.dedup();
    match config {
        Some(config) if check.problems.is_empty() => Ok(config),
        _ => Err(Problems(check.problems)),
    }
}

/// Checks the text of a config file against an environment.
///
/// # Errors
/// Every problem of the file and of the environment, in one list.
pub fn from_text(text: &str, env: &Env) -> Result<Config, Problems> {
    let shaped = match serde_json::from_str::<Value>(text) {
        Ok(value) => shape(value),
        Err(error) => Shaped::unreadable(Problem { place: "/".into(), detail: format!("not valid JSON: {error}") }),
    };
    check(&shaped, text, env)
}

fn check(shaped: &Shaped, text: &str, env: &Env) -> Result<Config, Problems> {
    let mut check = Check { env, shaped, problems: shaped.problems.clone(), warnings: vec![] };
    let config = check.resolve(&shaped.file, text);
    check.problems.sort();
    check.problems.dedup();
    match config {
        Some(config) if check.problems.is_empty() => Ok(config),
        _ => Err(Problems(check.problems)),
    }
}

pub(super) struct Check<'a> {
    pub(super) env: &'a Env,
    shaped: &'a Shaped,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Check<'_> {
    pub(super) fn add(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), detail: detail.into() });
    }

    /// What is not as good as it could be, and stops nothing.
    pub(super) fn warn(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.warnings.push(Problem { place: place.into(), detail: detail.into() });
    }

    /// Whether all of these places hold what the user wrote, and nothing was taken out there.
    pub(super) fn are_sound(&self, places: &[&str]) -> bool {
        places.iter().all(|place| self.shaped.is_sound(place))
    }

    /// Reports what is missing at a place, unless something wrong was there.
    fn missing(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        let place = place.into();
        if self.shaped.is_sound(&place) {
            self.add(place, detail);
        }
    }

    fn resolve(&mut self, file: &File, text: &str) -> Option<Config> {
        let config = self.everything_but_models(text);
        self.prices(file);
        let mut roles = self.roles(file);
        self.propose_with(config.as_ref().map(|config| &config.policy), &mut roles);
        let providers = self.providers(file, &roles);
        let mut models: Vec<u8> = text.as_bytes().to_vec();
        for (role, model) in &roles {
            models.extend(format!("\n{role}={}", model.model).bytes());
        }
        let warnings = std::mem::take(&mut self.warnings);
        Some(Config { providers, roles, warnings, hash: fingerprint(&[&models]), ..config? })
    }

    fn everything_but_models(&mut self, text: &str) -> Option<Config> {
        let shaped = self.shaped;
        let policy = self.policy(&shaped.file.policy);
        let (bind, token) = self.bind();
        let database_url = self.database_url();
        let prompts_dir = self.prompts_dir();
        let (attachment_hosts, cors_origins) = (self.attachment_hosts(), self.cors_origins());
        self.logs();
        self.later_sections();
        Some(Config {
            bind: bind?,
            database_url,
            token,
            prompts_dir,
            attachment_hosts,
            cors_origins,
            providers: BTreeMap::new(),
            roles: BTreeMap::new(),
            policy: policy?,
            warnings: vec![],
            hash: fingerprint(&[text.as_bytes()]),
        })
    }

    fn prices(&mut self, file: &File) {
        for (model, price) in &file.pricing {
            let place = below("/pricing", model);
            for (name, given) in [("input", price.input), ("output", price.output)] {
                if given.is_none() {
                    self.missing(below(&place, name), "needed: US dollars per million tokens");
                }
            }
            if let (Some(input), Some(read)) = (price.input, price.cache_read)
                && read > input
            {
                self.add(below(&place, "cacheRead"), format!("{read} is dearer than input, {input}"));
            }
        }
    }

    fn roles(&mut self, file: &File) -> BTreeMap<Role, RoleModel> {
        let mut roles = BTreeMap::new();
        for (name, role) in &file.models.roles {
            let place = below("/models/roles", name);
            match name.parse::<Role>() {
                Ok(key) => {
                    if let Some(model) = self.role(file, &place, role, DEFAULT_MAX_TOKENS) {
                        roles.insert(key, model);
                    }
                }
                Err(()) => self.add(place, format!("unknown role; the roles are {}", role_names())),
            }
        }
        for core in std::iter::once(Role::Master).chain(CORE_AGENTS.map(Role::Agent)) {
            if !file.models.roles.contains_key(core.as_str()) {
                self.missing(format!("/models/roles/{core}"), "this role is needed and not configured");
            }
        }
        roles
    }

    /// The model that proposes actions: of the role `proposer`, else the master's. It is at the provider that was named.
    fn propose_with(&mut self, policy: Option<&super::Policy>, roles: &mut BTreeMap<Role, RoleModel>) {
        let Some(proposer) = policy.map(|policy| &policy.actions.proposer) else { return };
        let Some(wanted) = proposer.provider.as_ref().filter(|_| proposer.enabled) else {
            roles.remove(&Role::Proposer);
            return;
        };
        let Some(model) = roles.get(&Role::Proposer).or_else(|| roles.get(&Role::Master)).cloned() else { return };
        if model.provider == *wanted {
            roles.insert(Role::Proposer, RoleModel { max_tokens: model.max_tokens.min(PROPOSAL_TOKENS), ..model });
        } else {
            let detail = format!(
                "{wanted:?} is neither \"stub\" nor the provider of the role proposer, or of the master without one, which \
                 is {:?}: add models.roles.proposer with that provider",
                model.provider
            );
            self.add("PROPOSER_PROVIDER", detail);
        }
    }

    /// `max_tokens` is what counts where the role says nothing: a fallback's is the role's.
    fn role(&mut self, file: &File, place: &str, role: &RoleFile, max_tokens: u32) -> Option<RoleModel> {
        let before = self.problems.len();
        let max_tokens = role.max_tokens.unwrap_or(max_tokens);
        let (provider, kind) = self.provider_of(file, place, role);
        let model = self.model_id(place, role);
        let price = match (&model, kind) {
            (Some(model), Some(kind)) if kind != ProviderKind::Local => self.price(file, place, model),
            _ => None,
        };
        let fallback = role.fallback.as_ref().and_then(|f| self.fallback(file, place, (role, f), max_tokens));
        let kind = kind.filter(|_| self.problems.len() == before)?;
        Some(RoleModel {
            provider: provider?,
            kind,
            model: model?,
            max_tokens,
            temperature: role.temperature,
            output: role.output,
            prompts: prompts_of(role),
            price,
            fallback: fallback.map(Box::new),
        })
    }

    fn provider_of(&mut self, file: &File, place: &str, role: &RoleFile) -> (Option<String>, Option<ProviderKind>) {
        let at = format!("{place}/provider");
        let Some(name) = &role.provider else {
            if self.are_sound(&[&at]) {
                self.add(place, "no provider is named");
            }
            return (None, None);
        };
        let at_provider = below("/providers", name);
        let Some(provider) = file.providers.get(name) else {
            if self.are_sound(&[&at_provider]) {
                self.add(at, format!("there is no provider {name:?}"));
            }
            return (Some(name.clone()), None);
        };
        let kind = kind_of(name, provider);
        if provider.enabled == Some(false) {
            self.add(at, format!("provider {name:?} is disabled"));
        } else if kind.is_none() {
            self.missing(below(&at_provider, "kind"), "say what it speaks: anthropic, openai or local");
        }
        (Some(name.clone()), kind)
    }

    fn model_id(&mut self, place: &str, role: &RoleFile) -> Option<String> {
        let at = format!("{place}/model");
        let variable = role.model.as_deref().unwrap_or_default();
        match self.env.get(variable) {
            Some(model) => return Some(model.to_owned()),
            None if variable == "LOCAL_MODEL_PATH" => return Some(LOCAL_MODEL_DEFAULT.to_owned()),
            None if variable.is_empty() => {
                if self.are_sound(&[&at]) {
                    self.add(place, "no model is named: give the environment variable that holds the model id");
                }
            }
            None => self.add(at, format!("environment variable {variable} (the model id) is not set")),
        }
        None
    }

    /// The price of a model id, or of the same id without a date or "latest" at its end.
    fn price(&mut self, file: &File, place: &str, model: &str) -> Option<Price> {
        let family = model.rsplit_once('-').and_then(|(family, tail)| {
            let dated = tail.len() == 8 && tail.bytes().all(|b| b.is_ascii_digit());
            (dated || tail == "latest").then_some(family)
        });
        let ids: Vec<&str> = std::iter::once(model).chain(family).collect();
        let Some(&PriceFile { input, output, cache_read, cache_write }) =
            ids.iter().find_map(|id| file.pricing.get(*id))
        else {
            if ids.iter().all(|id| self.are_sound(&[&below("/pricing", id)])) {
                let detail = format!("model {model:?} has no price: add it to /pricing, or its cost cannot be capped");
                self.add(format!("{place}/model"), detail);
            }
            return None;
        };
        Some(Price { input: input?, output: output?, cache_read, cache_write })
    }

    fn fallback(
        &mut self,
        file: &File,
        place: &str,
        (role, fallback): (&RoleFile, &RoleFile),
        max_tokens: u32,
    ) -> Option<RoleModel> {
        let at = format!("{place}/fallback");
        let resolved = self.role(file, &at, fallback, max_tokens);
        let differs = fallback.output != role.output || prompts_of(fallback) != prompts_of(role);
        let forms = [place, &at].map(|role| [below(role, "output"), below(role, "prompts")]);
        if differs && forms.iter().flatten().all(|form| self.are_sound(&[form])) {
            self.add(at, "a fallback is given the role's own prompt: output and prompts must be as the role's");
        }
        resolved
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
                    let place = below(&below("/providers", name), "kind");
                    self.missing(place, "say what it speaks: anthropic, openai or local");
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
                self.add(below("/providers", name), "this build has no in-process model (cargo feature `local`)");
            }
            let default_concurrent = if kind == ProviderKind::Local { 4 } else { 64 };
            let resolved = Provider {
                kind,
                base_url,
                api_key,
                max_concurrent: provider.max_concurrent.unwrap_or(default_concurrent),
                structured_output: provider.structured_output,
                stream: provider.stream,
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
            (None, Some(url)) => (below(&below("/providers", name), "baseUrl"), url.to_owned()),
            (None, None) => match (name, kind) {
                (_, ProviderKind::Local) => return None,
                (_, ProviderKind::Anthropic) => return Url::parse("https://api.anthropic.com").ok(),
                ("openai", _) => return Url::parse("https://api.openai.com/v1").ok(),
                ("xai", _) => return Url::parse("https://api.x.ai/v1").ok(),
                _ => {
                    self.missing(below(&below("/providers", name), "baseUrl"), "this provider needs an address");
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
        let place = below("/providers", name);
        let sound = self.are_sound(&[&below(&place, "apiKeyEnv"), &below(&place, "keyRequired")]);
        if key.is_none() && provider.key_required.unwrap_or(true) && sound {
            self.add(&variable, format!("not set, and provider {name:?} needs it; {LOCAL_HINT}"));
        }
        key
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

fn prompts_of(role: &RoleFile) -> PromptSet {
    role.prompts.unwrap_or(if role.output == OutputForm::Text { PromptSet::Text } else { PromptSet::Full })
}

fn role_names() -> String {
    let agents = Agent::ALL.map(Agent::as_str).join(", ");
    format!("master, {agents}, proposer")
}
