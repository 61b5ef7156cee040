//! The model of each role, and where the models are.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::domain::{Agent, Provider, Role};
use crate::llm::without_password;
use crate::scoring::family;

/// Returns the models with their roles on one line. It points out a verifier of another family than
/// the solver.
pub(super) fn line(config: &Config) -> String {
    let mut models: Vec<(String, Vec<&'static str>)> = vec![];
    for (role, model) in &config.roles {
        let shown = format!("{} at {}", model.shown(), model.provider);
        match models.iter_mut().find(|(known, _)| *known == shown) {
            Some((_, roles)) => roles.push(role.as_str()),
            None => models.push((shown, vec![role.as_str()])),
        }
    }
    let shown = |(model, roles): &(String, Vec<_>)| format!("{} {model}", roles.join(", "));
    let models: Vec<String> = models.iter().map(shown).collect();
    let family_of = |agent: Agent| {
        let model = config.roles.get(&Role::Agent(agent));
        model.map(|model| family(&model.model))
    };
    let mixed = family_of(Agent::Verifier) != family_of(Agent::Solver);
    let note = " (the verifier is of another model family than the solver)";
    format!("{}{}", models.join("; "), if mixed { note } else { "" })
}

/// Returns the notices for the start: why this config was chosen, the models if there is more than
/// one family, and the models that retire soon.
pub(super) fn notices(config: &Config, now: jiff::Timestamp) -> Vec<String> {
    let models = config.roles.values();
    let families: BTreeSet<String> = models.map(|model| family(&model.model)).collect();
    let mut notices: Vec<String> = config.notice.iter().cloned().collect();
    if families.len() > 1 || config.notice.is_some() {
        notices.push(format!("models: {}", line(config)));
    }
    let warnings = config.retirements(now).into_iter();
    notices.extend(warnings.map(|warning| format!("warning: {warning}")));
    notices
}

/// Returns the address of each provider and the variable of its key, for a user whose run failed.
/// `None` if all models are in this process.
pub(super) fn places(config: &Config) -> Option<String> {
    let place = |provider: &Provider| {
        let mut url = without_password(provider.base_url.clone()?);
        url.set_query(None);
        let key = provider.key_variable.as_deref();
        let is_set = provider.api_key.is_some();
        let key = key.filter(|_| is_set);
        let key = key.map_or("no key".to_owned(), |name| format!("key in {name}"));
        let url = url.as_str().trim_end_matches('/');
        Some(format!("{} at {url} ({key})", provider.name))
    };
    let places: Vec<String> = config.providers.values().filter_map(place).collect();
    (!places.is_empty()).then(|| places.join(", "))
}
