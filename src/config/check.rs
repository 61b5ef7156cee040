//! Builds a [`Config`] from text and environment, or returns every problem.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use conclave_lenient_json::Unambiguous;

use super::checker::Check;
use super::env::LOCAL_MODEL_DEFAULT;
use super::file::RoleFile;
use super::providers::{SAY_KIND, is_left_out, key_variable, kind_of, other_ways};
use super::shape::{Shaped, below, shape};
use super::source;
use super::{
    Config, Env, ModelData, OutputForm, Problem, Problems, PromptSet, RoleModel, models, passwords,
};
use crate::domain::{
    Agent, CORE_AGENTS, Price, ProviderKind, Rate, Role, Traits, fingerprint, undated,
};

const DEFAULT_MAX_TOKENS: u32 = 1200;

/// Stands for an address that cannot be read, in a config that is not used.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The output limit of a proposal, in tokens.
const PROPOSAL_TOKENS: u32 = 400;

/// Loads the current config: the one of `CONCLAVE_CONFIG`, of the search path, or a built-in one.
///
/// # Errors
/// Every problem of the file and of the environment, in one list.
pub fn load(env: &Env) -> Result<Config, Problems> {
    match source::find(env) {
        Ok(source) => {
            let found = from_text(&source.text, env);
            let config = found.map_err(|problems| source.placed(problems, env))?;
            Ok(Config {
                source: source.shown,
                notice: source.notice,
                ..config
            })
        }
        Err(problem) => {
            let shaped = Shaped::unreadable(problem);
            check(&shaped, env, |check| check.resolve(""))
        }
    }
}

/// Loads only the policy of the current config, for commands that call no model and need no key.
///
/// # Errors
/// Every problem of the file's shape and of its policy, in one list.
pub fn policy(env: &Env) -> Result<super::Policy, Problems> {
    let source = source::find(env).map_err(|problem| Problems(vec![problem]))?;
    let shaped = shaped(&source.text);
    let policy = check(&shaped, env, |check| Some(check.policy()));
    policy.map_err(|problems| source.placed(problems, env))
}

/// Loads the configuration for commands that call no model. Roles and providers are empty and not
/// checked. Without a config file the policy is the built-in one.
///
/// # Errors
/// Every problem of the file's shape, of its policy and of the environment, in one list.
pub fn without_models(env: &Env) -> Result<Config, Problems> {
    let text = source::find_file(env)?;
    check(&shaped(&text), env, |check| {
        check.everything_but_models(&text)
    })
}

/// Checks the text of a config file against an environment.
///
/// # Errors
/// Every problem of the file and of the environment, in one list.
pub fn from_text(text: &str, env: &Env) -> Result<Config, Problems> {
    check(&shaped(text), env, |check| check.resolve(text))
}

fn shaped(text: &str) -> Shaped {
    let unreadable = |detail: &str| Shaped::unreadable(Problem::new("/", detail));
    if text.starts_with('\u{feff}') {
        return unreadable("begins with a byte order mark: save the file as UTF-8 without one");
    }
    match serde_json::from_str(text) {
        Ok(Unambiguous(value)) => shape(value),
        Err(error) => unreadable(&format!("not valid JSON: {error}")),
    }
}

/// Runs a check. Adds the problems of the file's shape and of the `.env` files.
fn check<'a, T>(
    shaped: &'a Shaped,
    env: &'a Env,
    run: impl FnOnce(&mut Check<'a>) -> Option<T>,
) -> Result<T, Problems> {
    let known = shaped.problems.iter().chain(&env.problems);
    let mut check = Check {
        env,
        shaped,
        problems: known.cloned().collect(),
        warnings: vec![],
    };
    let value = run(&mut check);
    check.problems.sort();
    check.problems.dedup();
    match value {
        Some(value) if check.problems.is_empty() => Ok(value),
        _ => Err(Problems(check.problems)),
    }
}

impl Check<'_> {
    /// Reports what is missing at a place, unless an invalid value was removed there.
    pub(super) fn missing(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        let place = place.into();
        if self.shaped.is_sound(&place) {
            self.add(place, detail);
        }
    }

    fn resolve(&mut self, text: &str) -> Option<Config> {
        let config = self.everything_but_models(text);
        self.prices();
        let mut roles = self.roles();
        self.propose_with(config.as_ref().map(|config| &config.policy), &mut roles);
        let providers = self.providers(&roles);
        let mut models: Vec<u8> = text.as_bytes().to_vec();
        for (role, model) in &roles {
            models.extend(format!("\n{role}={}", model.model).bytes());
        }
        let warnings = std::mem::take(&mut self.warnings);
        Some(Config {
            providers,
            roles,
            warnings,
            hash: fingerprint(&[&models]),
            ..config?
        })
    }

    fn everything_but_models(&mut self, text: &str) -> Option<Config> {
        let policy = self.policy();
        let (bind, token) = self.bind();
        let database = self.database();
        let prompts_dir = self.folder("CONCLAVE_PROMPTS_DIR");
        let tools_workspace = self.folder("TOOLS_WORKSPACE");
        let program_variables = self.program_variables();
        let (attachment_hosts, cors_origins) = (self.attachment_hosts(), self.cors_origins());
        self.logs();
        Some(Config {
            bind: bind.unwrap_or(NOWHERE),
            database_passwords: passwords::of_database(database.as_ref()?, self.env),
            database: database?,
            provider_keys: self.provider_keys(),
            data_folder: source::data_folder(self.env),
            token,
            prompts_dir,
            attachment_hosts,
            tools_workspace,
            program_variables,
            cors_origins,
            providers: BTreeMap::new(),
            roles: BTreeMap::new(),
            policy,
            warnings: vec![],
            source: "a text".into(),
            notice: None,
            hash: fingerprint(&[text.as_bytes()]),
        })
    }

    fn prices(&mut self) {
        for (model, price) in &self.file().pricing {
            let place = |name| below(&below("/pricing", model), name);
            for (name, given) in [("input", price.input), ("output", price.output)] {
                if given.is_none() {
                    self.missing(place(name), "needed: US dollars per million tokens");
                }
            }
            if let (Some(input), Some(read)) = (price.input, price.cache_read) {
                self.cache_is_cheaper(place("cacheRead"), read, input);
            }
        }
        for model in self.file().model_data.keys() {
            let known = models::known(model, &self.file().model_data);
            let Some(price) = known.as_ref().and_then(ModelData::price) else {
                continue;
            };
            let place = below("/modelData", model);
            let long = price.long.map(|long| ("/longContext/cacheRead", long.rate));
            for (name, rate) in [("/cacheRead", price.rate)].into_iter().chain(long) {
                self.cache_is_cheaper(format!("{place}{name}"), rate.cache_read, rate.input);
            }
        }
    }

    /// Adds a problem if input that was cached costs more than other input: it could not be reserved.
    fn cache_is_cheaper(&mut self, place: String, read: f64, input: f64) {
        if read > input {
            self.add(place, format!("{read} is dearer than input, {input}"));
        }
    }

    fn roles(&mut self) -> BTreeMap<Role, RoleModel> {
        let mut roles = BTreeMap::new();
        for (name, role) in &self.file().models.roles {
            let place = below("/models/roles", name);
            let Ok(key) = name.parse::<Role>() else {
                let agents: Vec<&str> = Agent::ALL.iter().map(Agent::into_str).collect();
                let agents = agents.join(", ");
                let detail = format!("unknown role; the roles are master, {agents}, proposer");
                self.add(place, detail);
                continue;
            };
            let model = self.role(&place, role, DEFAULT_MAX_TOKENS);
            roles.extend(model.map(|model| (key, model)));
        }
        for core in std::iter::once(Role::Master).chain(CORE_AGENTS.map(Role::Agent)) {
            if !self.file().models.roles.contains_key(core.as_str()) {
                let place = format!("/models/roles/{core}");
                self.missing(place, "this role is needed and not configured");
            }
        }
        roles
    }

    /// Sets the model that proposes actions: that of the role `proposer`, else the master's. Its
    /// provider must be the one that `PROPOSER_PROVIDER` names.
    fn propose_with(
        &mut self,
        policy: Option<&super::Policy>,
        roles: &mut BTreeMap<Role, RoleModel>,
    ) {
        let Some(proposer) = policy.map(|policy| &policy.actions.proposer) else {
            return;
        };
        let role = roles.remove(&Role::Proposer);
        let Some(wanted) = proposer.provider.as_ref().filter(|_| proposer.enabled) else {
            return;
        };
        let Some(mut model) = role.or_else(|| roles.get(&Role::Master).cloned()) else {
            return;
        };
        if model.provider == *wanted {
            model.max_tokens = model.max_tokens.min(PROPOSAL_TOKENS);
            roles.insert(Role::Proposer, model);
        } else {
            let detail = format!(
                "{wanted:?} is neither \"stub\" nor the provider of the role proposer, or of the master without one, which \
                 is {:?}: add models.roles.proposer with that provider",
                model.provider
            );
            self.add("PROPOSER_PROVIDER", detail);
        }
    }

    /// Resolves a role. `max_tokens` applies if the role sets none; a fallback inherits it from its
    /// role. If the provider of a role is left out, the role's fallback takes its place.
    fn role(&mut self, place: &str, role: &RoleFile, max_tokens: u32) -> Option<RoleModel> {
        let (file, before) = (self.file(), self.problems.len());
        let max_tokens = role.max_tokens.unwrap_or(max_tokens);
        if !self.is_here(role) {
            if role.fallback.is_none() {
                self.no_provider();
            }
            return self.fallback(place, role, max_tokens);
        }
        let (name, kind) = self.provider_of(place, role);
        let model = self.model_id(place, role);
        let known = model.as_ref();
        let known = known.and_then(|model| models::known(model, &file.model_data));
        let provider = name.as_ref().and_then(|name| file.providers.get(name));
        let price = match (&model, kind) {
            (None, _) | (_, None | Some(ProviderKind::Local)) => None,
            _ if provider.is_some_and(|provider| provider.free) => Some(Price::FREE),
            (Some(model), _) => self.price(place, model, known.as_ref()),
        };
        // A fallback whose providers are all left out is no error here.
        let mut later = std::iter::successors(role.fallback.as_deref(), |r| r.fallback.as_deref());
        let fallback = later
            .any(|later| self.is_here(later))
            .then(|| self.fallback(place, role, max_tokens));
        if let Some(known) = &known {
            self.limits_fit(place, known, max_tokens);
        }
        let kind = kind.filter(|_| self.problems.len() == before)?;
        let retires = known.as_ref().and_then(|known| known.retires);
        let traits = traits(known, kind);
        Some(RoleModel {
            provider: name?,
            kind,
            model: model?,
            max_tokens,
            effort: traits.effort(role.effort),
            temperature: role.temperature,
            traits,
            output: role.output,
            prompts: prompts_of(role),
            price,
            retires,
            fallback: fallback.flatten().map(Box::new),
        })
    }

    /// True unless the provider of a role is left out.
    fn is_here(&self, role: &RoleFile) -> bool {
        let name = role.provider.as_ref();
        let named = name.and_then(|name| Some((name, self.file().providers.get(name)?)));
        named.is_none_or(|(name, provider)| !is_left_out(self.env, name, provider))
    }

    /// Reports the roles whose providers are all left out, once for all of them.
    fn no_provider(&mut self) {
        let optional = self.file().providers.iter().filter(|(_, p)| p.optional);
        let names = optional.map(|(name, provider)| key_variable(name, provider));
        let unset: Vec<String> = names.filter(|name| self.env.get(name).is_none()).collect();
        let (unset, ways) = (unset.join(" or "), other_ways(self.env, None));
        let detail = format!("no provider of some roles has a key: set {unset}; {ways}");
        self.add("/models/roles", detail);
    }

    fn limits_fit(&mut self, place: &str, known: &ModelData, max_tokens: u32) {
        let most = known.max_output.into_iter().chain(known.context).min();
        if let Some(most) = most.filter(|most| *most < max_tokens) {
            let detail = format!("{max_tokens} is more than the {most} tokens of the model");
            self.add(below(place, "maxTokens"), detail);
        }
    }

    fn provider_of(
        &mut self,
        place: &str,
        role: &RoleFile,
    ) -> (Option<String>, Option<ProviderKind>) {
        let at = format!("{place}/provider");
        let Some(name) = &role.provider else {
            if self.are_sound(&[&at]) {
                self.add(place, "no provider is named");
            }
            return (None, None);
        };
        let at_provider = below("/providers", name);
        let Some(provider) = self.file().providers.get(name) else {
            if self.are_sound(&[&at_provider]) {
                self.add(at, format!("there is no provider {name:?}"));
            }
            return (Some(name.clone()), None);
        };
        let kind = kind_of(name, provider);
        if provider.enabled == Some(false) {
            self.add(at, format!("provider {name:?} is disabled"));
        } else if kind.is_none() {
            self.missing(below(&at_provider, "kind"), SAY_KIND);
        }
        (Some(name.clone()), kind)
    }

    fn model_id(&mut self, place: &str, role: &RoleFile) -> Option<String> {
        let at = format!("{place}/model");
        let variable = role.model.as_deref().unwrap_or_default();
        if let Some(model) = self.env.get(variable) {
            return Some(model.to_owned());
        }
        if variable.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let detail = format!(
                "{variable:?} is not the name of an environment variable: give one that holds the model id, and a \
                 model id itself as defaultModel"
            );
            self.add(at, detail);
            return None;
        }
        let default = role.default_model.clone();
        let default =
            default.or_else(|| source::default_model(role.provider.as_deref()?, variable));
        if default.is_some() {
            return default;
        }
        match variable {
            "LOCAL_MODEL_PATH" => {
                let path = source::data_folder(self.env).join(LOCAL_MODEL_DEFAULT);
                return Some(path.display().to_string());
            }
            "" => {
                if self.are_sound(&[&at]) {
                    let detail =
                        "no model is named: give the environment variable that holds the model id";
                    self.add(place, detail);
                }
            }
            variable => {
                let detail = format!(
                    "environment variable {variable} (the model id) is not set, and there is no defaultModel"
                );
                self.add_unset(variable, at, detail);
            }
        }
        None
    }

    /// Returns the price of a model id. It is the config's price for this id, the config's price
    /// for the same id without a date, or the known one. The step of a long request is the known one.
    fn price(&mut self, place: &str, model: &str, known: Option<&ModelData>) -> Option<Price> {
        let ids = [model, undated(model)];
        if let Some(own) = ids.iter().find_map(|id| self.file().pricing.get(*id)) {
            let rate = Rate::new(own.input?, own.output?, own.cache_read, own.cache_write);
            let long = known.and_then(|known| known.long(rate));
            return Some(Price { rate, long });
        }
        let price = known.and_then(ModelData::price);
        let [exact, undated] = ids.map(|id| below("/pricing", id));
        if price.is_none() && self.are_sound(&[&exact, &undated]) {
            let detail = format!(
                "model {model:?} has no price: add it to /pricing, or its cost cannot be capped (\"free\": true at its \
                 provider if calls cost nothing)"
            );
            self.add(format!("{place}/model"), detail);
        }
        price
    }

    /// Resolves the fallback of a role, if it has one.
    fn fallback(&mut self, place: &str, role: &RoleFile, max_tokens: u32) -> Option<RoleModel> {
        let fallback = role.fallback.as_deref()?;
        let at = format!("{place}/fallback");
        let resolved = self.role(&at, fallback, max_tokens);
        let differs = fallback.output != role.output || prompts_of(fallback) != prompts_of(role);
        let forms = [place, &at].map(|role| [below(role, "output"), below(role, "prompts")]);
        if differs && forms.iter().flatten().all(|form| self.are_sound(&[form])) {
            self.add(at, "a fallback is given the role's own prompt: output and prompts must be as the role's");
        }
        resolved
    }
}

fn traits(known: Option<ModelData>, kind: ProviderKind) -> Traits {
    if kind == ProviderKind::Local {
        // The in-process model does not think, and its output is constrained to the schema token by
        // token.
        return Traits {
            effort: Some(vec![]),
            ..Traits::unknown()
        };
    }
    known.map_or_else(Traits::unknown, |known| known.traits())
}

fn prompts_of(role: &RoleFile) -> PromptSet {
    role.prompts.unwrap_or(match role.output {
        OutputForm::Text => PromptSet::Text,
        OutputForm::Json => PromptSet::Full,
    })
}
