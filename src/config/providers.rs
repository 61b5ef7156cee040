//! Checks the providers: addresses, keys, headers and proxies.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::checker::Check;
use super::file::ProviderFile;
use super::presets::{ANTHROPIC, PRESETS, Preset};
use super::shape::below;
use super::variables::{NOT_FOR_HEADER, is_for_header};
use super::{Env, RoleModel, passwords, source};
use crate::domain::{Provider, ProviderKind, Role};

const LOCAL_HINT: &str = "to try it without any key, on a weak in-process model: make demo, or with a build that has it \
                          (cargo feature `local`) CONCLAVE_CONFIG=local, in a checkout also CONCLAVE_CONFIG=llm.config.local.json";

/// Says which variables other providers need than this one.
fn other_keys(variable: &str) -> String {
    let keys = PRESETS.iter().filter(|preset| preset.needs_key());
    let mut others: Vec<String> = keys.map(Preset::variable).collect();
    others.retain(|key| key != variable);
    let others = others.join(", ");
    format!(
        "other providers: set one of {others}, or OLLAMA_BASE_URL for Ollama (conclave init writes a config); "
    )
}

/// The problem of a provider whose kind is not known.
pub(super) const SAY_KIND: &str = "say what it speaks: anthropic, openai or local";

pub(super) fn kind_of(name: &str, provider: &ProviderFile) -> Option<ProviderKind> {
    let by_name = match name {
        "local" => Some(ProviderKind::Local),
        name => Preset::of(name).map(|preset| preset.kind),
    };
    provider.kind.or(by_name)
}

/// True if a provider is left out because it is optional and its key is not set.
pub(super) fn is_left_out(env: &Env, name: &str, provider: &ProviderFile) -> bool {
    provider.optional && env.get(&key_variable(name, provider)).is_none()
}

pub(super) fn key_variable(name: &str, provider: &ProviderFile) -> String {
    provider
        .api_key_env
        .clone()
        .unwrap_or_else(|| format!("{}_API_KEY", upper(name)))
}

impl Check<'_> {
    /// Returns the keys that are set for the providers of the config and for those with a built-in
    /// config.
    pub(super) fn provider_keys(&self) -> Vec<SecretString> {
        let configured = self.file().providers.iter();
        let configured = configured.map(|(name, provider)| key_variable(name, provider));
        let known = PRESETS.iter().filter(|preset| preset.needs_key());
        let variables = configured.chain(known.map(Preset::variable));
        let keys = variables.filter_map(|variable| self.env.get(&variable));
        keys.map(SecretString::from).collect()
    }
}

/// Returns what else can be asked: the providers whose keys are set, but `name`, and the in-process
/// model.
pub(super) fn other_ways(env: &Env, name: Option<&str>) -> String {
    let others = source::providers_with_keys(env).into_iter();
    let others = others.filter(|other| Some(*other) != name);
    let others = others.filter_map(Preset::of).map(|preset| {
        let (variable, name) = (preset.variable(), preset.name);
        format!("{variable} is set: use it with CONCLAVE_CONFIG={name} conclave ...; ")
    });
    others.collect::<String>() + LOCAL_HINT
}

/// True for a name of ASCII letters, digits and underscores. A key that was pasted in its place has
/// other signs.
fn is_variable(name: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_sign)
}

fn upper(name: &str) -> String {
    name.to_uppercase().replace(['-', '.'], "_")
}

impl Check<'_> {
    /// Returns the providers that the resolved roles use, with their keys and addresses.
    pub(super) fn providers(
        &mut self,
        roles: &BTreeMap<Role, RoleModel>,
    ) -> BTreeMap<String, Provider> {
        let file = self.file();
        let named: BTreeSet<&str> = file
            .models
            .roles
            .values()
            .flat_map(|r| std::iter::successors(Some(r), |r| r.fallback.as_deref()))
            .filter_map(|r| r.provider.as_deref())
            .collect();
        let mut providers = BTreeMap::new();
        for (name, provider) in &file.providers {
            let Some(kind) = kind_of(name, provider) else {
                if !named.contains(name.as_str()) {
                    self.missing(below(&below("/providers", name), "kind"), SAY_KIND);
                }
                continue;
            };
            let base_url = self.base_url(name, kind, provider);
            let used = named.contains(name.as_str()) && !is_left_out(self.env, name, provider);
            if provider.enabled == Some(false) || !used {
                continue;
            }
            let resolved = self.provider(name, kind, provider, base_url);
            providers.insert(name.clone(), resolved);
        }
        let local = roles.values().filter(|r| r.kind == ProviderKind::Local);
        let local: BTreeSet<&str> = local.map(|r| r.model.as_str()).collect();
        if local.len() > 1 {
            let detail =
                "the in-process provider holds one model at a time, and the roles name several";
            self.add("/models/roles", detail);
        }
        providers
    }

    /// Resolves a provider that a role uses.
    fn provider(
        &mut self,
        name: &str,
        kind: ProviderKind,
        provider: &ProviderFile,
        base_url: Option<Url>,
    ) -> Provider {
        let is_local = kind == ProviderKind::Local;
        let api_key = (!is_local).then(|| self.api_key(name, provider)).flatten();
        if is_local && !cfg!(feature = "local") {
            let detail = "this build has no in-process model: build it with `cargo build --features local`, or run `make demo`";
            self.add(below("/providers", name), detail);
        }
        if !is_local && provider.threads.is_some() {
            let place = below(&below("/providers", name), "threads");
            self.add(place, "only the in-process model has threads");
        }
        let default_concurrent = if is_local { 4 } else { 512 };
        let (headers, mut secrets) = self.headers(name, provider);
        self.check_key_header(name, kind, api_key.is_some(), provider);
        let proxy = self.proxy(name, provider, base_url.as_ref());
        let proxied = proxy.as_ref().map(|url| Url::parse(url.expose_secret()));
        let addresses = proxied.iter().flatten().chain(&base_url);
        secrets.extend(addresses.flat_map(passwords::of_server));
        Provider {
            name: name.to_owned(),
            kind,
            api_key,
            key_variable: (!is_local).then(|| key_variable(name, provider)),
            max_concurrent: provider.max_concurrent.unwrap_or(default_concurrent),
            structured_output: provider.structured_output,
            stream: provider.stream,
            headers,
            proxy,
            secrets,
            threads: provider.threads,
            base_url,
        }
    }

    fn base_url(&mut self, name: &str, kind: ProviderKind, provider: &ProviderFile) -> Option<Url> {
        let variable = format!("{}_BASE_URL", upper(name));
        let at = below(&below("/providers", name), "baseUrl");
        let (place, text) = match (self.env.get(&variable), provider.base_url.as_deref()) {
            (Some(url), _) => (variable, url),
            (None, Some(url)) => (at, url),
            (None, None) if kind == ProviderKind::Local => return None,
            (None, None) => match Preset::of(name).map(|preset| preset.address) {
                Some(address) => (at, address),
                None if kind == ProviderKind::Anthropic => (at, ANTHROPIC),
                None => {
                    self.missing(at, "this provider needs an address");
                    return None;
                }
            },
        };
        let url = http_url(text);
        if url.is_none() {
            self.add(place, "not an http or https address");
        }
        url
    }

    fn api_key(&mut self, name: &str, provider: &ProviderFile) -> Option<SecretString> {
        let variable = key_variable(name, provider);
        if provider
            .api_key_env
            .as_ref()
            .is_some_and(|name| !is_variable(name))
        {
            let place = below(&below("/providers", name), "apiKeyEnv");
            // The text may be a key.
            self.add(place, "not the name of an environment variable");
            return None;
        }
        let key = self.env.get(&variable);
        if key.is_some_and(|key| !is_for_header(key)) {
            self.add(&variable, NOT_FOR_HEADER);
        }
        let key = key.map(SecretString::from);
        let place = below("/providers", name);
        let sound = self.are_sound(&[&below(&place, "apiKeyEnv"), &below(&place, "keyRequired")]);
        let needed = provider
            .key_required
            .unwrap_or_else(|| Preset::of(name).is_none_or(Preset::needs_key));
        if key.is_none() && needed && sound {
            let mut ways = other_ways(self.env, Some(name));
            if source::providers_with_keys(self.env).is_empty() {
                ways = other_keys(&variable) + &ways;
            }
            let detail = format!("not set, and provider {name:?} needs it; {ways}");
            self.add_unset(&variable, &variable, detail);
        }
        key
    }

    /// Returns the headers of a provider with the variables in them replaced. Also returns the
    /// replaced values, because they are secrets.
    fn headers(
        &mut self,
        name: &str,
        provider: &ProviderFile,
    ) -> (Vec<(String, SecretString)>, Vec<SecretString>) {
        let place = below(&below("/providers", name), "headers");
        let (mut headers, mut secrets) = (vec![], vec![]);
        for (header, value) in &provider.headers {
            let at = below(&place, header);
            let variable = value
                .strip_prefix("${")
                .and_then(|rest| rest.strip_suffix('}'));
            let is_whole = variable.map_or(!value.contains("${"), is_variable);
            let value = match variable.map(|variable| (variable, self.env.get(variable))) {
                _ if !is_whole => {
                    let detail = "only a whole value may be ${NAME}, with the name of an environment variable";
                    self.add(at, detail);
                    continue;
                }
                None => value.as_str(),
                Some((_, Some(value))) => value,
                Some((variable, None)) => {
                    let detail = format!("environment variable {variable} is not set");
                    self.add_unset(variable, at, detail);
                    continue;
                }
            };
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            let ours = ["content-type", "content-length", "host", "idempotency-key"];
            if header.is_empty() || !header.chars().all(token) {
                self.add(at, "not the name of an HTTP header");
            } else if ours.contains(&header.to_lowercase().as_str()) {
                self.add(at, "this header is set by the service");
            } else if value.chars().any(|c| !(' '..='~').contains(&c)) {
                self.add(at, "a header's value is visible ASCII on one line");
            } else {
                headers.push((header.clone(), SecretString::from(value)));
                secrets.extend(variable.map(|_| SecretString::from(value)));
            }
        }
        (headers, secrets)
    }

    /// Adds a problem for a header of the config that the provider's key would replace.
    fn check_key_header(
        &mut self,
        name: &str,
        kind: ProviderKind,
        has_key: bool,
        provider: &ProviderFile,
    ) {
        let own = match kind {
            ProviderKind::Anthropic => "x-api-key",
            ProviderKind::Openai => "authorization",
            ProviderKind::Local => return,
        };
        let mut headers = provider.headers.keys();
        let Some(header) = headers.find(|header| header.eq_ignore_ascii_case(own)) else {
            return;
        };
        if has_key {
            let place = below(&below(&below("/providers", name), "headers"), header);
            let variable = key_variable(name, provider);
            let detail = format!(
                "this header carries the provider's key of {variable}: leave out one of them"
            );
            self.add(place, detail);
        }
    }

    /// Returns the proxy's address. It may contain a password, and is never shown.
    fn proxy(
        &mut self,
        name: &str,
        provider: &ProviderFile,
        target: Option<&Url>,
    ) -> Option<SecretString> {
        let mut place = below(&below("/providers", name), "proxy");
        let text = match provider.proxy.as_deref()? {
            "env" => {
                let plain = target.is_some_and(|url| url.scheme() == "http");
                let variable = if plain { "HTTP_PROXY" } else { "HTTPS_PROXY" };
                let lower = variable.to_lowercase();
                let names = [variable, &lower];
                let set = names
                    .into_iter()
                    .find(|name| self.env.get(name).is_some())?;
                place = set.to_owned();
                self.env.get(set)?
            }
            text => text,
        };
        if http_url(text).is_none() {
            let detail = "not the address of an HTTP proxy, such as http://proxy.example:3128";
            self.add(place, detail);
            return None;
        }
        Some(SecretString::from(text))
    }
}

fn http_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}
