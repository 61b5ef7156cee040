//! Every mistake is one problem, and no mistake hides another.

mod action_policy;
mod environment;
mod mistakes;
mod shipped;

use serde_json::Value;

use super::*;

const SHIPPED: &str = include_str!("../../../llm.config.json");
const LOCAL: &str = include_str!("../../../llm.config.local.json");

fn env(variables: &[(&str, &str)]) -> Env {
    Env::of(
        variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned())),
    )
}

fn places(result: Result<Config, Problems>) -> Vec<String> {
    result
        .err()
        .map(|p| p.0.into_iter().map(|p| p.place).collect())
        .unwrap_or_default()
}

/// Returns the places of the problems of the shipped config, with some values changed and a key
/// set.
fn places_with(changes: &[(&str, Value)], variables: &[(&str, &str)]) -> Vec<String> {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    for (pointer, new) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[key] = new.clone();
    }
    let variables = [&[("ANTHROPIC_API_KEY", "k")], variables].concat();
    places(from_text(&value.to_string(), &env(&variables)))
}

fn details(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    from_text(text, &env(variables))
        .unwrap_err()
        .0
        .into_iter()
        .map(|p| p.detail)
        .collect()
}
