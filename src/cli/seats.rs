//! The model of each role, printed at the start of a run or of the service.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::domain::{Agent, Role};
use crate::scoring::family;

/// Returns the models with their roles on one line. It points out a verifier of another family than
/// the solver.
pub(super) fn line(config: &Config) -> String {
    let mut seats: Vec<(String, Vec<&'static str>)> = vec![];
    for (role, model) in &config.roles {
        let shown = format!("{} at {}", model.shown(), model.provider);
        match seats.iter_mut().find(|(known, _)| *known == shown) {
            Some((_, roles)) => roles.push(role.as_str()),
            None => seats.push((shown, vec![role.as_str()])),
        }
    }
    let seat = |(model, roles): &(String, Vec<_>)| format!("{} {model}", roles.join(", "));
    let seats: Vec<String> = seats.iter().map(seat).collect();
    let family_of = |agent: Agent| {
        let model = config.roles.get(&Role::Agent(agent));
        model.map(|model| family(&model.model))
    };
    let mixed = family_of(Agent::Verifier) != family_of(Agent::Solver);
    let note = " (the verifier is of another model family than the solver)";
    format!("{}{}", seats.join("; "), if mixed { note } else { "" })
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
